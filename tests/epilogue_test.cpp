// SPDX-License-Identifier: BSL-1.0
// epilogue.hpp: every stage against its formula in f64, the order of stages, what a user's lambda sees, and exceptions.
// Case names begin with the number of the public report they come from.
#include "reference.hpp"

#include "allocations.hpp"

#include <functional>
#include <stdexcept>

using hone::vec;
using test::edge;
using test::guarded;
using test::index_t;
using test::layout;
using test::matrix;
using test::near_value;
using test::random_source;
using test::rounded;
using test::same;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr index_t rows = 5, cols = 37;  // tails on every register width

// rows * cols values: both signs, all sizes, infinities and NaN, then random ones up to 10.
const std::vector<float>& values() {
    static const std::vector<float> list = [] {
        std::vector<float> v;
        for (float x : {0.0f,  1e-45f, 1e-38f, 1e-20f, 1e-7f,   1e-3f, 0.1f,  0.49f, 0.5f,  0.875f,
                        1.0f,  1.5f,   2.0f,   2.5f,   2.9999f, 3.0f,  3.5f,  3.93f, 5.0f,  8.0f,
                        9.02f, 20.0f,  88.0f,  89.0f,  104.0f,  1e4f,  1e13f, 1e30f, 3e38f, inf}) {
            v.push_back(x);
            v.push_back(-x);
        }
        v.push_back(nan_value);
        random_source source(31);
        while (v.size() < static_cast<std::size_t>(rows * cols)) v.push_back(10 * source.value());
        return v;
    }();
    return list;
}

// What the stages see: products of -0 begin at +0, so a sum is never -0.
float sum_at(index_t i, index_t j) {
    const float x = values()[static_cast<std::size_t>(i * cols + j)];
    return x == 0.0f ? 0.0f : x;
}

// Runs `stages` of one instruction set on the values: as alpha * 0 + 1 * C in place, and, where `product`, as sums of
// products with C full of NaN and beta = 0; C by rows and with gaps. Gives C, row by row.
template <class E>
std::vector<float> apply(hone::isa id, const E& stages, bool product = false, index_t apart = 1) {
    guarded<float> memory(test::span_of(rows, cols, {cols * apart + 1, apart}));
    matrix<float> c(memory, rows, cols, {cols * apart + 1, apart});
    c.fill([&](index_t i, index_t j) { return product ? nan_value : sum_at(i, j); });
    c.remember();
    // Row i of A (rows, rows) picks row i of B (rows, cols). Where B is not finite, 0 * B would be NaN: one row at a
    // time.
    std::vector<float> out;
    if (product) {
        const auto plan = hone::plan({.m = 1, .n = cols, .k = 1, .c = {cols, apart}}, {.isa = id}, stages);
        REQUIRE(plan.status() == hone::status{});
        std::vector<float> b(static_cast<std::size_t>(cols));
        const float one = 1.0f;
        for (index_t i = 0; i < rows; ++i) {
            for (index_t j = 0; j < cols; ++j) b[static_cast<std::size_t>(j)] = sum_at(i, j);
            const hone::matrix_view<float> row{c.view().at(i, 0), 1, cols, cols, apart};
            REQUIRE(plan->run(hone::row_major<const float>(&one, 1, 1), hone::row_major<const float>(b.data(), 1, cols),
                              row, stages) == hone::status{});
        }
    } else {
        hone::gemm_desc desc{.m = rows, .n = cols, .k = 0, .c = {cols * apart + 1, apart}, .beta = 1};
        const auto plan = hone::plan(desc, {.isa = id}, stages);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(nullptr, rows, 0),
                          hone::row_major<const float>(nullptr, 0, cols), c.view(), stages) == hone::status{});
    }
    REQUIRE(c.gaps_unchanged());
    for (index_t i = 0; i < rows; ++i) {
        for (index_t j = 0; j < cols; ++j) out.push_back(c(i, j));
    }
    return out;
}

// `formula(x, i, j)` is value and bound in f64. Every instruction set, contiguous and not; all give the same bits.
template <class E, class F>
void stage_is(const char* what, const E& stages, bool by_row, F formula) {
    std::vector<float> first;
    for (hone::isa id : test::isas()) {
        for (int form = 0; form < 4; ++form) {
            if (!by_row && (form & 1)) continue;
            const std::vector<float> got = apply(id, stages, form & 1, form & 2 ? 3 : 1);
            if (first.empty()) first = got;
            INFO(what << " on " << hone::isa_name(id) << " form " << form);
            std::string wrong;
            for (index_t i = 0; i < rows; ++i) {
                for (index_t j = 0; j < cols; ++j) {
                    const std::size_t at = static_cast<std::size_t>(i * cols + j);
                    const near_value want = formula(static_cast<double>(sum_at(i, j)), i, j);
                    std::ostringstream text;
                    text.precision(9);
                    text << "x = " << sum_at(i, j) << " gives " << got[at] << ", want " << want.value << " +- "
                         << want.bound;
                    if (!test::near(static_cast<double>(got[at]), want.value, want.bound)) wrong = text.str();
                    if (!same(got[at], first[at])) wrong = text.str() + ", and elsewhere " + std::to_string(first[at]);
                }
            }
            CHECK(wrong == "");
        }
    }
}
template <class E, class F>
void stage_is(const char* what, const E& stages, F formula) {
    stage_is(what, stages, true, formula);
}

// One rounding of x, exact.
near_value once(double x) { return {static_cast<double>(static_cast<float>(x)), 0}; }

double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }
// 1 + erf(x) without cancellation.
double erfc64(double x) { return std::erfc(-x); }

