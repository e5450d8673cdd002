// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile.nr must be a multiple or a divisor of the panel width 8 of f64.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 3}};
#endif

const auto made = hone::plan<p, double>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
