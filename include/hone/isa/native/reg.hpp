// Whatever the unit is compiled for, through xsimd: SSE2 or NEON by default, AVX2 under -mavx2, WASM, RVV, VSX and every
// other target xsimd has. Without FMA in the flags fma is a product and a sum, each rounded: results then differ from the
// ISAs with FMA in the last bits, and explain() says so.
template <class T>
inline constexpr int epilogue_lanes = 16 / static_cast<int>(sizeof(T));

inline constexpr bool small_kernels = false;
inline constexpr bool every_height = !(HONE_X86 || HONE_ARM64);  // tiles of one row and of mr where native only stands in
inline constexpr bool masked_loads = false;  // loads of part of a register cost what others cost

template <class T>
struct reg {
    using type = xsimd::batch<T>;
    using tail = int;
    static constexpr int line = 64 / static_cast<int>(sizeof(T));

    static HONE_INLINE constexpr int lanes() { return static_cast<int>(type::size); }
    static HONE_INLINE constexpr int panel() { return lanes() > line ? lanes() : line; }
    static HONE_INLINE type zero() { return type(T(0)); }
    static HONE_INLINE type set(T x) { return type(x); }
    static HONE_INLINE type load(const T* p) { return type::load_unaligned(p); }
    static HONE_INLINE void store(T* p, type v) { v.store_unaligned(p); }
    static HONE_INLINE tail make_tail(int n) { return n; }
    static HONE_INLINE type load(const T* p, tail n) { return n == lanes() ? load(p) : part(p, n); }
    static HONE_INLINE void store(T* p, type v, tail n) {
        if (n == lanes()) store(p, v);
        else part(p, v, n);
    }
    // Edges only: out of line, or each of a tile's rows would hold both loops.
    static HONE_NOINLINE type part(const T* p, tail n) {
        T lane[type::size] = {};
        for (int i = 0; i < n; ++i) lane[i] = p[i];
        return type::load_unaligned(lane);
    }
    static HONE_NOINLINE void part(T* p, type v, tail n) {
        T lane[type::size];
        v.store_unaligned(lane);
        for (int i = 0; i < n; ++i) p[i] = lane[i];
    }
    static HONE_INLINE void pin(type&) {}
    static HONE_INLINE T sum(type v) {
        T lane[type::size];
        v.store_unaligned(lane);
        for (std::size_t half = type::size / 2; half > 0; half /= 2) {
            for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
        }
        return lane[0];
    }
#if HONE_NATIVE_AVX512
    static HONE_INLINE type fma(type a, type b, type c) {
        if constexpr (sizeof(T) == 4) return type(_mm512_fmadd_ps(a, b, c));
        else return type(_mm512_fmadd_pd(a, b, c));
    }
#else
    static HONE_INLINE type fma(type a, type b, type c) { return xsimd::fma(a, b, c); }
#endif
};
