// One element is a register: plain C++ for machines nothing else fits, and the reference the other ISAs must equal bit for
// bit. __builtin_fmaf and __builtin_fma are one instruction where the unit's flags have FMA, else the C
// library's correctly rounded functions.
template <class T>
inline constexpr int epilogue_lanes = 16 / static_cast<int>(sizeof(T));

inline constexpr bool small_kernels = false;
inline constexpr bool every_height = false;  // tiles of one row and of mr: enough where nothing is won
inline constexpr bool masked_loads = true;  // loads of part of a register cost what others cost

template <class T>
struct reg {
    using type = T;
    using tail = int;

    static HONE_INLINE constexpr int lanes() { return 1; }
    static HONE_INLINE constexpr int panel() { return 64 / static_cast<int>(sizeof(T)); }
    static HONE_INLINE type zero() { return 0; }
    static HONE_INLINE type set(T x) { return x; }
    static HONE_INLINE type load(const T* p) { return *p; }
    static HONE_INLINE void store(T* p, type v) { *p = v; }
    static HONE_INLINE tail make_tail(int n) { return n; }
    static HONE_INLINE type load(const T* p, tail) { return *p; }
    static HONE_INLINE void store(T* p, type v, tail) { *p = v; }
    static HONE_INLINE void pin(type&) {}
    static HONE_INLINE type add(type a, type b) { return a + b; }
    static HONE_INLINE type relu(type x) { return x < 0 ? 0 : x; }  // max(x, 0); NaN stays
    static HONE_INLINE type fma(type a, type b, type c) {
        if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
        else return __builtin_fma(a, b, c);
    }
};
