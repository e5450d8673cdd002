// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.threads must not be negative.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.threads = 2};
#else
constexpr hone::policy p{.threads = -2};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
