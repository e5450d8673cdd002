// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm_batched: C must have the element type of A, or that of the epilogue's store_as<T>().
#include <hone/batched.hpp>

#ifdef HONE_COMPILES
constexpr auto epilogue = hone::store_as<hone::bf16>();
#else
constexpr auto epilogue = hone::relu;
#endif

hone::status products(const float* a, const float* b, hone::bf16* c) {
    return hone::gemm_batched(hone::batch(hone::row_major(a, 2, 2), 3), hone::row_major(b, 2, 2),
                              hone::batch(hone::row_major(c, 2, 2), 3), epilogue);
}
