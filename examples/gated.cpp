// SPDX-License-Identifier: BSL-1.0
// The feed-forward layer of a transformer, as in Llama: y = (silu(x * W1) * (x * W3)) * W2. W1 and W3 lie side by side,
// so that one product computes both, and its epilogue leaves their gated product: the two halves are never written.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    const hone::index_t tokens = 5, width = 64, hidden = 172;
    std::vector<float> x(5 * 64), w13(64 * 344), w2(172 * 64), h(5 * 172), y(5 * 64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 17) - 8) / 8.0f;
    for (std::size_t i = 0; i < w13.size(); ++i) w13[i] = static_cast<float>(static_cast<int>(i % 29) - 14) / 60.0f;
    for (std::size_t i = 0; i < w2.size(); ++i) w2[i] = static_cast<float>(static_cast<int>(i % 13) - 6) / 40.0f;

    const hone::status s1 = hone::gemm(hone::row_major(x.data(), tokens, width),
                                       hone::row_major(w13.data(), width, 2 * hidden),
                                       hone::row_major(h.data(), tokens, hidden), hone::gated(hone::silu));
    const hone::status s2 = hone::gemm(hone::row_major(h.data(), tokens, hidden),
                                       hone::row_major(w2.data(), hidden, width),
                                       hone::row_major(y.data(), tokens, width));
    if (!s1.ok() || !s2.ok()) {
        std::puts((s1.ok() ? s2 : s1).message().c_str());
        return 1;
    }

    double worst = 0, largest = 0;
    for (std::size_t t = 0; t < 5; ++t) {
        std::vector<double> gate(172);
        for (std::size_t j = 0; j < 172; ++j) {
            double w1 = 0, w3 = 0;
            for (std::size_t p = 0; p < 64; ++p) {
                w1 += static_cast<double>(x[t * 64 + p]) * static_cast<double>(w13[p * 344 + j]);
                w3 += static_cast<double>(x[t * 64 + p]) * static_cast<double>(w13[p * 344 + 172 + j]);
            }
            gate[j] = w1 / (1 + std::exp(-w1)) * w3;
        }
        for (std::size_t i = 0; i < 64; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < 172; ++j) sum += gate[j] * static_cast<double>(w2[j * 64 + i]);
            largest = std::fmax(largest, std::fabs(sum));
            const double off = std::fabs(static_cast<double>(y[t * 64 + i]) - sum);
            if (!(off <= worst)) worst = off;
        }
    }
    std::printf("largest |y| %.3f, largest difference from double precision %.1e\n", largest, worst);
    return worst < 1e-5 * largest ? 0 : 1;
}
