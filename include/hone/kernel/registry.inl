// Makes the record of a GEMM kernel of MR rows by NV registers of this region.
template <class T, int MR, int NV, int Class, int V>
HONE_INLINE void fill_micro(gemm_kernel<T>& k) {
    if constexpr (row_classes[Class] <= MR) {
        k.micro[Class][V] = &gemm_micro<T, row_classes[Class], V + 1>;
        if constexpr (V + 1 < NV) {
            fill_micro<T, MR, NV, Class, V + 1>(k);
        } else if constexpr (Class + 1 < row_class_count) {
            fill_micro<T, MR, NV, Class + 1, 0>(k);
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
    fill_micro<T, MR, NV, 0, 0>(k);
    k.pack_lines = &pack_lines<T>;
    return k;
}
