// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile.mr must be one of 1, 2, 4, 6, 8, 12, 14, 16.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {5, 4}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
