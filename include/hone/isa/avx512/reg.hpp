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
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type set(float x) { return type{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
    static HONE_INLINE type load(const float* p) { return *reinterpret_cast<const anywhere*>(p); }
    static HONE_INLINE void store(float* p, type v) { *reinterpret_cast<anywhere*>(p) = v; }
    // Eight elements and eight others. Vector types would say it, but GCC 12 goes through memory for what widens.
    static HONE_INLINE type halves(const float* p, const float* q) {
        const x86::f32x8 low = *reinterpret_cast<const x86::f32x8_anywhere*>(p), high = *reinterpret_cast<const x86::f32x8_anywhere*>(q);
#if HONE_CLANG
        return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#else
        const type both = __builtin_ia32_ps512_256ps(low);
        return __builtin_ia32_insertf32x8_mask(both, high, 1, both, static_cast<tail>(-1));
#endif
    }
    // From eight steps of 16 rows, x[q] halves of rows q / 4 * 4 + q and 4 further, to 16 rows of eight steps, in 24 shuffles.
    static HONE_INLINE void turn(type (&x)[8]) {
        HONE_UNROLL
        for (int i = 0; i < 8; i += 4) {
            const type a = __builtin_shufflevector(x[i], x[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
            const type b = __builtin_shufflevector(x[i], x[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
            const type c = __builtin_shufflevector(x[i + 2], x[i + 3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
            const type d = __builtin_shufflevector(x[i + 2], x[i + 3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
            x[i] = __builtin_shufflevector(a, c, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
            x[i + 1] = __builtin_shufflevector(a, c, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
            x[i + 2] = __builtin_shufflevector(b, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
            x[i + 3] = __builtin_shufflevector(b, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        }
        HONE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const type low = x[i], high = x[i + 4];
            x[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
            x[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        }
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
    // max(x, 0); vmaxps gives its second operand where one is NaN.
#if HONE_CLANG
    static HONE_INLINE type relu(type x) { return _mm512_max_ps(zero(), x); }
#else
    static HONE_INLINE type relu(type x) { return __builtin_ia32_maxps512_mask(zero(), x, x, static_cast<short>(-1), 4); }
#endif
    // Adds x times the lanes of p that are on, in one instruction: compilers load them apart, or all of them.
    static HONE_INLINE void fma_part(type x, const float* p, tail t, type& c) {
        asm("vfmadd231ps {%2, %1, %0%{%3%}|%0%{%3%}, %1, %2}" : "+v"(c) : "v"(x), "m"(*reinterpret_cast<const anywhere*>(p)), "Yk"(t));
    }
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
    // As of floats.
    static HONE_INLINE type halves(const double* p, const double* q) {
        const x86::f64x4 low = *reinterpret_cast<const x86::f64x4_anywhere*>(p), high = *reinterpret_cast<const x86::f64x4_anywhere*>(q);
#if HONE_CLANG
        return _mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
#else
        const type both = __builtin_ia32_pd512_256pd(low);
        return __builtin_ia32_insertf64x4_mask(both, high, 1, both, static_cast<tail>(-1));
#endif
    }
    // From four steps of 8 rows to 8 rows of four steps, in eight shuffles.
    static HONE_INLINE void turn(type (&x)[4]) {
        const type a = __builtin_shufflevector(x[0], x[1], 0, 8, 2, 10, 4, 12, 6, 14);
        const type b = __builtin_shufflevector(x[0], x[1], 1, 9, 3, 11, 5, 13, 7, 15);
        const type c = __builtin_shufflevector(x[2], x[3], 0, 8, 2, 10, 4, 12, 6, 14);
        const type d = __builtin_shufflevector(x[2], x[3], 1, 9, 3, 11, 5, 13, 7, 15);
        x[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5, 8, 9, 12, 13);
        x[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5, 8, 9, 12, 13);
        x[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7, 10, 11, 14, 15);
        x[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7, 10, 11, 14, 15);
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
    static HONE_INLINE void fma_part(type x, const double* p, tail t, type& c) {
        asm("vfmadd231pd {%2, %1, %0%{%3%}|%0%{%3%}, %1, %2}" : "+v"(c) : "v"(x), "m"(*reinterpret_cast<const anywhere*>(p)), "Yk"(t));
    }
    static HONE_INLINE void pin(type& v) { asm("" : "+v"(v)); }
    static HONE_INLINE double sum(type v) {
        const x86::f64x4 half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
        const x86::f64x2 two = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
        return two[0] + two[1];
    }
};
