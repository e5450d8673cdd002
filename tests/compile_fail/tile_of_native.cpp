// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.tile must be dynamic where the register length is not known from policy.isa (sve, sve2,
// native).
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::native};
#else
constexpr hone::policy p{.isa = hone::isa::native, .tile = {4, 16}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
