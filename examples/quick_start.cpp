// SPDX-License-Identifier: BSL-1.0
// One layer of a network: C = relu(A * B + bias), on whatever CPU this is.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

int main() {
    const hone::index_t m = 64, n = 256, k = 128;
    std::vector<float> a(64 * 128, 0.01f), b(128 * 256, 0.5f), c(64 * 256), bias(256, -0.25f);
    const hone::status s = hone::gemm(hone::row_major(a.data(), m, k), hone::row_major(b.data(), k, n),
                                      hone::row_major(c.data(), m, n), hone::bias(bias) | hone::relu);
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    std::printf("c(0, 0) = %.4f, expected 128 * 0.01 * 0.5 - 0.25 = 0.3900\n", static_cast<double>(c[0]));
    std::puts(hone::explain().text().c_str());
    return c[0] > 0.3899f && c[0] < 0.3901f ? 0 : 1;
}
