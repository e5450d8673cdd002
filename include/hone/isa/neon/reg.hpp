// The registers of Advanced SIMD on AArch64, 32 of 128 bits. Cycles are latency / reciprocal throughput.
//
//   intrinsic       instruction   Neoverse N1   pipes   Neoverse V1   pipes
//   vfmaq_f32       fmla          4 / 0.5       V0 V1   4 / 0.25      V0-V3
//   vld1q_f32       ldr q         5 / 0.5       L       6 / 0.33      L
//   vld1q_dup_f32   ld1r          7 / 0.5       L V     8 / 0.33      L V
//   vst1q_f32       str q         2 / 0.5       L V     2 / 0.5       L V
template <class T>
struct reg;

template <class T>
inline constexpr int epilogue_lanes = 16 / static_cast<int>(sizeof(T));

inline constexpr bool small_kernels = false;
inline constexpr bool every_height = true;  // tiles of all heights up to mr
inline constexpr bool masked_loads = false;  // loads of part of a register cost what others cost

template <>
struct reg<float> {
    using type = float32x4_t;
    using tail = int;

    static HONE_INLINE constexpr int lanes() { return 4; }
    static HONE_INLINE constexpr int panel() { return 16; }
    static HONE_INLINE type zero() { return vdupq_n_f32(0.0f); }
    static HONE_INLINE type set(float x) { return vdupq_n_f32(x); }
    static HONE_INLINE type load(const float* p) { return vld1q_f32(p); }
    static HONE_INLINE void store(float* p, type v) { vst1q_f32(p, v); }
    static HONE_INLINE tail make_tail(int n) { return n; }
    static HONE_INLINE type load(const float* p, tail n) {  // by lanes: an array of lanes would go through the stack
        if (n >= 4) return vld1q_f32(p);
        type v = vld1q_lane_f32(p, vdupq_n_f32(0.0f), 0);
        if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
        if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
        return v;
    }
    static HONE_INLINE void store(float* p, type v, tail n) {
        if (n >= 4) return vst1q_f32(p, v);
        vst1q_lane_f32(p, v, 0);
        if (n > 1) vst1q_lane_f32(p + 1, v, 1);
        if (n > 2) vst1q_lane_f32(p + 2, v, 2);
    }
    // Keeps a value in a register: GCC would rather load B once more for every row of a small tile.
    static HONE_INLINE void pin(type& v) { asm("" : "+w"(v)); }
    static HONE_INLINE type fma(type a, type b, type c) { return vfmaq_f32(c, a, b); }
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type relu(type x) { return vbslq_f32(vcltzq_f32(x), zero(), x); }  // max(x, 0); NaN stays
    static HONE_INLINE float sum(type v) { return vaddvq_f32(v); }
};

template <>
struct reg<double> {
    using type = float64x2_t;
    using tail = int;

    static HONE_INLINE constexpr int lanes() { return 2; }
    static HONE_INLINE constexpr int panel() { return 8; }
    static HONE_INLINE type zero() { return vdupq_n_f64(0.0); }
    static HONE_INLINE type set(double x) { return vdupq_n_f64(x); }
    static HONE_INLINE type load(const double* p) { return vld1q_f64(p); }
    static HONE_INLINE void store(double* p, type v) { vst1q_f64(p, v); }
    static HONE_INLINE tail make_tail(int n) { return n; }
    static HONE_INLINE type load(const double* p, tail n) {
        return n >= 2 ? vld1q_f64(p) : vld1q_lane_f64(p, vdupq_n_f64(0.0), 0);
    }
    static HONE_INLINE void store(double* p, type v, tail n) {
        if (n >= 2) vst1q_f64(p, v);
        else vst1q_lane_f64(p, v, 0);
    }
    static HONE_INLINE void pin(type& v) { asm("" : "+w"(v)); }
    static HONE_INLINE type fma(type a, type b, type c) { return vfmaq_f64(c, a, b); }
    static HONE_INLINE double sum(type v) { return vaddvq_f64(v); }
};
