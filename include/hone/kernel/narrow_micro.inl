// Few columns, many rows: out (rows, 4) = A (rows, k) * B (k, 4), rows of A contiguous. A register holds four rows (of doubles
// two) of four columns; four steps of k of each row come with one load and are spread by a shuffle a step, where the tile would
// spend a load a row and step on a register of which it uses a quarter: 1000 x 3 x 1000 on Zen 5 at 38 GFLOP/s.
// Registers: 8 sums, 4 of B, 2 of A. Eight groups of rows are eight chains, what latency and throughput of fma ask for.
template <class T, int Groups>
HONE_INLINE void narrow_rows(const narrow_tile<T>& g, const T* const (&first)[4], index_t group_step, T* out) {
    using R = reg<T>;
    constexpr int lanes = R::lanes();
    typename R::type s[std::size_t{Groups}];
    HONE_UNROLL
    for (int i = 0; i < Groups; ++i) s[i] = R::zero();
    const T* b = g.b;
    index_t p = 0;
    for (; p + 4 <= g.k; p += 4, b += 4 * g.b_step) {
        const typename R::type b0 = R::repeat(b), b1 = R::repeat(b + g.b_step);
        const typename R::type b2 = R::repeat(b + 2 * g.b_step), b3 = R::repeat(b + 3 * g.b_step);
        HONE_UNROLL
        for (int i = 0; i < Groups; ++i) {
            const index_t at = i * group_step + p;
            typename R::type a;
            if constexpr (lanes == 16) a = R::join(first[0] + at, first[1] + at, first[2] + at, first[3] + at);
            else a = R::join(first[0] + at, first[1] + at);
            s[i] = R::fma(R::template spread<0>(a), b0, s[i]);
            s[i] = R::fma(R::template spread<1>(a), b1, s[i]);
            s[i] = R::fma(R::template spread<2>(a), b2, s[i]);
            s[i] = R::fma(R::template spread<3>(a), b3, s[i]);
        }
    }
    for (; p < g.k; ++p, b += g.b_step) {
        const typename R::type x = R::repeat(b);
        for (int i = 0; i < Groups; ++i) {
            T each[std::size_t{lanes}];
            for (int l = 0; l < lanes; ++l) each[l] = first[l / 4][i * group_step + p];
            s[i] = R::fma(R::load(each), x, s[i]);
        }
    }
    HONE_UNROLL
    for (int i = 0; i < Groups; ++i) R::store(out + lanes * i, s[i]);
}

template <class T>
HONE_NOINLINE void narrow_micro(const narrow_tile<T>& g) {
    const T* a = g.a;
    T* out = g.out;
    index_t left = g.rows;
    constexpr index_t per = reg<T>::lanes() / 4;                           // rows of a register
    // Rows a multiple of 4 KiB apart share one set of L1, which holds 8 or 12 of them: of 32 each line would come four times.
    const bool few_at_once = g.a_row % static_cast<index_t>(4096 / sizeof(T)) == 0;
    while (left >= 8 && (few_at_once || left >= 8 * per)) {
        const T* const first[4] = {a, a + g.a_row, a + 2 * g.a_row, a + 3 * g.a_row};
        const index_t rows = few_at_once ? 8 : 8 * per;
        if (few_at_once) narrow_rows<T, 8 / per>(g, first, per * g.a_row, out);
        else narrow_rows<T, 8>(g, first, per * g.a_row, out);
        left -= rows;
        a += rows * g.a_row;
        out += rows * 4;
    }
    for (; left > 0; left -= per, a += per * g.a_row, out += 4 * per) {
        const T* first[4];  // rows beyond the last are the last
        for (index_t i = 0; i < 4; ++i) first[i] = a + (i < left ? i : left - 1) * g.a_row;
        const T* const fixed[4] = {first[0], first[1], first[2], first[3]};
        narrow_rows<T, 1>(g, fixed, 0, out);
    }
}
