// SPDX-License-Identifier: BSL-1.0
// vec<T, N>: N lanes of T, for epilogue lambdas and for hone's own epilogue stages.
//
// Nothing here carries a target attribute and everything is always-inline, so an operator takes the instruction set
// of the function it is inlined into: the same lambda is SSE2 code in one kernel and AVX-512 code in another. The
// compilers split a vector wider than the registers only after inlining, so a + b on vec<float, 16> is one
// instruction in an AVX-512 region and four in an SSE2 unit.
//
// Results are the same bits on every instruction set and for every N (a NaN stays a NaN; which NaN is not promised):
// each operator is one correctly rounded IEEE 754 operation, in the order written, and a * b + c is two of them.
// Inside hone's kernels, native's apart, this holds under every flag; of -ffast-math include/hone/README.md tells the
// exceptions. A function of the user's own, outside any kernel, follows its own flags: GCC contracts a * b + c there
// where FMA is enabled, unless given -ffp-contract=off.
//
// A lambda may call an out-of-line helper that takes or returns a vec, by value or by reference: vec is passed in
// memory by every ABI and under every flag. The helper needs external linkage. One that is static, or in an unnamed
// namespace, and too large to be inlined, Clang 14 at -O3 changes to take the raw vector in registers, before the
// lambda that calls it is inlined into a kernel with wider ones (argument promotion): it gets garbage. Marking it
// HONE_INLINE, or __attribute__((used)), avoids that too.
//
// Values only: nothing here allocates, throws or keeps state; memory is touched by load and store alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "../config.hpp"

#if HONE_X86
#include <emmintrin.h>
#elif HONE_ARM64
#include <arm_neon.h>
#endif

// GCC notes (-Wpsabi) that a wide raw vector is passed one way with AVX and another without. No raw vector crosses a
// call here: vec is passed in memory by every ABI and under every flag, because its copy constructor is
// user-provided.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

#if HONE_FENCED_PRODUCTS
#define HONE_VEC_FENCE(product) \
    if constexpr (std::is_floating_point_v<T>) detail::fence(product)
#else
#define HONE_VEC_FENCE(product) static_cast<void>(0)
#endif

HONE_STRICT_MATH_BEGIN

// vec lives in a namespace of its own so that hone::tanh and hone::sigmoid can be epilogue stages: called without
// qualification on a vec, tanh and sigmoid are found here, with it they are the stages, which take a vec as well.
namespace hone::inline HONE_ABI::vectors {

// The outcome of comparing two vec<T, N>: a lane is all ones (true) or all zeros (false).
template <class T, int N>
struct mask {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>);
    static_assert(N == 1 || N == 2 || N == 4 || N == 8 || N == 16);

    using element = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    typedef element raw __attribute__((vector_size(sizeof(T) * N)));
    static constexpr int size = N;

    raw v;

    mask() = default;
    HONE_INLINE mask(const mask& o) : v(o.v) {}
    HONE_INLINE mask& operator=(const mask& o) {
        v = o.v;
        return *this;
    }

    static HONE_INLINE mask set(bool b) {
        mask r;
        r.v = raw{} - static_cast<element>(b);
        return r;
    }

    // Lane i, 0 <= i < N, unchecked.
    HONE_INLINE bool operator[](int i) const { return v[i] != 0; }

    friend HONE_INLINE mask operator&(const mask& a, const mask& b) {
        mask r;
        r.v = a.v & b.v;
        return r;
    }
    friend HONE_INLINE mask operator|(const mask& a, const mask& b) {
        mask r;
        r.v = a.v | b.v;
        return r;
    }
    friend HONE_INLINE mask operator!(const mask& a) {
        mask r;
        r.v = ~a.v;
        return r;
    }
};

