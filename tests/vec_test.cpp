// SPDX-License-Identifier: BSL-1.0
// core/vec.hpp and core/math.hpp: every operation against a scalar reference, the same bits for every N and in every
// target region, and the stated error bounds of the functions.
#include "catch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <hone/core/math.hpp>
#include <hone/core/vec.hpp>

#if HONE_LINUX
#include <sys/mman.h>
#include <unistd.h>
#endif

using hone::mask;
using hone::vec;

// With external linkage: see core/vec.hpp on helpers that are static.
namespace vec_test_helpers {

template <class T, int N>
HONE_NOINLINE vec<T, N> doubled_by_value(vec<T, N> x) {
    return x + x;
}
template <class T, int N>
HONE_NOINLINE void double_by_reference(vec<T, N>& x) {
    x = x + x;
}

}  // namespace vec_test_helpers

namespace {

using vec_test_helpers::double_by_reference;
using vec_test_helpers::doubled_by_value;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

float from_pattern(std::uint32_t u) { return std::bit_cast<float>(u); }

// Equal bits, or a NaN on both sides.
bool same(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

struct operands {
    std::vector<float> x, y, z;
};

// Every triple of special values, then random patterns; a multiple of 16 in number.
operands make_operands() {
    const float special[] = {0.f,
                             -0.f,
                             1.f,
                             -1.f,
                             0.5f,
                             2.5f,
                             -3.5f,
                             8388607.5f,
                             -8388609.f,
                             1.0000001f,
                             std::numeric_limits<float>::min(),
                             -std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::max(),
                             inf,
                             -inf,
                             nan_value};
    operands o;
    for (float a : special)
        for (float b : special)
            for (float c : special) {
                o.x.push_back(a);
                o.y.push_back(b);
                o.z.push_back(c);
            }
    std::uint32_t s = 12345;
    const auto next = [&s] { return s = s * 1664525u + 1013904223u; };
    const auto pattern = [&next] { return from_pattern((next() >> 16) | (next() & 0xffff0000u)); };
    const auto small = [&next] { return static_cast<float>(static_cast<std::int32_t>(next())) * 0x1p-27f; };
    for (int i = 0; i < 4096; ++i) {
        o.x.push_back(i % 2 ? pattern() : small());
        o.y.push_back(i % 2 ? pattern() : small());
        o.z.push_back(i % 2 ? pattern() : small());
    }
    return o;
}

// One text, compiled for the baseline and for each target: f(x, y, z) changes x. Contraction is off, as in a kernel.
#define HONE_TEST_APPLY                                                                                           \
    template <int N, class F>                                                                                     \
    HONE_NOINLINE HONE_FLATTEN void apply(const operands& in, std::vector<float>& out, const F& f) {              \
        const float* px = in.x.data();                                                                            \
        const float* py = in.y.data();                                                                            \
        const float* pz = in.z.data();                                                                            \
        float* po = out.data();                                                                                   \
        const std::size_t n = in.x.size();                                                                        \
        for (std::size_t i = 0; i + N <= n; i += N) {                                                             \
            vec<float, N> x = hone::load<float, N>(px + i);                                                       \
            const vec<float, N> y = hone::load<float, N>(py + i);                                                 \
            const vec<float, N> z = hone::load<float, N>(pz + i);                                                 \
            f(x, y, z);                                                                                           \
            hone::store(po + i, x);                                                                               \
        }                                                                                                         \
    }

HONE_STRICT_MATH_BEGIN
namespace baseline {
HONE_TEST_APPLY
}
HONE_STRICT_MATH_END

#if HONE_X86
HONE_STRICT_MATH_BEGIN
#if HONE_CLANG
HONE_PRAGMA(clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function))
#else
HONE_PRAGMA(GCC target("avx2,fma"))
#endif
namespace avx2 {
HONE_TEST_APPLY
}
#if HONE_CLANG
HONE_PRAGMA(clang attribute pop)
#endif
HONE_STRICT_MATH_END

HONE_STRICT_MATH_BEGIN
#if HONE_CLANG
HONE_PRAGMA(clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))),
                                 apply_to = function))
