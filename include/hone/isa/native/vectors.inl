// The unit's vectors as the compiler's vector types, as wide as its flags allow.
template <class T>
struct unit_vector {
#if defined(__AVX512F__)
    static constexpr int bytes = 64;
#elif defined(__AVX__)
    static constexpr int bytes = 32;
#else
    static constexpr int bytes = 16;
#endif
    typedef T type __attribute__((vector_size(bytes), may_alias));
    typedef T anywhere __attribute__((vector_size(bytes), may_alias, aligned(sizeof(T))));

    static HONE_INLINE constexpr int lanes() { return bytes / static_cast<int>(sizeof(T)); }
    static HONE_INLINE type set(T x) { return x - type{}; }  // a scalar beside a vector is every lane; -0 stays
    static HONE_INLINE type load(const T* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(T* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type relu(type x) { return x < type{} ? type{} : x; }  // max(x, 0); NaN stays
    static HONE_INLINE type fma(type a, type b, type c) {
#if HONE_ARM64
        if constexpr (sizeof(T) == 4) return vfmaq_f32(c, a, b);
        else return vfmaq_f64(c, a, b);
#elif HONE_NATIVE_AVX512
        if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(a, b, c);
        else return _mm512_fmadd_pd(a, b, c);
#elif HONE_NATIVE_FMA && HONE_CLANG
        if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
        else return _mm256_fmadd_pd(a, b, c);
#elif HONE_NATIVE_FMA
        if constexpr (sizeof(T) == 4) return __builtin_ia32_vfmaddps256(a, b, c);
        else return __builtin_ia32_vfmaddpd256(a, b, c);
#else
        return a * b + c;
#endif
    }
};
