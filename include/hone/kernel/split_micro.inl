// Split sums for relaxed sums: M rows of C of NV registers, B by rows. Each element is four chains, of the steps 0, 4,
// 8, …, 1, 5, 9, … and so on, which are added at the end: in the register tile a row of one register is one chain, and
// waits four cycles for every step. What is left behind the last four steps goes to the first chain.
//
// Registers: 4 * M * NV sums, NV of B, M broadcasts of A: 1 x 4 -> 21, 4 x 1 -> 21 of 32; 1 x 2 and 2 x 1 -> 11 of 16.
// Loads for M * NV multiply-adds: M + NV.
template <class T, int M, int NV>
HONE_NOINLINE void split_micro(const split_tile<T>& g) {
    using R = reg<T>;
    constexpr int chains = 4, per_panel = R::panel() / R::lanes();         // registers a panel is wide
    const typename R::tail read = R::make_tail(g.b_cols), last = R::make_tail(g.cols);
    const index_t step = g.b_step, panel = g.b_panel;
    const T *a[std::size_t{M}], *b = g.b;
    T* out[std::size_t{M}];
    typename R::type s[std::size_t{chains}][std::size_t{M}][std::size_t{NV}], y[std::size_t{NV}];
    HONE_UNROLL
    for (int i = 0; i < M; ++i) {
        const index_t row = i < g.rows ? i : g.rows - 1;                   // rows beyond the last are the last
        a[i] = g.a + row * g.a_row;
        out[i] = g.out + row * g.out_row;
        HONE_UNROLL
        for (int c = 0; c < chains; ++c) {
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) s[c][i][j] = R::zero();
        }
    }
    index_t p = 0;
    for (; p + chains <= g.k; p += chains) {
        HONE_UNROLL
        for (int c = 0; c < chains; ++c) {
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) {
                const T* from = b + j / per_panel * panel + j % per_panel * R::lanes();
                y[j] = masked_loads && j == NV - 1 ? R::load(from, read) : R::load(from);
            }
            HONE_UNROLL
            for (int i = 0; i < M; ++i) {
                const typename R::type x = R::set(a[i][p + c]);
                HONE_UNROLL
                for (int j = 0; j < NV; ++j) s[c][i][j] = R::fma(x, y[j], s[c][i][j]);
            }
            b += step;
            asm("" : "+r"(b));                                             // Clang would keep an address for each load
        }
    }
    for (; p < g.k; ++p, b += step) {
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            const T* from = b + j / per_panel * panel + j % per_panel * R::lanes();
            y[j] = masked_loads && j == NV - 1 ? R::load(from, read) : R::load(from);
        }
        HONE_UNROLL
        for (int i = 0; i < M; ++i) {
            const typename R::type x = R::set(a[i][p]);
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) s[0][i][j] = R::fma(x, y[j], s[0][i][j]);
        }
    }
    const typename R::type one = R::set(T(1));
    HONE_UNROLL
    for (int i = 0; i < M; ++i) {
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            const typename R::type half = R::fma(one, s[0][i][j], s[1][i][j]);
            const typename R::type sum = R::fma(one, half, R::fma(one, s[2][i][j], s[3][i][j]));
            if (j == NV - 1) R::store(out[i] + j * R::lanes(), sum, last);
            else R::store(out[i] + j * R::lanes(), sum);
        }
    }
}
