// Few columns, many rows: out (cols, rows) is A (rows, k) * B (k, cols) turned, k at least half a register, rows of A
// contiguous. A register of sums holds one column of as many rows as it has lanes; half a register of steps of these rows is
// loaded, turned in registers, and each of its elements of B comes with the multiply-add.
// Registers: of two groups of rows and four columns 8 sums, 16 of A, of doubles 8, one of B. 16 rows by 16 steps are 32 loads
// and 48 shuffles, on any of Zen 5's four pipes, beside 16 multiply-adds a column: 46 cycles of 37 that four columns need.
// Tried and lost: registers of four rows by four columns, a shuffle a multiply-add (1000x3x1000 0.33 of the ceiling, this 0.40);
// quarters of registers, a third less shuffles, but masked loads that merge take two slots; fetching the next lines.
template <class T, int Groups, int Cols, bool Whole>
HONE_INLINE void narrow_rows(const narrow_tile<T>& g, const T* a, const T* const* row, T* out) {
    using R = reg<T>;
    constexpr int lanes = R::lanes(), steps = lanes / 2, half = lanes / 4;
    const index_t a_row = g.a_row;
    typename R::type s[std::size_t{Groups}][std::size_t{Cols}];            // (rows / lanes, cols)
    HONE_UNROLL
    for (int i = 0; i < Groups; ++i) {
        HONE_UNROLL
        for (int j = 0; j < Cols; ++j) s[i][j] = R::zero();
    }
    const T* b = g.b;
    for (index_t p = 0; p < g.k; p += steps) {
        const index_t from = least(p, g.k - steps);                        // the last steps are read as the end of whole ones
        typename R::type x[std::size_t{Groups}][std::size_t{steps}];
        // Two pointers that move, hidden from GCC: it would keep one a row, and has no registers for 32.
        const T* low = Whole ? a + from : nullptr;
        HONE_UNROLL
        for (int i = 0; i < Groups; ++i) {
            HONE_UNROLL
            for (int q = 0; q < steps; q += half) {
                const T* high = Whole ? low + half * a_row : nullptr;
                asm("" : "+r"(low), "+r"(high), "+r"(row));
                HONE_UNROLL
                for (int j = 0; j < half; ++j) {
                    if constexpr (Whole) x[i][q + j] = R::halves(low + j * a_row, high + j * a_row);
                    else x[i][q + j] = R::halves(row[2 * q + j] + from, row[2 * q + half + j] + from);
                }
                if constexpr (Whole) low = high + half * a_row;
            }
            R::turn(x[i]);
        }
        if (from < p) {
            T kept[std::size_t{Groups}][std::size_t{steps}][std::size_t{lanes}];
            for (int i = 0; i < Groups; ++i) {
                HONE_UNROLL
                for (int u = 0; u < steps; ++u) R::store(kept[i][u], x[i][u]);
            }
            for (index_t u = p - from; u < steps; ++u, b += g.b_step) {
                HONE_UNROLL
                for (int i = 0; i < Groups; ++i) {
                    HONE_UNROLL
                    for (int j = 0; j < Cols; ++j) s[i][j] = R::fma(R::load(kept[i][u]), R::set(b[j]), s[i][j]);
                }
            }
            break;
        }
        HONE_UNROLL
        for (int u = 0; u < steps; ++u, b += g.b_step) {
            HONE_UNROLL
            for (int j = 0; j < Cols; ++j) {
                const typename R::type y = R::set(b[j]);
                HONE_UNROLL
                for (int i = 0; i < Groups; ++i) s[i][j] = R::fma(x[i][u], y, s[i][j]);
            }
        }
    }
    HONE_UNROLL
    for (int j = 0; j < Cols; ++j) {
        HONE_UNROLL
        for (int i = 0; i < Groups; ++i) R::store(out + j * narrow_rows_at_once + i * lanes, s[i][j]);
    }
}

// Whole groups of rows from row i on; returns the first that is left.
template <class T, int Groups, int Cols>
HONE_INLINE index_t narrow_groups(const narrow_tile<T>& g, index_t i) {
    constexpr int rows = Groups * reg<T>::lanes();
    for (; i + rows <= g.rows; i += rows) narrow_rows<T, Groups, Cols, true>(g, g.a + i * g.a_row, nullptr, g.out + i);
    return i;
}

template <class T>
HONE_NOINLINE void narrow_micro(const narrow_tile<T>& g) {
    constexpr int lanes = reg<T>::lanes();
    // One column is one chain a group, four of which hide its latency; but of 64 rows that alias each line would come from L2
    // twice.
    index_t i = g.cols != 1 ? 0 : rows_alias<T>(g.a_row) ? narrow_groups<T, 1, 1>(g, 0) : narrow_groups<T, 4, 1>(g, 0);
    i = g.cols <= 3 ? narrow_groups<T, 2, 3>(g, i) : narrow_groups<T, 2, 4>(g, i);
    for (; i < g.rows; i += lanes) {
        const T* row[std::size_t{lanes}];                                  // rows beyond the last are the last
        for (int l = 0; l < lanes; ++l) row[l] = g.a + least(i + l, g.rows - 1) * g.a_row;
        narrow_rows<T, 1, 4, false>(g, nullptr, row, g.out + i);
    }
}
