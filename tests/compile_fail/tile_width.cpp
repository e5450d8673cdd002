// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile.nr must be a multiple of the register width of policy.isa.
#include <hone/gemm.hpp>

#if defined(__x86_64__)
constexpr hone::isa wide = hone::isa::avx2;
#else
constexpr hone::isa wide = hone::isa::neon;
#endif

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = wide, .tile = {4, 16}};
#else
constexpr hone::policy p{.isa = wide, .tile = {4, 18}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