template <class U>
std::vector<U> ramp(index_t n, double from, double step) {
    std::vector<U> v;
    for (index_t i = 0; i < n; ++i) v.push_back(static_cast<U>(from + step * static_cast<double>(i)));
    return v;
}

// A small product whose sums are whole numbers: A(i, p) B(p, j) summed is whole(i, j).
struct whole_product {
    whole_product(index_t m, index_t n, index_t k)
        : a(static_cast<std::size_t>(m * k)),
          b(static_cast<std::size_t>(k * n)),
          c(static_cast<std::size_t>(m * n), nan_value),
          m_(m),
          n_(n),
          k_(k) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 5 % 13) - 6);
    }
    hone::matrix_view<const float> va() const { return hone::row_major<const float>(a.data(), m_, k_); }
    hone::matrix_view<const float> vb() const { return hone::row_major<const float>(b.data(), k_, n_); }
    hone::matrix_view<float> vc() { return hone::row_major(c.data(), m_, n_); }
    float whole(index_t i, index_t j) const { return test::strict_dot(1, va(), vb(), i, j); }
    std::vector<float> a, b, c;
    index_t m_, n_, k_;
};

template <class E>
hone::status run_on(hone::isa id, whole_product& p, const E& stages, double beta = 0, const hone::context& ctx = {},
                    hone::blocking block = {}) {
    hone::gemm_desc desc = hone::describe(p.va(), p.vb(), p.vc());
    desc.beta = beta;
    const auto plan = hone::plan(desc, {.isa = id, .block = block}, stages, ctx);
    if (!plan) return plan.status();
    return plan->run(p.va(), p.vb(), p.vc(), stages, ctx);
}

}  // namespace

// External linkage: see core/vec.hpp.
namespace epilogue_test_helpers {

template <int N>
HONE_NOINLINE vec<float, N> by_value(vec<float, N> x, vec<float, N> y) {
    return x * y + x;
}
template <int N>
HONE_NOINLINE void by_reference(vec<float, N>& x, const vec<float, N>& y) {
    x = x * y - y;
}

struct negate : hone::stage {
    template <class V, class At>
    void operator()(V& x, const At&) const {
        x = -x;
    }
};

}  // namespace epilogue_test_helpers

TEST_CASE("scale, bias, relu and clip are exact") {
    stage_is("scale", hone::scale(0.3), [](double x, index_t, index_t) { return once(x * static_cast<double>(0.3f)); });
    stage_is("scale -0", hone::scale(-0.0), [](double x, index_t, index_t) { return once(x * -0.0); });
    const auto v = ramp<float>(cols, -3, 0.37);
    stage_is("scale(v)", hone::scale(v), [&](double x, index_t, index_t j) {
        return once(x * static_cast<double>(v[static_cast<std::size_t>(j)]));
    });
    stage_is("scale(pointer)", hone::scale(v.data()), [&](double x, index_t, index_t j) {
        return once(x * static_cast<double>(v[static_cast<std::size_t>(j)]));
    });
    stage_is("bias(v)", hone::bias(v), [&](double x, index_t, index_t j) {
        return once(x + static_cast<double>(v[static_cast<std::size_t>(j)]));
    });
    stage_is("bias(pointer)", hone::bias(v.data()), [&](double x, index_t, index_t j) {
        return once(x + static_cast<double>(v[static_cast<std::size_t>(j)]));
    });
    const auto d = ramp<double>(cols, -3, 0.37);
    stage_is("bias(double)", hone::bias(d), [&](double x, index_t, index_t j) {
        return once(x + static_cast<double>(static_cast<float>(d[static_cast<std::size_t>(j)])));
    });
    std::vector<hone::bf16> h;
    for (float x : v) h.push_back(hone::bf16(x));
    stage_is("bias(bf16)", hone::bias(h), [&](double x, index_t, index_t j) {
        return once(x + static_cast<double>(static_cast<float>(h[static_cast<std::size_t>(j)])));
    });
    stage_is("relu", hone::relu, [](double x, index_t, index_t) { return near_value{x < 0 ? 0.0 : x, 0}; });
    stage_is("clip", hone::clip(-1, 2.5), [](double x, index_t, index_t) {
        return near_value{x < -1 ? -1.0 : x > 2.5 ? 2.5 : x, 0};
    });
    stage_is("clip without bounds", hone::clip(-1.0 / 0.0, 1.0 / 0.0), [](double x, index_t, index_t) {
        return near_value{x, 0};
    });
    stage_is("identity", hone::identity, [](double x, index_t, index_t) { return near_value{x, 0}; });
}

