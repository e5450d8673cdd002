// SPDX-License-Identifier: BSL-1.0
// core/dtype.hpp: bf16 and f16 against a reference by scaling, the vector conversions against the scalar ones.
#include "catch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <hone/core/dtype.hpp>

using hone::bf16;
using hone::dtype;
using hone::f16;
using hone::vec;

namespace {

float from_pattern(std::uint32_t u) { return std::bit_cast<float>(u); }

// x rounded to nearest even to `digits` significant bits with least exponent `least`; from `limit` on infinite.
float reference(float x, int digits, int least, double limit) {
    if (std::isnan(x) || std::isinf(x) || x == 0.f) return x;
    const double v = static_cast<double>(x);
    const double quantum = std::ldexp(1.0, std::max(std::ilogb(v), least) - digits + 1);
    const double r = std::nearbyint(v / quantum) * quantum;
    if (std::fabs(r) >= limit) return std::copysign(std::numeric_limits<float>::infinity(), x);
    return std::copysign(static_cast<float>(r), x);
}

bool same(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool right_bf16(std::uint32_t u) {
    const bf16 h(from_pattern(u));
    if ((u & 0x7fffffffu) > 0x7f800000u)  // a NaN of the same sign, quiet
        return (h.bits & 0x7fc0u) == 0x7fc0u && (h.bits >> 15) == (u >> 31);
    return same(static_cast<float>(h), reference(from_pattern(u), 8, -126, std::ldexp(1.0, 128)));
}

bool right_f16(std::uint32_t u) {
    const f16 h(from_pattern(u));
    if ((u & 0x7fffffffu) > 0x7f800000u) return (h.bits & 0x7e00u) == 0x7e00u && (h.bits >> 15) == (u >> 31);
    return same(static_cast<float>(h), reference(from_pattern(u), 11, -14, 65536.0));
}

// Patterns at and around every rounding boundary of either type, and a sweep of all.
std::vector<std::uint32_t> patterns() {
    std::vector<std::uint32_t> p;
    for (std::uint32_t high = 0; high < 0x10000u; ++high)
        for (const std::uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
            p.push_back((high << 16) | low);
    for (std::uint64_t u = 0; u < 0x100000000ull; u += 4099) p.push_back(static_cast<std::uint32_t>(u));
    while (p.size() % 16) p.push_back(0);
    return p;
}

#define HONE_TEST_CONVERT                                                                                        \
    template <class H, int N>                                                                                    \
    HONE_NOINLINE void narrow(const float* from, H* to, std::size_t n) {                                         \
        for (std::size_t i = 0; i + N <= n; i += N) hone::store(to + i, hone::load<float, N>(from + i));         \
    }                                                                                                            \
    template <class H, int N>                                                                                    \
    HONE_NOINLINE void widen(const H* from, float* to, std::size_t n) {                                          \
        for (std::size_t i = 0; i + N <= n; i += N) hone::store(to + i, hone::load<float, N>(from + i));         \
    }

namespace baseline {
HONE_TEST_CONVERT
}

#if HONE_X86
HONE_STRICT_MATH_BEGIN
#if HONE_CLANG
HONE_PRAGMA(clang attribute push(__attribute__((target("avx2"))), apply_to = function))
#else
HONE_PRAGMA(GCC target("avx2"))
#endif
namespace avx2 {
HONE_TEST_CONVERT
}
#if HONE_CLANG
HONE_PRAGMA(clang attribute pop)
#endif
HONE_STRICT_MATH_END

HONE_STRICT_MATH_BEGIN
#if HONE_CLANG
HONE_PRAGMA(clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function))
#else
HONE_PRAGMA(GCC target("avx512f,avx512bw,avx512dq,avx512vl"))
#endif
namespace avx512 {
HONE_TEST_CONVERT
}
#if HONE_CLANG
HONE_PRAGMA(clang attribute pop)
#endif
HONE_STRICT_MATH_END
#endif

// Every vector conversion that this CPU can run, against the scalar one, to the bit.
template <class H>
void check_vectors() {
    std::vector<float> x;
    std::vector<std::uint16_t> expected;
    for (const std::uint32_t u : patterns()) {
        x.push_back(from_pattern(u));
        expected.push_back(H(from_pattern(u)).bits);
    }
    std::vector<H> got(x.size());
    const auto agree = [&](const char* where) {
        INFO(where);
        long wrong = -1;
        for (std::size_t i = 0; i < x.size() && wrong < 0; ++i)
            if (got[i].bits != expected[i]) wrong = static_cast<long>(i);
        INFO((wrong < 0 ? 0.f : x[static_cast<std::size_t>(wrong)]));
        CHECK(wrong == -1);
        std::fill(got.begin(), got.end(), H::from_bits(0x5a5a));
    };
    baseline::narrow<H, 1>(x.data(), got.data(), x.size());
    agree("baseline, 1 lane");
    baseline::narrow<H, 2>(x.data(), got.data(), x.size());
    agree("baseline, 2 lanes");
    baseline::narrow<H, 4>(x.data(), got.data(), x.size());
    agree("baseline, 4 lanes");
    baseline::narrow<H, 8>(x.data(), got.data(), x.size());
    agree("baseline, 8 lanes");
    baseline::narrow<H, 16>(x.data(), got.data(), x.size());
    agree("baseline, 16 lanes");

    std::vector<H> all(0x10000);
    std::vector<float> wide(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = H::from_bits(static_cast<std::uint16_t>(i));
    const auto agree_wide = [&](const char* where) {
        INFO(where);
        long wrong = -1;
        for (std::size_t i = 0; i < all.size() && wrong < 0; ++i) {
            const auto e = static_cast<float>(all[i]);
            if (std::memcmp(&wide[i], &e, sizeof e) != 0) wrong = static_cast<long>(i);
        }
        CHECK(wrong == -1);
        std::fill(wide.begin(), wide.end(), 0x1.23p-45f);
    };
    baseline::widen<H, 1>(all.data(), wide.data(), all.size());
    agree_wide("baseline, 1 lane");
    baseline::widen<H, 4>(all.data(), wide.data(), all.size());
    agree_wide("baseline, 4 lanes");
    baseline::widen<H, 8>(all.data(), wide.data(), all.size());
    agree_wide("baseline, 8 lanes");
    baseline::widen<H, 16>(all.data(), wide.data(), all.size());
    agree_wide("baseline, 16 lanes");
#if HONE_X86
    if (__builtin_cpu_supports("avx2")) {
        avx2::narrow<H, 4>(x.data(), got.data(), x.size());
        agree("avx2, 4 lanes");
        avx2::narrow<H, 8>(x.data(), got.data(), x.size());
        agree("avx2, 8 lanes");
        avx2::widen<H, 8>(all.data(), wide.data(), all.size());
        agree_wide("avx2, 8 lanes");
    } else {
        WARN("avx2 region: not run, the CPU lacks it");
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        avx512::narrow<H, 8>(x.data(), got.data(), x.size());
        agree("avx512, 8 lanes");
        avx512::narrow<H, 16>(x.data(), got.data(), x.size());
        agree("avx512, 16 lanes");
        avx512::widen<H, 16>(all.data(), wide.data(), all.size());
        agree_wide("avx512, 16 lanes");
    } else {
        WARN("avx512 region: not run, the CPU lacks AVX-512 F, BW, DQ or VL");
    }
#endif
}

template <class H, int N>
void check_lanes() {
    for (int lanes = -1; lanes <= N + 1; ++lanes) {
        const int count = std::clamp(lanes, 0, N);
        std::vector<H> to(N + 2, H::from_bits(0x1234));
        hone::store(to.data() + 1, vec<float, N>(1.5f), lanes);
        for (int i = 0; i < N + 2; ++i) {
            const bool written = i >= 1 && i <= count;
            CHECK(to[static_cast<std::size_t>(i)].bits == (written ? H(1.5f).bits : 0x1234));
        }
        const vec<float, N> x = hone::load<float, N>(to.data() + 1, lanes);
        for (int i = 0; i < N; ++i) CHECK(x[i] == (i < count ? 1.5f : 0.f));
    }
}

// In constant expressions.
static_assert(bf16(1.f).bits == 0x3f80);
static_assert(bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
static_assert(f16(65504.f).bits == 0x7bff && f16(65519.996f).bits == 0x7bff && f16(65520.f).bits == 0x7c00);
static_assert(f16(0x1p-24f).bits == 1 && f16(0x1p-25f).bits == 0 && f16(0x1.000002p-25f).bits == 1);
static_assert(static_cast<float>(f16::from_bits(1)) == 0x1p-24f);
static_assert(static_cast<float>(f16::from_bits(0x03ff)) == 0x3ffp-24f);
static_assert(static_cast<float>(bf16::from_bits(0xc000)) == -2.f);

}  // namespace

TEST_CASE("B05 bf16: any NaN stays a NaN, every payload") {
    // A plain biased shift turns 0x7f800001 into infinity and 0x7fff8c22 into -0.
    CHECK(bf16(from_pattern(0x7f800001u)).bits == 0x7fc0);
    CHECK(bf16(from_pattern(0x7fff8c22u)).bits == 0x7fff);
    CHECK(bf16(from_pattern(0x7f7fffffu)).bits == 0x7f80);
    CHECK(bf16(from_pattern(0x7f800000u)).bits == 0x7f80);
    CHECK(bf16(from_pattern(0xff800000u)).bits == 0xff80);
    for (const std::uint32_t high : {0x7f80u, 0x7fc0u, 0x7fffu, 0xff80u, 0xffffu}) {
        long wrong = -1;
        for (std::uint32_t low = high & 0x7fu ? 0 : 1; low < 0x10000u && wrong < 0; ++low)
            if (!right_bf16((high << 16) | low) || !right_f16((high << 16) | low)) wrong = static_cast<long>(low);
        INFO(high);
        CHECK(wrong == -1);
    }
}

TEST_CASE("bf16 and f16: rounded to nearest even") {
    long wrong_bf16 = -1;
    long wrong_f16 = -1;
    for (const std::uint32_t u : patterns()) {
        if (wrong_bf16 < 0 && !right_bf16(u)) wrong_bf16 = static_cast<long>(u);
        if (wrong_f16 < 0 && !right_f16(u)) wrong_f16 = static_cast<long>(u);
    }
    CHECK(wrong_bf16 == -1);
    CHECK(wrong_f16 == -1);
}

TEST_CASE("bf16 and f16: to float exactly, and back to the same bits") {
    // From memory: Clang 14 at -O2 takes b & 0x7fff for b when b is a loop counter.
    std::vector<std::uint16_t> all(0x10000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    long wrong = -1;
    for (const std::uint16_t bits : all) {
        const std::uint32_t b = bits;
        const auto f = static_cast<float>(f16::from_bits(bits));
        const auto g = static_cast<float>(bf16::from_bits(bits));
        const int e = static_cast<int>((b >> 10) & 31u);
        const double m = static_cast<double>(b & 0x3ffu) + (e ? 1024.0 : 0.0);
        const double exact = std::ldexp(m, std::max(e, 1) - 25) * (b & 0x8000u ? -1.0 : 1.0);
        bool right = true;
        if (e == 31)
            right = b & 0x3ffu ? std::isnan(f) : std::isinf(f) && std::signbit(f) == (b >= 0x8000u);
        else
            right = same(f, static_cast<float>(exact));
        right = right && (std::isnan(f) || f16(f).bits == bits);
        right = right && std::bit_cast<std::uint32_t>(g) == b << 16 && (std::isnan(g) || bf16(g).bits == bits);
        if (!right && wrong < 0) wrong = static_cast<long>(b);
    }
    CHECK(wrong == -1);
}

TEST_CASE("bf16: the vector conversions are the scalar ones, to the bit") { check_vectors<bf16>(); }
TEST_CASE("f16: the vector conversions are the scalar ones, to the bit") { check_vectors<f16>(); }

TEST_CASE("bf16 and f16: partial stores and loads touch only their lanes") {
    check_lanes<bf16, 1>();
    check_lanes<bf16, 4>();
    check_lanes<bf16, 16>();
    check_lanes<f16, 2>();
    check_lanes<f16, 8>();
    check_lanes<f16, 16>();
}

TEST_CASE("dtype: sizes, names, types") {
    using hone::dtype_of;
    using hone::name;
    using hone::size_of;
    STATIC_REQUIRE(dtype_of<float> == dtype::f32);
    STATIC_REQUIRE(dtype_of<const double> == dtype::f64);
    STATIC_REQUIRE(dtype_of<bf16> == dtype::bf16);
    STATIC_REQUIRE(dtype_of<const f16> == dtype::f16);
    STATIC_REQUIRE(dtype_of<std::int32_t> == dtype::s32);
    STATIC_REQUIRE(dtype_of<std::int8_t> == dtype::s8);
    STATIC_REQUIRE(dtype_of<std::uint8_t> == dtype::u8);
    STATIC_REQUIRE(dtype_of<std::uint16_t> == dtype::dynamic);
    CHECK(size_of(dtype::f32) == sizeof(float));
    CHECK(size_of(dtype::f64) == sizeof(double));
    CHECK(size_of(dtype::bf16) == sizeof(bf16));
    CHECK(size_of(dtype::f16) == sizeof(f16));
    CHECK(size_of(dtype::s32) == 4);
    CHECK(size_of(dtype::s8) == 1);
    CHECK(size_of(dtype::u8) == 1);
    CHECK(size_of(dtype::dynamic) == 0);
    CHECK(name(dtype::bf16) == "bf16");
    CHECK(name(dtype::f32) == "f32");
    CHECK(name(dtype::s8) == "s8");
    CHECK(name(dtype::dynamic) == "dynamic");
    // An integer or a double does not silently become a value of a half type.
    STATIC_REQUIRE(!std::is_constructible_v<bf16, int>);
    STATIC_REQUIRE(!std::is_constructible_v<f16, double>);
    STATIC_REQUIRE(!std::is_convertible_v<float, bf16>);
    STATIC_REQUIRE(!std::is_convertible_v<f16, float>);
}
