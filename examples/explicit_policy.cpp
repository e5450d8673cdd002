// SPDX-License-Identifier: BSL-1.0
// Everything fixed at compile time: instruction set, tile, blocks. hone::gemm<fixed> instantiates nothing else, and a
// field that breaks a rule does not compile. The numbers are those of every other policy.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

// Rows of 16 floats are two AVX2 registers: six rows, a row of B and a broadcast of A take 15 of the 16 there are.
#if defined(__x86_64__)
constexpr hone::policy fixed{.isa = hone::isa::avx2, .tile = {6, 16}, .block = {.mc = 72, .kc = 256, .nc = 4080}};
#else
constexpr hone::policy fixed{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.mc = 72, .kc = 256, .nc = 4080}};
#endif
static_assert(hone::validate<fixed>());

int main() {
    const hone::index_t m = 100, n = 80, k = 600;
    std::vector<float> a(100 * 600), b(600 * 80), any(100 * 80), c(100 * 80), bias(80, 0.5f);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 23) - 11) / 7.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 19) - 9) / 13.0f;
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto stages = hone::bias(bias) | hone::relu;

    if (!hone::available(fixed.isa)) {
        std::printf("this machine has no %s\n", hone::isa_name(fixed.isa));
        return 0;
    }
    const hone::status s1 = hone::gemm<fixed>(va, vb, hone::row_major(c.data(), m, n), stages);

    // The same value as an argument, where the choice is made at run time: scalar runs everywhere.
    hone::policy chosen;
    chosen.isa = hone::isa::scalar;
    const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k}, chosen, stages);
    const hone::status s2 = plan ? plan->run(va, vb, hone::row_major(any.data(), m, n), stages) : plan.status();
    if (!s1.ok() || !s2.ok()) {
        std::puts((s1.ok() ? s2 : s1).message().c_str());
        return 1;
    }
    const bool same = std::memcmp(c.data(), any.data(), c.size() * sizeof(float)) == 0;
    std::printf("%s and scalar: %s\n", hone::isa_name(fixed.isa), same ? "the same bits" : "DIFFERENT BITS");
    return same ? 0 : 1;
}
