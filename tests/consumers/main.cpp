// SPDX-License-Identifier: BSL-1.0
// A consumer's program: one product, checked. Says which instruction set ran.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

int main() {
    const hone::index_t m = 21, n = 37, k = 50;
    std::vector<float> a(21 * 50), b(50 * 37), c(21 * 37), bias(37);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 5;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 5) - 2;
    const hone::status s = hone::gemm(hone::row_major(a.data(), m, k), hone::row_major(b.data(), k, n),
                                      hone::row_major(c.data(), m, n), hone::bias(bias) | hone::relu);
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    int wrong = 0;
    for (std::size_t i = 0; i < 21; ++i) {
        for (std::size_t j = 0; j < 37; ++j) {
            float sum = bias[j];
            for (std::size_t p = 0; p < 50; ++p) sum += a[i * 50 + p] * b[p * 37 + j];  // whole numbers: exact
            const float expected = sum > 0 ? sum : 0;
            if (!(c[i * 37 + j] == expected)) ++wrong;
        }
    }
    std::printf("%s: %d of %zu elements wrong\n", hone::isa_name(hone::active_isa()), wrong, c.size());
    return wrong == 0 ? 0 : 1;
}
