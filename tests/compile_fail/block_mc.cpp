// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.block.mc must be a multiple of policy.tile.mr.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.mc = 8}};
#else
constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.mc = 9}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
