// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.isa must be one of hone::isa.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar};
#else
constexpr hone::policy p{.isa = static_cast<hone::isa>(99)};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