// Bounds: those that core/math.hpp states for the function, plus one eps for each rounding of the stage's own, each
// relative to what is rounded; where two terms cancel (gelu) that is x / 2. The least subnormal where results
// underflow.
TEST_CASE("sigmoid, tanh, silu, gelu, gelu_tanh, hard_sigmoid and hard_swish against f64") {
    using test::eps;
    using test::ulp;
    constexpr double tiny = 0x1p-149;
    stage_is("sigmoid", hone::sigmoid, [](double x, index_t, index_t) {
        const double y = sigmoid64(x);
        return near_value{y, 2.5 * ulp(y)};
    });
    stage_is("tanh", hone::tanh, [](double x, index_t, index_t) {
        const double y = std::tanh(x);
        return near_value{y, 2.5 * ulp(y)};
    });
    stage_is("silu", hone::silu, [](double x, index_t, index_t) {
        const double s = sigmoid64(x);
        return near_value{x * s, 2.5 * ulp(s) * std::abs(x) + eps * std::abs(x * s) + tiny};
    });
    stage_is("gelu", hone::gelu, [](double x, index_t, index_t) {
        const double half = x / 2, y = half * erfc64(x / std::sqrt(2.0));
        // erf 1.5 ulp = 3 eps, its argument 2 roundings that erf passes on at most once each, product and sum 1 each.
        return near_value{std::isinf(x) && x < 0 ? std::nan("") : y, 7 * eps * std::abs(half) + tiny};
    });
    stage_is("gelu_tanh", hone::gelu_tanh, [](double x, index_t, index_t) {
        const double half = x / 2, t = std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
        // tanh 2.5 ulp = 5 eps, its argument 7 roundings (three products, two constants, a sum, a product), product and
        // sum.
        return near_value{half + half * t, 14 * eps * std::abs(half) + tiny};
    });
    const auto hard_sigmoid_is = [](double a, double b) {
        return [a, b](double x, index_t, index_t) {
            const double y = a * x + b;
            return near_value{y < 0   ? 0
                              : y > 1 ? 1
                                      : y,
                              3 * eps * (std::abs(a * std::min(std::max(x, -100.0), 100.0)) + std::abs(b))};
        };
    };
    stage_is("hard_sigmoid", hone::hard_sigmoid, hard_sigmoid_is(0.2, 0.5));
    stage_is("hard_sigmoid(a, b)", hone::hard_sigmoid(1.0 / 6, 0.4), hard_sigmoid_is(1.0 / 6, 0.4));
    stage_is("hard_swish", hone::hard_swish, [](double x, index_t, index_t) {
        const double g = x / 6 + 0.5, gate = g < 0 ? 0 : g > 1 ? 1 : g;
        return near_value{x * gate, std::abs(x) > 4 ? 0.0 : 4 * eps * std::abs(x) + tiny};
    });
}

TEST_CASE("add(view) and mul(view): dense, strided, transposed") {
    std::vector<float> memory(static_cast<std::size_t>(4 * rows * cols));
    random_source source(37);
    for (float& x : memory) x = 10 * source.value();
    const layout layouts[] = {{cols, 1}, {2 * cols + 1, 1}, {1, rows}, {3, 3 * rows + 1}, {2 * cols, 2}, {0, 1},
                              {1, 0},    {-cols, -1}};
    for (const layout& l : layouts) {
        const float* first = memory.data() + (l.row < 0 ? rows * cols - 1 : 0);
        const hone::matrix_view<const float> v{first, rows, cols, l.row, l.col};
        const auto at = [v](index_t i, index_t j) { return static_cast<double>(*v.at(i, j)); };
        stage_is("add", hone::add(v), false, [&](double x, index_t i, index_t j) { return once(x + at(i, j)); });
        stage_is("mul", hone::mul(v), false, [&](double x, index_t i, index_t j) { return once(x * at(i, j)); });
    }
}

TEST_CASE("add(view) and mul(view) of C itself see what C held") {
    for (hone::isa id : test::isas()) {
        for (const hone::blocking& block :
             {hone::blocking{}, hone::blocking{.kc = 3}, hone::blocking{.mc = 0, .kc = 1, .nc = 0}}) {
            for (int workers : {1, 3}) {
                for (double beta : {0.0, 1.0}) {
                    whole_product p(23, 70, 11);
                    test::reverse_executor x(workers);
                    const auto held = [](std::size_t i) { return static_cast<float>(static_cast<int>(i % 17) - 8); };
                    for (std::size_t i = 0; i < p.c.size(); ++i) p.c[i] = held(i);
                    const hone::matrix_view<float> c = p.vc();
                    REQUIRE(run_on(id, p, hone::add(c) | hone::scale(0.5), beta, {.executor = x}, block) ==
                            hone::status{});
                    std::string wrong;
                    for (index_t i = 0; i < 23; ++i) {
                        for (index_t j = 0; j < 70; ++j) {
                            const std::size_t at = static_cast<std::size_t>(i * 70 + j);
                            const float want = (p.whole(i, j) + static_cast<float>(beta + 1) * held(at)) * 0.5f;
                            if (!same(p.c[at], want))
                                wrong = "add: " + std::to_string(p.c[at]) + ", not " + std::to_string(want);
                        }
                    }
                    INFO(hone::isa_name(id) << " kc " << block.kc << " beta " << beta);
                    CHECK(wrong == "");
                    for (std::size_t i = 0; i < p.c.size(); ++i) p.c[i] = held(i);
                    REQUIRE(run_on(id, p, hone::mul(c), beta, {.executor = x}, block) == hone::status{});
                    wrong.clear();
                    for (index_t i = 0; i < 23; ++i) {
                        for (index_t j = 0; j < 70; ++j) {
                            const std::size_t at = static_cast<std::size_t>(i * 70 + j);
                            const float want = (p.whole(i, j) + static_cast<float>(beta) * held(at)) * held(at);
                            if (p.c[at] != want)
                                wrong = "mul: " + std::to_string(p.c[at]) + ", not " + std::to_string(want);
                        }
                    }
                    CHECK(wrong == "");
                }
            }
        }
    }
}