namespace detail::inline HONE_UNIT {

// GCC 12 holds the outcome of a 64-byte compare in a k register only while selects are its one use; an `and` of two
// outcomes it takes apart lane by lane (378 instructions for one select of 16 lanes). So there the outcome is put
// into a vector at once, by a blend of floats that the compiler does not see through: vcmpps and vmovdqa32{z}, and a
// select of two vpternlogd.
template <class T, int N>
inline constexpr bool mask_by_blend = HONE_GCC && HONE_X86 && __GNUC__ < 13 && sizeof(T) * N == 64;

// Later GCCs take apart every compare and every `c ? a : b` of 64 bytes before they know that it ends up in a function with AVX-512:
// 64 instructions for a maximum with GCC 16. Lanes compared in a constructor are joined again, as in fma below; not where they
// are chosen there, which makes branches of them.
template <class T, int N>
inline constexpr bool compare_by_lanes = HONE_GCC && HONE_X86 && __GNUC__ >= 13 && sizeof(T) * N == 64;

// Clang makes fmaxnm or fmax of a compare and a select on AArch64, also where that changes the sign of a zero: with x
// = -0 `0.f > x ? 0.f : x` becomes +0, on x86 -0. There it is not shown that a mask comes from a compare.
inline constexpr bool mask_is_opaque = HONE_CLANG && HONE_ARM64;

// Everywhere else select is m ? a : b, one compare and one blend with the compare.
template <class T, int N>
inline constexpr bool select_by_bits = mask_by_blend<T, N> || compare_by_lanes<T, N> || mask_is_opaque;

#if HONE_FENCED_PRODUCTS
// Clang's -ffast-math fuses a product with the sum behind it whatever the pragmas say, but not through a fence. The
// builtin is one only where sums may be reordered; of all that -ffast-math allows it gets no more, or a NaN would be lost.
template <class V>
HONE_INLINE void fence(V& product) {
#pragma clang fp reassociate(on)
    product = __arithmetic_fence(product);
}
#endif

template <class T, int N>
HONE_INLINE void hide(mask<T, N>& m) {
#if HONE_ARM64
    if constexpr (mask_is_opaque && sizeof(T) * N > 16) {
        typedef std::int32_t part __attribute__((vector_size(16)));
        part parts[sizeof m.v / sizeof(part)];
        __builtin_memcpy(parts, &m.v, sizeof m.v);
        for (part& p : parts) asm("" : "+w"(p));
        __builtin_memcpy(&m.v, parts, sizeof m.v);
    } else if constexpr (mask_is_opaque && sizeof(T) * N > 4) {
        asm("" : "+w"(m.v));
    } else if constexpr (mask_is_opaque) {
        std::int32_t lane = m.v[0];
        asm("" : "+r"(lane));
        m.v[0] = lane;
    }
#else
    static_cast<void>(m);
#endif
}

}  // namespace detail::inline HONE_UNIT

#define HONE_VEC_ARITHMETIC(op, finish)                                                                          \
    friend HONE_INLINE vec operator op(const vec& a, const vec& b) {                                          \
        vec r;                                                                                                \
        r.v = reinterpret_cast<raw>(reinterpret_cast<wrapping>(a.v) op reinterpret_cast<wrapping>(b.v));      \
        finish;                                                                                               \
        return r;                                                                                             \
    }                                                                                                         \
    HONE_INLINE vec& operator op##=(const vec& b) { return *this = *this op b; }

#define HONE_VEC_BITS(op)                                            \
    friend HONE_INLINE vec operator op(const vec& a, const vec& b)   \
        requires std::is_integral_v<T>                               \
    {                                                                \
        vec r;                                                       \
        r.v = a.v op b.v;                                            \
        return r;                                                    \
    }

#define HONE_VEC_COMPARE(op)                                                                                  \
    friend HONE_INLINE mask<T, N> operator op(const vec& a, const vec& b) {                                   \
        using bits = typename mask<T, N>::raw;                                                                \
        mask<T, N> r;                                                                                         \
        if constexpr (detail::compare_by_lanes<T, N>)                                                         \
            detail::compare_lanes(r.v, a.v, b.v, [](T x, T y) __attribute__((always_inline)) { return x op y; },  \
                                  std::make_integer_sequence<int, N>{});                                      \
        else if constexpr (detail::mask_by_blend<T, N>)                                                       \
            r.v = reinterpret_cast<bits>(a.v op b.v ? reinterpret_cast<blend>(~bits{}) : blend{});            \
        else                                                                                                  \
            r.v = reinterpret_cast<bits>(a.v op b.v);                                                         \
        detail::hide(r);                                                                                      \
        return r;                                                                                             \
    }

