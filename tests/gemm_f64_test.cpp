// SPDX-License-Identifier: BSL-1.0
// gemm.hpp of doubles: the numbers of every kernel, bit for bit, the memory it touches, every stage, and what is refused.
// Where the flags have no FMA the numbers of native are compared with long double.
#include "gemm_harness.hpp"

using test::edge;
using test::guarded;
using test::index_t;
using test::kernel;
using test::layout;
using test::matrix;
using test::random_source;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

using problem = test::gemm_problem<double>;

}  // namespace

TEST_CASE("f64: every line of kernels.def is a kernel with a body for each edge, panels of one line") {
    test::check_registry<double>();
    for (hone::isa id : test::isas()) {
        const auto& list = hone::detail::gemm_kernels<double>(id);
        const auto& floats = hone::detail::gemm_kernels<float>(id);
        INFO(hone::isa_name(id));
        for (int r = 0; r < list.count; ++r) {
            const auto& row = list.row[r];
            CHECK(row.panel * 2 == floats.row[0].panel);
            CHECK(row.lanes * (id == hone::isa::scalar ? 1 : 2) == floats.row[0].lanes);
            CHECK((row.tiny[0] != nullptr) == (floats.row[0].tiny[0] != nullptr));
            CHECK((row.rank[1][1] != nullptr) == (floats.row[0].rank[1][1] != nullptr));
            CHECK((row.narrow != nullptr) == (floats.row[0].narrow != nullptr));
        }
    }
}

TEST_CASE("f64: all small shapes of every kernel, in guarded memory, to the bit") {
    test::check_small_shapes<double>();
}

TEST_CASE("f64: all four transposes, with and without gaps") { test::check_transposes<double>(); }

TEST_CASE("f64: any strides: negative, repeated, columns of C not contiguous") { test::check_any_strides<double>(); }

TEST_CASE("f64: the stride of an extent of one means nothing") { test::check_strides_of_one<double>(); }

TEST_CASE("f64: alpha and beta, -0, numbers that float would round, and what must not be read") {
    test::check_alpha_and_beta<double>();
}

TEST_CASE("f64: infinities, NaN and subnormal numbers where IEEE 754 gives them, nowhere else") {
    test::check_infinities<double>();
}

TEST_CASE("f64: k blocks: partial sums in C and in scratch, mc and nc small, packed or not") {
    test::check_k_blocks<double>();
}

TEST_CASE("f64: packed B runs on every instruction set with the same panels; panels of f32 are refused") {
    test::check_packed<double>();
}

TEST_CASE("f64: workers in any order give the same bits; dynamic m") {
    test::check_executors<double>();
    test::check_dynamic_m<double>();
}

TEST_CASE("f64: B beyond L1 and L2, few rows and many, by rank updates and tiles") {
    const index_t n = test::quick() ? 130 : 260, k = test::quick() ? 300 : 700;
    for (hone::isa id : test::isas()) {
        for (index_t m : {1, 2, 3, 5, 9, 40, 130}) {
            if (m > 9 && (test::quick() || id == hone::isa::scalar)) continue;
            REQUIRE_RIGHT({.m = m, .n = n, .k = k, .policy = {.isa = id}});
            REQUIRE_RIGHT({.m = m, .n = n + 1, .k = k, .alpha = 0.5, .beta = 2, .policy = {.isa = id}, .side = edge::begin});
            REQUIRE_RIGHT({.m = m, .n = n, .k = k, .b = test::cols_of(k), .policy = {.isa = id}});
        }
        const auto row = hone::plan<double>({.m = 1, .n = n, .k = k}, {.isa = id});
        REQUIRE(row.status() == hone::status{});
        const bool ranks = hone::detail::gemm_kernels<double>(id).row[0].rank[0][0] != nullptr;
        CHECK(std::string_view(row->explain().kernel) == (ranks ? "gemm by rank updates" : "gemm"));
    }
}