TEST_CASE("B01 beta = 0 must not read C, behind any stage and stored as anything") {
    const std::vector<float> column(static_cast<std::size_t>(cols), 0.75f);
    std::vector<float> view(static_cast<std::size_t>(rows * cols), 0.25f), largest(rows), sums(rows);
    const auto v = hone::row_major<const float>(view.data(), rows, cols);
    const std::vector<float> a(rows * 5, 0.0f), b(static_cast<std::size_t>(5 * cols), 0.0f);
    for (hone::isa id : test::isas()) {
        for (const hone::blocking& block : {hone::blocking{}, hone::blocking{.kc = 2}}) {
            const auto product = [&](const auto& stages, auto left) {
                using C = decltype(left);
                std::vector<C> c(static_cast<std::size_t>(rows * cols), left);
                for (double alpha : {1.0, 0.0}) {
                    const auto plan =
                        hone::plan({.m = rows, .n = cols, .k = 5, .alpha = alpha}, {.isa = id, .block = block}, stages);
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(hone::row_major<const float>(a.data(), rows, 5),
                                      hone::row_major<const float>(b.data(), 5, cols),
                                      hone::row_major(c.data(), rows, cols), stages) == hone::status{});
                }
                return c;
            };
            const auto never_reads = [&](const char* what, const auto& stages, auto zero) {
                using C = decltype(zero);
                const std::vector<C> want = product(stages, zero);
                for (float left : {nan_value, inf, -inf}) {
                    const std::vector<C> got = product(stages, C(left));
                    bool right = true;
                    for (std::size_t i = 0; i < got.size(); ++i) {
                        const float x = static_cast<float>(got[i]);
                        right = right && !std::isnan(x) && same(x, static_cast<float>(want[i]));
                    }
                    INFO(hone::isa_name(id) << " kc " << block.kc << " " << what << " over " << left);
                    CHECK(right);
                }
            };
            never_reads("identity", hone::identity, 0.0f);
            never_reads("scale", hone::scale(3), 0.0f);
            never_reads("scale(v)", hone::scale(column), 0.0f);
            never_reads("bias", hone::bias(column), 0.0f);
            never_reads("relu", hone::relu, 0.0f);
            never_reads("clip", hone::clip(-1, 1), 0.0f);
            never_reads("sigmoid", hone::sigmoid, 0.0f);
            never_reads("tanh", hone::tanh, 0.0f);
            never_reads("silu", hone::silu, 0.0f);
            never_reads("gelu", hone::gelu, 0.0f);
            never_reads("gelu_tanh", hone::gelu_tanh, 0.0f);
            never_reads("hard_sigmoid", hone::hard_sigmoid, 0.0f);
            never_reads("hard_swish", hone::hard_swish, 0.0f);
            never_reads("add", hone::add(v), 0.0f);
            never_reads("mul", hone::mul(v), 0.0f);
            never_reads("map", hone::map([](auto& x, auto) { x = x + 1.0f; }), 0.0f);
            never_reads("row outputs", hone::row_max(largest.data()) | hone::row_sum(sums.data()), 0.0f);
            never_reads("bf16", hone::bias(column) | hone::store_as<hone::bf16>(), hone::bf16(0.0f));
            never_reads("f16", hone::bias(column) | hone::store_as<hone::f16>(), hone::f16(0.0f));
            never_reads("double", hone::bias(column) | hone::store_as<double>(), 0.0);
        }
    }
}

TEST_CASE("B59 stages run in the caller's order") {
    for (hone::isa id : test::isas()) {
        for (const hone::blocking& block : {hone::blocking{}, hone::blocking{.kc = 1}}) {
            const std::vector<float> two(4, 2.0f), tens(4, -10.0f);
            const auto once_run = [&](const auto& stages) {
                std::vector<float> c(1, -10.0f);
                const auto plan = hone::plan({.m = 1, .n = 1, .k = 2}, {.isa = id, .block = block}, stages);
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(hone::row_major<const float>(two.data(), 1, 2),
                                  hone::row_major<const float>(two.data(), 2, 1), hone::row_major(c.data(), 1, 1),
                                  stages) == hone::status{});
                return c[0];
            };
            const auto ten = hone::row_major<const float>(tens.data(), 1, 1);
            const std::vector<float> bias(1, -12.0f);
            // 2 * 2 + 2 * 2 = 8.
            CHECK(once_run(hone::add(ten) | hone::relu) == 0.0f);
            CHECK(once_run(hone::relu | hone::add(ten)) == -2.0f);
            CHECK(once_run(hone::scale(0.5) | hone::bias(bias) | hone::clip(-5, 5)) == -5.0f);
            CHECK(once_run(hone::clip(-5, 5) | hone::bias(bias) | hone::scale(0.5)) == -3.5f);
            CHECK(once_run(hone::bias(bias) | (hone::scale(0.5) | hone::clip(-1, 5))) == -1.0f);
            CHECK(once_run((hone::bias(bias) | hone::clip(-1, 5)) | hone::scale(0.5)) == -0.5f);
        }
    }
}

TEST_CASE("B11 NaN passes through relu and clip at every lane") {
    for (hone::isa id : test::isas()) {
        for (index_t n = 1; n <= 37; ++n) {
            for (index_t nan_at : {index_t{0}, n / 2, n - 1}) {
                std::vector<float> c(static_cast<std::size_t>(n));
                const auto with = [&](const auto& stages) {
                    for (index_t j = 0; j < n; ++j) c[static_cast<std::size_t>(j)] = j % 2 ? -3.0f : 2.0f;
                    c[static_cast<std::size_t>(nan_at)] = nan_value;
                    const auto plan = hone::plan({.m = 1, .n = n, .k = 0, .beta = 1}, {.isa = id}, stages);
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(hone::row_major<const float>(nullptr, 1, 0),
                                      hone::row_major<const float>(nullptr, 0, n), hone::row_major(c.data(), 1, n),
                                      stages) == hone::status{});
                };
                INFO(hone::isa_name(id) << " n " << n << " NaN at " << nan_at);
                std::string wrong;
                const auto expect = [&](const char* what, float odd, float even) {
                    for (index_t j = 0; j < n; ++j) {
                        const float want = j == nan_at ? nan_value : j % 2 ? odd : even;
                        if (!same(c[static_cast<std::size_t>(j)], want)) wrong += what;
                    }
                };
                with(hone::relu);
                expect("relu ", 0, 2);
                with(hone::clip(-1, 1));
                expect("clip ", -1, 1);
                with(hone::hard_swish | hone::hard_sigmoid | hone::relu | hone::clip(-9, -8));
                expect("chain ", -8, -8);
                CHECK(wrong == "");
            }
        }
    }
}