namespace detail::inline HONE_UNIT {

template <class Bits, class Raw, class F, int... I>
HONE_INLINE void compare_lanes(Bits& r, const Raw& a, const Raw& b, F f, std::integer_sequence<int, I...>) {
    using element = std::remove_cvref_t<decltype(r[0])>;
    r = Bits{-static_cast<element>(f(a[I], b[I]))...};
}

}  // namespace detail::inline HONE_UNIT

// T: float, double or std::int32_t; N: 1, 2, 4, 8 or 16. Aligned to its size on x86, to 16 bytes at most on
// AArch64. A scalar converts to a vec that holds it in
// every lane, so x * 2.f + 1.f is fine.
template <class T, int N>
struct vec {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>);
    static_assert(N == 1 || N == 2 || N == 4 || N == 8 || N == 16);

    using element = T;
    typedef T raw __attribute__((vector_size(sizeof(T) * N)));
    static constexpr int size = N;

    raw v;

    vec() = default;
    HONE_INLINE vec(const vec& o) : v(o.v) {}
    HONE_INLINE vec& operator=(const vec& o) {
        v = o.v;
        return *this;
    }
    HONE_INLINE vec(T s) {
        // On GCC 12 a lambda is optimised by itself before it is inlined, in a function without AVX; there a bare
        // broadcast put into memory becomes N lane stores, and N inserts for good. Negating it keeps it whole, at one
        // xor. (0 + s would lose a negative zero, s - 0 is folded to the bare broadcast.)
        if constexpr (HONE_GCC && sizeof(T) * N > 16) {
            if constexpr (std::is_integral_v<T>)
                v = ~(~s - raw{});
            else
                v = -(-s - raw{});
        } else {
            v = s - raw{};
        }
    }

    static HONE_INLINE vec set(T s) { return vec(s); }

    // Lane i, 0 <= i < N, unchecked.
    HONE_INLINE T operator[](int i) const { return v[i]; }
    HONE_INLINE void set_lane(int i, T s) { v[i] = s; }

    // Integer lanes wrap around.
    HONE_VEC_ARITHMETIC(+, )
    HONE_VEC_ARITHMETIC(-, )
    HONE_VEC_ARITHMETIC(*, HONE_VEC_FENCE(r.v))
    friend HONE_INLINE vec operator-(const vec& a) {
        vec r;
        r.v = reinterpret_cast<raw>(-reinterpret_cast<wrapping>(a.v));
        return r;
    }

    friend HONE_INLINE vec operator/(const vec& a, const vec& b)
        requires std::is_floating_point_v<T>
    {
        vec r;
        r.v = a.v / b.v;
        return r;
    }
    HONE_INLINE vec& operator/=(const vec& b)
        requires std::is_floating_point_v<T>
    {
        return *this = *this / b;
    }

    // Integer lanes only. A shift is by 0 to 31 bits; >> repeats the sign bit.
    HONE_VEC_BITS(&)
    HONE_VEC_BITS(|)
    HONE_VEC_BITS(^)
    friend HONE_INLINE vec operator~(const vec& a)
        requires std::is_integral_v<T>
    {
        vec r;
        r.v = ~a.v;
        return r;
    }
    friend HONE_INLINE vec operator<<(const vec& a, int bits)
        requires std::is_integral_v<T>
    {
        vec r;
        r.v = reinterpret_cast<raw>(reinterpret_cast<wrapping>(a.v) << static_cast<unsigned>(bits));
        return r;
    }
    friend HONE_INLINE vec operator>>(const vec& a, int bits)
        requires std::is_integral_v<T>
    {
        vec r;
        r.v = a.v >> bits;
        return r;
    }

    // IEEE 754: with a NaN on either side every compare is false, except !=, which is true.
    HONE_VEC_COMPARE(<)
    HONE_VEC_COMPARE(<=)
    HONE_VEC_COMPARE(>)
    HONE_VEC_COMPARE(>=)
    HONE_VEC_COMPARE(==)
    HONE_VEC_COMPARE(!=)

