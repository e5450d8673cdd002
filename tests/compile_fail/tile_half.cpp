// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile.mr and policy.tile.nr must both be given or both be dynamic.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {.mr = 4}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
