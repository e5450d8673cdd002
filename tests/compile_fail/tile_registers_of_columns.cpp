// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile.nr must be at most four registers of policy.isa.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 8}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