TEST_CASE("f64: few columns and few rows, packed or not") {
    for (hone::isa id : test::isas()) {
        for (index_t few : {1, 2, 3, 4, 5}) {
            for (index_t wide : {7, 8, 9, 15, 16, 17, 33, 130, 300}) {
                for (index_t k : {7, 8, 9, 10, 11, 65, 512}) {
                    if ((test::quick() || id == hone::isa::scalar) && (few + wide + k) % 7 != 0) continue;
                    const edge side = (wide + k) % 2 ? edge::end : edge::begin;
                    for (const bool packed : {false, true}) {
                        REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .policy = {.isa = id}, .packed = packed, .side = side});
                        REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .alpha = 0.5, .beta = 2, .c = test::cols_of(wide), .policy = {.isa = id},
                                       .packed = packed, .side = side});
                        REQUIRE_RIGHT({.m = few, .n = wide, .k = k, .b = test::cols_of(k), .policy = {.isa = id}, .packed = packed,
                                       .side = side});
                    }
                    test::reverse_executor three(3);
                    REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .beta = -1, .policy = {.isa = id}, .executor = three, .side = side});
                }
            }
        }
    }
}

TEST_CASE("f64: small products without a plan give the bits of planned ones, in guarded memory") {
    test::check_small_without_plan<double>();
}

TEST_CASE("f64: random shapes, layouts, blocks and workers") {
    test::check_random<double>(test::quick() ? 8 : 100, test::quick() ? 30 : 120);
}

// ---- epilogues

namespace {

struct operands {
    index_t m, n, k;
    std::vector<double> a, b, sums;  // sums: the strict chains
    operands(index_t rows, index_t cols, index_t depth) : m(rows), n(cols), k(depth) {
        random_source source(41);
        a.resize(static_cast<std::size_t>(m * k));
        b.resize(static_cast<std::size_t>(k * n));
        for (double& x : a) x = source.of<double>();
        for (double& x : b) x = source.of<double>();
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) sums.push_back(test::strict_dot(1, va(), vb(), i, j));
        }
    }
    hone::matrix_view<const double> va() const { return hone::row_major<const double>(a.data(), m, k); }
    hone::matrix_view<const double> vb() const { return hone::row_major<const double>(b.data(), k, n); }
    double sum(index_t i, index_t j) const { return sums[static_cast<std::size_t>(i * n + j)]; }
};

// Compares C of every kernel, in k blocks and not, by rows and by columns, with want(i, j, old). Instruction sets
// that are not reproducible are left to the cases above.
template <class C, class E, class Want>
void check_epilogue(const char* what, const operands& o, const E& stages, double beta, const Want& want, index_t cols = -1) {
    if (cols < 0) cols = o.n;
    for (const kernel& kn : test::kernels<double>()) {
        if (!test::reproducible(kn.isa)) continue;
        if (E::halves && kn.nr % (2 * kn.panel) != 0 && 2 * kn.panel % kn.nr != 0) continue;  // such a tile holds no pair of panels
        for (int form = 0; form < 4; ++form) {
            hone::policy p = kn.policy();
            if (form & 1) p.block.kc = 5;
            guarded<C> memory(o.m * cols);
            matrix<C> c(memory, o.m, cols, form & 2 ? test::cols_of(o.m) : test::rows_of(cols));
            c.fill([](index_t i, index_t j) { return static_cast<C>(static_cast<float>(i) - 0.25f * static_cast<float>(j)); });
            c.remember();
            hone::gemm_desc desc{.m = o.m, .n = o.n, .k = o.k, .c = {c.view().row_stride, c.view().col_stride}, .beta = beta};
            const auto plan = hone::plan<double>(desc, p, stages);
            INFO(what << " " << kn.text() << " form " << form);
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(o.va(), o.vb(), c.view(), stages) == hone::status{});
            CHECK(c.gaps_unchanged());
            index_t wrong = 0;
            for (index_t i = 0; i < o.m; ++i) {
                for (index_t j = 0; j < cols; ++j) {
                    const C w = want(i, j, c.old(i, j));
                    if constexpr (sizeof(C) == 2) wrong += w.bits != c(i, j).bits;
                    else wrong += !test::same(w, c(i, j));
                }
            }
            CHECK(wrong == 0);
        }
    }
}

// A stage that is a function of one number, alone: with vec<double, 1> the bits that any width must give. Outside a kernel GCC
// would make one operation of a product and a sum where the flags have FMA.
HONE_STRICT_MATH_BEGIN
template <class S>
HONE_NOINLINE double alone(const S& stage, double x) {
    hone::vec<double, 1> v(x);
    const hone::place<double, 1> at{};
    stage(v, at);
    return v[0];
}
HONE_STRICT_MATH_END

}  // namespace

