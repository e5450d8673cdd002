// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.isa must be an instruction set of the architecture and compiler in use.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.isa = hone::isa::scalar};
#else
#if defined(__x86_64__)
constexpr hone::policy p{.isa = hone::isa::neon};
#else
constexpr hone::policy p{.isa = hone::isa::avx2};
#endif
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