#else
HONE_PRAGMA(GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma"))
#endif
namespace avx512 {
HONE_TEST_APPLY
}
#if HONE_CLANG
HONE_PRAGMA(clang attribute pop)
#endif
HONE_STRICT_MATH_END

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}
#endif

// The index of the first difference, or -1.
long first_difference(const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same(a[i], b[i])) return static_cast<long>(i);
    return -1;
}

// f in every width and region gives the bits of N = 1 in the baseline, which are returned.
template <class F>
std::vector<float> check_everywhere(const operands& in, const F& f) {
    std::vector<float> one(in.x.size());
    std::vector<float> other(in.x.size());
    baseline::apply<1>(in, one, f);
    const auto agree = [&](const char* where) {
        INFO(where);
        const long at = first_difference(one, other);
        if (at >= 0) {
            const auto i = static_cast<std::size_t>(at);
            INFO("x " << in.x[i] << ", y " << in.y[i] << ", z " << in.z[i] << ": " << one[i] << " and " << other[i]);
            CHECK(at == -1);
        } else {
            CHECK(at == -1);
        }
        std::fill(other.begin(), other.end(), 0x1.23p-45f);
    };
    baseline::apply<2>(in, other, f);
    agree("baseline, 2 lanes");
    baseline::apply<4>(in, other, f);
    agree("baseline, 4 lanes");
    baseline::apply<8>(in, other, f);
    agree("baseline, 8 lanes");
    baseline::apply<16>(in, other, f);
    agree("baseline, 16 lanes");
#if HONE_X86
    if (has_avx2()) {
        avx2::apply<1>(in, other, f);
        agree("avx2, 1 lane");
        avx2::apply<4>(in, other, f);
        agree("avx2, 4 lanes");
        avx2::apply<8>(in, other, f);
        agree("avx2, 8 lanes");
        avx2::apply<16>(in, other, f);
        agree("avx2, 16 lanes");
    }
    if (has_avx512()) {
        avx512::apply<4>(in, other, f);
        agree("avx512, 4 lanes");
        avx512::apply<8>(in, other, f);
        agree("avx512, 8 lanes");
        avx512::apply<16>(in, other, f);
        agree("avx512, 16 lanes");
    }
#endif
    return one;
}

// The same, and N = 1 in the baseline is what ref computes of scalars.
template <class F, class R>
void check_operation(const operands& in, const F& f, const R& ref) {
    const std::vector<float> got = check_everywhere(in, f);
    long wrong = -1;
    for (std::size_t i = 0; i < got.size() && wrong < 0; ++i)
        if (!same(got[i], ref(in.x[i], in.y[i], in.z[i]))) wrong = static_cast<long>(i);
    if (wrong >= 0) {
        const auto i = static_cast<std::size_t>(wrong);
        INFO("x " << in.x[i] << ", y " << in.y[i] << ", z " << in.z[i] << ": " << got[i] << ", expected "
                  << ref(in.x[i], in.y[i], in.z[i]));
        CHECK(wrong == -1);
    }
}

// A product that no compiler may contract with the sum that follows.
float product(float a, float b) {
    volatile float p = a * b;
    return p;
}

// Greatest error in ulp of the exact result over every `step`-th float pattern; infinite where a NaN, infinity or the
// sign of a zero is wrong.
template <class F, class R>
double greatest_error(const F& f, const R& ref, std::uint32_t step, float& at) {
    double worst = 0;
    for (std::uint64_t b = 0; b < 0x100000000ull; b += 16ull * step) {
        float xs[16];
        float ys[16];
        for (std::uint32_t i = 0; i < 16; ++i) {
            xs[i] = from_pattern(static_cast<std::uint32_t>(b + std::uint64_t{i} * step));
        }
        vec<float, 16> v = hone::load<float, 16>(xs);
        v = f(v);
        hone::store(ys, v);
        for (int i = 0; i < 16; ++i) {
            const double exact = ref(static_cast<double>(xs[i]));
            const auto rounded = static_cast<float>(exact);
            double error = 0;
            if (std::isnan(exact) || std::isinf(rounded) || std::isinf(ys[i]) || rounded == 0.f || std::isnan(ys[i])) {
                const bool tiny = std::fabs(exact) < 0x1p-149 && exact != 0 && std::fabs(ys[i]) <= 0x1p-149f;
                if (!same(ys[i], rounded) && !tiny) error = std::numeric_limits<double>::infinity();
            } else {
                int e = 0;
                std::frexp(exact, &e);
                error = std::fabs(static_cast<double>(ys[i]) - exact) / std::ldexp(1.0, std::max(e - 24, -149));
            }
            if (!(error <= worst)) {
                worst = error;
                at = xs[i];
            }
        }
    }
    return worst;
}