private:
    // Signed overflow is undefined in vectors too, so integer lanes are added as unsigned.
    using wrapping_element = std::conditional_t<std::is_integral_v<T>, std::uint32_t, T>;
    using blend_element = std::conditional_t<sizeof(T) == 8, double, float>;
    typedef wrapping_element wrapping __attribute__((vector_size(sizeof(T) * N)));
    typedef blend_element blend __attribute__((vector_size(sizeof(T) * N)));
};

#undef HONE_VEC_ARITHMETIC
#undef HONE_VEC_FENCE
#undef HONE_VEC_BITS
#undef HONE_VEC_COMPARE

// Lane by lane m ? a : b; a bitwise choice, so a NaN comes through unchanged. Either value may be a scalar.
template <class T, int N>
HONE_INLINE vec<T, N> select(const mask<T, N>& m, const std::type_identity_t<vec<T, N>>& a,
                             const std::type_identity_t<vec<T, N>>& b) {
    using bits = typename mask<T, N>::raw;
    using raw = typename vec<T, N>::raw;
    vec<T, N> r;
    if constexpr (detail::select_by_bits<T, N>)
        r.v = reinterpret_cast<raw>((m.v & reinterpret_cast<bits>(a.v)) | (~m.v & reinterpret_cast<bits>(b.v)));
    else
        r.v = m.v ? a.v : b.v;
    return r;
}

// The bits of a float as an integer, and back; nothing is converted.
template <int N>
HONE_INLINE vec<std::int32_t, N> to_bits(const vec<float, N>& x) {
    vec<std::int32_t, N> r;
    r.v = reinterpret_cast<typename vec<std::int32_t, N>::raw>(x.v);
    return r;
}
template <int N>
HONE_INLINE vec<float, N> from_bits(const vec<std::int32_t, N>& x) {
    vec<float, N> r;
    r.v = reinterpret_cast<typename vec<float, N>::raw>(x.v);
    return r;
}

// Integer to float, rounded to nearest even. Float to integer, rounded toward zero; lanes outside [-2^31, 2^31), NaN
// among them, give an integer that differs between instruction sets.
template <int N>
HONE_INLINE vec<float, N> to_float(const vec<std::int32_t, N>& x) {
    vec<float, N> r;
    r.v = __builtin_convertvector(x.v, typename vec<float, N>::raw);
    return r;
}
template <int N>
HONE_INLINE vec<std::int32_t, N> to_int(const vec<float, N>& x) {
    vec<std::int32_t, N> r;
    r.v = __builtin_convertvector(x.v, typename vec<std::int32_t, N>::raw);
    return r;
}

namespace detail::inline HONE_UNIT {

// a > b ? c : d
template <class T, int N>
HONE_INLINE void choose_greater(vec<T, N>& r, const vec<T, N>& a, const vec<T, N>& b, const vec<T, N>& c, const vec<T, N>& d) {
    if constexpr (compare_by_lanes<T, N>) r = select(a > b, c, d);
    else r.v = a.v > b.v ? c.v : d.v;
}

}  // namespace detail::inline HONE_UNIT

// max(a, b) is b > a ? b : a, and min(a, b) is b < a ? b : a: the rule of std::max and std::min. A NaN in a is
// returned; a NaN in b is ignored, and so is the sign of b where both are zero. Between a vec and a scalar the vec is
// a, in either order of writing, so a relu or a clip lets the NaN of its argument through. One instruction on x86:
// maxps returns its second operand when either is NaN, hence the order.
template <class T, int N>
HONE_INLINE vec<T, N> max(const vec<T, N>& a, const vec<T, N>& b) {
    if constexpr (detail::mask_is_opaque) return select(b > a, b, a);
    vec<T, N> r;
    detail::choose_greater(r, b, a, b, a);
    return r;
}
template <class T, int N>
HONE_INLINE vec<T, N> max(const vec<T, N>& a, std::type_identity_t<T> b) {
    return max(a, vec<T, N>(b));
}
template <class T, int N>
HONE_INLINE vec<T, N> max(std::type_identity_t<T> b, const vec<T, N>& a) {
    return max(a, vec<T, N>(b));
}
template <class T, int N>
HONE_INLINE vec<T, N> min(const vec<T, N>& a, const vec<T, N>& b) {
    if constexpr (detail::mask_is_opaque) return select(b < a, b, a);
    vec<T, N> r;
    detail::choose_greater(r, a, b, b, a);
    return r;
}
template <class T, int N>
HONE_INLINE vec<T, N> min(const vec<T, N>& a, std::type_identity_t<T> b) {
    return min(a, vec<T, N>(b));
}
template <class T, int N>
HONE_INLINE vec<T, N> min(std::type_identity_t<T> b, const vec<T, N>& a) {
    return min(a, vec<T, N>(b));
}

