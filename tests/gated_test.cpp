// SPDX-License-Identifier: BSL-1.0
// gated(): two halves of the product's columns become one column of C. Compared with the formula in f64 over products in f64.
#include "reference.hpp"

#include <cmath>

using test::index_t;

namespace {

struct shape {
    index_t m, half, k;
};

double silu(double x) { return x / (1.0 + std::exp(-x)); }

// Largest distance from f64, as a share of what rounding allows; 2 and more is wrong, and so is a NaN.
double worst(const shape& s, hone::isa id, int kc, bool packed, const hone::context& ctx) {
    const index_t n = 2 * s.half;
    test::guarded<float> a(s.m * s.k), b(s.k * n), c(s.m * s.half), before(n), behind(s.half);
    test::random_source source(static_cast<std::uint64_t>(s.m * 10007 + s.half * 101 + s.k));
    for (auto* memory : {&a, &b, &before, &behind}) {
        for (index_t i = 0; i < memory->size(); ++i) memory->data()[i] = source.value();
    }
    for (index_t i = 0; i < c.size(); ++i) c.data()[i] = std::nanf("");
    const auto stages = hone::bias(std::span<const float>(before.data(), static_cast<std::size_t>(n))) | hone::gated(hone::silu) |
                        hone::bias(std::span<const float>(behind.data(), static_cast<std::size_t>(s.half)));
    const auto va = hone::row_major<const float>(a.data(), s.m, s.k), vb = hone::row_major<const float>(b.data(), s.k, n);
    const auto plan = hone::plan({.m = s.m, .n = n, .k = s.k}, hone::policy{.isa = id, .block = {.kc = kc}}, stages, ctx);
    REQUIRE(plan.status() == hone::status{});
    if (packed) {
        hone::aligned_buffer weights(static_cast<std::size_t>(plan->packed_bytes()));
        REQUIRE(plan->pack(vb, {weights.data(), weights.size()}) == hone::status{});
        const auto view = hone::packed_view::open({weights.data(), weights.size()});
        REQUIRE(view.status() == hone::status{});
        REQUIRE(plan->run(va, *view, hone::row_major(c.data(), s.m, s.half), stages, ctx) == hone::status{});
    } else {
        REQUIRE(plan->run(va, vb, hone::row_major(c.data(), s.m, s.half), stages, ctx) == hone::status{});
    }
    CHECK(c.intact());
    double most = 0;
    for (index_t i = 0; i < s.m; ++i) {
        for (index_t j = 0; j < s.half; ++j) {
            double gate = double{before.data()[j]}, value = double{before.data()[j + s.half]};
            double gate_size = std::fabs(gate), value_size = std::fabs(value);
            for (index_t p = 0; p < s.k; ++p) {
                const double x = double{a.data()[i * s.k + p]}, g = double{b.data()[p * n + j]}, v = double{b.data()[p * n + j + s.half]};
                gate += x * g;
                value += x * v;
                gate_size += std::fabs(x * g);
                value_size += std::fabs(x * v);
            }
            const double want = silu(gate) * value + double{behind.data()[j]};
            // silu is 1.1-Lipschitz; its own error is 3.5 ulp.
            const double steps = static_cast<double>(s.k + 8) * test::eps;
            const double bound = steps * ((1.1 * gate_size + std::fabs(silu(gate))) * std::fabs(value) +
                                          std::fabs(silu(gate)) * value_size + std::fabs(want)) + 1e-30;
            const double off = std::fabs(double{c.data()[i * s.half + j]} - want) / bound;
            if (!(off <= most)) most = off;
        }
    }
    return most;
}

}  // namespace

TEST_CASE("gated(silu) halves the columns, for edges of every panel and tile") {
    for (hone::isa id : test::isas()) {
        for (index_t half : {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100}) {
            for (index_t m : {1, 3, 8, 13}) {
                for (index_t k : {1, 5, 40}) {
                    INFO(hone::isa_name(id) << " m " << m << " half " << half << " k " << k);
                    CHECK(worst({m, half, k}, id, k == 40 ? 16 : 0, (m + half) % 2 == 0, {}) <= 1.0);
                }
            }
        }
    }
}

