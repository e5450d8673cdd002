// SPDX-License-Identifier: BSL-1.0
// A unit that includes everything and uses every door. Compiled several times with other flags and other names, and
// linked.
#include <hone/hone.hpp>

#include <array>
#include <vector>

#ifndef HONE_TEST_UNIT
#define HONE_TEST_UNIT unit
#endif

// Bits that strict numbers promise to be the same in every unit, whatever its flags: an accumulated hash of them.
unsigned long long HONE_TEST_UNIT();
unsigned long long HONE_TEST_UNIT() {
    unsigned long long hash = 0;
    std::size_t nans = 0;  // told by their bits: -ffast-math takes isnan() away
    const auto add = [&](const float* p, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            unsigned bits = 0;
            __builtin_memcpy(&bits, p + i, sizeof bits);
            if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
                ++nans;
                bits = 0x7FC00000u;  // which NaN is not promised
            }
            hash = (hash ^ bits) * 0x100000001B3ull;
        }
    };
    constexpr hone::index_t m = 7, n = 35, k = 300;
    std::vector<float> a(m * k), b(k * n), c(m * n), bias(n, 0.25f);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) - 8.125f;
    // No step rounds: -ffast-math makes a product of a division and would give other operands.
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 149797 % 4194301) * 0x1p-20f - 2;
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto vc = hone::row_major(c.data(), m, n);

    // The best instruction set but native, whose numbers follow the unit's flags.
    const hone::isa id = hone::explain().best == hone::isa::native ? hone::isa::scalar : hone::explain().best;
    // What -ffast-math fuses and reorders.
    const auto mixed = [](auto& x, auto) __attribute__((always_inline)) { x = x * 0.3f * 0.7f - x * 0.11f + 1.0f; };
    const auto stages = hone::bias(bias) | hone::gelu | hone::map(mixed);
    const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k}, hone::policy{.isa = id}, stages);
    if (!plan || !plan->run(va, vb, vc, stages).ok()) return 0;
    add(c.data(), c.size());
    constexpr hone::policy fixed{.isa = hone::isa::scalar, .tile = {4, 4}};
    if (!hone::gemm<fixed>(va, vb, vc, hone::bias(bias) | hone::relu).ok()) return 0;
#ifndef HONE_TEST_WITHOUT_SCALAR
    add(c.data(), c.size());
#endif
    if (nans != 0) return 0;
#ifndef HONE_TEST_FINITE
    // Infinity in a row, NaN in the next: both come through the sums and relu.
    const unsigned infinity = 0x7F800000u, nan = 0x7FC00000u;
    const float kept[2] = {a[0], a[k]};
    __builtin_memcpy(&a[0], &infinity, sizeof infinity);
    __builtin_memcpy(&a[k], &nan, sizeof nan);
    const auto bounds = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k}, hone::policy{.isa = id}, hone::relu);
    if (!bounds || !bounds->run(va, vb, vc, hone::relu).ok()) return 0;
    add(c.data(), c.size());
    if (nans != n) return 0;
    a[0] = kept[0];
    a[k] = kept[1];
#endif
    if (!hone::gemm(va, vb, vc).ok()) return 0;
    if (!hone::gemm_batched(hone::batch(va, 1), vb, hone::batch(vc, 1), stages).ok()) return 0;
    if (!hone::gemm_grouped(std::array{hone::gemm_group{va, vb, vc}}).ok()) return 0;

    const auto image = hone::nhwc<const float>(a.data(), 1, 10, 10, 21);
    const auto filter = hone::oihw<const float>(b.data(), 11, 21, 3, 3);
    std::vector<float> out(10 * 10 * 11);
    const auto output = hone::nhwc(out.data(), 1, 10, 10, 11);
    const hone::conv_window window{.pad = {1, 1, 1, 1}};
    const auto conv = hone::plan(hone::describe(image, filter, output, window), hone::policy{.isa = id});
    if (!conv) return 0;
    hone::aligned_buffer weights(static_cast<std::size_t>(conv->packed_bytes()));
    if (!conv->pack(filter, {weights.data(), weights.size()}).ok()) return 0;
    const auto packed = hone::packed_view::open({weights.data(), weights.size()});
    if (!packed || !packed->verify().ok() || !conv->run(image, *packed, output).ok()) return 0;
    add(out.data(), out.size());
    if (!hone::conv(image, filter, output, window, hone::relu).ok()) return 0;
    hone::release_scratch();
    return hash | 1;
}
