// The kernels of small and of narrow products and the one that packs, where the ISA's registers can say them (small_kernels).
template <class T, int MR, int NV>
HONE_INLINE void fill_small(gemm_kernel<T>& k) {
    if constexpr (small_kernels) {
        k.tiny[0] = &tiny_micro<T, 1>;
        k.tiny[1] = &tiny_micro<T, 2>;
        k.narrow = &narrow_micro<T>;
        k.packing = &packing_micro<T, MR, NV>;
    }
}
