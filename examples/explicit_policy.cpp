// SPDX-License-Identifier: BSL-1.0
// Everything fixed at compile time: instruction set, tile, blocks. hone::gemm<p> instantiates nothing else, and a field
// that breaks a rule does not compile. The numbers are those of every other policy.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

int main() {
    std::vector<float> a_data(100 * 600), b_data(600 * 80), c_data(100 * 80), scalar_data(100 * 80), v(80, 0.5f);
    for (std::size_t i = 0; i < a_data.size(); ++i) a_data[i] = (static_cast<float>(i % 23) - 11) / 70.0f;
    for (std::size_t i = 0; i < b_data.size(); ++i) b_data[i] = (static_cast<float>(i % 19) - 9) / 13.0f;
    const auto a = hone::row_major(a_data.data(), 100, 600), b = hone::row_major(b_data.data(), 600, 80);
    const auto c = hone::row_major(c_data.data(), 100, 80);

#if defined(__x86_64__)
    // Rows of 16 floats are two AVX2 registers: six rows, a row of B and a broadcast of A take 15 of the 16 there are.
    constexpr hone::policy p{.isa = hone::isa::avx2, .tile = {6, 16}, .block = {.mc = 72, .kc = 256, .nc = 4080}};
    hone::status s = hone::gemm<p>(a, b, c, hone::bias(v) | hone::gelu);
#elif defined(__aarch64__)
    constexpr hone::policy p{.isa = hone::isa::neon, .tile = {6, 16}, .block = {.mc = 72, .kc = 256, .nc = 4080}};
    hone::status s = hone::gemm<p>(a, b, c, hone::bias(v) | hone::gelu);
#else
    constexpr hone::policy p{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.mc = 72, .kc = 256, .nc = 4080}};
    hone::status s = hone::gemm<p>(a, b, c, hone::bias(v) | hone::gelu);
#endif
    static_assert(hone::validate<p>());
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return s.code == hone::code::isa_unavailable ? 0 : 1;
    }

    // The same type of value as an argument, where the choice is made at run time: scalar runs everywhere.
    const hone::policy chosen{.isa = hone::isa::scalar};
    const auto plan = hone::plan(hone::describe(a, b, c), chosen, hone::bias(v) | hone::gelu);
    const auto d = hone::row_major(scalar_data.data(), 100, 80);
    s = plan ? plan->run(a, b, d, hone::bias(v) | hone::gelu) : plan.status();
    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    const bool same = std::memcmp(c_data.data(), scalar_data.data(), c_data.size() * sizeof(float)) == 0;
    std::printf("%s and scalar: %s\n", hone::isa_name(p.isa), same ? "the same bits" : "DIFFERENT BITS");
    return same ? 0 : 1;
}
