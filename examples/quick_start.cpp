// SPDX-License-Identifier: BSL-1.0
// One layer of a network, C = relu(A * B + bias), on whatever CPU this is: 128 * 1.0 * 0.5 + 1.0 everywhere.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

int main() {
    std::vector<float> a(64 * 128, 1.0f), b(128 * 256, 0.5f), c(64 * 256), bias(256, 1.0f);
    hone::status s = hone::gemm(hone::row_major(a.data(), 64, 128), hone::row_major(b.data(), 128, 256),
                                hone::row_major(c.data(), 64, 256), hone::bias(bias) | hone::relu);
    if (!s.ok()) std::puts(s.message().c_str());  // "a.cols = 127 must equal 128"
    std::puts(hone::explain().text().c_str());    // "isa avx512; cpu sse2 … avx512_bf16"
    return c == std::vector<float>(64 * 256, 65.0f) ? 0 : 1;
}
