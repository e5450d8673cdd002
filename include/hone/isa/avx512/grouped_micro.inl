// The register tile of a convolution of groups that are narrower than a register: C channels in and out each, 16 / C groups side by
// side. A register of input holds a pixel's channels of all of them; for step p each lane takes channel p of its own group:
//
//   C = 8:  x = | group 0, channels 0..7    | group 1, channels 0..7    |    c += | x[p] x 8 | x[8 + p] x 8 | * w(p)
//   C = 4:  x = | group 0     | group 1     | group 2     | group 3     |
//
// Registers: 8 sums, 8 of input, 8 indices of vpermps (C = 4: vpermilps has its index in itself), one of weights. A step of a
// pixel is a shuffle and a multiply-add: on Zen 5 they go to different pipes, on Intel's cores one of the two ports does both, where
// half of the lanes would be empty otherwise.
// Indices are registers that no compiler sees through: Clang makes of constant ones other shuffles, of more registers than there are.
template <class T, int C>
struct group_lanes;
template <>
struct group_lanes<float, 4> {
    template <int P>
    HONE_INLINE reg<float>::type spread(reg<float>::type v) const {
        return reg<float>::spread<P>(v);
    }
};
template <>
struct group_lanes<float, 8> {
    typedef int index __attribute__((vector_size(64)));
    index of[8];
    HONE_INLINE group_lanes() {
        HONE_UNROLL
        for (int p = 0; p < 8; ++p) {
            const int q = p + 8;
            of[p] = index{p, p, p, p, p, p, p, p, q, q, q, q, q, q, q, q};
            asm("" : "+v"(of[p]));
        }
    }
    template <int P>
    HONE_INLINE reg<float>::type spread(reg<float>::type v) const {
#if HONE_CLANG
        return _mm512_permutexvar_ps(__builtin_bit_cast(__m512i, of[P]), v);
#else
        return __builtin_ia32_permvarsf512_mask(v, of[P], reg<float>::zero(), static_cast<unsigned short>(0xFFFF));
#endif
    }
};

template <class T, int C, int MR, int P>
HONE_INLINE void grouped_steps(const group_lanes<T, C>& lanes, typename reg<T>::type (&c)[std::size_t{MR}],
                               const typename reg<T>::type (&x)[std::size_t{MR}], const T* b, index_t step) {
    if constexpr (P < C) {
        using R = reg<T>;
        const typename R::type w = R::load(b);
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) c[i] = R::fma(lanes.template spread<P>(x[i]), w, c[i]);
        grouped_steps<T, C, MR, P + 1>(lanes, c, x, b + step, step);
    }
}

// As gemm_micro; a run is one tap, its length C; cols are channels of input as well as of output.
template <class T, int C, int MR>
HONE_NOINLINE void grouped_micro(const micro_tile<T>& g) {
    using R = reg<T>;
    const typename R::tail last = R::make_tail(g.cols);
    typename R::type c[std::size_t{MR}];                                   // (mr, 16 / C groups of C)
    HONE_UNROLL
    for (int i = 0; i < MR; ++i) {
        const int row = row_of(i, MR, g.height);
        c[i] = g.in_rows ? R::load(g.in_rows[row], last) : g.in ? R::load(g.in + row * g.in_row, last) : R::zero();
    }
    const group_lanes<T, C> lanes;
    const T* const* rows = g.rows;
    const int height = g.height;
    for (index_t r = 0; r < g.runs; ++r, rows += height) {
        typename R::type x[std::size_t{MR}];
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) x[i] = R::load(rows[row_of(i, MR, height)], last);
        grouped_steps<T, C, MR, 0>(lanes, c, x, g.b + g.start[r] * g.b_step, g.b_step);
    }
    if (g.bias) {
        const typename R::type b = R::load(g.bias, last);
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) c[i] = R::add(c[i], b);
    }
    if (g.relu) {
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) c[i] = R::relu(c[i]);
    }
    HONE_UNROLL
    for (int i = 0; i < MR; ++i) {
        const int row = row_of(i, MR, g.height);
        R::store(g.out_rows ? g.out_rows[row] : g.out + row * g.out_row, c[i], last);
    }
}

// The record of such tiles: columns are lanes of one register.
template <class T, int C>
inline gemm_kernel<T> make_grouped_kernel() {
    gemm_kernel<T> k;
    k.isa = hone::isa::HONE_REGION;
    k.lanes = k.panel = k.nr = reg<T>::lanes();
    k.mr = 8;
    k.masked = true;
    k.micro[0][0] = &grouped_micro<T, C, 1>;
    k.micro[1][0] = &grouped_micro<T, C, 2>;
    k.micro[2][0] = &grouped_micro<T, C, 4>;
    k.micro[4][0] = &grouped_micro<T, C, 8>;
    return k;
}
