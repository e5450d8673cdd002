// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::shape: k must be from 1 to hone::fixed_extent.
#include <hone/fixed.hpp>

#ifdef HONE_COMPILES
constexpr hone::shape s{4, 4, hone::fixed_extent};
#else
constexpr hone::shape s{4, 4, hone::fixed_extent + 1};
#endif

hone::status product(const float* a, const float* b, float* c) {
    return hone::gemm<s>(hone::row_major(a, s.m, s.k), hone::row_major(b, s.k, s.n), hone::row_major(c, s.m, s.n));
}
