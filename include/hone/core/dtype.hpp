// SPDX-License-Identifier: BSL-1.0
// Element types: the storage-only bf16 and f16, their conversions, and the run-time name of a type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../config.hpp"
#include "vec.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

HONE_STRICT_MATH_BEGIN

namespace hone::inline HONE_ABI {

// bfloat16: the upper half of a float. Storage only: it converts to and from float, explicitly, and arithmetic is
// done there. Trivial, 2 bytes.
struct bf16 {
    std::uint16_t bits;

    bf16() = default;

    // Rounded to nearest even: from half a step above the greatest finite bf16 on, FLT_MAX among them, to infinity. A
    // NaN stays a NaN of the same sign and upper payload bits, quiet; the rounding bias would carry some of them into
    // infinity or zero. Only from float: a double would be rounded twice, and an integer is more likely meant as
    // bits.
    template <class F>
        requires std::is_same_v<F, float>
    constexpr HONE_INLINE explicit bf16(F x) : bits(0) {
        const auto u = std::bit_cast<std::uint32_t>(x);
        if ((u & 0x7fffffffu) > 0x7f800000u)
            bits = static_cast<std::uint16_t>((u >> 16) | 0x0040u);
        else
            bits = static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }

    static constexpr HONE_INLINE bf16 from_bits(std::uint16_t b) {
        bf16 r{};
        r.bits = b;
        return r;
    }

    // Exact.
    constexpr HONE_INLINE explicit operator float() const {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
};

// IEEE 754 binary16. Storage only: it converts to and from float, explicitly, and arithmetic is done there. Trivial,
// 2 bytes.
struct f16 {
    std::uint16_t bits;

    f16() = default;

    // Rounded to nearest even: from 65520 on to infinity, below 2^-14 to a multiple of 2^-24, up to 2^-25 to zero. A
    // NaN stays a NaN of the same sign and upper payload bits, quiet. In integers alone: the thread's rounding mode
    // and flush-to-zero flags have no say. Only from float, as bf16.
    template <class F>
        requires std::is_same_v<F, float>
    constexpr HONE_INLINE explicit f16(F x) : bits(0) {
        const auto u = std::bit_cast<std::uint32_t>(x);
        const std::uint32_t a = u & 0x7fffffffu;
        std::uint32_t h = 0;
        if (a > 0x7f800000u) {
            h = 0x7e00u | ((a >> 13) & 0x03ffu);
        } else if (a >= 0x477ff000u) {  // 65520
            h = 0x7c00u;
        } else if (a >= 0x38800000u) {  // 2^-14; the exponent's bias is less by 112
            h = (a - 0x38000000u + 0x0fffu + ((a >> 13) & 1u)) >> 13;
        } else if (a > 0x33000000u) {  // 2^-25
            const std::uint32_t shift = 126u - (a >> 23);
            const std::uint32_t m = (a & 0x007fffffu) | 0x00800000u;
            h = (m + (1u << (shift - 1)) - 1u + ((m >> shift) & 1u)) >> shift;
        }
        bits = static_cast<std::uint16_t>(((u >> 16) & 0x8000u) | h);
    }

    static constexpr HONE_INLINE f16 from_bits(std::uint16_t b) {
        f16 r{};
        r.bits = b;
        return r;
    }

