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

inline constexpr bool small_kernels = true;
inline constexpr bool every_height = true;  // tiles of all heights up to mr
inline constexpr bool masked_loads = true;  // loads of part of a register cost what others cost

template <>
struct reg<float> {
    using type = x86::f32x16;
    using anywhere = x86::f32x16_anywhere;
    using tail = unsigned short;
    static HONE_INLINE constexpr int lanes() { return 16; }
    static HONE_INLINE constexpr int panel() { return 16; }

    static HONE_INLINE type zero() { return type{}; }
    static HONE_INLINE type set(float x) { return type{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
    static HONE_INLINE type load(const float* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(float* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    // Four times four elements: the same four; one four after the other; of each four the element U. Vector types would say it,
    // but GCC 12 goes through memory for what widens.
    static HONE_INLINE type repeat(const float* p) { return merge(type{}, p, 0xffff); }
    static HONE_INLINE type join(const float* p, const float* q, const float* r, const float* s) {
        return merge(merge(merge(repeat(p), q, 0x00f0), r, 0x0f00), s, 0xf000);
    }
    static HONE_INLINE type merge(type v, const float* p, int lanes) {
        const x86::f32x4 four = *reinterpret_cast<const x86::f32x4_anywhere*>(p);
#if HONE_CLANG
        return _mm512_mask_broadcast_f32x4(v, static_cast<tail>(lanes), four);
#else
        return __builtin_ia32_broadcastf32x4_512(four, v, static_cast<tail>(lanes));
#endif
    }
    template <int U>
    static HONE_INLINE type spread(type v) {
        return __builtin_shufflevector(v, v, U, U, U, U, U + 4, U + 4, U + 4, U + 4, U + 8, U + 8, U + 8, U + 8, U + 12, U + 12, U + 12, U + 12);
    }
    static HONE_INLINE tail make_tail(int n) { return static_cast<tail>((1u << n) - 1u); }  // n in 1 .. 16
#if HONE_CLANG
    static HONE_INLINE type load(const float* p, tail t) { return _mm512_maskz_loadu_ps(t, p); }
    static HONE_INLINE void store(float* p, type v, tail t) { _mm512_mask_storeu_ps(p, t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
#else
    static HONE_INLINE type load(const float* p, tail t) { return __builtin_ia32_loadups512_mask(p, zero(), t); }
    static HONE_INLINE void store(float* p, type v, tail t) { __builtin_ia32_storeups512_mask(p, v, t); }
    static HONE_INLINE type fma(type a, type b, type c) {
        return __builtin_ia32_vfmaddps512_mask(a, b, c, static_cast<short>(-1), 4);  // 4: MXCSR's rounding
    }
#endif
    // Keeps a value in a register: GCC would rather load B once more for every row of a small tile.
    static HONE_INLINE void pin(type& v) { asm("" : "+v"(v)); }
    // Of all lanes: halves are added until one is left.
    static HONE_INLINE float sum(type v) {
        const x86::f32x8 low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
        const x86::f32x8 half = low + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
        const x86::f32x4 first = __builtin_shufflevector(half, half, 0, 1, 2, 3);
        const x86::f32x4 four = first + __builtin_shufflevector(half, half, 4, 5, 6, 7);
        const x86::f32x4 two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
        return two[0] + two[1];
    }
};

template <>
struct reg<double> {
    using type = x86::f64x8;
    using anywhere = x86::f64x8_anywhere;
    using tail = unsigned char;
    static HONE_INLINE constexpr int lanes() { return 8; }
    static HONE_INLINE constexpr int panel() { return 8; }

    static HONE_INLINE type zero() { return type{}; }
    static HONE_INLINE type set(double x) { return type{x, x, x, x, x, x, x, x}; }
    static HONE_INLINE type load(const double* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(double* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    // Twice four elements, as of floats.
    static HONE_INLINE type repeat(const double* p) { return merge(type{}, p, 0xff); }
    static HONE_INLINE type join(const double* p, const double* q) { return merge(repeat(p), q, 0xf0); }
    static HONE_INLINE type merge(type v, const double* p, int lanes) {
        const x86::f64x4 four = *reinterpret_cast<const x86::f64x4_anywhere*>(p);
#if HONE_CLANG
        return _mm512_mask_broadcast_f64x4(v, static_cast<tail>(lanes), four);
#else
        return __builtin_ia32_broadcastf64x4_512(four, v, static_cast<tail>(lanes));
#endif
    }
    template <int U>
    static HONE_INLINE type spread(type v) {
        return __builtin_shufflevector(v, v, U, U, U, U, U + 4, U + 4, U + 4, U + 4);
    }
    static HONE_INLINE tail make_tail(int n) { return static_cast<tail>((1u << n) - 1u); }  // n in 1 .. 8
#if HONE_CLANG
    static HONE_INLINE type load(const double* p, tail t) { return _mm512_maskz_loadu_pd(t, p); }
    static HONE_INLINE void store(double* p, type v, tail t) { _mm512_mask_storeu_pd(p, t, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return _mm512_fmadd_pd(a, b, c); }
#else
    static HONE_INLINE type load(const double* p, tail t) { return __builtin_ia32_loadupd512_mask(p, zero(), t); }
    static HONE_INLINE void store(double* p, type v, tail t) { __builtin_ia32_storeupd512_mask(p, v, t); }
    static HONE_INLINE type fma(type a, type b, type c) {
        return __builtin_ia32_vfmaddpd512_mask(a, b, c, static_cast<tail>(0xff), 4);  // 4: MXCSR's rounding
    }
#endif
    static HONE_INLINE void pin(type& v) { asm("" : "+v"(v)); }
    static HONE_INLINE double sum(type v) {
        const x86::f64x4 half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
        const x86::f64x2 two = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
        return two[0] + two[1];
    }
};
