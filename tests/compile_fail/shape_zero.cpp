// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::shape: m must be from 1 to hone::fixed_extent.
#include <hone/fixed.hpp>

#ifdef HONE_COMPILES
constexpr hone::shape s{1, 4, 4};
#else
constexpr hone::shape s{0, 4, 4};
#endif

void product(const float* a, const float* b, float* c) { hone::fixed_gemm<s, hone::rows::dense>{}(a, b, c); }
