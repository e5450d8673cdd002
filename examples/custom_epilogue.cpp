// SPDX-License-Identifier: BSL-1.0
// A lambda inside the vector kernel: a quantity per column, a comparison and hone's exp, with no compile flags and no
// attributes. The plan says which kernel it became part of.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    const hone::index_t m = 33, n = 50, k = 70;
    std::vector<float> a(33 * 70), b(70 * 50), c(33 * 50), temperature(50);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 13) - 6) * 0.05f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 7) - 3) * 0.1f;
    for (std::size_t i = 0; i < temperature.size(); ++i) temperature[i] = 1.0f + 0.1f * static_cast<float>(i);

    const float ceiling = 20.0f;
    const float* t = temperature.data();
    const auto softened = hone::map([=](auto& x, auto at) {
        x = hone::exp(x / at.cols(t));                       // one temperature per column of C
        x = hone::min(x, ceiling);
    });

    const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k}, hone::policy{}, softened);
    if (!plan) {
        std::puts(plan.status().message().c_str());
        return 1;
    }
    const hone::status s = plan->run(hone::row_major(a.data(), m, k), hone::row_major(b.data(), k, n),
                                     hone::row_major(c.data(), m, n), softened);
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }

    double worst = 0;
    for (std::size_t i = 0; i < 33; ++i) {
        for (std::size_t j = 0; j < 50; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < 70; ++p) sum += static_cast<double>(a[i * 70 + p]) * static_cast<double>(b[p * 50 + j]);
            const double expected = std::fmin(std::exp(sum / static_cast<double>(t[j])), static_cast<double>(ceiling));
            const double off = std::fabs(static_cast<double>(c[i * 50 + j]) - expected) / expected;
            if (!(off <= worst)) worst = off;
        }
    }
    std::printf("largest relative difference from double precision: %.1e\n", worst);
    std::puts(plan->explain().text().c_str());
    return worst < 1e-5 ? 0 : 1;
}
