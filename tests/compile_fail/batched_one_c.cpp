// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::gemm_batched: C must be a batch_view or a pointer_batch, as every product has its own.
#include <hone/batched.hpp>

hone::status products(const float* a, const float* b, float* c) {
#ifdef HONE_COMPILES
    const auto out = hone::batch(hone::row_major(c, 2, 2), 3);
#else
    const auto out = hone::row_major(c, 2, 2);
#endif
    return hone::gemm_batched(hone::batch(hone::row_major(a, 2, 2), 3), hone::row_major(b, 2, 2), out);
}