TEST_CASE("f64: every stage, to the bit, on every instruction set with FMA") {
    const operands o(19, 37, 13);
    std::vector<double> t(37), r(19);
    std::vector<float> tf(37);
    std::vector<hone::bf16> th;
    std::vector<double> v(19 * 37);
    random_source source(7);
    for (double& x : t) x = source.of<double>();
    for (double& x : r) x = source.of<double>();
    for (double& x : v) x = source.of<double>();
    for (float& x : tf) {
        x = source.value();
        th.push_back(hone::bf16(x));
    }
    const auto view = hone::row_major<const double>(v.data(), 19, 37);
    const auto by_columns = hone::col_major<const double>(v.data(), 19, 37);
    const auto at = [](index_t i) { return static_cast<std::size_t>(i); };
    using test::rounded;
    check_epilogue<double>("identity, beta", o, hone::identity, 0.3,
                           [&](index_t i, index_t j, double old) { return std::fma(0.3, old, o.sum(i, j)); });
    check_epilogue<double>("bias, relu", o, hone::bias(t) | hone::relu, 0, [&](index_t i, index_t j, double) {
        const double x = rounded(o.sum(i, j) + t[at(j)]);
        return 0.0 > x ? 0.0 : x;
    });
    check_epilogue<double>("scale, bias of floats and halves, clip", o,
                           hone::scale(0.1) | hone::scale(t) | hone::bias(tf) | hone::bias(th) | hone::clip(-0.7, 0.9), -1.5,
                           [&](index_t i, index_t j, double old) {
                               double x = rounded(rounded(std::fma(-1.5, old, o.sum(i, j)) * 0.1) * t[at(j)]);
                               x = rounded(rounded(x + static_cast<double>(tf[at(j)])) + static_cast<double>(static_cast<float>(th[at(j)])));
                               return std::min(std::max(x, -0.7), 0.9);
                           });
    check_epilogue<double>("add, mul of views", o, hone::add(view) | hone::mul(by_columns), 0, [&](index_t i, index_t j, double) {
        return rounded(rounded(o.sum(i, j) + *view.at(i, j)) * *by_columns.at(i, j));
    });
    const double s = 1.0 / 3;
    const auto lambda = hone::map([&t, &r, s](auto& x, auto place) {
        x = hone::fma(x, s, place.cols(t.data())) * place.rows(r.data()) + 0.1;
    });
    check_epilogue<double>("a lambda", o, lambda, 0, [&](index_t i, index_t j, double) {
        return rounded(rounded(std::fma(o.sum(i, j), s, t[at(j)]) * r[at(i)]) + 0.1);
    });
    const auto of_one = [&](const char* what, const auto& stage) {
        check_epilogue<double>(what, o, stage, 0, [&](index_t i, index_t j, double) { return alone(stage, o.sum(i, j)); });
    };
    of_one("gelu", hone::gelu);
    of_one("gelu_tanh", hone::gelu_tanh);
    of_one("silu", hone::silu);
    of_one("sigmoid", hone::sigmoid);
    of_one("tanh", hone::tanh);
    of_one("hard_sigmoid", hone::hard_sigmoid);
    of_one("hard_swish", hone::hard_swish);

    // gated needs an even n.
    const operands even(11, 38, 9);
    check_epilogue<double>("gated", even, hone::bias(std::span<const double>(v.data(), 38)) | hone::gated(hone::silu), 0,
                           [&](index_t i, index_t j, double) {
                               const double x = rounded(even.sum(i, j) + v[at(j)]), y = rounded(even.sum(i, j + 19) + v[at(j + 19)]);
                               return rounded(alone(hone::silu, x) * y);
                           }, 19);
}