// |x|: clears the sign bit, of a NaN too.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> abs(const vec<T, N>& x) {
    using bits = typename mask<T, N>::raw;
    const bits sign = bits{} + std::numeric_limits<typename mask<T, N>::element>::min();
    vec<T, N> r;
    r.v = reinterpret_cast<typename vec<T, N>::raw>(reinterpret_cast<bits>(x.v) & ~sign);
    return r;
}

// The size of x with the sign bit of s.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> copysign(const vec<T, N>& x, const std::type_identity_t<vec<T, N>>& s) {
    using bits = typename mask<T, N>::raw;
    const bits sign = bits{} + std::numeric_limits<typename mask<T, N>::element>::min();
    vec<T, N> r;
    r.v = reinterpret_cast<typename vec<T, N>::raw>((reinterpret_cast<bits>(x.v) & ~sign) |
                                                    (reinterpret_cast<bits>(s.v) & sign));
    return r;
}

// The nearest integer, halves to even; keeps the sign of zero, infinity and NaN. Adding and taking away 2^23 (2^52)
// leaves |x| without its fraction; above that there is none.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> round_even(const vec<T, N>& x) {
    const vec<T, N> whole(sizeof(T) == 4 ? T(8388608) : T(4503599627370496));
    const vec<T, N> size = abs(x);
    const vec<T, N> rounded = (size + whole) - whole;
    // The sign comes behind the choice: in front of it AVX-512 merges bits under a mask, and Clang 21 takes the operands of
    // that in the wrong order (LLVM issue 157929).
    vec<T, N> r;
    detail::choose_greater(r, whole, size, rounded, size);
    return copysign(r, x);
}

// The greatest integer not above x; keeps the sign of zero, infinity and NaN.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> floor(const vec<T, N>& x) {
    const vec<T, N> near = round_even(x);
    const vec<T, N> below = near - T(1);
    vec<T, N> r;
    detail::choose_greater(r, near, x, below, near);
    return r;
}

namespace detail::inline HONE_UNIT {

template <class T, int N, int... I>
HONE_INLINE void fma_lanes(vec<T, N>& r, const vec<T, N>& a, const vec<T, N>& b, const vec<T, N>& c,
                           std::integer_sequence<int, I...>) {
    using raw = typename vec<T, N>::raw;
    if constexpr (HONE_GCC && sizeof(T) * N > 16) {
        using bits = typename mask<T, N>::raw;
        using element = typename mask<T, N>::element;
        if constexpr (sizeof(T) == 4)
            r.v = reinterpret_cast<raw>(~bits{~__builtin_bit_cast(element, __builtin_fmaf(a.v[I], b.v[I], c.v[I]))...});
        else
            r.v = reinterpret_cast<raw>(~bits{~__builtin_bit_cast(element, __builtin_fma(a.v[I], b.v[I], c.v[I]))...});
    } else {
        if constexpr (sizeof(T) == 4)
            r.v = raw{__builtin_fmaf(a.v[I], b.v[I], c.v[I])...};
        else
            r.v = raw{__builtin_fma(a.v[I], b.v[I], c.v[I])...};
    }
}

}  // namespace detail::inline HONE_UNIT

