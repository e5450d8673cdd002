// The registers of SVE, 32 of 128 to 2048 bits, known only at run time. SVE alone is enough for these bodies: sve2 is the
// same folder compiled for CPUs that have SVE2. Cycles are latency / reciprocal throughput.
//
//   intrinsic       instruction   Neoverse V1 (256)   pipes   Neoverse V2 (128)   pipes
//   svmla_f32_x     fmla          4 / 0.5             V0 V1   4 / 0.25            V0-V3
//   svld1_f32       ld1w          6 / 0.5             L       6 / 0.33            L
//   svdup_n_f32     ld1rw         6 / 0.5             L       6 / 0.33            L
//   svst1_f32       st1w          2 / 1               L V     2 / 0.5             L V
//   svwhilelt_b32   whilelt       3 / 1               M       2 / 1               M
template <class T>
struct reg;

// Epilogues see fixed 128-bit vectors whatever the register length: GCC 12 lowers wider compares lane by lane, and no
// user's lambda ever meets a sizeless type.
template <class T>
inline constexpr int epilogue_lanes = 16 / static_cast<int>(sizeof(T));

inline constexpr bool every_height = true;  // tiles of all heights up to mr
inline constexpr bool masked_loads = true;  // loads of part of a register cost what others cost

template <>
struct reg<float> {
    using type = svfloat32_t;
    using tail = svbool_t;

    static HONE_INLINE int lanes() { return static_cast<int>(svcntw()); }
    static HONE_INLINE int panel() { return lanes() > 16 || 16 % lanes() != 0 ? lanes() : 16; }
    static HONE_INLINE type zero() { return svdup_n_f32(0.0f); }
    static HONE_INLINE type set(float x) { return svdup_n_f32(x); }
    static HONE_INLINE type load(const float* p) { return svld1_f32(svptrue_b32(), p); }
    static HONE_INLINE void store(float* p, type v) { svst1_f32(svptrue_b32(), p, v); }
    static HONE_INLINE tail make_tail(int n) { return svwhilelt_b32_s32(0, n); }
    static HONE_INLINE type load(const float* p, tail t) { return svld1_f32(t, p); }
    static HONE_INLINE void store(float* p, type v, tail t) { svst1_f32(t, p, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return svmla_f32_x(svptrue_b32(), c, a, b); }
    static HONE_INLINE type add(type a, type b) { return svadd_f32_x(svptrue_b32(), a, b); }
    static HONE_INLINE type relu(type x) { return svsel_f32(svcmplt_n_f32(svptrue_b32(), x, 0.0f), zero(), x); }  // max(x, 0); NaN stays
    static HONE_INLINE float sum(type v) { return svaddv_f32(svptrue_b32(), v); }
};

template <>
struct reg<double> {
    using type = svfloat64_t;
    using tail = svbool_t;

    static HONE_INLINE int lanes() { return static_cast<int>(svcntd()); }
    static HONE_INLINE int panel() { return lanes() > 8 || 8 % lanes() != 0 ? lanes() : 8; }
    static HONE_INLINE type zero() { return svdup_n_f64(0.0); }
    static HONE_INLINE type set(double x) { return svdup_n_f64(x); }
    static HONE_INLINE type load(const double* p) { return svld1_f64(svptrue_b64(), p); }
    static HONE_INLINE void store(double* p, type v) { svst1_f64(svptrue_b64(), p, v); }
    static HONE_INLINE tail make_tail(int n) { return svwhilelt_b64_s32(0, n); }
    static HONE_INLINE type load(const double* p, tail t) { return svld1_f64(t, p); }
    static HONE_INLINE void store(double* p, type v, tail t) { svst1_f64(t, p, v); }
    static HONE_INLINE type fma(type a, type b, type c) { return svmla_f64_x(svptrue_b64(), c, a, b); }
    static HONE_INLINE double sum(type v) { return svaddv_f64(svptrue_b64(), v); }
};
