// Transforms of Winograd's F(m x m, 3 x 3), channels across lanes: Lavin, Gray, Fast Algorithms for Convolutional Neural
// Networks, CVPR 2016, section 4; points 0, 1, -1, infinity, and 2, -2 for m of 4. One dimension at a time: columns into an array
// that stays in L1, as 36 registers are more than there are, then rows.

// B' d: what a tile of the input becomes along one dimension.
template <int M, class V>
HONE_INLINE void winograd_input_line(const V (&d)[std::size_t{M + 2}], V (&t)[std::size_t{M + 2}]) {
    if constexpr (M == 2) {
        t[0] = d[0] - d[2];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[1] - d[3];
    } else {
        const V a = fma(V::set(-4), d[2], d[4]), b = fma(V::set(-4), d[1], d[3]), c = d[4] - d[2], e = d[3] - d[1];
        t[0] = fma(V::set(4), d[0], fma(V::set(-5), d[2], d[4]));
        t[1] = a + b;
        t[2] = a - b;
        t[3] = fma(V::set(2), e, c);
        t[4] = fma(V::set(-2), e, c);
        t[5] = fma(V::set(4), d[1], fma(V::set(-5), d[3], d[5]));
    }
}

// A' m: what products become along one dimension.
template <int M, class V>
HONE_INLINE void winograd_output_line(const V (&m)[std::size_t{M + 2}], V (&o)[std::size_t{M}]) {
    if constexpr (M == 2) {
        o[0] = m[0] + m[1] + m[2];
        o[1] = m[1] - m[2] - m[3];
    } else {
        const V s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
        o[0] = m[0] + s1 + s2;
        o[1] = fma(V::set(2), d2, d1);
        o[2] = fma(V::set(4), s2, s1);
        o[3] = fma(V::set(8), d2, d1) + m[5];
    }
}

template <class T, int M, bool Part>
HONE_INLINE void winograd_input_lanes(const winograd_input_tile<T>& g, index_t c, int lanes) {
    using V = vec<T, epilogue_lanes<T>>;
    constexpr int A = M + 2;
    V half[std::size_t{A}][std::size_t{A}];
    HONE_UNROLL
    for (int j = 0; j < A; ++j) {
        V d[std::size_t{A}], t[std::size_t{A}];
        HONE_UNROLL
        for (int i = 0; i < A; ++i) {
            const T* p = g.pixels[i * A + j] + c;
            if constexpr (Part) d[i] = load<T, epilogue_lanes<T>>(p, lanes);
            else d[i] = load<T, epilogue_lanes<T>>(p);
        }
        winograd_input_line<M>(d, t);
        HONE_UNROLL
        for (int i = 0; i < A; ++i) half[i][j] = t[i];
    }
    T* out = g.out + c;
    for (int i = 0; i < A; ++i) {
        V t[std::size_t{A}];
        winograd_input_line<M>(half[i], t);
        HONE_UNROLL
        for (int j = 0; j < A; ++j, out += g.out_step) store(out, t[j]);
    }
}

template <class T, int M>
HONE_NOINLINE HONE_FLATTEN void winograd_input(const winograd_input_tile<T>& g) {
    constexpr int W = epilogue_lanes<T>;
    index_t c = 0;
    for (; c + W <= g.channels; c += W) winograd_input_lanes<T, M, false>(g, c, W);
    if (c < g.channels) winograd_input_lanes<T, M, true>(g, c, static_cast<int>(g.channels - c));
}

template <class T, int M>
HONE_NOINLINE HONE_FLATTEN void winograd_output(const winograd_output_tile<T>& g) {
    constexpr int W = epilogue_lanes<T>, A = M + 2;
    using V = vec<T, W>;
    for (index_t c = 0; c < g.channels; c += W) {
        const T* in = g.in + c;
        V half[std::size_t{M}][std::size_t{A}];
        HONE_UNROLL
        for (int j = 0; j < A; ++j) {
            V m[std::size_t{A}], o[std::size_t{M}];
            HONE_UNROLL
            for (int i = 0; i < A; ++i) m[i] = load<T, W>(in + (i * A + j) * g.in_step);
            winograd_output_line<M>(m, o);
            HONE_UNROLL
            for (int i = 0; i < M; ++i) half[i][j] = o[i];
        }
        T* out = g.out + c;
        for (int i = 0; i < M; ++i) {
            V o[std::size_t{M}];
            winograd_output_line<M>(half[i], o);
            HONE_UNROLL
            for (int j = 0; j < M; ++j, out += g.out_step) store(out, o[j]);
        }
    }
}

template <class T>
inline constexpr winograd_kernels<T> winograd_record = {{&winograd_input<T, 2>, &winograd_input<T, 4>},
                                                        {&winograd_output<T, 2>, &winograd_output<T, 4>}};
