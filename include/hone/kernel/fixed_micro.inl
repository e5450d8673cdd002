// Products of a shape that is known when the program is compiled: C (M, N) = A (M, K) * B (K, N), rows contiguous. Each
// (shape, ISA) has a function of its own, called through one pointer: no loop bound, mask or, where rows are dense, address
// is left to run time.

// What the number of registers and the shape allow. Rows are split into even heights and columns into even widths, so that
// no tile is a runt that waits for its own few chains.
struct even_split {
    int big = 0, big_count = 0, small = 0, small_count = 0;
};
HONE_INLINE constexpr even_split split_evenly(int extent, int limit) {
    const int parts = (extent + limit - 1) / limit, small = extent / parts, rest = extent % parts;
    return rest == 0 ? even_split{small, parts, 0, 0} : even_split{small + 1, rest, small, parts - rest};
}

// Steps of k that are unrolled: all of them while a tile has not more multiply-adds than this, else four, or one where the
// region only stands in. The whole of 32 x 32 x 32 would be 20 KiB of code, and no quicker.
inline constexpr int fixed_unroll_limit = 288;
HONE_INLINE constexpr int fixed_steps(int sums, int k) {
    if (!every_height) return 1;
    return sums * k <= fixed_unroll_limit || k < 4 ? k : 4;
}

// Keeps a pointer as it is: of strides known at run time only, GCC would rather precompute every multiple.
template <class P>
HONE_INLINE void hold(P*& p) {
    asm("" : "+r"(p));
}

// +0, where a chain begins. Clang's intrinsics carry the unit's -ffast-math, and of a first step that is seen to add to
// zero it leaves the product, whose zero may be -0.
template <class R>
HONE_INLINE typename R::type chain_begin() {
    typename R::type zero = R::zero();
#if HONE_CLANG && HONE_FAST_MATH
    asm("" : "+m"(zero));
#endif
    return zero;
}

// Steps of k, from `from` on. Rows that are dense are at constant distances from a; others have a pointer each.
template <class T, int Rows, int NV, int Steps, bool Part, bool Dense>
HONE_INLINE const T* fixed_steps_of(typename reg<T>::type (&s)[std::size_t{Rows}][std::size_t{NV}], const T* a, index_t a_row,
                                    const T* const (&row)[std::size_t{Rows}], index_t from, const T* b, index_t b_row,
                                    index_t last_at, typename reg<T>::tail last) {
    using R = reg<T>;
    HONE_UNROLL
    for (int p = 0; p < Steps; ++p, b += b_row) {
        if constexpr (!Dense) hold(b);
        typename R::type x[std::size_t{NV}];
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            const T* line = b + (j == NV - 1 ? last_at : j * R::lanes());
            x[j] = Part && j == NV - 1 ? R::load(line, last) : R::load(line);
            R::pin(x[j]);
        }
        HONE_UNROLL
        for (int i = 0; i < Rows; ++i) {
            const typename R::type y = R::set(Dense ? a[from + i * a_row + p] : row[i][from + p]);
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) s[i][j] = R::fma(y, x[j], s[i][j]);
        }
    }
    return b;
}

// Rows of C by NV registers of columns. The last register begins last_at columns after the first; Part: only `last` of it is
// there.
template <class T, int Rows, int NV, int K, bool Part, bool Dense>
HONE_INLINE void fixed_tile(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t last_at,
                            typename reg<T>::tail last) {
    using R = reg<T>;
    constexpr int steps = fixed_steps(Rows * NV, K), rounds = K / steps;
    typename R::type s[std::size_t{Rows}][std::size_t{NV}];
    const T* row[std::size_t{Rows}];
    HONE_UNROLL
    for (int i = 0; i < Rows; ++i) {
        row[i] = a + i * a_row;
        if constexpr (!Dense) hold(row[i]);
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) s[i][j] = chain_begin<R>();
    }
    for (int r = 0; r < rounds; ++r) {
        b = fixed_steps_of<T, Rows, NV, steps, Part, Dense>(s, a, a_row, row, r * steps, b, b_row, last_at, last);
    }
    if constexpr (K % steps != 0) {
        fixed_steps_of<T, Rows, NV, K % steps, Part, Dense>(s, a, a_row, row, rounds * steps, b, b_row, last_at, last);
    }
    HONE_UNROLL
    for (int i = 0; i < Rows; ++i, c += c_row) {
        if constexpr (!Dense) hold(c);
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            T* to = c + (j == NV - 1 ? last_at : j * R::lanes());
            if constexpr (Part) {
                if (j == NV - 1) {
                    R::store(to, s[i][j], last);
                    continue;
                }
            }
            R::store(to, s[i][j]);
        }
    }
}