template <class F, class R>
void check_error(const F& f, const R& ref, double bound) {
    float at = 0;
    const double worst = greatest_error(f, ref, 1009, at);
    INFO("at " << at);
    CHECK(worst <= bound);
    CHECK(worst > 0.4);  // no float function is exact everywhere: the sweep has seen something
}

}  // namespace

TEST_CASE("vec: layout and calling convention") {
    // User-provided copies are what makes every ABI pass a vec in memory.
    STATIC_REQUIRE(!std::is_trivially_copy_constructible_v<vec<float, 4>>);
    STATIC_REQUIRE(!std::is_trivially_copy_assignable_v<vec<float, 4>>);
    STATIC_REQUIRE(!std::is_trivially_copy_constructible_v<mask<float, 4>>);
    STATIC_REQUIRE(std::is_trivially_default_constructible_v<vec<float, 16>>);
    STATIC_REQUIRE(std::is_trivially_destructible_v<vec<float, 16>>);
    STATIC_REQUIRE(std::is_same_v<vec<double, 4>::element, double>);
    STATIC_REQUIRE(vec<double, 4>::size == 4);
}

TEST_CASE("vec: the regions this CPU can run") {
#if HONE_X86
    if (!has_avx2()) WARN("avx2 region: not run, the CPU lacks AVX2 or FMA");
    if (!has_avx512()) WARN("avx512 region: not run, the CPU lacks AVX-512 F, BW, DQ or VL");
#endif
    SUCCEED();
}

TEST_CASE("vec: operators are single IEEE operations, the same bits for every width and region") {
    const operands in = make_operands();
    SECTION("add") {
        check_operation(in, [](auto& x, auto& y, auto&) { x = x + y; }, [](float x, float y, float) { return x + y; });
    }
    SECTION("subtract") {
        check_operation(in, [](auto& x, auto& y, auto&) { x -= y; }, [](float x, float y, float) { return x - y; });
    }
    SECTION("multiply") {
        check_operation(in, [](auto& x, auto& y, auto&) { x = x * y; },
                        [](float x, float y, float) { return product(x, y); });
    }
    SECTION("divide") {
        check_operation(in, [](auto& x, auto& y, auto&) { x = x / y; }, [](float x, float y, float) { return x / y; });
    }
    SECTION("negate") {
        check_operation(in, [](auto& x, auto&, auto&) { x = -x; }, [](float x, float, float) { return -x; });
    }
    SECTION("multiply, then add: two roundings") {
        check_operation(in, [](auto& x, auto& y, auto& z) { x = x * y + z; },
                        [](float x, float y, float z) { return product(x, y) + z; });
    }
    SECTION("fma: one rounding") {
        check_operation(in, [](auto& x, auto& y, auto& z) { x = fma(x, y, z); },
                        [](float x, float y, float z) { return std::fma(x, y, z); });
    }
    SECTION("fma with scalars") {
        check_operation(in, [](auto& x, auto&, auto&) { x = fma(0.1f, x, 0.3f); },
                        [](float x, float, float) { return std::fma(0.1f, x, 0.3f); });
        check_operation(in, [](auto& x, auto&, auto&) { x = fma(0.1f, 0.7f, x); },
                        [](float x, float, float) { return std::fma(0.1f, 0.7f, x); });
        check_operation(in, [](auto& x, auto& y, auto&) { x = hone::fma(x, 3.f, y); },
                        [](float x, float y, float) { return std::fma(x, 3.f, y); });
    }
    SECTION("scalars on either side") {
        const float k = 1.7f;
        check_operation(in, [k](auto& x, auto&, auto&) { x = k - x * 2.f; },
                        [k](float x, float, float) { return k - product(x, 2.f); });
    }
    SECTION("a captured negative zero") {
        const float zero = -0.f;
        check_operation(in, [zero](auto& x, auto&, auto&) { x = std::remove_reference_t<decltype(x)>::set(zero); },
                        [](float, float, float) { return -0.f; });
    }
    SECTION("sqrt") {
        check_operation(in, [](auto& x, auto&, auto&) { x = sqrt(x); },
                        [](float x, float, float) { return std::sqrt(x); });
    }
    SECTION("abs and copysign") {
        check_operation(in, [](auto& x, auto&, auto&) { x = abs(x); },
                        [](float x, float, float) { return std::fabs(x); });
        check_operation(in, [](auto& x, auto& y, auto&) { x = copysign(x, y); },
                        [](float x, float y, float) { return std::copysign(x, y); });
    }
    SECTION("floor and round_even") {
        check_operation(in, [](auto& x, auto&, auto&) { x = floor(x); },
                        [](float x, float, float) { return std::floor(x); });
        check_operation(in, [](auto& x, auto&, auto&) { x = round_even(x); },
                        [](float x, float, float) { return std::nearbyint(x); });
    }
}