TEST_CASE("f64: row_max and row_sum into doubles and floats") {
    const operands o(9, 41, 6);
    for (const kernel& kn : test::kernels<double>()) {
        guarded<double> c(9 * 41), largest(9), sum(9);
        guarded<float> largest_float(9), sum_float(9);
        test::reverse_executor four(4);
        const hone::context ctx{.executor = four};
        const auto stages = hone::row_max(largest.data()) | hone::row_sum(sum.data()) | hone::row_max(largest_float.data()) |
                            hone::row_sum(sum_float.data());
        const auto plan = hone::plan<double>({.m = 9, .n = 41, .k = 6}, kn.policy(), stages, ctx);
        REQUIRE(plan.status() == hone::status{});
        CHECK(plan->explain().col_parts == 1);
        REQUIRE(plan->run(o.va(), o.vb(), hone::row_major(c.data(), 9, 41), stages, ctx) == hone::status{});
        INFO(kn.text());
        CHECK((c.intact() && largest.intact() && sum.intact() && largest_float.intact() && sum_float.intact()));
        for (index_t i = 0; i < 9; ++i) {
            const double* row = c.data() + i * 41;
            double most = row[0], all = 0;
            float all_float = 0;
            for (index_t j = 0; j < 41; ++j) {
                most = std::max(most, row[j]);
                all = test::rounded(all + row[j]);
                all_float = test::rounded(all_float + static_cast<float>(row[j]));
            }
            CHECK(test::same(largest.data()[i], most));
            CHECK(test::same(sum.data()[i], all));
            CHECK(test::same(largest_float.data()[i], static_cast<float>(most)));
            CHECK(test::same(sum_float.data()[i], all_float));
        }
    }
}

namespace {

// The half nearest to x, ties to even, found among the neighbours of what rounding twice gives: none of them is off by more.
template <class H>
H nearest(double x) {
    if (std::isnan(x)) return H(std::numeric_limits<float>::quiet_NaN());
    const H twice(static_cast<float>(x));
    constexpr std::uint16_t infinity = std::is_same_v<H, hone::bf16> ? 0x7f80 : 0x7c00;
    const std::uint16_t sign = twice.bits & 0x8000u;
    const double size = std::abs(x);
    const auto value = [](int bits) {  // infinity stands where the next number would
        const auto as = [](int b) { return static_cast<double>(static_cast<float>(H::from_bits(static_cast<std::uint16_t>(b)))); };
        return bits < infinity ? as(bits) : 2 * as(infinity - 1) - as(infinity - 2);
    };
    const int middle = twice.bits & 0x7fff;
    int best = middle;
    for (int bits = std::max(middle - 1, 0); bits <= std::min(middle + 1, static_cast<int>(infinity)); ++bits) {
        const double off = std::abs(value(bits) - size), least = std::abs(value(best) - size);
        if (off < least || (off == least && bits % 2 == 0)) best = bits;
    }
    return H::from_bits(static_cast<std::uint16_t>(best | sign));
}

}  // namespace

TEST_CASE("f64: store_as rounds once, also where rounding to float in between would be seen") {
    // Half steps of bf16 and f16 and what lies a little beside them; beyond the largest numbers; subnormal ones.
    std::vector<double> values = {0.0, -0.0, 1.0, inf, -inf, 1e300, -1e300, 1e-300, 65519.999999, 65520.0, 65504.0, 0x1p-25, 0x1.0000001p-25,
                                  0x1.ffffffffp-26, 0x1p-24, 0x1p-134, 0x1.00000001p-134, 0x1.fep127, 0x1.ffp127, 0x1.feffffffffp127};
    random_source source(13);
    for (int i = 0; i < 400; ++i) {
        const double base = std::ldexp(1 + static_cast<double>(source.between(0, 2047)) / 2048, static_cast<int>(source.between(-30, 16)));
        for (double beside : {0.0, 0x1p-40, -0x1p-40}) values.push_back((i % 2 ? base : -base) * (1 + beside));
    }
    const auto n = static_cast<index_t>(values.size());
    const double one = 1;
    operands o(1, n, 1);
    o.a = {one};
    o.b = values;
    const auto check = [&](const char* what, auto zero, const auto& rounding) {
        using C = decltype(zero);
        for (const kernel& kn : test::kernels<double>()) {
            for (const bool apart : {false, true}) {
                const index_t step = apart ? 2 : 1;
                std::vector<C> c(static_cast<std::size_t>(step * n), zero);
                const auto plan = hone::plan<double>({.m = 1, .n = n, .k = 1, .c = {step * n, step}}, kn.policy(), hone::store_as<C>());
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(o.va(), o.vb(), hone::matrix_view<C>{c.data(), 1, n, step * n, step}, hone::store_as<C>()) == hone::status{});
                index_t wrong = 0;
                for (index_t j = 0; j < n; ++j) {
                    // A chain from +0 loses the sign of a zero.
                    const C got = c[static_cast<std::size_t>(step * j)], want = rounding(values[static_cast<std::size_t>(j)] + 0.0);
                    wrong += std::memcmp(&got, &want, sizeof got) != 0;
                }
                INFO(what << " " << kn.text() << (apart ? " columns apart" : ""));
                CHECK(wrong == 0);
            }
        }
    };
    check("float", 0.0f, [](double x) { return static_cast<float>(x); });
    check("bf16", hone::bf16(0.0f), [](double x) { return nearest<hone::bf16>(x); });
    check("f16", hone::f16(0.0f), [](double x) { return nearest<hone::f16>(x); });
    // Rounded twice some of them differ, or the case would show nothing.
    int twice = 0;
    for (double x : values) twice += nearest<hone::bf16>(x).bits != hone::bf16(static_cast<float>(x)).bits;
    CHECK(twice > 10);
}