// a * b + c rounded once, on every instruction set and at every -O. Any argument but all three may be a scalar.
//
// From -O2 on this is one instruction per register in a region with FMA: both compilers join the lanes of a vector
// constructor (GCC 12 does not join the same lanes assigned by a loop: 16 vfmadd213ss). The two complements, which
// GCC removes after joining, are there for the reason given at the broadcast. Where the target has no FMA, which on
// x86 means a unit without -mfma outside any AVX2 region, each lane is a call of fmaf: exact, but slow, so math.hpp
// does without.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> fma(const vec<T, N>& a, const std::type_identity_t<vec<T, N>>& b,
                          const std::type_identity_t<vec<T, N>>& c) {
    vec<T, N> r;
    detail::fma_lanes(r, a, b, c, std::make_integer_sequence<int, N>{});
    return r;
}
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> fma(std::type_identity_t<T> a, const vec<T, N>& b, const std::type_identity_t<vec<T, N>>& c) {
    return fma(vec<T, N>(a), b, c);
}
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> fma(std::type_identity_t<T> a, std::type_identity_t<T> b, const vec<T, N>& c) {
    return fma(vec<T, N>(a), vec<T, N>(b), c);
}

namespace detail::inline HONE_UNIT {

template <class T, int N, int... I>
HONE_INLINE void sqrt_lanes(vec<T, N>& r, const vec<T, N>& x, std::integer_sequence<int, I...>) {
    if constexpr (sizeof(T) == 4)
        r.v = typename vec<T, N>::raw{__builtin_sqrtf(x.v[I])...};
    else
        r.v = typename vec<T, N>::raw{__builtin_sqrt(x.v[I])...};
}

template <int First, class T, int N, int... I>
HONE_INLINE vec<T, static_cast<int>(sizeof...(I))> lanes_from(const vec<T, N>& x, std::integer_sequence<int, I...>) {
    vec<T, static_cast<int>(sizeof...(I))> r;
    r.v = __builtin_shufflevector(x.v, x.v, (First + I)...);
    return r;
}

template <class T, int N, int... I>
HONE_INLINE vec<T, 2 * N> join(const vec<T, N>& a, const vec<T, N>& b, std::integer_sequence<int, I...>) {
    vec<T, 2 * N> r;
    r.v = __builtin_shufflevector(a.v, b.v, I...);
    return r;
}

}  // namespace detail::inline HONE_UNIT

// Correctly rounded; sqrt(-0) is -0, below zero NaN. By 16-byte parts with the baseline's own instruction: a lane's
// __builtin_sqrtf may set errno and so is not joined. The price for 64 bytes is 3 + 3 shuffles.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> sqrt(const vec<T, N>& x) {
    using half = std::make_integer_sequence<int, N / 2>;
    vec<T, N> r;
    if constexpr (!HONE_X86 && !HONE_ARM64) {
        detail::sqrt_lanes(r, x, std::make_integer_sequence<int, N>{});
    } else if constexpr (sizeof(T) * N > 16) {
        r = detail::join(sqrt(detail::lanes_from<0>(x, half{})), sqrt(detail::lanes_from<N / 2>(x, half{})),
                         std::make_integer_sequence<int, N>{});
    } else if constexpr (sizeof(T) * N < 16) {
        const vec<T, N> none(T(0));
        const vec<T, 2 * N> wide = sqrt(detail::join(x, none, std::make_integer_sequence<int, 2 * N>{}));
        r = detail::lanes_from<0>(wide, std::make_integer_sequence<int, N>{});
    } else {
#if HONE_X86
        if constexpr (sizeof(T) == 4)
            r.v = _mm_sqrt_ps(x.v);
        else
            r.v = _mm_sqrt_pd(x.v);
#elif HONE_ARM64
        if constexpr (sizeof(T) == 4)
            r.v = vsqrtq_f32(x.v);
        else
            r.v = vsqrtq_f64(x.v);
#endif
    }
    return r;
}

