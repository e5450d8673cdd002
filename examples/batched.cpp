// SPDX-License-Identifier: BSL-1.0
// Many products in one call. Attention: the heads of a layer, which lie beside each other in the rows of one tensor. A mixture
// of experts: tokens sorted by expert, so that each has some rows, few, many or none, and weights of its own.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using hone::index_t;

std::vector<float> pattern(index_t count, int period) {
    std::vector<float> v(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(static_cast<int>(i) % period - period / 2) / 16.0f;
    return v;
}

// q and k (tokens, heads, 64), scores (heads, tokens, tokens).
hone::status attention_scores(const float* q, const float* k, float* scores, hone::index_t tokens, hone::index_t heads) {
    const auto queries = hone::batch(hone::row_major(q, tokens, 64, heads * 64), heads, 64);  // the next head is 64 further
    const auto keys = hone::batch(hone::col_major(k, 64, tokens, heads * 64), heads, 64);     // transposed
    const auto result = hone::batch(hone::row_major(scores, tokens, tokens), heads);          // one behind the other
    return hone::gemm_batched(queries, keys, result, hone::scale(0.125));
}

// Rows first[e] to first[e + 1] of x and y belong to expert e.
struct expert {
    hone::matrix_view<const float> weights;
    const float* bias;
};
hone::status mixture(const std::vector<expert>& experts, const std::vector<hone::index_t>& first,
                     hone::matrix_view<const float> x, hone::matrix_view<float> y) {
    using stages = decltype(hone::bias(experts[0].bias) | hone::gelu);
    std::vector<hone::gemm_group<float, stages>> groups;
    for (std::size_t e = 0; e < experts.size(); ++e) {
        const hone::index_t rows = first[e + 1] - first[e];
        groups.push_back({hone::row_major(x.at(first[e], 0), rows, x.cols), experts[e].weights,
                          hone::row_major(y.at(first[e], 0), rows, y.cols), hone::bias(experts[e].bias) | hone::gelu});
    }
    return hone::gemm_grouped(groups);
}

}  // namespace

int main() {
    const index_t tokens = 13, heads = 4, row = heads * 64;
    const auto q = pattern(tokens * row, 17), k = pattern(tokens * row, 23);
    std::vector<float> scores(static_cast<std::size_t>(heads * tokens * tokens));
    hone::status s = attention_scores(q.data(), k.data(), scores.data(), tokens, heads);

    const auto w = pattern(3 * 40 * 56, 29), v = pattern(3 * 56, 31), x_data = pattern(tokens * 40, 13);
    std::vector<float> y(static_cast<std::size_t>(tokens * 56)), one(y.size());
    std::vector<expert> list;
    for (int e = 0; e < 3; ++e) list.push_back({hone::row_major(w.data() + e * 40 * 56, 40, 56), v.data() + e * 56});
    const auto x = hone::row_major(x_data.data(), tokens, 40);
    const std::vector<index_t> first{0, 2, 2, tokens};  // the second expert has no token
    if (s.ok()) s = mixture(list, first, x, hone::row_major(y.data(), tokens, 56));

    double worst = 0;
    for (index_t h = 0; h < heads; ++h) {
        for (index_t i = 0; i < tokens * tokens; ++i) {
            double sum = 0;
            for (index_t p = 0; p < 64; ++p) {
                sum += static_cast<double>(q[static_cast<std::size_t>(i / tokens * row + h * 64 + p)]) *
                       k[static_cast<std::size_t>(i % tokens * row + h * 64 + p)];
            }
            const double off = std::fabs(scores[static_cast<std::size_t>(h * tokens * tokens + i)] - sum / 8);
            if (!(off <= worst)) worst = off;
        }
    }
    // One expert after the other: the same bits.
    for (std::size_t e = 0; s.ok() && e < list.size(); ++e) {
        const index_t rows = first[e + 1] - first[e];
        s = hone::gemm(hone::row_major(x.at(first[e], 0), rows, 40), list[e].weights,
                       hone::row_major(one.data() + first[e] * 56, rows, 56), hone::bias(list[e].bias) | hone::gelu);
    }
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    const bool same = std::memcmp(one.data(), y.data(), one.size() * sizeof(float)) == 0;
    std::printf("scores differ by at most %.1e from double precision; experts together and one by one: %s\n", worst,
                same ? "the same bits" : "DIFFERENT BITS");
    return same && worst < 1e-5 ? 0 : 1;
}
