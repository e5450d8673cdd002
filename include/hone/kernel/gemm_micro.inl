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
    constexpr int per_line = 64 / static_cast<int>(sizeof(typename R::type));  // registers a line of 64 bytes holds
    const typename R::tail last = R::make_tail(g.cols);
    const T *first_a = g.a, *first_b = g.b, *first_ahead = g.ahead, *in = g.in;
    T* out = g.out;
    for (index_t tile = 0; tile < g.tiles; ++tile) {
        typename R::type c[std::size_t{MR}][std::size_t{NV}];              // (mr, nr)
        const T* from[std::size_t{MR}];                                    // (mr) sums to go on with
        T* to[std::size_t{MR}];                                            // (mr)
        for (int i = 0; i < MR; ++i) {
            const int row = row_of(i, MR, g.height);
            to[i] = g.out_rows ? g.out_rows[row] : out + row * g.out_row;
        }
        if (in || g.in_rows) {
            for (int i = 0; i < MR; ++i) {
                const int row = row_of(i, MR, g.height);
                from[i] = g.in_rows ? g.in_rows[row] : in + row * g.in_row;
                // The sums of the next tile: their chains cannot begin before they are here.
                for (int j = 0; j < NV; j += per_line) __builtin_prefetch(from[i] + g.in_walk + j * R::lanes(), 1);
            }
            HONE_UNROLL
            for (int i = 0; i < MR; ++i) {
                HONE_UNROLL
                for (int j = 0; j < NV - 1; ++j) c[i][j] = R::load(from[i] + j * R::lanes());
                c[i][NV - 1] = R::load(from[i] + (NV - 1) * R::lanes(), last);
            }
            in += g.in_walk;
        } else {
            HONE_UNROLL
            for (int i = 0; i < MR; ++i) {
                HONE_UNROLL
                for (int j = 0; j < NV; ++j) c[i][j] = R::zero();
            }
        }
        const index_t length = g.length, panel = g.b_panel, step = g.b_step;
        const T* const* rows = g.rows;
        index_t ahead_left = g.ahead_count;
        const T* ahead = first_ahead;
        for (index_t r = 0; r < g.runs; ++r) {
            const T* b = first_b;                                          // (length, nr) in panels
            const T* a[std::size_t{MR}];                                   // (mr, length)
            if (rows) {
                b += g.start[r] * step;
                HONE_UNROLL
                for (int i = 0; i < MR; ++i) a[i] = rows[row_of(i, MR, g.height)];
                rows += g.height;
            } else {
                HONE_UNROLL
                for (int i = 0; i < MR; ++i) a[i] = first_a + row_of(i, MR, g.height) * g.a_row;
            }
            for (index_t p = 0; p < length;) {
                // What the next tile will read of B, a few lines every few steps: all at once would fill the queue that this
                // tile's loads wait in. Their addresses take no register from the loop within.
                index_t end = length;
                if (MR * NV >= 12 && ahead_left > 0) {
                    for (int u = 0; u < 4; ++u, ahead += g.ahead_step) {
                        HONE_UNROLL
                        for (int j = 0; j < NV; j += per_panel) {
                            if (g.ahead_strided) __builtin_prefetch(ahead + j / per_panel * g.ahead_panel, 0, 2);
                            else __builtin_prefetch(ahead + j / per_panel * g.ahead_panel);
                        }
                    }
                    ahead_left -= 4;
                    end = p + 4 < length ? p + 4 : length;
                }
                // One row waits for memory, and the fewer instructions a line takes, the more lines are under way at once: elements
                // of B come with the multiply-add (1x4096x4096 packed 43 -> 55 GB/s, of 56 that a bare loop reads). Four steps an
                // iteration are still fewer, and lose a quarter where B is in L2, whose prefetching follows an instruction's stride.
                if constexpr (MR == 1 && every_height) {
                    for (; p < end; ++p, b += step) {
                        const typename R::type x = R::set(a[0][p]);
                        HONE_UNROLL
                        for (int j = 0; j < NV; ++j) {
                            const T* s = b + j / per_panel * panel + j % per_panel * R::lanes();
                            if constexpr (masked_loads) {
                                if (j == NV - 1) {
                                    R::fma_part(x, s, last, c[0][j]);
                                    continue;
                                }
                            }
                            c[0][j] = R::fma(x, R::load(s), c[0][j]);
                        }
                    }
                    continue;
                }
                // Of four panels the last two have a pointer of their own, hidden from Clang, which would fold it back: three
                // distances from one pointer are a register more, and a spill in Clang 14's 4 x 4 of doubles.
                const T* upper = b + 2 * panel;
                if constexpr (NV > 3 * per_panel) asm("" : "+r"(upper));
                for (; p < end; ++p, b += step, upper += step) {
                    typename R::type bv[std::size_t{NV}];
                    HONE_UNROLL
                    for (int j = 0; j < NV; ++j) {
                        const int q = j / per_panel;
                        const T* s = (NV > 3 * per_panel && q > 1 ? upper + (q - 2) * panel : b + q * panel) + j % per_panel * R::lanes();
                        bv[j] = masked_loads && j == NV - 1 ? R::load(s, last) : R::load(s);
                        R::pin(bv[j]);
                    }
                    HONE_UNROLL
                    for (int i = 0; i < MR; ++i) {
                        const typename R::type x = R::set(a[i][p]);
                        HONE_UNROLL
                        for (int j = 0; j < NV; ++j) c[i][j] = R::fma(x, bv[j], c[i][j]);
                    }
                }
            }
        }
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) {
            HONE_UNROLL
            for (int j = 0; j < NV - 1; ++j) R::store(to[i] + j * R::lanes(), c[i][j]);
            R::store(to[i] + (NV - 1) * R::lanes(), c[i][NV - 1], last);
        }
        if (tile + 1 == g.tiles) return;  // a step further may lie outside of all memory
        first_a += g.a_walk;
        first_b += g.b_walk;
        first_ahead += g.ahead_walk;
        out += g.out_walk;
    }
}
