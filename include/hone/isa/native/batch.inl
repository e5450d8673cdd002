// The unit's vectors as xsimd::batch.
template <class T>
struct unit_vector {
    using type = xsimd::batch<T>;

    static HONE_INLINE constexpr int lanes() { return static_cast<int>(type::size); }
    static HONE_INLINE type set(T x) { return type(x); }
    static HONE_INLINE type load(const T* p) { return type::load_unaligned(p); }
    static HONE_INLINE void store(T* p, type v) { v.store_unaligned(p); }
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type relu(type x) { return xsimd::select(x < type(T(0)), type(T(0)), x); }  // max(x, 0); NaN stays
#if HONE_NATIVE_AVX512  // xsimd 8's fma is two roundings there
    static HONE_INLINE type fma(type a, type b, type c) {
        if constexpr (sizeof(T) == 4) return type(_mm512_fmadd_ps(a, b, c));
        else return type(_mm512_fmadd_pd(a, b, c));
    }
#else
    static HONE_INLINE type fma(type a, type b, type c) { return xsimd::fma(a, b, c); }
#endif
};