TEST_CASE("vec: min and max follow std::min and std::max, and the vector goes first before a scalar") {
    const operands in = make_operands();
    // Through a volatile: Clang makes fmax of a compare and a choice on AArch64, which loses the sign of a zero.
    const auto max_ref = [](float a, float b) {
        volatile bool above = b > a;
        return above ? b : a;
    };
    const auto min_ref = [](float a, float b) {
        volatile bool below = b < a;
        return below ? b : a;
    };
    check_operation(in, [](auto& x, auto& y, auto&) { x = max(x, y); },
                    [&](float x, float y, float) { return max_ref(x, y); });
    check_operation(in, [](auto& x, auto& y, auto&) { x = min(x, y); },
                    [&](float x, float y, float) { return min_ref(x, y); });
    check_operation(in, [](auto& x, auto&, auto&) { x = max(x, 0.f); },
                    [&](float x, float, float) { return max_ref(x, 0.f); });
    check_operation(in, [](auto& x, auto&, auto&) { x = hone::max(0, x); },
                    [&](float x, float, float) { return max_ref(x, 0.f); });
    check_operation(in, [](auto& x, auto&, auto&) { x = min(6.f, max(0.f, x)); },
                    [&](float x, float, float) { return min_ref(max_ref(x, 0.f), 6.f); });
    check_operation(in, [](auto& x, auto&, auto&) { x = min(x, -0.f); },
                    [&](float x, float, float) { return min_ref(x, -0.f); });

    const vec<float, 4> bad(nan_value);
    CHECK(std::isnan(max(bad, 0.f)[3]));
    CHECK(std::isnan(max(0.f, bad)[3]));
    CHECK(std::isnan(min(6.f, max(0.f, bad))[0]));
    CHECK(max(vec<float, 4>(1.f), bad)[2] == 1.f);
    CHECK(std::signbit(max(vec<float, 4>(-0.f), 0.f)[1]));
}

TEST_CASE("vec: compares, masks and select") {
    const operands in = make_operands();
    check_operation(in, [](auto& x, auto& y, auto& z) { x = select(x < y, z, x); },
                    [](float x, float y, float z) { return x < y ? z : x; });
    check_operation(in, [](auto& x, auto& y, auto& z) { x = select(x <= y, z, 1.f); },
                    [](float x, float y, float z) { return x <= y ? z : 1.f; });
    check_operation(in, [](auto& x, auto& y, auto&) { x = select(x > y, 1.f, 2.f); },
                    [](float x, float y, float) { return x > y ? 1.f : 2.f; });
    check_operation(in, [](auto& x, auto& y, auto& z) { x = select(x >= y, x, z); },
                    [](float x, float y, float z) { return x >= y ? x : z; });
    check_operation(in, [](auto& x, auto& y, auto&) { x = select(x == y, 1.f, x); },
                    [](float x, float y, float) { return x == y ? 1.f : x; });
    check_operation(in, [](auto& x, auto&, auto&) { x = select(x != x, 0.f, x); },
                    [](float x, float, float) { return x != x ? 0.f : x; });
    check_operation(in, [](auto& x, auto& y, auto& z) { x = select((x < y) & !(y < z), z, x); },
                    [](float x, float y, float z) { return x < y && !(y < z) ? z : x; });
    check_operation(in, [](auto& x, auto& y, auto& z) { x = select((x < y) | (x > z), -x, y); },
                    [](float x, float y, float z) { return x < y || x > z ? -x : y; });
    // A relu written with select: on AArch64 it must not become an fmax that turns -0 into +0.
    check_operation(in, [](auto& x, auto&, auto&) { x = select(x < 0.f, 0.f, x); },
                    [](float x, float, float) {
                        volatile bool below = x < 0.f;
                        return below ? 0.f : x;
                    });

    const auto yes = mask<float, 8>::set(true);
    const auto no = mask<float, 8>::set(false);
    CHECK((yes[0] && yes[7] && !no[0] && !no[7]));
    CHECK(select(yes, 1.f, 2.f)[5] == 1.f);
    CHECK(select(no, 1.f, 2.f)[5] == 2.f);
}

