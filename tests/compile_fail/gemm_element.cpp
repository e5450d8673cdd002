// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm: A must be a matrix_view of float or double.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
using element = float;
#else
using element = hone::bf16;
#endif

hone::status product(const element* a, const element* b, element* c) {
    return hone::gemm(hone::row_major(a, 2, 2), hone::row_major(b, 2, 2), hone::row_major(c, 2, 2));
}
