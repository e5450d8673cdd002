// The register tile of kernel/gemm_micro.inl for registers whose size is not known to the compiler: they cannot be members or
// elements of anything, so every sum is a variable of its own, and tiles smaller than 6 x 4 leave some of them unused.
// Registers (32): 24 sums, 4 of B, one broadcast, and the predicates in their own file.
#define HONE_SVE_GRID(X) \
    X(0, 0) X(0, 1) X(0, 2) X(0, 3) \
    X(1, 0) X(1, 1) X(1, 2) X(1, 3) \
    X(2, 0) X(2, 1) X(2, 2) X(2, 3) \
    X(3, 0) X(3, 1) X(3, 2) X(3, 3) \
    X(4, 0) X(4, 1) X(4, 2) X(4, 3) \
    X(5, 0) X(5, 1) X(5, 2) X(5, 3)
#define HONE_SVE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define HONE_SVE_COLS(X) X(0) X(1) X(2) X(3)

template <class T, int MR, int NV>
HONE_NOINLINE void gemm_micro(const micro_tile<T>& g) {
    static_assert(MR <= 6 && NV <= 4);
    using R = reg<T>;
    const index_t lanes = R::lanes(), width = R::panel();
    const typename R::tail last = R::make_tail(g.cols);
#define X(j) [[maybe_unused]] const index_t o##j = j * lanes / width * g.b_panel + j * lanes % width;
    HONE_SVE_COLS(X)
#undef X
    const T *first_a = g.a, *first_b = g.b, *in = g.in, *first_ahead = g.ahead;
    T* out = g.out;
    for (index_t tile = 0; tile < g.tiles; ++tile) {
#define X(i, j) [[maybe_unused]] typename R::type c##i##j = R::zero();
        HONE_SVE_GRID(X)
#undef X
        if (in || g.in_rows) {
#define X(i) [[maybe_unused]] const T* s##i = \
        i >= MR ? nullptr : g.in_rows ? g.in_rows[row_of(i, MR, g.height)] : in + row_of(i, MR, g.height) * g.in_row;
            HONE_SVE_ROWS(X)
#undef X
#define X(i, j)                                                                                       \
    if constexpr (i < MR && j < NV - 1) c##i##j = R::load(s##i + j * lanes);                          \
    if constexpr (i < MR && j == NV - 1) c##i##j = R::load(s##i + j * lanes, last);                   \
    if constexpr (i < MR && j < NV) __builtin_prefetch(s##i + g.in_walk + j * lanes, 1);
            HONE_SVE_GRID(X)
#undef X
            in += g.in_walk;
        }
        const T* const* rows = g.rows;
        const T* ahead = first_ahead;
        index_t ahead_left = g.ahead_count;
        for (index_t r = 0; r < g.runs; ++r) {
            const T* b = rows ? first_b + g.start[r] * g.b_step : first_b;                            // (length, nr) in panels
#define X(i) [[maybe_unused]] const index_t r##i = i < MR ? row_of(i, MR, g.height) : 0;                        \
    [[maybe_unused]] const T* a##i = rows ? rows[r##i] : first_a + r##i * g.a_row;
            HONE_SVE_ROWS(X)
#undef X
            if (rows) rows += g.height;
            for (index_t p = 0; p < g.length;) {
                index_t end = g.length;
                if (ahead_left > 0) {
                    for (int u = 0; u < 4; ++u, ahead += g.ahead_step) {
                        for (index_t j = 0; j * width < NV * lanes; ++j) {
                            if (g.ahead_strided) __builtin_prefetch(ahead + j * g.ahead_panel, 0, 2);
                            else __builtin_prefetch(ahead + j * g.ahead_panel);
                        }
                    }
                    ahead_left -= 4;
                    end = p + 4 < g.length ? p + 4 : g.length;
                }
                for (; p < end; ++p, b += g.b_step) {
#define X(j)                                                                                          \
    [[maybe_unused]] const typename R::type b##j =                                                    \
        j < NV - 1 ? R::load(b + o##j) : j == NV - 1 ? R::load(b + o##j, last) : R::zero();
                    HONE_SVE_COLS(X)
#undef X
#define X(i, j) if constexpr (i < MR && j < NV) c##i##j = R::fma(R::set(a##i[p]), b##j, c##i##j);
                    HONE_SVE_GRID(X)
#undef X
                }
            }
        }
#define X(i) [[maybe_unused]] T* w##i = \
        i >= MR ? nullptr : g.out_rows ? g.out_rows[row_of(i, MR, g.height)] : out + row_of(i, MR, g.height) * g.out_row;
        HONE_SVE_ROWS(X)
#undef X
#define X(i, j)                                                                                       \
    if constexpr (i < MR && j < NV - 1) R::store(w##i + j * lanes, c##i##j);                          \
    if constexpr (i < MR && j == NV - 1) R::store(w##i + j * lanes, c##i##j, last);
        HONE_SVE_GRID(X)
#undef X
        if (tile + 1 == g.tiles) return;  // a step further may lie outside of all memory
        first_a += g.a_walk;
        first_b += g.b_walk;
        first_ahead += g.ahead_walk;
        out += g.out_walk;
    }
}

#undef HONE_SVE_GRID
#undef HONE_SVE_ROWS
#undef HONE_SVE_COLS

// Sizeless registers cannot be the arrays that kernel/tiny_micro.inl keeps.
template <class T, int, int>
HONE_INLINE void fill_small(gemm_kernel<T>&) {}