TEST_CASE("gated: the same bits on every ISA with FMA, packed or not, on one worker or seven") {
    const index_t m = 23, half = 75, k = 61, n = 2 * half;
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), first;
    test::random_source source(5);
    for (float& x : a) x = source.value();
    for (float& x : b) x = source.value();
    test::reverse_executor seven(7);
    int compared = 0;
    for (hone::isa id : test::isas()) {
        if (!test::reproducible(id)) continue;
        for (int form = 0; form < 4; ++form) {
            std::vector<float> c(static_cast<std::size_t>(m * half));
            hone::context ctx;
            if (form & 1) ctx.executor = seven;
            const auto stages = hone::gated(hone::gelu_tanh);
            const auto plan = hone::plan({.m = m, .n = n, .k = k}, hone::policy{.isa = id, .block = {.kc = form & 2 ? 9 : 0}}, stages, ctx);
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(hone::row_major<const float>(a.data(), m, k), hone::row_major<const float>(b.data(), k, n),
                              hone::row_major(c.data(), m, half), stages, ctx) == hone::status{});
            if (first.empty()) first = c;
            INFO(hone::isa_name(id) << " form " << form);
            CHECK(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0);
            ++compared;
        }
    }
    CHECK(compared >= 4);
}

TEST_CASE("gated: what does not go together is refused, and C stays as it was") {
    std::vector<float> a(12, 1.0f), b(24, 1.0f), c(12, 7.0f);
    const auto says = [](const hone::status& s) { return std::string(s.message().view()); };
    const auto va = hone::row_major<const float>(a.data(), 3, 4);
    const auto gate = hone::gated(hone::sigmoid);
    CHECK(says(hone::gemm(va, hone::row_major<const float>(b.data(), 4, 5), hone::row_major(c.data(), 3, 2), gate)) == "n = 5 must equal 6");
    CHECK(says(hone::gemm(va, hone::row_major<const float>(b.data(), 4, 6), hone::row_major(c.data(), 3, 4), gate)) == "c.cols = 4 must equal 3");
    CHECK(says(hone::gemm(1.0, va, hone::row_major<const float>(b.data(), 4, 6), 1.0, hone::row_major(c.data(), 3, 3), gate)) ==
          "beta = 1 is not supported; the nearest that is 0");
    const hone::policy odd{.isa = hone::isa::avx512, .tile = {8, 48}};
    if (hone::available(hone::isa::avx512)) CHECK(says(hone::plan({.m = 3, .n = 6, .k = 4}, odd, gate).status()) ==
                                                  "policy.tile = 48 is not supported; the nearest that is 32");
    const std::vector<float> two(2, 1.0f);
    CHECK(says(hone::gemm(va, hone::row_major<const float>(b.data(), 4, 6), hone::row_major(c.data(), 3, 3), hone::gated(hone::bias(two)))) ==
          "epilogue vector = 2 must equal 3");
    for (float x : c) CHECK(x == 7.0f);
    // A plain product's weights are not a gated one's.
    const auto plain = hone::plan({.m = 3, .n = 6, .k = 4});
    const auto gated = hone::plan({.m = 3, .n = 6, .k = 4}, hone::policy{}, gate);
    REQUIRE(plain.status() == hone::status{});
    REQUIRE(gated.status() == hone::status{});
    hone::aligned_buffer weights(static_cast<std::size_t>(plain->packed_bytes()));
    REQUIRE(plain->pack(hone::row_major<const float>(b.data(), 4, 6), {weights.data(), weights.size()}) == hone::status{});
    const auto view = hone::packed_view::open({weights.data(), weights.size()});
    REQUIRE(view.status() == hone::status{});
    CHECK(says(gated->run(va, *view, hone::row_major(c.data(), 3, 3), gate)) == "packed.layout = 1 does not match what was packed; expected 4");
}

#if HONE_EXCEPTIONS
TEST_CASE("gated: what its function throws arrives at the caller") {
    std::vector<float> a(12, 1.0f), b(24, 1.0f), c(9, 7.0f);
    const auto gate = hone::gated(hone::map([](auto&, auto) { throw 42; }));
    static_assert(!decltype(gate)::nothrow && decltype(hone::gated(hone::silu))::nothrow);
    CHECK_THROWS_AS(hone::gemm(hone::row_major<const float>(a.data(), 3, 4), hone::row_major<const float>(b.data(), 4, 6),
                               hone::row_major(c.data(), 3, 3), gate).ok(),
                    int);
}
#endif
