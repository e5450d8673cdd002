// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm: A and B must have one element type.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
using element = float;
#else
using element = double;
#endif

hone::status product(const float* a, const element* b, float* c) {
    return hone::gemm(hone::row_major(a, 2, 2), hone::row_major(b, 2, 2), hone::row_major(c, 2, 2));
}
