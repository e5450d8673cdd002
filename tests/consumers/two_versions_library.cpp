// SPDX-License-Identifier: BSL-1.0
// A shared library that uses hone and says nothing of it in its interface.
#include <hone/hone.hpp>

#include <vector>

// The number that packed weights got; -1: the product is wrong.
extern "C" int packed_by_library();
extern "C" int packed_by_library() {
    const hone::index_t m = 9, n = 20, k = 31;
    std::vector<float> a(9 * 31), b(31 * 20), c(9 * 20), d(9 * 20);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k});
    if (!plan) return -1;
    hone::aligned_buffer weights(static_cast<std::size_t>(plan->packed_bytes()));
    if (!plan->pack(vb, {weights.data(), weights.size()}).ok()) return -1;
    const auto packed = hone::packed_view::open({weights.data(), weights.size()});
    if (!packed || !packed->verify().ok()) return -1;
    if (!plan->run(va, *packed, hone::row_major(c.data(), m, n)).ok()) return -1;
    const auto stage = hone::map([](auto& x, auto) { x = x + 1; });
    if (!hone::gemm(va, vb, hone::row_major(d.data(), m, n), stage).ok()) return -1;
    for (std::size_t i = 0; i < 9; ++i) {
        for (std::size_t j = 0; j < 20; ++j) {
            float sum = 0;
            for (std::size_t p = 0; p < 31; ++p) sum += a[i * 31 + p] * b[p * 20 + j];  // whole numbers: exact
            if (!(c[i * 20 + j] == sum) || !(d[i * 20 + j] == sum + 1)) return -1;
        }
    }
    return static_cast<int>(packed->header().version);
}
