// SPDX-License-Identifier: BSL-1.0
// What a unit pays for hone: one dispatched f32 product with bias and ReLU.
#include <hone/gemm.hpp>

hone::status layer(const float* a, const float* b, float* c, const float* v, hone::index_t m, hone::index_t n, hone::index_t k) {
    return hone::gemm(hone::row_major(a, m, k), hone::row_major(b, k, n), hone::row_major(c, m, n), hone::bias(v) | hone::relu);
}
