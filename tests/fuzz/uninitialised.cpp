// SPDX-License-Identifier: BSL-1.0
// Public report B01 under MemorySanitizer: C is memory that nobody has written. With beta = 0 nothing may depend on it
// and every element of C must be written. With an argument beta is 1, and MemorySanitizer must say so.
#include <hone/hone.hpp>

#include <sanitizer/msan_interface.h>

#include <cstdio>
#include <memory>

namespace {

using hone::index_t;

// What was never written, or 0 where all of it was written, to 0 where `zero`.
template <class T>
index_t unwritten(const T* p, index_t count, bool zero) {
    const auto first = __msan_test_shadow(p, static_cast<std::size_t>(count) * sizeof(T));
    if (first >= 0) return first + 1;
    for (index_t i = 0; zero && i < count; ++i) {
        if (static_cast<float>(p[i]) != 0) return i + 1;
    }
    return 0;
}

template <class C, class E>
bool product(hone::isa id, index_t m, index_t n, index_t k, int kc, double beta, const E& stages) {
    const std::unique_ptr<float[]> a(new float[static_cast<std::size_t>(m * k)]());
    const std::unique_ptr<float[]> b(new float[static_cast<std::size_t>(k * n)]());
    const std::unique_ptr<C[]> c(new C[static_cast<std::size_t>(m * n)]);
    __msan_poison(c.get(), static_cast<std::size_t>(m * n) * sizeof(C));
    const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k, .beta = beta},
                                 hone::policy{.isa = id, .block = {.kc = kc}}, stages);
    const auto va = hone::row_major<const float>(a.get(), m, k), vb = hone::row_major<const float>(b.get(), k, n);
    if (!plan || !plan->run(va, vb, hone::row_major(c.get(), m, n), stages).ok()) return false;
    const index_t at = unwritten(c.get(), m * n, std::is_same_v<E, hone::identity_stage>);
    if (at != 0) {
        std::printf("%s %d x %d x %d kc %d: byte or element %d of C\n", hone::isa_name(id), static_cast<int>(m),
                    static_cast<int>(n), static_cast<int>(k), kc, static_cast<int>(at - 1));
    }
    return at == 0;
}

bool convolution(hone::isa id, index_t channels, index_t groups) {
    const index_t h = 6, w = 5;
    const std::unique_ptr<float[]> in(new float[static_cast<std::size_t>(h * w * channels)]());
    const std::unique_ptr<float[]> filter(new float[static_cast<std::size_t>(channels * 9 * (channels / groups))]());
    const std::unique_ptr<float[]> out(new float[static_cast<std::size_t>(h * w * channels)]);
    __msan_poison(out.get(), static_cast<std::size_t>(h * w * channels) * sizeof(float));
    const auto vi = hone::nhwc<const float>(in.get(), 1, h, w, channels);
    const auto vf = hone::oihw<const float>(filter.get(), channels / groups, channels / groups, 3, 3, groups);
    const auto vo = hone::nhwc(out.get(), 1, h, w, channels);
    for (int kc : {0, 7}) {
        const auto plan = hone::plan(hone::describe(vi, vf, vo, {.pad = {1, 1, 1, 1}}),
                                     hone::policy{.isa = id, .block = {.kc = kc}});
        if (!plan || !plan->run(vi, vf, vo).ok()) return false;
        const index_t at = unwritten(out.get(), h * w * channels, true);
        if (at != 0) {
            std::printf("%s convolution of %d channels: %d\n", hone::isa_name(id), static_cast<int>(channels),
                        static_cast<int>(at - 1));
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int count, char**) {
    const double beta = count > 1 ? 1 : 0;
    bool right = true;
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        if (!hone::available(id)) continue;
        for (index_t m : {1, 5, 17}) {
            for (index_t n : {1, 5, 16, 49, 65}) {
                for (int kc : {0, 2}) {
                    right &= product<float>(id, m, n, 5, kc, beta, hone::identity);
                    right &= product<float>(id, m, n, 5, kc, beta, hone::scale(2) | hone::relu);
                    right &= product<hone::bf16>(id, m, n, 5, kc, beta, hone::gelu | hone::store_as<hone::bf16>());
                    right &= product<float>(id, m, n, 0, kc, beta, hone::identity);
                }
            }
        }
        right &= convolution(id, 3, 1) && convolution(id, 35, 1) && convolution(id, 35, 35);
    }
    std::puts(right ? "C is written and never read" : "C is read, or not written");
    return right ? 0 : 1;
}
