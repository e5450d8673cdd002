// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::shape: the element type must be float.
#include <hone/fixed.hpp>

#ifdef HONE_COMPILES
using element = float;
#else
using element = int;
#endif

hone::status product(const element* a, const element* b, element* c) {
    return hone::gemm<hone::shape{2, 2, 2}>(hone::row_major(a, 2, 2), hone::row_major(b, 2, 2), hone::row_major(c, 2, 2));
}
