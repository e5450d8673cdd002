// SPDX-License-Identifier: BSL-1.0
// A lambda inside the vector kernel: a quantity per column, hone's exp and a bound, with no compile flags and no
// attributes, between stages that hone brings.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    const hone::index_t m = 33, n = 50, k = 70;
    std::vector<float> a_data(33 * 70), b_data(70 * 50), c_data(33 * 50), residual_data(33 * 50), per_column(50);
    for (std::size_t i = 0; i < a_data.size(); ++i) a_data[i] = (static_cast<float>(i % 13) - 6) * 0.1f;
    for (std::size_t i = 0; i < b_data.size(); ++i) b_data[i] = (static_cast<float>(i % 7) - 3) * 0.1f;
    for (std::size_t i = 0; i < residual_data.size(); ++i) residual_data[i] = static_cast<float>(i % 11);
    for (std::size_t i = 0; i < per_column.size(); ++i) per_column[i] = 0.1f + 0.1f * static_cast<float>(i);
    const auto a = hone::row_major(a_data.data(), m, k), b = hone::row_major(b_data.data(), k, n);
    const auto c = hone::row_major(c_data.data(), m, n), residual = hone::row_major(residual_data.data(), m, n);
    const float* temperature = per_column.data();

    const float ceiling = 20.0f;
    const auto softened = hone::map([=](auto& x, auto at) {
        x = hone::exp(x / at.cols(temperature));  // a vector with one temperature per column of C
        x = hone::min(x, ceiling);
    });
    hone::status s = hone::gemm(a, b, c, hone::scale(0.5f) | softened | hone::add(residual));

    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    double worst = 0;
    int bounded = 0;
    for (hone::index_t i = 0; i < m; ++i) {
        for (hone::index_t j = 0; j < n; ++j) {
            double sum = 0;
            for (hone::index_t p = 0; p < k; ++p) sum += static_cast<double>(*a.at(i, p)) * *b.at(p, j);
            const double power = std::exp(0.5 * sum / temperature[j]);
            if (power > ceiling) ++bounded;
            const double expected = std::fmin(power, ceiling) + *residual.at(i, j);
            const double off = std::fabs(*c.at(i, j) - expected) / expected;
            if (!(off <= worst)) worst = off;
        }
    }
    std::printf("%s: largest relative difference from double precision %.1e; %d of %d reach the ceiling\n",
                hone::isa_name(hone::explain().isa), worst, bounded, static_cast<int>(m * n));
    return worst < 1e-5 && bounded > 0 ? 0 : 1;
}
