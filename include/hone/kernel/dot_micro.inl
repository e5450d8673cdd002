// Dots for relaxed sums: out(i, j) = row i of x times row j of y, both contiguous. Lane l of a register sums the steps
// l, lanes + l, 2 lanes + l, … as one chain, and the lanes are added at the end: the order is that of the register's
// width, whatever MX and NY are, so a row gives the same bits in every tile.
//
// y is what comes from memory. It is cut into NY streams, each of which walks on through rows that follow each other,
// so that a stream goes on where it is instead of beginning anew with every tile: 1 x 4096 x 4096 on Zen 5 at 0.97 of
// what a plain loop over the same memory reads, tiles of four neighbouring rows at 0.89. Tried and lost there: 8
// streams (0.85), and asking for lines 8 to 64 ahead (0.75 to 0.85).
//
// Registers: MX * NY sums, MX of x, NY of y. 4 x 4 -> 24 of 32; 4 x 2 -> 14 and 1 x 4 -> 9 of 16. Loads for
// multiply-adds: 8 for 16, 6 for 8, 5 for 4.
template <class T, int MX, int NY>
HONE_NOINLINE void dot_micro(const dot_tile<T>& g) {
    using R = reg<T>;
    constexpr index_t lanes = R::lanes();
    const index_t whole = (g.k - 1) / lanes * lanes, length = g.y_rows / NY, left = g.y_rows % NY;
    const typename R::tail rest = R::make_tail(static_cast<int>(g.k - whole));  // of 1 .. lanes steps
    for (index_t at = 0; at < length + (left > 0 ? 1 : 0); ++at) {
        // A row of each stream; at the end the rows left over, of which those that are missing are the last.
        const T* y[std::size_t{NY}];
        T* out[std::size_t{NY}];
        HONE_UNROLL
        for (int j = 0; j < NY; ++j) {
            const index_t row = at < length ? j * length + at : NY * length + (j < left ? j : left - 1);
            y[j] = g.y + row * g.y_row;
            out[j] = g.out + row * g.out_y;
        }
        index_t first = 0;
        do {
            const T* x[std::size_t{MX}];
            index_t few[std::size_t{MX}];
            typename R::type s[std::size_t{MX}][std::size_t{NY}], a[std::size_t{MX}];
            HONE_UNROLL
            for (int i = 0; i < MX; ++i) {
                few[i] = first + i < g.x_rows ? first + i : g.x_rows - 1;
                x[i] = g.x + few[i] * g.x_row;
                HONE_UNROLL
                for (int j = 0; j < NY; ++j) s[i][j] = R::zero();
            }
            index_t p = 0;
            do {
                HONE_UNROLL
                for (int i = 0; i < MX; ++i) a[i] = R::load(x[i] + p);
                HONE_UNROLL
                for (int j = 0; j < NY; ++j) {
                    const typename R::type b = R::load(y[j] + p);
                    HONE_UNROLL
                    for (int i = 0; i < MX; ++i) s[i][j] = R::fma(a[i], b, s[i][j]);
                }
                p += lanes;
            } while (p < whole);
            HONE_UNROLL
            for (int i = 0; i < MX; ++i) a[i] = R::load(x[i] + whole, rest);
            HONE_UNROLL
            for (int j = 0; j < NY; ++j) {
                const typename R::type b = R::load(y[j] + whole, rest);
                HONE_UNROLL
                for (int i = 0; i < MX; ++i) s[i][j] = R::fma(a[i], b, s[i][j]);
            }
            HONE_UNROLL
            for (int i = 0; i < MX; ++i) {
                HONE_UNROLL
                for (int j = 0; j < NY; ++j) out[j][few[i] * g.out_x] = R::sum(s[i][j]);
            }
            first += MX;
        } while (first < g.x_rows);
    }
}
