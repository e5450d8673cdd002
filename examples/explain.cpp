// SPDX-License-Identifier: BSL-1.0
// What hone found on this machine, and what it decided for a product and a convolution, as data and as text.
// HONE_ISA=avx2 in the environment caps the choice; a name that does not exist is reported.
#include <hone/hone.hpp>

#include <cstdio>

namespace {

hone::expected<hone::explanation> decisions() {
    const auto product = hone::plan(hone::gemm_desc{.m = 512, .n = 768, .k = 3072});
    if (!product) return product.status();             // "k = -1 must be at least 0"
    const hone::explanation why = product->explain();  // why.isa, why.tile, why.block, why.workers, …
    std::puts(why.text().c_str());                     // "gemm f32 avx512 (best here), tile 8x48 (covers …"

    const auto depthwise = hone::plan(hone::conv_desc{.n = 1, .h = 56, .w = 56, .ic = 144, .oc = 144, .kh = 3, .kw = 3,
                                                      .groups = 144, .window = {.pad = {1, 1, 1, 1}}});
    if (!depthwise) return depthwise.status();
    std::puts(depthwise->explain().text().c_str());

    return why;
}

}  // namespace

int main() {
    const hone::machine_explanation machine = hone::explain();
    std::puts(machine.text().c_str());
    std::printf("L1 %lld, L2 %lld, L3 %lld bytes\n", static_cast<long long>(machine.cache.l1d.bytes),
                static_cast<long long>(machine.cache.l2.bytes), static_cast<long long>(machine.cache.l3.bytes));
    if (!machine.environment.ok()) std::puts(machine.environment.message().c_str());

    const auto why = decisions();
    if (!why) std::puts(why.status().message().c_str());

    // A plan that cannot be is a status that names the argument, its value and the rule.
    const auto none = hone::plan(hone::gemm_desc{.m = 512, .n = 768, .k = -1});
    std::puts(none.status().message().c_str());
    return why && why->isa == machine.isa && none.status().argument == hone::argument::k ? 0 : 1;
}
