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
#define X(i, j) [[maybe_unused]] typename R::type c##i##j = R::zero();
    HONE_SVE_GRID(X)
#undef X
    if (g.in) {
#define X(i, j)                                                                             \
    if constexpr (i < MR && j < NV - 1) c##i##j = R::load(g.in[i] + j * lanes);             \
    if constexpr (i < MR && j == NV - 1) c##i##j = R::load(g.in[i] + j * lanes, last);
        HONE_SVE_GRID(X)
#undef X
    }
#define X(j) [[maybe_unused]] const index_t o##j = j * lanes / width * g.b_panel + j * lanes % width;
    HONE_SVE_COLS(X)
#undef X
    const T* const* rows = g.rows;
    for (index_t r = 0; r < g.runs; ++r, rows += MR) {
        const T* b = g.b + g.start[r] * g.b_step;                           // (length, nr) in panels
#define X(i) [[maybe_unused]] const T* a##i = rows[i < MR ? i : 0];
        HONE_SVE_ROWS(X)
#undef X
        for (index_t p = 0; p < g.length; ++p, b += g.b_step) {
#define X(j) [[maybe_unused]] const typename R::type b##j = j < NV ? R::load(b + o##j) : R::zero();
            HONE_SVE_COLS(X)
#undef X
#define X(i, j) if constexpr (i < MR && j < NV) c##i##j = R::fma(R::set(a##i[p]), b##j, c##i##j);
            HONE_SVE_GRID(X)
#undef X
        }
    }
#define X(i, j)                                                                             \
    if constexpr (i < MR && j < NV - 1) R::store(g.out[i] + j * lanes, c##i##j);            \
    if constexpr (i < MR && j == NV - 1) R::store(g.out[i] + j * lanes, c##i##j, last);
    HONE_SVE_GRID(X)
#undef X
}

#undef HONE_SVE_GRID
#undef HONE_SVE_ROWS
#undef HONE_SVE_COLS
