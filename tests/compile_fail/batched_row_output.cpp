// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm_batched: a row output belongs to one product; groups have an epilogue each.
#include <hone/batched.hpp>

hone::status products(const float* a, const float* b, float* c, float* sums) {
#ifdef HONE_COMPILES
    const auto epilogue = hone::scale(sums);
#else
    const auto epilogue = hone::row_sum(sums);
#endif
    return hone::gemm_batched(hone::batch(hone::row_major(a, 2, 2), 3), hone::row_major(b, 2, 2),
                              hone::batch(hone::row_major(c, 2, 2), 3), epilogue);
}
