// SPDX-License-Identifier: BSL-1.0
// What one unit decides, and the bits it computes, for every instruction set whose numbers do not follow the unit's
// flags: flags.sh compares what this prints under several flags.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

namespace {

using hone::index_t;

unsigned long long hash(const std::vector<float>& v) {
    unsigned long long h = 0xCBF29CE484222325ull;
    for (float x : v) {
        unsigned bits = 0;
        __builtin_memcpy(&bits, &x, sizeof bits);
        h = (h ^ bits) * 0x100000001B3ull;
    }
    return h;
}

std::vector<float> values(index_t count, unsigned seed) {
    std::vector<float> v(static_cast<std::size_t>(count));
    for (float& x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<float>(static_cast<int>(seed >> 8 & 0xFFFF) - 0x8000) * 0x1.3p-13f;
    }
    return v;
}

}  // namespace

int main() {
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        if (id == hone::isa::native || !hone::available(id)) continue;
        const auto& list = hone::detail::gemm_kernels<float>(id);
        for (int r = 0; r < list.count; ++r) {
            const auto& k = list.row[r];
            std::printf("%s tile %d x %d, lanes %d, panel %d\n", hone::isa_name(k.isa), k.mr, k.nr, k.lanes, k.panel);
        }
        for (index_t size : {5, 64, 107, 300}) {
            const auto a = values(size * size, 1), b = values(size * size, 2);
            std::vector<float> c(a.size());
            const auto stages = hone::gelu | hone::map([](auto& x, auto) { x = x * 1.5f + 0.1f; });
            const hone::gemm_desc desc{.m = size, .n = size, .k = size};
            const auto plan = hone::plan(desc, hone::policy{.isa = id}, stages);
            if (!plan || !plan->run(hone::row_major(a.data(), size, size), hone::row_major(b.data(), size, size),
                                    hone::row_major(c.data(), size, size), stages).ok())
                return 1;
            std::printf("%s; packed %lld; bits %016llx\n", plan->explain().text().c_str(),
                        static_cast<long long>(plan->packed_bytes()), hash(c));
        }
        for (index_t groups : {index_t{1}, index_t{40}}) {
            const auto in = values(9 * 9 * 40, 3), f = values(40 * (40 / groups) * 9, 4);
            std::vector<float> out(9 * 9 * 40);
            const auto vi = hone::nhwc<const float>(in.data(), 1, 9, 9, 40);
            const auto vf = hone::oihw<const float>(f.data(), 40 / groups, 40 / groups, 3, 3, groups);
            const auto vo = hone::nhwc(out.data(), 1, 9, 9, 40);
            const auto plan = hone::plan(hone::describe(vi, vf, vo, {.pad = {1, 1, 1, 1}}), hone::policy{.isa = id});
            if (!plan || !plan->run(vi, vf, vo).ok()) return 1;
            std::printf("%s; packed %lld; bits %016llx\n", plan->explain().text().c_str(),
                        static_cast<long long>(plan->packed_bytes()), hash(out));
        }
    }
    return 0;
}
