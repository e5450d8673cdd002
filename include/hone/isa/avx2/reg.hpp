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

template <>
struct reg<float> {
    using type = __m256;
    using tail = __m256i;
    static HONE_INLINE constexpr int lanes() { return 8; }
    static HONE_INLINE constexpr int panel() { return 16; }

    static HONE_INLINE type zero() { return _mm256_setzero_ps(); }
    static HONE_INLINE type set(float x) { return _mm256_set1_ps(x); }
    static HONE_INLINE type load(const float* p) { return _mm256_loadu_ps(p); }
    static HONE_INLINE void store(float* p, type v) { _mm256_storeu_ps(p, v); }
    static HONE_INLINE tail make_tail(int n) {  // n in 1 .. 8
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    static HONE_INLINE type load(const float* p, tail t) { return _mm256_maskload_ps(p, t); }
    static HONE_INLINE void store(float* p, type v, tail t) { _mm256_maskstore_ps(p, t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
};
