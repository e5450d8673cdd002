// A register tile that packs: MR rows by NV registers, B read where its rows lie and stored into panels on the way, for the
// tiles below. Storing NV registers a step costs nothing beside MR * NV multiply-adds; a pass of its own over B costs a
// product of 128 rows 3 to 6 percent.
//
// Registers: as gemm_micro. Tried and lost: tiles of four rows, which wait for the rows of B that L2 still owes twice as often.
template <class T, int MR, int NV>
HONE_NOINLINE void packing_micro(const micro_tile<T>& g) {
    using R = reg<T>;
    constexpr int per_panel = R::panel() / R::lanes();                     // registers a panel is wide
    const typename R::tail last = R::make_tail(g.cols);
    typename R::type c[std::size_t{MR}][std::size_t{NV}];                  // (mr, nr)
    const T* a[std::size_t{MR}];                                           // (mr, length), behind its end
    HONE_UNROLL
    for (int i = 0; i < MR; ++i) {
        a[i] = g.a + i * g.a_row + g.length;
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            c[i][j] = !g.in ? R::zero() : j < NV - 1 ? R::load(g.in + i * g.in_row + j * R::lanes())
                                                     : R::load(g.in + i * g.in_row + j * R::lanes(), last);
        }
    }
    const T* b = g.b;                                                      // (length, nr) in rows
    T* pack = g.pack;                                                      // (length, nr) in panels
    const index_t step = g.b_step, panel = g.pack_panel;
    // Counted up to zero: eight rows, two pointers and their steps leave no register for where to end.
    for (index_t p = -g.length; p != 0; ++p, b += step, pack += R::panel()) {
        typename R::type bv[std::size_t{NV}];
        HONE_UNROLL
        for (int j = 0; j < NV; ++j) {
            bv[j] = masked_loads && j == NV - 1 ? R::load(b + j * R::lanes(), last) : R::load(b + j * R::lanes());
            R::pin(bv[j]);
            R::store(pack + j / per_panel * panel + j % per_panel * R::lanes(), bv[j]);
        }
        HONE_UNROLL
        for (int i = 0; i < MR; ++i) {
            const typename R::type x = R::set(a[i][p]);
            HONE_UNROLL
            for (int j = 0; j < NV; ++j) c[i][j] = R::fma(x, bv[j], c[i][j]);
        }
    }
    HONE_UNROLL
    for (int i = 0; i < MR; ++i) {
        HONE_UNROLL
        for (int j = 0; j < NV - 1; ++j) R::store(g.out + i * g.out_row + j * R::lanes(), c[i][j]);
        R::store(g.out + i * g.out_row + (NV - 1) * R::lanes(), c[i][NV - 1], last);
    }
}
