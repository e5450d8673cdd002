// kernel/fixed_micro.inl for registers whose width is known at run time only: they cannot be elements of arrays, so each sum
// is a variable of its own, and predicates take the place of masks. Registers: 8 x 2 sums, 2 of B, 1 broadcast.
#define HONE_SVE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

template <class T, int Rows, int K>
HONE_INLINE void fixed_tile(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t lanes,
                            typename reg<T>::tail first, typename reg<T>::tail second) {
    using R = reg<T>;
#define X(i) [[maybe_unused]] typename R::type s##i = R::zero(), t##i = R::zero();
    HONE_SVE_ROWS(X)
#undef X
    for (int p = 0; p < K; ++p, ++a, b += b_row) {
        const typename R::type x = R::load(b, first), y = R::load(b + lanes, second);
#define X(i)                                                            \
    if constexpr (i < Rows) {                                           \
        const typename R::type z = R::set(a[i * a_row]);                \
        s##i = R::fma(z, x, s##i);                                      \
        t##i = R::fma(z, y, t##i);                                      \
    }
        HONE_SVE_ROWS(X)
#undef X
    }
#define X(i)                                                            \
    if constexpr (i < Rows) {                                           \
        R::store(c + i * c_row, s##i, first);                           \
        R::store(c + i * c_row + lanes, t##i, second);                  \
    }
    HONE_SVE_ROWS(X)
#undef X
}

#undef HONE_SVE_ROWS

template <class T, int M, int N, int K>
HONE_INLINE void fixed_body(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row) {
    using R = reg<T>;
    constexpr int parts = (M + 7) / 8, small = M / parts, big_count = M % parts;
    const int lanes = R::lanes();
    for (int j = 0; j < N; j += 2 * lanes) {
        const typename R::tail first = R::make_tail(N - j), second = R::make_tail(N - j - lanes);
        const T* at = a;
        T* to = c + j;
        if constexpr (big_count > 0) {
            for (int i = 0; i < big_count; ++i, at += (small + 1) * a_row, to += (small + 1) * c_row) {
                fixed_tile<T, small + 1, K>(at, a_row, b + j, b_row, to, c_row, lanes, first, second);
            }
        }
        for (int i = big_count; i < parts; ++i, at += small * a_row, to += small * c_row) {
            fixed_tile<T, small, K>(at, a_row, b + j, b_row, to, c_row, lanes, first, second);
        }
    }
}

template <class T, int Registers, int M, int N, int K>
HONE_NOINLINE void fixed_micro(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row) {
    fixed_body<T, M, N, K>(a, a_row, b, b_row, c, c_row);
}

template <class T, int Registers, int M, int N, int K>
HONE_NOINLINE void fixed_dense_micro(const T* a, const T* b, T* c) {
    fixed_body<T, M, N, K>(a, K, b, N, c, N);
}
