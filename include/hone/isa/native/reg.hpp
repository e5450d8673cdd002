// Whatever the unit is compiled for: SSE2 or NEON by default, AVX2 under -mavx2, and through xsimd WASM, RVV, VSX and every
// other target that it has. Without FMA in the flags fma is a product and a sum, each rounded: results then differ from the
// ISAs with FMA in the last bits, and explain() says so.
#if HONE_XSIMD
#include "batch.inl"
#else
#include "vectors.inl"
#endif

template <class T>
inline constexpr int epilogue_lanes = 16 / static_cast<int>(sizeof(T));

inline constexpr bool small_kernels = false;
inline constexpr bool every_height = !(HONE_X86 || HONE_ARM64);  // tiles of one row and of mr where native only stands in
inline constexpr bool masked_loads = false;  // loads of part of a register cost what others cost

template <class T>
struct reg : unit_vector<T> {
    using base = unit_vector<T>;
    using typename base::type;
    using base::lanes;
    using base::load;
    using base::store;
    using tail = int;
    static constexpr int line = 64 / static_cast<int>(sizeof(T));

    static HONE_INLINE constexpr int panel() { return lanes() > line ? lanes() : line; }
    static HONE_INLINE type zero() { return base::set(T(0)); }
    static HONE_INLINE tail make_tail(int n) { return n; }
    static HONE_INLINE type load(const T* p, tail n) { return n == lanes() ? load(p) : part(p, n); }
    static HONE_INLINE void store(T* p, type v, tail n) {
        if (n == lanes()) store(p, v);
        else part(p, v, n);
    }
    // Edges only: out of line, or each of a tile's rows would hold both loops.
    static HONE_NOINLINE type part(const T* p, tail n) {
        T lane[lanes()] = {};
        for (int i = 0; i < n; ++i) lane[i] = p[i];
        return load(lane);
    }
    static HONE_NOINLINE void part(T* p, type v, tail n) {
        T lane[lanes()];
        store(lane, v);
        for (int i = 0; i < n; ++i) p[i] = lane[i];
    }
    static HONE_INLINE void pin(type&) {}
    static HONE_INLINE T sum(type v) {
        T lane[lanes()];
        store(lane, v);
        for (int half = lanes() / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
        }
        return lane[0];
    }
};