namespace detail::inline HONE_UNIT {

// Copies elements 0 to count - 1, 0 <= count <= N: at most one move each of 8, 4, 2 and 1 elements, and no library
// call.
template <int N, class T>
HONE_INLINE void copy_some(T* to, const T* from, int count) {
    int i = 0;
    if constexpr (N > 8) {
        if (count & 8) {
            __builtin_memcpy(to, from, 8 * sizeof(T));
            i = 8;
        }
    }
    if constexpr (N > 4) {
        if (count & 4) {
            __builtin_memcpy(to + i, from + i, 4 * sizeof(T));
            i += 4;
        }
    }
    if constexpr (N > 2) {
        if (count & 2) {
            __builtin_memcpy(to + i, from + i, 2 * sizeof(T));
            i += 2;
        }
    }
    if (count & 1) __builtin_memcpy(to + i, from + i, sizeof(T));
}

}  // namespace detail::inline HONE_UNIT

// Reads N elements at p, which needs only the alignment of T.
template <class T, int N>
HONE_INLINE vec<T, N> load(const T* p) {
    vec<T, N> r;
    __builtin_memcpy(&r.v, p, sizeof r.v);
    return r;
}

// Reads min(lanes, N) elements at p and no other byte (p may be null when there are none); the rest is zero.
template <class T, int N>
HONE_INLINE vec<T, N> load(const T* p, int lanes) {
    if (lanes >= N) return load<T, N>(p);
    T some[std::size_t{N}] = {};
    if (lanes > 0) detail::copy_some<N>(some, p, lanes);
    return load<T, N>(some);
}

// Writes N elements at p, which needs only the alignment of T.
template <class T, int N>
HONE_INLINE void store(T* p, const vec<T, N>& x) {
    __builtin_memcpy(p, &x.v, sizeof x.v);
}

// Writes min(lanes, N) elements at p and no other byte.
template <class T, int N>
HONE_INLINE void store(T* p, const vec<T, N>& x, int lanes) {
    if (lanes >= N) return store(p, x);
    T some[std::size_t{N}];
    store(some, x);
    if (lanes > 0) detail::copy_some<N>(p, some, lanes);
}

// A type that is first laid out inside a target region makes GCC 12 crash at -O0.
static_assert(sizeof(vec<float, 1>) == 4 && sizeof(vec<float, 2>) == 8 && sizeof(vec<float, 4>) == 16);
static_assert(sizeof(vec<float, 8>) == 32 && sizeof(vec<float, 16>) == 64);
static_assert(sizeof(vec<double, 1>) == 8 && sizeof(vec<double, 2>) == 16 && sizeof(vec<double, 4>) == 32);
static_assert(sizeof(vec<double, 8>) == 64 && sizeof(vec<double, 16>) == 128);
static_assert(sizeof(vec<std::int32_t, 1>) == 4 && sizeof(vec<std::int32_t, 2>) == 8);
static_assert(sizeof(vec<std::int32_t, 4>) == 16 && sizeof(vec<std::int32_t, 8>) == 32);
static_assert(sizeof(vec<std::int32_t, 16>) == 64);
static_assert(sizeof(mask<float, 1>) == 4 && sizeof(mask<float, 2>) == 8 && sizeof(mask<float, 4>) == 16);
static_assert(sizeof(mask<float, 8>) == 32 && sizeof(mask<float, 16>) == 64);
static_assert(sizeof(mask<double, 1>) == 8 && sizeof(mask<double, 2>) == 16 && sizeof(mask<double, 4>) == 32);
static_assert(sizeof(mask<double, 8>) == 64 && sizeof(mask<double, 16>) == 128);
static_assert(sizeof(mask<std::int32_t, 1>) == 4 && sizeof(mask<std::int32_t, 2>) == 8);
static_assert(sizeof(mask<std::int32_t, 4>) == 16 && sizeof(mask<std::int32_t, 8>) == 32);
static_assert(sizeof(mask<std::int32_t, 16>) == 64);

}  // namespace hone::inline HONE_ABI::vectors

namespace hone::inline HONE_ABI {
using vectors::abs;
using vectors::copysign;
using vectors::floor;
using vectors::fma;
using vectors::from_bits;
using vectors::load;
using vectors::mask;
using vectors::max;
using vectors::min;
using vectors::round_even;
using vectors::select;
using vectors::sqrt;
using vectors::store;
using vectors::to_bits;
using vectors::to_float;
using vectors::to_int;
using vectors::vec;
}  // namespace hone::inline HONE_ABI

HONE_STRICT_MATH_END

#pragma GCC diagnostic pop