    // Exact, but that a signalling NaN becomes quiet.
    constexpr HONE_INLINE explicit operator float() const {
        const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
        const std::uint32_t a = bits & 0x7fffu;
        std::uint32_t u = a << 13;
        if (a < 0x0400u)  // 2^-14 (1 + a / 1024) - 2^-14
            u = std::bit_cast<std::uint32_t>(std::bit_cast<float>(u + 0x38800000u) - 0x1p-14f);
        else if (a < 0x7c00u)
            u += 0x38000000u;
        else
            u |= a == 0x7c00u ? 0x7f800000u : 0x7fc00000u;
        return std::bit_cast<float>(sign | u);
    }
};

static_assert(sizeof(bf16) == 2 && alignof(bf16) == 2 && std::is_trivial_v<bf16>);
static_assert(sizeof(f16) == 2 && alignof(f16) == 2 && std::is_trivial_v<f16>);

// The element type of a view at run time; dynamic: not one of these.
enum class dtype : std::uint8_t { dynamic, f32, f64, bf16, f16, s32, s8, u8 };

// Bytes of one element; 0 for dynamic.
constexpr HONE_INLINE std::size_t size_of(dtype t) {
    switch (t) {
        case dtype::f64: return 8;
        case dtype::f32:
        case dtype::s32: return 4;
        case dtype::bf16:
        case dtype::f16: return 2;
        case dtype::s8:
        case dtype::u8: return 1;
        case dtype::dynamic: break;
    }
    return 0;
}

constexpr HONE_INLINE std::string_view name(dtype t) {
    switch (t) {
        case dtype::f32: return "f32";
        case dtype::f64: return "f64";
        case dtype::bf16: return "bf16";
        case dtype::f16: return "f16";
        case dtype::s32: return "s32";
        case dtype::s8: return "s8";
        case dtype::u8: return "u8";
        case dtype::dynamic: break;
    }
    return "dynamic";
}

namespace detail::inline HONE_UNIT {

template <class T>
constexpr HONE_INLINE dtype find_dtype() {
    if constexpr (std::is_same_v<T, float>) return dtype::f32;
    if constexpr (std::is_same_v<T, double>) return dtype::f64;
    if constexpr (std::is_same_v<T, bf16>) return dtype::bf16;
    if constexpr (std::is_same_v<T, f16>) return dtype::f16;
    if constexpr (std::is_same_v<T, std::int32_t>) return dtype::s32;
    if constexpr (std::is_same_v<T, std::int8_t>) return dtype::s8;
    if constexpr (std::is_same_v<T, std::uint8_t>) return dtype::u8;
    return dtype::dynamic;
}

}  // namespace detail::inline HONE_UNIT

// The dtype of a C++ type, const or not; dynamic for any other.
template <class T>
inline constexpr dtype dtype_of = detail::find_dtype<std::remove_cv_t<T>>();

namespace detail::inline HONE_UNIT {

// The low 16 bits of every lane.
template <class H, int N>
HONE_INLINE void store_halves(H* p, const vec<std::int32_t, N>& x, int lanes) {
    typedef std::uint16_t half_raw __attribute__((vector_size(2 * N)));
    const half_raw halves = __builtin_convertvector(x.v, half_raw);
    if (lanes >= N) {
        __builtin_memcpy(p, &halves, sizeof halves);
        return;
    }
    H some[std::size_t{N}];
    __builtin_memcpy(some, &halves, sizeof halves);
    if (lanes > 0) vectors::detail::copy_some<N>(p, some, lanes);
}

template <int N, class H>
HONE_INLINE vec<std::int32_t, N> load_halves(const H* p, int lanes) {
    typedef std::uint16_t half_raw __attribute__((vector_size(2 * N)));
    half_raw halves{};
    if (lanes >= N) {
        __builtin_memcpy(&halves, p, sizeof halves);
    } else if (lanes > 0) {
        H some[std::size_t{N}] = {};
        vectors::detail::copy_some<N>(some, p, lanes);
        __builtin_memcpy(&halves, some, sizeof halves);
    }
    vec<std::int32_t, N> r;
    r.v = __builtin_convertvector(halves, typename vec<std::int32_t, N>::raw);
    return r;
}

template <int N>
HONE_INLINE vec<std::int32_t, N> bf16_bits(const vec<float, N>& x) {
    const vec<std::int32_t, N> u = to_bits(x);
    const vec<std::int32_t, N> upper = u >> 16;
    return select((u & 0x7fffffff) > 0x7f800000, upper | 0x0040, (u + ((upper & 1) + 0x7fff)) >> 16);
}

// Below 2^-14 the float addition of 1/2, whose last bit is 2^-24, does the rounding; the thread's rounding mode has
// to be to nearest. Flushing subnormal floats is harmless: they are below 2^-25.
template <int N>
HONE_INLINE vec<std::int32_t, N> f16_bits(const vec<float, N>& x) {
    const vec<std::int32_t, N> u = to_bits(x);
    const vec<std::int32_t, N> a = u & 0x7fffffff;
    const vec<std::int32_t, N> normal = (a + (((a >> 13) & 1) - (0x38000000 - 0x0fff))) >> 13;
    const vec<std::int32_t, N> small = to_bits(from_bits(a) + 0.5f) - 0x3f000000;
    const vec<std::int32_t, N> nan = ((a >> 13) & 0x03ff) | 0x7e00;
    vec<std::int32_t, N> h = select(a < 0x38800000, small, normal);
    h = select(a < 0x477ff000, h, 0x7c00);
    h = select(a > 0x7f800000, nan, h);
    return h | ((u >> 16) & 0x8000);
}

}  // namespace detail::inline HONE_UNIT

// Rounds min(lanes, N) lanes as the constructor of bf16 does, to the bit, and writes them at p and no other byte.
template <int N>
HONE_INLINE void store(bf16* p, const vec<float, N>& x, int lanes = N) {
    detail::store_halves(p, detail::bf16_bits(x), lanes);
}

// Rounds min(lanes, N) lanes as the constructor of f16 does, to the bit, and writes them at p and no other byte.
template <int N>
HONE_INLINE void store(f16* p, const vec<float, N>& x, int lanes = N) {
    detail::store_halves(p, detail::f16_bits(x), lanes);
}

// Reads min(lanes, N) elements at p and no other byte, as float, exactly; the rest is zero.
template <class T, int N>
    requires std::is_same_v<T, float>
HONE_INLINE vec<T, N> load(const bf16* p, int lanes = N) {
    return from_bits(detail::load_halves<N>(p, lanes) << 16);
}

// The same from f16; a signalling NaN becomes quiet. 2^-14 (1 + a / 1024) - 2^-14 makes a float of a subnormal a *
// 2^-24.
template <class T, int N>
    requires std::is_same_v<T, float>
HONE_INLINE vec<T, N> load(const f16* p, int lanes = N) {
    const vec<std::int32_t, N> u = detail::load_halves<N>(p, lanes);
    const vec<std::int32_t, N> a = u & 0x7fff;
    const vec<std::int32_t, N> normal = (a << 13) + 0x38000000;
    const vec<std::int32_t, N> small = to_bits(from_bits((a << 13) + 0x38800000) - 0x1p-14f);
    vec<std::int32_t, N> f = select(a < 0x0400, small, normal);
    f = select(a < 0x7c00, f, (a << 13) | 0x7f800000);
    f = select(a > 0x7c00, f | 0x00400000, f);
    return from_bits(f | ((u & 0x8000) << 16));
}

}  // namespace hone::inline HONE_ABI

HONE_STRICT_MATH_END

#pragma GCC diagnostic pop
