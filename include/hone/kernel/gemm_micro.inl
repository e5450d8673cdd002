// The register tile: MR rows by NV registers of the sum stay in registers over all runs of k.
//
// Registers: MR * NV sums, NV of B, one broadcast of A. AVX-512 (32): 8 x 3 -> 28, 6 x 4 -> 29. AVX2 (16): 6 x 2 -> 15.
// Loads per k: NV of B and MR broadcasts for MR * NV multiply-adds: 11 for 24 (8 x 48), 10 for 24 (6 x 64), 8 for 12
// (AVX2 6 x 16); two loads and two multiply-adds issue a cycle, so none of them is bound by loads.
// A is read where it lies, through one pointer a row: MR <= 8 pointers, B, its panel stride and k fit the 15 general
// registers of x86-64.
template <class T, int MR, int NV>
HONE_NOINLINE void gemm_micro(const micro_tile<T>& g) {
    using R = reg<T>;
    constexpr int per_panel = R::panel() / R::lanes();                     // registers a panel is wide
    const typename R::tail last = R::make_tail(g.cols);
    typename R::type c[std::size_t{MR}][std::size_t{NV}];                  // (mr, nr)
    if (g.in) {
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) {
            HONE_UNROLL
            for (int j = 0; j < NV - 1; ++j) c[i][j] = R::load(g.in[i] + j * R::lanes());
            c[i][NV - 1] = R::load(g.in[i] + (NV - 1) * R::lanes(), last);
        }
    } else {
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) {
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) c[i][j] = R::zero();
        }
    }
    const index_t length = g.length, panel = g.b_panel, step = g.b_step;
    const T* const* rows = g.rows;
    for (index_t r = 0; r < g.runs; ++r, rows += MR) {
        const T* b = g.b + g.start[r] * step;                          // (length, nr) in panels
        const T* a[std::size_t{MR}];                                       // (mr, length)
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) a[i] = rows[i];
        for (index_t p = 0; p < length; ++p, b += step) {
            typename R::type bv[std::size_t{NV}];
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) bv[j] = R::load(b + (j / per_panel) * panel + (j % per_panel) * R::lanes());
            HONE_UNROLL
            for (int i = 0; i < MR; ++i) {
                const typename R::type x = R::set(a[i][p]);
                HONE_UNROLL
                for (int j = 0; j < NV; ++j) c[i][j] = R::fma(x, bv[j], c[i][j]);
            }
        }
    }
    HONE_UNROLL
    for (int i = 0; i < MR; ++i) {
        HONE_UNROLL
        for (int j = 0; j < NV - 1; ++j) R::store(g.out[i] + j * R::lanes(), c[i][j]);
        R::store(g.out[i] + (NV - 1) * R::lanes(), c[i][NV - 1], last);
    }
}
