// A rank update: M rows of C by all columns, R steps of k: out(i, j) = in(i, j) + sum over p < R of A(i, p) * B(p, j), each
// element one chain in ascending p. It is for few rows of A: B is read once, R rows side by side from left to right, at the
// speed of memory. Each row of B has load instructions of its own, as hardware looks for strides by instruction: the register
// tile's loop, whose loads walk down a column, reads such a B at 22 GB/s where this reaches 37 of 40. And it is for few steps of
// k: 25 instructions for 12 multiply-adds and two stores, where a tile of 8 x 48 with a k of 3 takes 310 for 72 and 24.
//
// Registers: M * R broadcasts of A, 2 * M sums, 2 of B: at most 14 for 2 rows and 4 steps. They may be sizeless, so each is a
// variable of its own; those beyond M and R cost nothing. Tried and lost: three and four rows, which register tiles that
// fetch B ahead of time do at 48 GFLOP/s and these at 40.
#define HONE_ROWS(X) X(0) X(1)
#define HONE_STEPS(X) X(0) X(1) X(2) X(3)
#define HONE_GRID(X) \
    X(0, 0) X(0, 1) X(0, 2) X(0, 3) X(1, 0) X(1, 1) X(1, 2) X(1, 3)

template <class T, int M, int R>
HONE_NOINLINE void rank_micro(const rank_tile<T>& g) {
    static_assert(M <= 2 && R <= 4);
    using V = reg<T>;
    using type = typename V::type;
    const index_t lanes = V::lanes(), cols = g.cols;
    // Where the second register of a pair begins, and the next pair. Of a panel wider than a pair B is in rows.
    const index_t second = V::panel() == lanes ? g.b_panel : lanes;
    const index_t pair = V::panel() > 2 * lanes ? 2 * lanes : 2 * lanes / V::panel() * g.b_panel;
    const bool chained = g.in != nullptr;
#define X(i, p) [[maybe_unused]] const type x##i##_##p = i < M && p < R ? V::set(g.a[i * g.a_row + p]) : V::zero();
    HONE_GRID(X)
#undef X
#define X(i)                                                                                      \
    [[maybe_unused]] const T* in##i = chained ? g.in + (i < M ? i : 0) * g.in_row : nullptr;      \
    [[maybe_unused]] T* out##i = g.out + (i < M ? i : 0) * g.out_row;
    HONE_ROWS(X)
#undef X
#define X(p) [[maybe_unused]] const T* b##p = g.b + (p < R ? p : 0) * g.b_row;
    HONE_STEPS(X)
#undef X
    index_t j = 0, q = 0;
    for (; j + 2 * lanes <= cols; j += 2 * lanes, q += pair) {
#define X(i)                                                                                      \
    [[maybe_unused]] type s##i = V::zero(), t##i = V::zero();                                     \
    if (i < M && chained) {                                                                       \
        s##i = V::load(in##i + j);                                                                \
        t##i = V::load(in##i + j + lanes);                                                        \
    }
        HONE_ROWS(X)
#undef X
#define X(i, p)                                                                                   \
    if constexpr (i < M && p < R) {                                                               \
        s##i = V::fma(x##i##_##p, V::load(b##p + q), s##i);                                       \
        t##i = V::fma(x##i##_##p, V::load(b##p + q + second), t##i);                               \
    }
        HONE_GRID(X)
#undef X
#define X(i)                                                                                      \
    if constexpr (i < M) {                                                                        \
        V::store(out##i + j, s##i);                                                               \
        V::store(out##i + j + lanes, t##i);                                                       \
    }
        HONE_ROWS(X)
#undef X
    }
    for (; j < cols; j += lanes, q += second) {
        const typename V::tail last = V::make_tail(static_cast<int>(cols - j < lanes ? cols - j : lanes));
#define X(i)                                                                                      \
    [[maybe_unused]] type s##i = V::zero();                                                       \
    if (i < M && chained) s##i = V::load(in##i + j, last);
        HONE_ROWS(X)
#undef X
#define X(i, p) if constexpr (i < M && p < R) s##i = V::fma(x##i##_##p, V::load(b##p + q, last), s##i);
        HONE_GRID(X)
#undef X
#define X(i) if constexpr (i < M) V::store(out##i + j, s##i, last);
        HONE_ROWS(X)
#undef X
    }
}

#undef HONE_ROWS
#undef HONE_STEPS
#undef HONE_GRID
