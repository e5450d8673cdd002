// SPDX-License-Identifier: BSL-1.0
// The feed-forward layer of a transformer, as in Llama: y = (silu(x * W1) * (x * W3)) * W2. W1 and W3 lie side by side,
// so that one product computes both, and its epilogue leaves their gated product: the two halves are never written.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    const hone::index_t tokens = 5, width = 64, hidden = 172;
    std::vector<float> x_data(5 * 64), w13_data(64 * 344), w2_data(172 * 64), h_data(5 * 172), y_data(5 * 64);
    for (std::size_t i = 0; i < x_data.size(); ++i) x_data[i] = (static_cast<float>(i % 17) - 8) / 8.0f;
    for (std::size_t i = 0; i < w13_data.size(); ++i) w13_data[i] = (static_cast<float>(i % 29) - 14) / 60.0f;
    for (std::size_t i = 0; i < w2_data.size(); ++i) w2_data[i] = (static_cast<float>(i % 13) - 6) / 40.0f;
    const auto x = hone::row_major(x_data.data(), tokens, width), h = hone::row_major(h_data.data(), tokens, hidden);
    const auto w13 = hone::row_major(w13_data.data(), width, 2 * hidden);
    const auto w2 = hone::row_major(w2_data.data(), hidden, width);
    const auto y = hone::row_major(y_data.data(), tokens, width);

    hone::status s = hone::gemm(x, w13, h, hone::gated(hone::silu));  // h = silu(x * W1) * (x * W3)
    if (s.ok()) s = hone::gemm(h, w2, y);

    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    double worst = 0, largest = 0;
    for (hone::index_t t = 0; t < tokens; ++t) {
        std::vector<double> gate;
        for (hone::index_t j = 0; j < hidden; ++j) {
            double w1 = 0, w3 = 0;
            for (hone::index_t p = 0; p < width; ++p) {
                w1 += static_cast<double>(*x.at(t, p)) * *w13.at(p, j);
                w3 += static_cast<double>(*x.at(t, p)) * *w13.at(p, hidden + j);
            }
            gate.push_back(w1 / (1 + std::exp(-w1)) * w3);
        }
        for (hone::index_t i = 0; i < width; ++i) {
            double sum = 0;
            for (hone::index_t j = 0; j < hidden; ++j) {
                sum += gate[static_cast<std::size_t>(j)] * *w2.at(j, i);
            }
            largest = std::fmax(largest, std::fabs(sum));
            const double off = std::fabs(*y.at(t, i) - sum);
            if (!(off <= worst)) worst = off;
        }
    }
    std::printf("largest |y| %.3f, largest difference from double precision %.1e\n", largest, worst);
    return worst < 1e-5 * largest ? 0 : 1;
}
