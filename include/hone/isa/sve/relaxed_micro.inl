// The kernels of kernel/dot_micro.inl and kernel/split_micro.inl for registers whose size is not known to the compiler:
// every sum is a variable of its own, and those beyond the tile cost nothing.
#define HONE_SVE_EACH(X) X(0) X(1) X(2) X(3)
#define HONE_SVE_GRID(X) \
    X(0, 0) X(1, 0) X(2, 0) X(3, 0) X(0, 1) X(1, 1) X(2, 1) X(3, 1) \
    X(0, 2) X(1, 2) X(2, 2) X(3, 2) X(0, 3) X(1, 3) X(2, 3) X(3, 3)

template <class T, int MX, int NY>
HONE_NOINLINE void dot_micro(const dot_tile<T>& g) {
    static_assert(MX <= 4 && NY <= 4);
    using R = reg<T>;
    using type = typename R::type;
    const index_t lanes = R::lanes(), whole = (g.k - 1) / lanes * lanes, length = g.y_rows / NY, left = g.y_rows % NY;
    const typename R::tail rest = R::make_tail(static_cast<int>(g.k - whole));  // of 1 .. lanes steps
    for (index_t at = 0; at < length + (left > 0 ? 1 : 0); ++at) {
        // A row of each stream; at the end the rows left over, of which those that are missing are the last.
#define X(j)                                                                                                            \
    [[maybe_unused]] const index_t row##j = at < length ? j * length + at : NY * length + (j < left ? j : left - 1);    \
    [[maybe_unused]] const T* y##j = g.y + (j < NY ? row##j : 0) * g.y_row;                                             \
    [[maybe_unused]] T* out##j = g.out + (j < NY ? row##j : 0) * g.out_y;
        HONE_SVE_EACH(X)
#undef X
        index_t first = 0;
        do {
#define X(i)                                                                                              \
    [[maybe_unused]] const index_t few##i = first + i < g.x_rows ? first + i : g.x_rows - 1;              \
    [[maybe_unused]] const T* x##i = g.x + (i < MX ? few##i : 0) * g.x_row;
            HONE_SVE_EACH(X)
#undef X
#define X(i, j) [[maybe_unused]] type s##i##j = R::zero();
            HONE_SVE_GRID(X)
#undef X
            index_t p = 0;
            do {
#define X(i)                                                                                              \
    [[maybe_unused]] const type a##i = i < MX ? R::load(x##i + p) : R::zero();                            \
    [[maybe_unused]] const type b##i = i < NY ? R::load(y##i + p) : R::zero();
                HONE_SVE_EACH(X)
#undef X
#define X(i, j) if constexpr (i < MX && j < NY) s##i##j = R::fma(a##i, b##j, s##i##j);
                HONE_SVE_GRID(X)
#undef X
                p += lanes;
            } while (p < whole);
#define X(i)                                                                                              \
    [[maybe_unused]] const type a##i = i < MX ? R::load(x##i + whole, rest) : R::zero();                  \
    [[maybe_unused]] const type b##i = i < NY ? R::load(y##i + whole, rest) : R::zero();
            HONE_SVE_EACH(X)
#undef X
#define X(i, j) if constexpr (i < MX && j < NY) s##i##j = R::fma(a##i, b##j, s##i##j);
            HONE_SVE_GRID(X)
#undef X
#define X(i, j) if constexpr (i < MX && j < NY) out##j[few##i * g.out_x] = R::sum(s##i##j);
            HONE_SVE_GRID(X)
#undef X
            first += MX;
        } while (first < g.x_rows);
    }
}

template <int I, class V>
HONE_INLINE V pick(V a, V b, V c, V d) {
    if constexpr (I == 0) return a;
    else if constexpr (I == 1) return b;
    else if constexpr (I == 2) return c;
    else return d;
}

template <class T, int M, int NV>
HONE_NOINLINE void split_micro(const split_tile<T>& g) {
    static_assert(M * NV <= 4);
    using R = reg<T>;
    using type = typename R::type;
    const index_t lanes = R::lanes(), width = R::panel(), step = g.b_step;
    const typename R::tail read = R::make_tail(g.b_cols), last = R::make_tail(g.cols);
    const T* b = g.b;
    // Rows beyond the last are the last.
#define X(i)                                                                                                    \
    [[maybe_unused]] const index_t row##i = i < M && i < g.rows ? i : g.rows - 1;                               \
    [[maybe_unused]] const T* a##i = g.a + row##i * g.a_row;                                                    \
    [[maybe_unused]] const index_t off##i = i * lanes / width * g.b_panel + i * lanes % width;
    HONE_SVE_EACH(X)
#undef X
#define X(e, c) [[maybe_unused]] type s##e##c = R::zero();
    HONE_SVE_GRID(X)
#undef X
#define X(i)                                                                                                    \
    [[maybe_unused]] const type x##i = i < M ? R::set(a##i[p]) : R::zero();                                     \
    [[maybe_unused]] const type y##i =                                                                          \
        i >= NV ? R::zero() : masked_loads && i == NV - 1 ? R::load(b + off##i, read) : R::load(b + off##i);
#define Y(e, c)                                                                                                 \
    if constexpr (e < M * NV) {                                                                                 \
        s##e##c = R::fma(pick<e / NV>(x0, x1, x2, x3), pick<e % NV>(y0, y1, y2, y3), s##e##c);                  \
    }
#define HONE_SVE_STEP(c)                        \
    {                                       \
        HONE_SVE_EACH(X)                        \
        Y(0, c) Y(1, c) Y(2, c) Y(3, c)     \
    }                                       \
    ++p;                                    \
    b += step;                              \
    asm("" : "+r"(b)); /* Clang would keep an address for each load */
    index_t p = 0;
    while (p + 4 <= g.k) {
        HONE_SVE_STEP(0) HONE_SVE_STEP(1) HONE_SVE_STEP(2) HONE_SVE_STEP(3)
    }
    while (p < g.k) {
        HONE_SVE_STEP(0)
    }
#undef HONE_SVE_STEP
#undef Y
#undef X
    const type one = R::set(T(1));
#define X(e)                                                                                                    \
    if constexpr (e < M * NV) {                                                                                 \
        const type sum = R::fma(one, R::fma(one, s##e##0, s##e##1), R::fma(one, s##e##2, s##e##3));             \
        T* out = g.out + pick<e / NV>(row0, row1, row2, row3) * g.out_row + e % NV * lanes;                     \
        if constexpr (e % NV == NV - 1) R::store(out, sum, last);                                               \
        else R::store(out, sum);                                                                                \
    }
    HONE_SVE_EACH(X)
#undef X
}

#undef HONE_SVE_EACH
#undef HONE_SVE_GRID