TEST_CASE("vec: fma and multiply-add differ where they must") {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, the last term being half an ulp.
    const float a = 1.f + 0x1p-12f;
    operands in;
    in.x.assign(16, a);
    in.y.assign(16, a);
    in.z.assign(16, -(1.f + 0x1p-11f));
    check_operation(in, [](auto& x, auto& y, auto& z) { x = fma(x, y, z); },
                    [](float, float, float) { return 0x1p-24f; });
    check_operation(in, [](auto& x, auto& y, auto& z) { x = x * y + z; }, [](float, float, float) { return 0.f; });
    in.z.assign(16, -1.f);
    in.x.assign(16, 1.f);
    in.y.assign(16, 1.f);
    check_operation(in, [](auto& x, auto& y, auto& z) { x = fma(x, y, z); }, [](float, float, float) { return 0.f; });
}

TEST_CASE("vec: double lanes") {
    const vec<double, 4> x(1.0 + 0x1p-27);
    CHECK(fma(x, x, -(1.0 + 0x1p-26))[3] == 0x1p-54);
    CHECK(sqrt(vec<double, 8>(2.0))[7] == std::sqrt(2.0));
    CHECK(sqrt(vec<double, 1>(2.0))[0] == std::sqrt(2.0));
    CHECK(floor(vec<double, 2>(-0.5))[1] == -1.0);
    CHECK(round_even(vec<double, 2>(2.5))[1] == 2.0);
    CHECK(abs(vec<double, 2>(-2.5))[0] == 2.5);
    CHECK(select(x > 1.0, 7.0, x)[2] == 7.0);
    CHECK(max(x, 0.0)[0] == 1.0 + 0x1p-27);
    CHECK(std::isnan(min(vec<double, 4>(std::numeric_limits<double>::quiet_NaN()), 0.0)[1]));
    CHECK(rsqrt(vec<double, 2>(4.0))[1] == 0.5);
}

TEST_CASE("vec: integer lanes") {
    const vec<std::int32_t, 8> big(0x7fffffff);
    CHECK((big + 1)[0] == std::numeric_limits<std::int32_t>::min());
    CHECK((big * 2)[7] == -2);
    CHECK((-vec<std::int32_t, 4>(-0x7fffffff - 1))[1] == -0x7fffffff - 1);
    CHECK((vec<std::int32_t, 4>(-8) >> 1)[3] == -4);
    CHECK((vec<std::int32_t, 4>(-8) << 29)[3] == 0);
    CHECK(((big & 0xff) | 0x100)[2] == 0x1ff);
    CHECK((~big ^ 1)[2] == (std::numeric_limits<std::int32_t>::min() | 1));
    CHECK(to_bits(vec<float, 4>(1.f))[0] == 0x3f800000);
    CHECK(from_bits(vec<std::int32_t, 16>(0x40000000))[15] == 2.f);
    CHECK(to_int(vec<float, 4>(-2.75f))[1] == -2);
    CHECK(to_float(vec<std::int32_t, 4>(16777217))[1] == 16777216.f);
    CHECK(select(big > 0, 1, 2)[0] == 1);
}

