// Makes the record of a GEMM kernel of MR rows by NV registers of this region: a register tile for each height and width, and
// rank updates of one and two rows.
template <class T, int MR, int NV, int Height, int V>
HONE_INLINE void fill_micro(gemm_kernel<T>& k) {
    constexpr int rows = tile_heights[Height];
    if constexpr (rows <= MR) {
        constexpr bool power = (rows & (rows - 1)) == 0;
        if constexpr (every_height ? power || (rows == MR && V == NV) : rows == 1 || rows == MR) {
            k.micro[Height][V - 1] = &gemm_micro<T, rows, V>;
        }
        if constexpr (V < NV) {
            fill_micro<T, MR, NV, Height, V + 1>(k);
        } else if constexpr (Height + 1 < tile_height_count) {
            fill_micro<T, MR, NV, Height + 1, 1>(k);
        }
    }
}

template <class T, int MR, int NV>
inline gemm_kernel<T> make_gemm_kernel() {
    static_assert(NV <= max_registers);
    gemm_kernel<T> k;
    k.isa = hone::isa::HONE_REGION;
    k.lanes = reg<T>::lanes();
    k.panel = reg<T>::panel();
    k.mr = MR;
    k.nr = NV * k.lanes;
    k.masked = masked_loads;
    fill_micro<T, MR, NV, 0, 1>(k);
    fill_small<T, MR, NV>(k);
    if constexpr (every_height) {
        k.rank[0][0] = &rank_micro<T, 1, 1>;
        k.rank[0][rank_steps - 1] = &rank_micro<T, 1, rank_steps>;
        k.rank[1][0] = &rank_micro<T, 2, 1>;
        k.rank[1][1] = &rank_micro<T, 2, 2>;
        k.rank[1][2] = &rank_micro<T, 2, 3>;
        k.rank[1][rank_steps - 1] = &rank_micro<T, 2, rank_steps>;
    }
    k.pack_lines = &pack_lines<T>;
    return k;
}
