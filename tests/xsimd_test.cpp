// SPDX-License-Identifier: BSL-1.0
// `native` as xsimd::batch: the default where hone has no vector types of its own, and asked for here (config.hpp). It is
// held to what its other form is held to.
#ifndef HONE_XSIMD
#define HONE_XSIMD 1
#endif
#include "gemm_harness.hpp"

static_assert(HONE_XSIMD == 1);
static_assert(std::is_same_v<hone::detail::native::reg<float>::type, xsimd::batch<float>>);

TEST_CASE("native on xsimd: policies fixed at compile time") {
    test::check_fixed_policy<float, hone::policy{.isa = hone::isa::native}>();
    test::check_fixed_policy<double, hone::policy{.isa = hone::isa::native}>();
    test::check_fixed_policy<float, hone::policy{.isa = hone::isa::native, .block = {6, 2, 48}}>();
    test::check_fixed_policy<double, hone::policy{.isa = hone::isa::native, .block = {6, 2, 48}}>();
}

TEST_CASE("native on xsimd: the numbers of the loop over k") {
    using test::index_t;
    for (auto [m, n, k] : {std::array<index_t, 3>{7, 33, 65}, {64, 64, 64}, {1, 100, 300}, {100, 1, 30}, {13, 129, 700}}) {
        test::guarded<float> am(m * k), bm(k * n), cm(m * n);
        test::matrix<float> a(am, m, k, test::rows_of(k)), b(bm, k, n, test::rows_of(n)), c(cm, m, n, test::rows_of(n));
        test::random_source source(29);
        a.fill(source);
        b.fill(source);
        REQUIRE(hone::gemm<hone::policy{.isa = hone::isa::native}>(a.view(), b.view(), c.view()) == hone::status{});
        std::string wrong;
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) {
                const test::near_value v = test::dot(1.0, a.in(), b.in(), 0.0, 0.0, i, j);
                if (!test::near(static_cast<double>(c(i, j)), v.value, v.bound)) wrong = "C(" + std::to_string(i) + ", " + std::to_string(j) + ")";
            }
        }
        INFO(m << "x" << n << "x" << k);
        CHECK(wrong == "");
    }
}