// All rows of a column of tiles.
template <class T, int M, int Height, int NV, int K, bool Part, bool Dense>
HONE_INLINE void fixed_rows(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t last_at,
                            typename reg<T>::tail last) {
    constexpr even_split rows = split_evenly(M, Height);
    for (int i = 0; i < rows.big_count; ++i, a += rows.big * a_row, c += rows.big * c_row) {
        fixed_tile<T, rows.big, NV, K, Part, Dense>(a, a_row, b, b_row, c, c_row, last_at, last);
    }
    if constexpr (rows.small_count > 0) {
        for (int i = 0; i < rows.small_count; ++i, a += rows.small * a_row, c += rows.small * c_row) {
            fixed_tile<T, rows.small, NV, K, Part, Dense>(a, a_row, b, b_row, c, c_row, last_at, last);
        }
    }
}

// How many rows of C share a register where the columns left over are few: 1 but where a region says otherwise by a
// specialisation, which then has run(), too.
template <class T>
struct row_groups {
    static constexpr int of(int, int) { return 1; }
};

// Rows of a tile: sums, NV registers of B and a broadcast of A fit the registers. Rows a run-time stride apart take a general
// register each beside those of B and C, and x86-64 has 15. Of two registers and more eight rows are chains enough, and
// 32 x 32 x 32 is 4 x 8 rows in 0.995 of the time of 11 + 11 + 10.
HONE_INLINE constexpr int fixed_height(int registers, int nv, bool dense) {
    const int most = !every_height ? 4 : dense && nv == 1 ? 24 : 8, fit = (registers - nv - 1) / nv;
    return fit < most ? fit : most;
}

// Registers: how many the ISA has. Dense: the strides are the shape's own, as constants.
template <class T, int Registers, int M, int N, int K, bool Dense>
HONE_INLINE void fixed_body(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row) {
    using R = reg<T>;
    constexpr int lanes = R::lanes(), rest = N % lanes, group = row_groups<T>::of(M, rest);
    constexpr int direct = group > 1 ? N - rest : N;                       // columns that fill registers of one row
    if constexpr (direct > 0) {
        // Where loads of part of a register are not free the last register overlaps its neighbour instead: columns in both
        // are summed twice, to the same bits.
        constexpr bool part = direct % lanes != 0 && (masked_loads || direct < lanes);
        constexpr int over = part ? direct % lanes : lanes;
        constexpr even_split widths = split_evenly((direct + lanes - 1) / lanes, Registers >= 32 ? 4 : 2);
        constexpr int wide = widths.big * lanes, narrow = widths.small * lanes;
        const auto last = R::make_tail(over);
        constexpr int free = Registers - (part && !masked_loads ? 1 : 0);  // a mask is a register where loads have none
        constexpr int height = fixed_height(free, widths.big, Dense);
        constexpr int full = widths.small_count > 0 ? widths.big_count : widths.big_count - 1;
        for (int j = 0; j < full * wide; j += wide) {
            fixed_rows<T, M, height, widths.big, K, false, Dense>(a, a_row, b + j, b_row, c + j, c_row, wide - lanes, last);
        }
        if constexpr (widths.small_count == 0) {
            constexpr int at = full * wide, last_at = direct - at - over;
            fixed_rows<T, M, height, widths.big, K, part, Dense>(a, a_row, b + at, b_row, c + at, c_row, last_at, last);
        } else {
            constexpr int lower = fixed_height(free, widths.small, Dense);
            constexpr int at = full * wide + (widths.small_count - 1) * narrow, last_at = direct - at - over;
            for (int j = full * wide; j < at; j += narrow) {
                fixed_rows<T, M, lower, widths.small, K, false, Dense>(a, a_row, b + j, b_row, c + j, c_row, narrow - lanes, last);
            }
            fixed_rows<T, M, lower, widths.small, K, part, Dense>(a, a_row, b + at, b_row, c + at, c_row, last_at, last);
        }
    }
    if constexpr (group > 1) {
        row_groups<T>::template run<group, M, rest, K, Dense, N>(a, a_row, b + direct, b_row, c + direct, c_row);
    }
}

template <class T, int Registers, int M, int N, int K>
HONE_NOINLINE void fixed_micro(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row) {
    fixed_body<T, Registers, M, N, K, false>(a, a_row, b, b_row, c, c_row);
}

template <class T, int Registers, int M, int N, int K>
HONE_NOINLINE void fixed_dense_micro(const T* a, const T* b, T* c) {
    fixed_body<T, Registers, M, N, K, true>(a, K, b, N, c, N);
}
