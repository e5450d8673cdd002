// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.block.nc must be a multiple of policy.tile.nr.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.nc = 8}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.nc = 9}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
