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
    using problem = test::gemm_problem<float>;
    for (auto [m, n, k] : {std::array<test::index_t, 3>{7, 33, 65}, {64, 64, 64}, {1, 100, 300}, {100, 1, 30}, {13, 129, 700}}) {
        REQUIRE_RIGHT({.m = m, .n = n, .k = k, .policy = {.isa = hone::isa::native}, .seed = 29, .near_too = true});
    }
}
