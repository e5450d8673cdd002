// A product whose columns fit NV registers: C (m, n) = A (m, k) * B (k, n), operands where they lie. Of 4 x 4 x 4 the general
// tile's description alone, 30 numbers, costs more than the product; here the arguments are registers.
// Eight chains cover the latency of four cycles at two multiply-adds a cycle; fewer are bound by it. So what is left of the rows
// is one run of as many or more, whose last rows are the last one again: 7x13x17 37 -> 25 ns.
template <class T, int Rows, int NV, bool Whole>
HONE_INLINE void tiny_rows(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t height, index_t k,
                           typename reg<T>::tail last) {
    using R = reg<T>;
    const auto row_at = [&](int i) { return Whole ? i : least(i, height - 1); };
    typename R::type s[std::size_t{Rows}][std::size_t{NV}];
    const T* row[std::size_t{Rows}];
    HONE_UNROLL
    for (int i = 0; i < Rows; ++i) {
        row[i] = a + row_at(i) * a_row;
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) s[i][j] = R::zero();
    }
    for (index_t p = 0; p < k; ++p, b += b_row) {
        typename R::type x[std::size_t{NV}];
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            x[j] = j == NV - 1 ? R::load(b + j * R::lanes(), last) : R::load(b + j * R::lanes());
            R::pin(x[j]);
        }
        HONE_UNROLL
        for (int i = 0; i < Rows; ++i) {
            const typename R::type y = R::set(row[i][p]);
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) s[i][j] = R::fma(y, x[j], s[i][j]);
        }
    }
    HONE_UNROLL
    for (int i = 0; i < Rows; ++i) {
        T* to = c + row_at(i) * c_row;
        HONE_UNROLL
        for (int j = 0; j < NV - 1; ++j) R::store(to + j * R::lanes(), s[i][j]);
        R::store(to + (NV - 1) * R::lanes(), s[i][NV - 1], last);
    }
}

// cols: valid columns of the last register.
template <class T, int NV>
HONE_NOINLINE void tiny_micro(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t m, index_t k, int cols) {
    const typename reg<T>::tail last = reg<T>::make_tail(cols);
    for (; m >= 8; m -= 8, a += 8 * a_row, c += 8 * c_row) tiny_rows<T, 8, NV, true>(a, a_row, b, b_row, c, c_row, 8, k, last);
    if (m > 5) return tiny_rows<T, 8, NV, false>(a, a_row, b, b_row, c, c_row, m, k, last);
    for (; m >= 4; m -= 4, a += 4 * a_row, c += 4 * c_row) tiny_rows<T, 4, NV, true>(a, a_row, b, b_row, c, c_row, 4, k, last);
    if (m == 1) return tiny_rows<T, 1, NV, true>(a, a_row, b, b_row, c, c_row, 1, k, last);
    if (m > 0) tiny_rows<T, 4, NV, false>(a, a_row, b, b_row, c, c_row, m, k, last);
}
