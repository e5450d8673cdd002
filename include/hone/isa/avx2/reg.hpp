// The registers of AVX2 with FMA and F16C, 16 of 256 bits. Cycles are latency / reciprocal throughput.
//
//   intrinsic             instruction     Haswell        ports   Zen 2      pipes
//   _mm256_fmadd_ps       vfmadd231ps     5 / 0.5        p01     5 / 0.5    FP0/1
//   _mm256_loadu_ps       vmovups         7 / 0.5        p23     7 / 0.5    two loads a cycle
//   _mm256_broadcast_ss   vbroadcastss    7 / 0.5        p23     7 / 0.5    a load: no shuffle port is used
//   _mm256_storeu_ps      vmovups         - / 1          p4      - / 1
//   _mm256_maskload_ps    vmaskmovps      8 / 0.5        p23 p5  8 / 0.5    lanes that are off do not fault
//   _mm256_maskstore_ps   vmaskmovps      - / 1          p4      - / 6      slow on Zen: only tails use it
template <class T>
struct reg;

template <class T>
inline constexpr int epilogue_lanes = 32 / static_cast<int>(sizeof(T));

inline constexpr bool small_kernels = false;
inline constexpr bool every_height = true;  // tiles of all heights up to mr
inline constexpr bool masked_loads = false;  // loads of part of a register cost what others cost

template <>
struct reg<float> {
    using type = x86::f32x8;
    using anywhere = x86::f32x8_anywhere;
    using tail = x86::i32x8;
    static HONE_INLINE constexpr int lanes() { return 8; }
    static HONE_INLINE constexpr int panel() { return 16; }

    static HONE_INLINE type zero() { return type{}; }
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type set(float x) { return type{x, x, x, x, x, x, x, x}; }
    static HONE_INLINE type load(const float* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(float* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    static HONE_INLINE tail make_tail(int n) { return n > tail{0, 1, 2, 3, 4, 5, 6, 7}; }  // n in 1 .. 8
#if HONE_CLANG
    static HONE_INLINE type load(const float* p, tail t) { return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(t)); }
    static HONE_INLINE void store(float* p, type v, tail t) { _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(t), v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
    static HONE_INLINE type relu(type x) { return _mm256_max_ps(zero(), x); }  // max(x, 0); a NaN is the second operand
#else
    static HONE_INLINE type relu(type x) { return __builtin_ia32_maxps256(zero(), x); }  // max(x, 0); a NaN is the second operand
    static HONE_INLINE type load(const float* p, tail t) { return __builtin_ia32_maskloadps256(reinterpret_cast<const type*>(p), t); }
    static HONE_INLINE void store(float* p, type v, tail t) { __builtin_ia32_maskstoreps256(reinterpret_cast<type*>(p), t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return __builtin_ia32_vfmaddps256(a, b, c); }
#endif
    static HONE_INLINE void pin(type& v) { asm("" : "+x"(v)); }
    // Of all lanes: halves are added until one is left.
    static HONE_INLINE float sum(type v) {
        const x86::f32x4 four = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
        const x86::f32x4 two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
        return two[0] + two[1];
    }
};

template <>
struct reg<double> {
    using type = x86::f64x4;
    using anywhere = x86::f64x4_anywhere;
    using tail = x86::i64x4;
    static HONE_INLINE constexpr int lanes() { return 4; }
    static HONE_INLINE constexpr int panel() { return 8; }

    static HONE_INLINE type zero() { return type{}; }
    static HONE_INLINE type set(double x) { return type{x, x, x, x}; }
    static HONE_INLINE type load(const double* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(double* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    static HONE_INLINE tail make_tail(int n) { return n > tail{0, 1, 2, 3}; }  // n in 1 .. 4
#if HONE_CLANG
    static HONE_INLINE type load(const double* p, tail t) { return _mm256_maskload_pd(p, reinterpret_cast<__m256i>(t)); }
    static HONE_INLINE void store(double* p, type v, tail t) { _mm256_maskstore_pd(p, reinterpret_cast<__m256i>(t), v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm256_fmadd_pd(a, b, c); }
#else
    static HONE_INLINE type load(const double* p, tail t) { return __builtin_ia32_maskloadpd256(reinterpret_cast<const type*>(p), t); }
    static HONE_INLINE void store(double* p, type v, tail t) { __builtin_ia32_maskstorepd256(reinterpret_cast<type*>(p), t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return __builtin_ia32_vfmaddpd256(a, b, c); }
#endif
    static HONE_INLINE void pin(type& v) { asm("" : "+x"(v)); }
    static HONE_INLINE double sum(type v) {
        const x86::f64x2 two = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
        return two[0] + two[1];
    }
};
