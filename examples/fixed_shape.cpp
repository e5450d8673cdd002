// SPDX-License-Identifier: BSL-1.0
// A shape that is known when the program is compiled: a thousand products of 4 x 4 by a kernel made for them. The numbers
// are those of hone::gemm.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

int main() {
    constexpr std::size_t count = 1000;
    std::vector<float> lefts(16 * count), rights(16 * count), products(16 * count), d(16 * count);
    for (std::size_t i = 0; i < lefts.size(); ++i) lefts[i] = static_cast<float>(static_cast<int>(i % 23) - 11) / 70.0f;
    for (std::size_t i = 0; i < rights.size(); ++i) rights[i] = static_cast<float>(static_cast<int>(i % 19) - 9) / 13.0f;

    const hone::fixed_gemm<hone::shape{4, 4, 4}, hone::rows::dense> multiply;  // chooses the kernel for this CPU
    for (std::size_t i = 0; i < count; ++i) {
        multiply(&lefts[16 * i], &rights[16 * i], &products[16 * i]);          // one indirect call, nothing checked
    }

    for (std::size_t i = 0; i < count; ++i) {
        const auto x = hone::row_major(&lefts[16 * i], 4, 4), y = hone::row_major(&rights[16 * i], 4, 4);
        if (!hone::gemm(x, y, hone::row_major(&d[16 * i], 4, 4)).ok()) return 1;
    }
    // The same with every argument checked, on part of larger matrices.
    const auto x = hone::row_major(lefts.data(), 4, 4, 20), y = hone::row_major(rights.data(), 4, 4, 30);
    hone::status s = hone::gemm<hone::shape{4, 4, 4}>(x, y, hone::row_major(products.data(), 4, 4));
    if (s.ok()) s = hone::gemm(x, y, hone::row_major(d.data(), 4, 4));
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    const bool same = std::memcmp(products.data(), d.data(), products.size() * sizeof(float)) == 0;
    std::puts(same ? "a kernel of the shape and hone::gemm: the same bits" : "DIFFERENT BITS");
    return same ? 0 : 1;
}
