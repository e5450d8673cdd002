// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm: C must have the element type of A, or that of the epilogue's store_as<T>().
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr auto epilogue = hone::relu | hone::store_as<float>();
#else
constexpr auto epilogue = hone::relu;
#endif

hone::status product(const double* a, const double* b, float* c) {
    return hone::gemm(hone::row_major(a, 2, 2), hone::row_major(b, 2, 2), hone::row_major(c, 2, 2), epilogue);
}