// ---- exp, tanh, sigmoid and erf of doubles

namespace {

double ulp64(double x) {
    const double size = std::abs(x);
    return size > 0x1p-1022 ? std::ldexp(1.0, std::ilogb(size) - 52) : 0x1p-1074;
}

// Greatest error in ulp of f against long double. Arguments: even over [low, high], and of all sizes from 2^-40 on.
template <class F, class Want>
double worst_ulp(F f, Want want, double low, double high) {
    random_source source(2024);
    double worst = 0;
    for (int i = 0; i < (test::quick() ? 2000 : 200000); ++i) {
        hone::vec<double, 4> x(0.0);
        for (int lane = 0; lane < 4; ++lane) {
            const double u = source.of<double>() / 2 + 0.5;
            double at = low + (high - low) * u;
            if (i % 2) at = std::ldexp(source.of<double>(), static_cast<int>(source.between(-40, 3)));
            x.set_lane(lane, std::min(std::max(at, low), high));
        }
        const hone::vec<double, 4> y = f(x);
        for (int lane = 0; lane < 4; ++lane) {
            const long double exact = want(static_cast<long double>(x[lane]));
            const double off = static_cast<double>(std::abs(static_cast<long double>(y[lane]) - exact)) / ulp64(static_cast<double>(exact));
            if (!(off <= worst)) worst = off;
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("f64: exp, tanh, sigmoid and erf keep the bounds that math.hpp states") {
    using V = hone::vec<double, 4>;
    using hone::exp, hone::erf;
    CHECK(worst_ulp([](const V& x) { return exp(x); }, [](long double x) { return std::exp(x); }, -745.1, 709.7) <= 1.1);
    CHECK(worst_ulp([](const V& x) { return hone::tanh(x); }, [](long double x) { return std::tanh(x); }, -21, 21) <= 3);
    CHECK(worst_ulp([](const V& x) { return hone::sigmoid(x); }, [](long double x) { return 1 / (1 + std::exp(-x)); }, -745, 40) <= 2.5);
    CHECK(worst_ulp([](const V& x) { return erf(x); }, [](long double x) { return std::erf(x); }, -7, 7) <= 2);
    CHECK(worst_ulp([](const V& x) { return erf(x); }, [](long double x) { return std::erf(x); }, 0.9, 1.1) <= 2);
    const auto one = [](auto f, double x) { return f(V(x))[2]; };
    const auto e = [](const V& x) { return exp(x); };
    const auto t = [](const V& x) { return hone::tanh(x); };
    const auto s = [](const V& x) { return hone::sigmoid(x); };
    const auto r = [](const V& x) { return erf(x); };
    CHECK(test::same(one(e, -inf), 0.0));
    CHECK(test::same(one(e, inf), inf));
    CHECK(test::same(one(e, -0.0), 1.0));
    CHECK(test::same(one(e, 709.79), inf));
    CHECK(test::same(one(e, -745.13), 5e-324));
    CHECK(test::same(one(e, -746.0), 0.0));
    CHECK(test::same(one(t, inf), 1.0));
    CHECK(test::same(one(t, -inf), -1.0));
    CHECK(test::same(one(t, -0.0), -0.0));
    CHECK(test::same(one(t, 5e-324), 5e-324));
    CHECK(test::same(one(s, -inf), 0.0));
    CHECK(test::same(one(s, inf), 1.0));
    CHECK(test::same(one(s, 0.0), 0.5));
    CHECK(test::same(one(r, inf), 1.0));
    CHECK(test::same(one(r, -inf), -1.0));
    CHECK(test::same(one(r, -0.0), -0.0));
    for (double size : {0.3, 0.99, 1.0, 2.5, 5.9, 1e300}) {
        CHECK(test::same(one(t, -size), -one(t, size)));
        CHECK(test::same(one(r, -size), -one(r, size)));
    }
    for (auto f : {one(e, nan_value), one(t, nan_value), one(s, nan_value), one(r, nan_value)}) CHECK(std::isnan(f));
}

// ---- policies and plans

TEST_CASE("f64: policies fixed at compile time, with tiles that are not registered") {
    using hone::isa;
    test::check_fixed_policy<double, hone::policy{.isa = isa::scalar, .tile = {8, 2}, .block = {8, 2, 16}}>();
    test::check_fixed_policy<double, hone::policy{.isa = isa::native}>();
#if HONE_X86
    test::check_fixed_policy<double, hone::policy{.isa = isa::avx2, .tile = {4, 8}, .block = {8, 2, 8}}>();
    test::check_fixed_policy<double, hone::policy{.isa = isa::avx2, .tile = {2, 16}}>();
    // No more than eight rows, whose pointers fit the registers: tests/disassembly.sh reads this binary.
    test::check_fixed_policy<double, hone::policy{.isa = isa::avx512, .tile = {8, 16}, .block = {16, 4, 32}}>();
    constexpr hone::precision doubles{.a = hone::dtype::f64, .c = hone::dtype::f64};
    test::check_fixed_policy<double, hone::policy{.isa = isa::avx512, .tile = {6, 8}, .precision = doubles}>();
#endif
#if HONE_ARM64
    test::check_fixed_policy<double, hone::policy{.isa = isa::neon, .tile = {6, 8}}>();
    test::check_fixed_policy<double, hone::policy{.isa = isa::neon, .tile = {12, 4}}>();
#endif
}

TEST_CASE("f64: the precision of a policy is that of the operands, or refused") {
    using hone::dtype;
    const hone::gemm_desc desc{.m = 3, .n = 4, .k = 5};
    const hone::policy all{.precision = {.a = dtype::f64, .b = dtype::f64, .accumulate = dtype::f64, .c = dtype::f64}};
    CHECK(hone::plan<double>(desc, all).status() == hone::status{});
    CHECK(hone::plan<float>(desc, all).status() ==
          hone::status{hone::code::unsupported, hone::argument::policy_precision, static_cast<int>(dtype::f64), static_cast<int>(dtype::f32)});
    const hone::policy sums{.precision = {.a = dtype::f32}};
    CHECK(hone::plan<double>(desc, sums).status() ==
          hone::status{hone::code::unsupported, hone::argument::policy_precision, static_cast<int>(dtype::f32), static_cast<int>(dtype::f64)});
    CHECK(hone::plan<double>(desc, {.precision = {.accumulate = dtype::f32}}).status().argument == hone::argument::policy_precision);
    CHECK(hone::plan<double>(desc, {.precision = {.c = dtype::f32}}).status().code == hone::code::mismatch);
    CHECK(hone::plan<double>(desc, {.precision = {.c = dtype::f32}}, hone::store_as<float>()).status() == hone::status{});
}

TEST_CASE("f64: explain() names the element; a plan is trivially copyable; lambdas of doubles alone") {
    const auto plan = hone::plan<double>({.m = 100, .n = 200, .k = 300});
    REQUIRE(plan.status() == hone::status{});
    static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*plan)>>);
    const std::string text(plan->explain().text().view());
    INFO(text);
    CHECK(text.find(std::string("gemm f64 ") + hone::isa_name(plan->explain().isa) + " (") == 0);
    // What throws where the sums are doubles is asked of doubles: these lambdas take nothing else.
    const auto quiet = hone::map([]<int N>(hone::vec<double, N>& x, const hone::place<double, N>&) noexcept { x = x * 2.0; });
    const auto loud = hone::map([]<int N>(hone::vec<double, N>& x, const hone::place<double, N>&) { x = x * 2.0; });
    static_assert(hone::gemm_plan<std::remove_const_t<decltype(quiet)>, double>::nothrow);
    static_assert(hone::gemm_plan<std::remove_const_t<decltype(loud)>, double>::nothrow == !HONE_EXCEPTIONS);
    const double a[] = {1, 2, 3, 4};
    double c[4] = {};
    REQUIRE(hone::gemm(hone::row_major(a, 2, 2), hone::row_major(a, 2, 2), hone::row_major(c, 2, 2), quiet | loud) == hone::status{});
    CHECK(std::vector<double>(c, c + 4) == std::vector<double>{28, 40, 60, 88});
}