namespace {

// Rounding to nearest even in integers and f64, apart from hone's own code.
float to_bf16(float x) {
    if (std::isnan(x) || std::isinf(x)) return x;
    const auto u = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t low = u & 0xFFFFu, up = u >> 16;
    const std::uint32_t r = low > 0x8000u || (low == 0x8000u && (up & 1u)) ? up + 1 : up;
    return std::bit_cast<float>(r << 16);
}
float to_f16(float x) {
    if (std::isnan(x) || std::isinf(x) || x == 0) return x;
    const double size = std::abs(static_cast<double>(x));
    if (size >= 65520) return std::copysign(inf, x);
    const double step = std::ldexp(1.0, std::max(std::ilogb(size), -14) - 10);
    return static_cast<float>(std::copysign(std::nearbyint(size / step) * step, static_cast<double>(x)));
}

template <class U>
void stores_as(float (*round)(float)) {
    for (hone::isa id : test::isas()) {
        for (index_t apart : {1, 2}) {
            for (const bool blocked : {false, true}) {
                const auto stages = hone::scale(1.0) | hone::store_as<U>();
                static_assert(std::is_same_v<typename decltype(stages)::template stored<float>, U>);
                // beta = 0 and C full of NaN; then beta = 0.5 and C read back as U.
                const layout l{cols * apart + 3, apart};
                guarded<U> memory(test::span_of(rows, cols, l));
                matrix<U> c(memory, rows, cols, l);
                c.fill([](index_t, index_t) { return test::gap<U>(); });
                c.remember();
                const std::vector<float> one(2, 1.0f);
                std::vector<float> b(static_cast<std::size_t>(2 * cols), 0.0f);
                hone::gemm_desc desc{.m = 1, .n = cols, .k = 2, .c = {l.row, l.col}};
                hone::policy p{.isa = id};
                if (blocked) p.block.kc = 1;
                for (double beta : {0.0, 0.5}) {
                    desc.beta = beta;
                    const auto plan = hone::plan(desc, p, stages);
                    REQUIRE(plan.status() == hone::status{});
                    std::string wrong;
                    for (index_t i = 0; i < rows; ++i) {
                        for (index_t j = 0; j < cols; ++j) b[static_cast<std::size_t>(j)] = sum_at(i, j);
                        std::vector<float> want;
                        for (index_t j = 0; j < cols; ++j) {
                            // The second row of B is 0: the chain ends in x + 0.
                            const float old = beta != 0 ? static_cast<float>(c(i, j)) : 0.0f;
                            want.push_back(round(beta != 0 ? std::fma(0.5f, old, sum_at(i, j)) : sum_at(i, j)));
                        }
                        REQUIRE(plan->run(hone::row_major<const float>(one.data(), 1, 2),
                                          hone::row_major<const float>(b.data(), 2, cols),
                                          {c.view().at(i, 0), 1, cols, l.row, l.col}, stages) == hone::status{});
                        for (index_t j = 0; j < cols; ++j) {
                            const float got = static_cast<float>(c(i, j)), w = want[static_cast<std::size_t>(j)];
                            if (!same(got, w))
                                wrong = std::to_string(sum_at(i, j)) + " is stored as " + std::to_string(got) +
                                        ", not " + std::to_string(w);
                        }
                    }
                    INFO(hone::isa_name(id)
                         << " columns apart " << apart << " beta " << beta << " blocked " << blocked);
                    CHECK(wrong == "");
                    CHECK(c.gaps_unchanged());
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("store_as<bf16>, store_as<f16>, store_as<double> and store_as<float>, to the bit") {
    stores_as<hone::bf16>(to_bf16);
    stores_as<hone::f16>(to_f16);
    stores_as<double>([](float x) { return x; });
    stores_as<float>([](float x) { return x; });
    static_assert(std::is_same_v<decltype(hone::store_as<hone::bf16>() | hone::relu)::stored<float>, hone::bf16>);
    static_assert(std::is_same_v<hone::gemm_plan<hone::store_as_stage<hone::f16>>::stored, hone::f16>);
}

// Every low half of both NaN exponents, and what must not be taken for one, through the epilogue pass of each
// instruction set. Read and stored without arithmetic, which would make signalling NaN quiet on the way.
TEST_CASE("B05 what is stored as bf16 or f16 keeps NaN and infinities") {
    std::vector<std::uint32_t> patterns;
    for (std::uint32_t high : {0x7F80u, 0x7FC0u, 0x7FFFu, 0xFF80u, 0xFFFFu}) {
        const std::uint32_t step = test::quick() ? 97 : 1;
        for (std::uint32_t low = 0; low < 0x10000u; low += step) patterns.push_back(high << 16 | low);
    }
    for (std::uint32_t u : {0x7F800001u, 0x7FFF8C22u, 0x7F7FFFFFu, 0xFF7FFFFFu, 0x7F7F7FFFu, 0x7F7F8000u, 0x7F800000u,
                            0xFF800000u})
        patterns.push_back(u);
    const auto n = static_cast<index_t>(patterns.size());
    std::vector<float> x;
    for (std::uint32_t u : patterns) x.push_back(std::bit_cast<float>(u));
    for (hone::isa id : test::isas()) {
        const auto stored = [&](auto type) {
            using U = decltype(type);
            const auto stages = hone::map([p = x.data()](auto& y, auto at) { y = at.cols(p); }) | hone::store_as<U>();
            std::vector<U> c(static_cast<std::size_t>(n), U(1.0f));
            const auto plan = hone::plan({.m = 1, .n = n, .k = 0}, {.isa = id}, stages);
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(hone::row_major<const float>(nullptr, 1, 0), hone::row_major<const float>(nullptr, 0, n),
                              hone::row_major(c.data(), 1, n), stages) == hone::status{});
            return c;
        };
        const auto b = stored(hone::bf16(0.0f));
        const auto h = stored(hone::f16(0.0f));
        std::size_t wrong = patterns.size();
        for (std::size_t i = 0; i < patterns.size(); ++i) {
            const std::uint32_t u = patterns[i], magnitude = u & 0x7FFFFFFFu;
            const std::uint32_t sign = u >> 31;
            bool right = b[i].bits >> 15 == sign && h[i].bits >> 15 == sign;
            if (magnitude > 0x7F800000u) {
                right = right && (b[i].bits & 0x7FC0u) == 0x7FC0u && (h[i].bits & 0x7E00u) == 0x7E00u;
            } else {
                // Infinity, or a finite value that rounds to it in f16 and, but for the one below the tie, in bf16.
                right = right && (b[i].bits & 0x7FFFu) == (magnitude == 0x7F7F7FFFu ? 0x7F7Fu : 0x7F80u) &&
                        (h[i].bits & 0x7FFFu) == 0x7C00u;
            }
            if (!right && wrong == patterns.size()) wrong = i;
        }
        INFO(hone::isa_name(id) << " pattern " << (wrong < patterns.size() ? patterns[wrong] : 0));
        CHECK(wrong == patterns.size());
    }
}

// Sums beyond 65504 on the way: an accumulator of f16, or partial sums kept in a C of f16, would stick at infinity.
TEST_CASE("B07 sums are f32, whatever C holds and wherever they wait between k blocks") {
    for (hone::isa id : test::isas()) {
        for (int kc : {0, 1, 7, 64}) {
            for (index_t m : {1, 9}) {
                for (index_t n : {1, 37}) {
                    const auto run = [&](index_t k, auto value, double beta, float held, const auto& stages,
                                         auto type) {
                        using C = decltype(type);
                        std::vector<float> a(static_cast<std::size_t>(m * k), 32.0f);
                        std::vector<float> b(static_cast<std::size_t>(k * n));
                        for (index_t p = 0; p < k; ++p) {
                            for (index_t j = 0; j < n; ++j) b[static_cast<std::size_t>(p * n + j)] = value(p);
                        }
                        std::vector<C> c(static_cast<std::size_t>(m * n), C(held));
                        const auto plan = hone::plan({.m = m, .n = n, .k = k, .beta = beta},
                                                     {.isa = id, .block = {.kc = kc}}, stages);
                        REQUIRE(plan.status() == hone::status{});
                        REQUIRE(plan->run(hone::row_major<const float>(a.data(), m, k),
                                          hone::row_major<const float>(b.data(), k, n),
                                          hone::row_major(c.data(), m, n), stages) == hone::status{});
                        const float first = static_cast<float>(c[0]);
                        for (const C& x : c) {
                            if (!same(static_cast<float>(x), first)) return nan_value;
                        }
                        return first;
                    };
                    const auto as_f16 = hone::store_as<hone::f16>();
                    const auto up = [](index_t) { return 32.0f; };
                    const auto up_and_down = [](index_t p) { return p < 64 ? 32.0f : -32.0f; };
                    INFO(hone::isa_name(id) << " kc " << kc << " " << m << "x" << n);
                    CHECK(run(64, up, 0, nan_value, hone::identity, 0.0f) == 65536.0f);
                    CHECK(run(64, up, 0, nan_value, as_f16, hone::f16(0.0f)) == inf);
                    CHECK(run(128, up_and_down, 0, nan_value, as_f16, hone::f16(0.0f)) == 0.0f);
                    CHECK(run(128, up_and_down, 1, 5.0f, as_f16, hone::f16(0.0f)) == 5.0f);
                    // Stages see the sum, not what C can hold.
                    CHECK(run(64, up, 1, 64.0f, hone::scale(0.5) | as_f16, hone::f16(0.0f)) == 32800.0f);
                    CHECK(run(64, up, 0, nan_value, hone::clip(-7, 7) | as_f16, hone::f16(0.0f)) == 7.0f);
                    // 64 * 32 * 32.125 is exact in f32; bf16 has 8 bits.
                    CHECK(run(64, [](index_t) { return 32.125f; }, 0, nan_value, hone::identity, 0.0f) == 65792.0f);
                    CHECK(run(64, [](index_t) { return 32.125f; }, 0, nan_value, hone::store_as<hone::bf16>(),
                              hone::bf16(0.0f)) == 65536.0f);
                }
            }
        }
    }
    // Sums of another type are a policy of its own, and none that exists.
    CHECK(hone::plan({.m = 1, .n = 1, .k = 64}, {.precision = {.accumulate = hone::dtype::f16}}).status().argument ==
          hone::argument::policy_precision);
}

TEST_CASE("a user's lambda: captures, and every way to read by place, valid lanes only") {
    for (hone::isa id : test::isas()) {
        const auto& kernels = hone::detail::gemm_kernels<float>(id);
        for (index_t m : {1, 3, 9}) {
            for (index_t n : {index_t{1}, index_t{5}, index_t{16}, index_t{kernels.row[0].nr + 3},
                              index_t{2 * kernels.row[0].nr + 1}}) {
                for (edge side : {edge::end, edge::begin}) {
                    for (int workers : {1, 3}) {
                        guarded<float> t_memory(n, side), r_memory(m, side),
                            v_memory(test::span_of(m, n, {2 * n + 1, 2}), side),
                            w_memory(test::span_of(m, n, {n + 2, 1}), side);
                        guarded<hone::bf16> h_memory(n, side);
                        matrix<float> v(v_memory, m, n, {2 * n + 1, 2}), w(w_memory, m, n, {n + 2, 1});
                        random_source source(41);
                        float *t = t_memory.data(), *r = r_memory.data();
                        hone::bf16* h = h_memory.data();
                        for (index_t j = 0; j < n; ++j) t[j] = source.value();
                        for (index_t j = 0; j < n; ++j) h[j] = hone::bf16(source.value());
                        for (index_t i = 0; i < m; ++i) r[i] = source.value();
                        v.fill(source);
                        w.fill(source);
                        whole_product p(m, n, 3);
                        std::vector<int> seen(static_cast<std::size_t>(m * n), 0);
                        int* count = seen.data();
                        const auto vv = v.in(), ww = w.in();
                        const float s = 0.7f;
                        const auto stages = hone::map([=](auto& x, auto at) {
                            x = x * s + at.cols(t);
                            x = x + at.rows(r);
                            x = x * at.load(vv);
                            x = x - at.load(ww);
                            x = x + at.cols(h);
                            for (int l = 0; l < at.lanes; ++l) ++count[at.row * n + at.col + l];
                        });
                        test::thread_executor threads(workers);
                        REQUIRE(run_on(id, p, stages, 0, {.executor = threads}) == hone::status{});
                        std::string wrong;
                        for (index_t i = 0; i < m; ++i) {
                            for (index_t j = 0; j < n; ++j) {
                                float x = rounded(rounded(p.whole(i, j) * s) + t[j]);
                                x = rounded(x + r[i]);
                                x = rounded(x * v(i, j));
                                x = rounded(x - w(i, j));
                                x = rounded(x + static_cast<float>(h[j]));
                                const std::size_t at = static_cast<std::size_t>(i * n + j);
                                if (!same(p.c[at], x)) wrong = std::to_string(p.c[at]) + ", not " + std::to_string(x);
                                if (seen[at] != 1) wrong = "seen " + std::to_string(seen[at]) + " times";
                            }
                        }
                        INFO(hone::isa_name(id) << " " << m << "x" << n << ", " << name(side));
                        CHECK(wrong == "");
                    }
                }
            }
        }
    }
}

TEST_CASE("stages read vectors that end at a protected page") {
    for (hone::isa id : test::isas()) {
        for (index_t n = 1; n <= 40; ++n) {
            for (edge side : {edge::end, edge::begin}) {
                guarded<float> memory(n, side), more(3 * n, side);
                std::fill(memory.data(), memory.data() + n, 2.0f);
                std::fill(more.data(), more.data() + 3 * n, 3.0f);
                whole_product p(3, n, 4);
                const auto stages = hone::bias(memory.data()) | hone::scale(memory.data()) |
                                    hone::add(hone::row_major<const float>(more.data(), 3, n)) |
                                    hone::mul(hone::col_major<const float>(more.data(), 3, n));
                REQUIRE(run_on(id, p, stages) == hone::status{});
                bool right = true;
                for (index_t i = 0; i < 3; ++i) {
                    for (index_t j = 0; j < n; ++j)
                        right &= p.c[static_cast<std::size_t>(i * n + j)] == ((p.whole(i, j) + 2) * 2 + 3) * 3;
                }
                INFO(hone::isa_name(id) << " n " << n << ", " << name(side));
                CHECK(right);
            }
        }
    }
}

TEST_CASE("a lambda that calls out-of-line helpers, by value and by reference") {
    for (hone::isa id : test::isas()) {
        whole_product p(7, 70, 3);
        const auto v = ramp<float>(70, 1, 0.25);
        const float* t = v.data();
        const auto stages = hone::map([t](auto& x, auto at) {
            const auto y = at.cols(t);
            x = epilogue_test_helpers::by_value(x, y);
            epilogue_test_helpers::by_reference(x, y);
        });
        REQUIRE(run_on(id, p, stages) == hone::status{});
        bool right = true;
        for (index_t i = 0; i < 7; ++i) {
            for (index_t j = 0; j < 70; ++j) {
                // Small enough to be exact in every rounding.
                const float x = p.whole(i, j), y = t[j], z = x * y + x;
                right &= p.c[static_cast<std::size_t>(i * 70 + j)] == z * y - y;
            }
        }
        INFO(hone::isa_name(id));
        CHECK(right);
    }
}

TEST_CASE("a chain of scale, bias and map gives the same bits on every instruction set") {
    const auto t = ramp<float>(75, -1, 0.031);
    const auto stages = hone::scale(1.0 / 3) | hone::bias(t) | hone::map([](auto& x, auto) { x = x * 0.7f + 0.1f; });
    std::vector<float> first;
    for (hone::isa id : test::isas()) {
        // One step of k: without FMA too there is nothing to round twice.
        for (index_t k : {1, 29}) {
            if (k > 1 && !test::reproducible(id)) continue;
            const index_t m = 13, n = 75;
            std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
                c(static_cast<std::size_t>(m * n));
            random_source source(43);
            for (float& x : a) x = source.value();
            for (float& x : b) x = source.value();
            const auto va = hone::row_major<const float>(a.data(), m, k),
                       vb = hone::row_major<const float>(b.data(), k, n);
            for (int kc : {0, 4}) {
                const auto plan =
                    hone::plan({.m = m, .n = n, .k = k, .alpha = 1.7}, {.isa = id, .block = {.kc = kc}}, stages);
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(va, vb, hone::row_major(c.data(), m, n), stages) == hone::status{});
                std::string wrong;
                for (index_t i = 0; i < m; ++i) {
                    for (index_t j = 0; j < n; ++j) {
                        float x = rounded(test::strict_dot(1.7, va, vb, i, j) * static_cast<float>(1.0 / 3));
                        x = rounded(x + t[static_cast<std::size_t>(j)]);
                        x = rounded(rounded(x * 0.7f) + 0.1f);
                        const float got = c[static_cast<std::size_t>(i * n + j)];
                        if (!same(got, x)) wrong = std::to_string(got) + ", not " + std::to_string(x);
                    }
                }
                INFO(hone::isa_name(id) << " k " << k << " kc " << kc);
                CHECK(wrong == "");
            }
        }
    }
}

TEST_CASE("hone::fma in a lambda is one rounding, x * s + t two") {
    const auto one = hone::map([](auto& x, auto) { x = hone::fma(x, x, -1.0f); });
    const auto two = hone::map([](auto& x, auto) { x = x * x + -1.0f; });
    stage_is("fma", one, [](double x, index_t, index_t) {
        const float y = static_cast<float>(x);
        return near_value{static_cast<double>(std::fma(y, y, -1.0f)), 0};
    });
    stage_is("product and sum", two, [](double x, index_t, index_t) {
        const float y = static_cast<float>(x);
        return near_value{static_cast<double>(rounded(rounded(y * y) - 1.0f)), 0};
    });
}

TEST_CASE("a stage of the user's own type, and a std::function in a lambda") {
    using epilogue_test_helpers::negate;
    static_assert(hone::is_stage<negate>);
    stage_is("negate twice", negate{} | negate{}, [](double x, index_t, index_t) { return near_value{x, 0}; });
    const std::function<float(float)> f = [](float x) { return x + 1; };
    stage_is("std::function", hone::map([f](auto& x, auto at) {
                 for (int l = 0; l < at.lanes; ++l) x.set_lane(l, f(x[l]));
             }),
             [](double x, index_t, index_t) { return once(x + 1); });
}

TEST_CASE("calls are noexcept but where a stage may throw") {
    whole_product p(2, 3, 4);
    const auto va = p.va(), vb = p.vb();
    const auto vc = p.vc();
    const auto may = hone::map([](auto&, auto) {});
    const auto never = hone::map([](auto&, auto) noexcept {});
    const auto safe = hone::relu | hone::gelu;
    const auto mixed = safe | may | never;
    static_assert(noexcept(hone::gemm(va, vb, vc)));
    static_assert(noexcept(hone::gemm(va, vb, vc, safe)));
    static_assert(noexcept(hone::gemm(va, vb, vc, never)));
    static_assert(noexcept(hone::gemm(va, vb, vc, may)) == !HONE_EXCEPTIONS);
    static_assert(noexcept(hone::gemm(va, vb, vc, mixed)) == !HONE_EXCEPTIONS);
    CHECK(hone::gemm(p.va(), p.vb(), p.vc(), may | never) == hone::status{});
}

TEST_CASE("a lambda that throws: the exception arrives, nothing leaks, the next call works") {
    struct broken : std::runtime_error {
        explicit broken(index_t r) : std::runtime_error("row"), row(r) {}
        index_t row;
    };
    for (hone::isa id : test::isas()) {
        for (int workers : {1, 2, 4}) {
            for (const bool threaded : {false, true}) {
                for (int kc : {0, 2}) {
                    whole_product p(40, 200, 5);
                    test::thread_executor threads(workers);
                    test::reverse_executor reverse(workers);
                    const hone::context ctx{.executor =
                                                threaded ? hone::executor_ref(threads) : hone::executor_ref(reverse)};
                    const auto once_run = [&](index_t from, index_t step) {
                        const auto stages = hone::map([=](auto& x, auto at) {
                            if (at.row >= from && at.row % step == 0 && at.col >= 16) throw broken(at.row);
                            x = x + 1.0f;
                        });
                        index_t row = -1;
                        try {
                            const hone::status s = run_on(id, p, stages, 0, ctx, {.kc = kc});
                            CHECK(s == hone::status{});
                        } catch (const broken& b) {
                            row = b.row;
                        }
                        return row;
                    };
                    INFO(hone::isa_name(id)
                         << " workers " << workers << (threaded ? " threads" : " reversed") << " kc " << kc);
                    CHECK(once_run(7, 100) == -1);
                    CHECK(once_run(7, 7) % 7 == 0);  // several tasks may throw: one arrives
                    CHECK(once_run(7, 38) == 38);
                    const long live = test::allocations.live();
                    for (int i = 0; i < 5; ++i) {
                        if (once_run(0, 1) < 0) FAIL("no exception");
                        if (once_run(7, 38) != 38) FAIL("another row");
                    }
                    CHECK(test::allocations.live() == live);
                    CHECK(once_run(7, 100) == -1);
                    bool right = true;
                    for (index_t i = 0; i < 40; ++i) {
                        for (index_t j = 0; j < 200; ++j)
                            right &= p.c[static_cast<std::size_t>(i * 200 + j)] == p.whole(i, j) + 1;
                    }
                    CHECK(right);
                }
            }
        }
    }
}