TEST_CASE("vec: lane access") {
    vec<float, 8> x(3.f);
    x.set_lane(5, 7.f);
    CHECK(x[5] == 7.f);
    CHECK(x[4] == 3.f);
}

template <class T, int N>
static void check_partial() {
    for (int lanes = -1; lanes <= N + 1; ++lanes) {
        const int count = std::clamp(lanes, 0, N);
        std::vector<T> to(N + 2, T(99));
#if HONE_LINUX
        // The last element read ends at a page that may not be touched.
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        void* map = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(map != MAP_FAILED);
        REQUIRE(mprotect(static_cast<char*>(map) + page, page, PROT_NONE) == 0);
        T* from = reinterpret_cast<T*>(static_cast<char*>(map) + page) - count;
#else
        std::vector<T> memory(N);
        T* from = memory.data();
#endif
        for (int i = 0; i < count; ++i) from[i] = static_cast<T>(i + 1);
        vec<T, N> x = hone::load<T, N>(from, lanes);
        for (int i = 0; i < N; ++i) CHECK(x[i] == (i < count ? static_cast<T>(i + 1) : T(0)));
        for (int i = 0; i < N; ++i) x.set_lane(i, static_cast<T>(i + 50));
        hone::store(to.data() + 1, x, lanes);
        for (int i = 0; i < N + 2; ++i) {
            const bool written = i >= 1 && i <= count;
            CHECK(to[static_cast<std::size_t>(i)] == (written ? static_cast<T>(i + 49) : T(99)));
        }
#if HONE_LINUX
        hone::store(from, x, lanes);
        CHECK((count == 0 || from[count - 1] == static_cast<T>(count + 49)));
        munmap(map, 2 * page);
#endif
    }
    std::vector<T> unaligned(N + 1);
    for (int i = 0; i <= N; ++i) unaligned[static_cast<std::size_t>(i)] = static_cast<T>(i);
    const vec<T, N> y = hone::load<T, N>(unaligned.data() + 1);
    CHECK(y[N - 1] == static_cast<T>(N));
}

TEST_CASE("vec: partial loads and stores touch only their lanes") {
    check_partial<float, 1>();
    check_partial<float, 2>();
    check_partial<float, 4>();
    check_partial<float, 8>();
    check_partial<float, 16>();
    check_partial<double, 2>();
    check_partial<double, 8>();
    check_partial<std::int32_t, 16>();
    CHECK(hone::load<float, 4>(static_cast<const float*>(nullptr), 0)[0] == 0.f);
}

TEST_CASE("vec: a lambda in a region may call out-of-line helpers, by value and by reference") {
    const operands in = make_operands();
    check_operation(in, [](auto& x, auto& y, auto&) { x = doubled_by_value(x + y); },
                    [](float x, float y, float) { return (x + y) + (x + y); });
    check_operation(in,
                    [](auto& x, auto& y, auto&) {
                        x += y;
                        double_by_reference(x);
                    },
                    [](float x, float y, float) { return (x + y) + (x + y); });
}

TEST_CASE("math: the same bits for every width and region") {
    const operands in = make_operands();
    check_everywhere(in, [](auto& x, auto&, auto&) { x = exp(x); });
    check_everywhere(in, [](auto& x, auto&, auto&) { x = log(x); });
    check_everywhere(in, [](auto& x, auto&, auto&) { x = tanh(x); });
    check_everywhere(in, [](auto& x, auto&, auto&) { x = erf(x); });
    check_everywhere(in, [](auto& x, auto&, auto&) { x = sigmoid(x); });
    check_everywhere(in, [](auto& x, auto&, auto&) { x = rsqrt(x); });
    const float half = 0.5f;
    check_everywhere(in, [half](auto& x, auto&, auto&) { x = x * half * (1.f + erf(x * 0.70710678f)); });
    check_everywhere(in, [](auto& x, auto& y, auto&) { x = x * sigmoid(x) + y; });

    // The results themselves, so that another architecture gives the same: FNV-1a over the non-NaN bits.
    operands dense;
    for (std::uint64_t b = 0; b < 0x100000000ull; b += 16 * 65521ull)
        for (std::uint64_t i = 0; i < 16; ++i) {
            dense.x.push_back(from_pattern(static_cast<std::uint32_t>(b + i * 65521ull)));
        }
    dense.y = dense.x;
    dense.z = dense.x;
    std::uint64_t hash = 14695981039346656037ull;
    const auto add = [&](const std::vector<float>& v) {
        for (float f : v) {
            hash ^= std::isnan(f) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(f);
            hash *= 1099511628211ull;
        }
    };
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = exp(x); }));
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = log(x); }));
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = tanh(x); }));
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = erf(x); }));
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = sigmoid(x); }));
    add(check_everywhere(dense, [](auto& x, auto&, auto&) { x = rsqrt(x); }));
    CHECK(hash == 0x05bf693e1ceddb96ull);
}

