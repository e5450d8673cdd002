// The registers of AVX-512 (F, BW, DQ, VL), 32 of 512 bits. Cycles are latency / reciprocal throughput.
//
//   intrinsic               instruction     Skylake-X      ports   Zen 5      pipes
//   _mm512_fmadd_ps         vfmadd231ps     4 / 0.5        p05     4 / 0.5    FP0/1
//   _mm512_loadu_ps         vmovups         7 / 0.5        p23     7 / 0.5    two 512-bit loads a cycle
//   _mm512_set1_ps(*p)      vbroadcastss    7 / 0.5        p23     7 / 0.5    a load: no shuffle port is used
//   _mm512_storeu_ps        vmovups         - / 1          p4      - / 1      one 512-bit store a cycle
//   _mm512_mask_storeu_ps   vmovups {k}     - / 1          p4      - / 1      lanes that are off are never touched
//   _mm512_maskz_loadu_ps   vmovups {k}{z}  8 / 0.5        p23     8 / 0.5    lanes that are off do not fault
template <class T>
struct reg;

template <class T>
inline constexpr int epilogue_lanes = 64 / static_cast<int>(sizeof(T));

template <>
struct reg<float> {
    using type = __m512;
    using tail = __mmask16;
    static HONE_INLINE constexpr int lanes() { return 16; }
    static HONE_INLINE constexpr int panel() { return 16; }

    static HONE_INLINE type zero() { return _mm512_setzero_ps(); }
    static HONE_INLINE type set(float x) { return _mm512_set1_ps(x); }
    static HONE_INLINE type load(const float* p) { return _mm512_loadu_ps(p); }
    static HONE_INLINE void store(float* p, type v) { _mm512_storeu_ps(p, v); }
    static HONE_INLINE tail make_tail(int n) { return static_cast<__mmask16>((1u << n) - 1u); }  // n in 1 .. 16
    static HONE_INLINE type load(const float* p, tail t) { return _mm512_maskz_loadu_ps(t, p); }
    static HONE_INLINE void store(float* p, type v, tail t) { _mm512_mask_storeu_ps(p, t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
};