TEST_CASE("math: errors stay within the stated bounds") {
    check_error([](auto& x) { return exp(x); }, [](double x) { return std::exp(x); }, 1.1);
    check_error([](auto& x) { return log(x); }, [](double x) { return std::log(x); }, 0.9);
    check_error([](auto& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, 2.5);
    check_error([](auto& x) { return erf(x); }, [](double x) { return std::erf(x); }, 1.5);
    check_error([](auto& x) { return sigmoid(x); },
                [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
                2.5);
    check_error([](auto& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 1.5);
}

TEST_CASE("math: special values") {
    using V = vec<float, 16>;
    const float tiny = std::numeric_limits<float>::denorm_min();
    CHECK(same(exp(V(-inf))[0], 0.f));
    CHECK(same(exp(V(inf))[1], inf));
    CHECK(same(exp(V(0.f))[1], 1.f));
    CHECK(same(exp(V(-0.f))[1], 1.f));
    CHECK(same(exp(V(88.8f))[2], inf));
    CHECK(same(exp(V(-1000.f))[2], 0.f));
    CHECK(same(exp(V(-100.f))[3], static_cast<float>(std::exp(-100.0))));
    CHECK(same(exp(V(-103.f))[3], tiny));
    CHECK(same(log(V(0.f))[0], -inf));
    CHECK(same(log(V(-0.f))[0], -inf));
    CHECK(std::isnan(log(V(-1.f))[0]));
    CHECK(std::isnan(log(V(-inf))[0]));
    CHECK(same(log(V(inf))[0], inf));
    CHECK(same(log(V(1.f))[0], 0.f));
    CHECK(same(log(V(tiny))[0], static_cast<float>(std::log(0x1p-149))));
    CHECK(same(tanh(V(inf))[0], 1.f));
    CHECK(same(tanh(V(-inf))[0], -1.f));
    CHECK(same(tanh(V(-0.f))[0], -0.f));
    CHECK(same(tanh(V(0.f))[0], 0.f));
    CHECK(same(tanh(V(tiny))[0], tiny));
    CHECK(same(erf(V(inf))[0], 1.f));
    CHECK(same(erf(V(-inf))[0], -1.f));
    CHECK(same(erf(V(-0.f))[0], -0.f));
    CHECK(same(erf(V(0.f))[0], 0.f));
    CHECK(same(sigmoid(V(inf))[0], 1.f));
    CHECK(same(sigmoid(V(-inf))[0], 0.f));
    CHECK(same(sigmoid(V(0.f))[0], 0.5f));
    CHECK(same(sigmoid(V(-100.f))[0], static_cast<float>(std::exp(-100.0))));
    CHECK(same(rsqrt(V(0.f))[0], inf));
    CHECK(same(rsqrt(V(-0.f))[0], -inf));
    CHECK(same(rsqrt(V(inf))[0], 0.f));
    CHECK(std::isnan(rsqrt(V(-1.f))[0]));
    for (const float bad : {nan_value, -nan_value, from_pattern(0x7f800001u), from_pattern(0xffc12345u)}) {
        CHECK(std::isnan(exp(V(bad))[0]));
        CHECK(std::isnan(log(V(bad))[0]));
        CHECK(std::isnan(tanh(V(bad))[0]));
        CHECK(std::isnan(erf(V(bad))[0]));
        CHECK(std::isnan(sigmoid(V(bad))[0]));
        CHECK(std::isnan(rsqrt(V(bad))[0]));
    }
}
