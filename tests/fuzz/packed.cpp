// SPDX-License-Identifier: BSL-1.0
// Any bytes as packed weights: refused with a reason, or what a plan of that layout would have packed. Headers of a
// plan, changed, and headers with a repaired checksum get past the first checks.
#include "fuzz.hpp"

namespace {

hone::packed_header header_of(const exact_memory& memory) {
    hone::packed_header h;
    std::memcpy(static_cast<void*>(&h), memory.data(), sizeof h);
    return h;
}

// What the fuzzer cannot guess: magic, version and both checksums, each repaired on request.
void repair(const exact_memory& memory, int what) {
    if (memory.size() < sizeof(hone::packed_header)) return;
    hone::packed_header h = header_of(memory);
    if (what & 1) h.magic = hone::packed_magic, h.version = hone::packed_version;
    if ((what & 2) && h.payload_bytes <= memory.size() - sizeof h) {
        const auto bytes = static_cast<std::size_t>(h.payload_bytes);
        h.payload_checksum = hone::detail::checksum(memory.data() + sizeof h, bytes);
    }
    if (what & 4) h.header_checksum = hone::detail::header_checksum(h);
    std::memcpy(memory.data(), &h, sizeof h);
}

// Whatever the payload holds, it stays inside its memory, and what is refused leaves the result alone.
template <class T, class Plan, class Run>
void try_plan(const Plan& plan, const exact_memory& memory, index_t result_elements, const Run& run) {
    if (!plan) return;
    const auto view = hone::packed_view::open(memory.span());
    FUZZ_CHECK(view);
    exact_memory result(static_cast<std::size_t>(result_elements) * sizeof(T));
    const std::vector<std::byte> before(result.data(), result.data() + result.size());
    const hone::status s = run(*plan, *view, result.as<T>());
    if (s.ok()) {
        FUZZ_CHECK(view->header().element == sizeof(T));
        FUZZ_CHECK(static_cast<std::size_t>(plan->packed_bytes()) <= memory.size());
        return;
    }
    check_refusal(s);
    FUZZ_CHECK(before.empty() || std::memcmp(before.data(), result.data(), before.size()) == 0);
}

template <class T>
void try_gemm(const exact_memory& memory, index_t n, index_t k, bool halves) {
    constexpr index_t m = 3;
    if (n < 1 || k < 1 || n > 512 || k > 512) return;
    const std::vector<T> a(static_cast<std::size_t>(m * k), T(0.5));
    const auto va = hone::row_major(a.data(), m, k);
    const hone::gemm_desc desc{.m = m, .n = n, .k = k};
    if (halves) {
        const auto gate = hone::gated(hone::silu);
        const auto run = [&](const auto& plan, const hone::packed_view& v, T* c) {
            return plan.run(va, v, hone::row_major(c, m, n / 2), gate);
        };
        try_plan<T>(hone::plan<T>(desc, hone::policy{}, gate), memory, m * (n / 2), run);
        return;
    }
    try_plan<T>(hone::plan<T>(desc), memory, m * n, [&](const auto& plan, const hone::packed_view& v, T* c) {
        return plan.run(va, v, hone::row_major(c, m, n));
    });
}

void try_conv(const exact_memory& memory, index_t groups, index_t ic, index_t oc, index_t kh, index_t kw) {
    constexpr index_t size = 5;
    for (const index_t x : {groups, ic, oc, kh, kw}) {
        if (x < 1 || x > 128) return;
    }
    if (kh * kw > 64 || groups * ic > 512 || groups * oc > 512 || kh * kw * ic > 4096) return;
    const hone::conv_desc desc{.n = 1, .h = size, .w = size, .ic = groups * ic, .oc = groups * oc, .kh = kh,
                               .kw = kw, .groups = groups, .window = {.pad = {1, 1, 1, 1}}};
    const index_t oh = hone::output_h(desc), ow = hone::output_w(desc);
    const std::vector<float> in(static_cast<std::size_t>(size * size * groups * ic), 0.5f);
    const auto run = [&](const auto& plan, const hone::packed_view& v, float* out) {
        return plan.run(hone::nhwc(in.data(), 1, size, size, groups * ic), v, hone::nhwc(out, 1, oh, ow, groups * oc));
    };
    try_plan<float>(hone::plan(desc), memory, oh * ow * groups * oc, run);
}

// Packed by a plan, for the fuzzer to change.
std::vector<std::byte> packed_by_plan(bytes_in& in) {
    const std::vector<float> weights(40 * 40 * 9, 0.25f);
    const auto pack = [](const auto& plan, const auto& b) {
        FUZZ_CHECK(plan);
        exact_memory memory(static_cast<std::size_t>(plan->packed_bytes()));
        FUZZ_CHECK(plan->pack(b, memory.span()).ok());
        return std::vector<std::byte>(memory.data(), memory.data() + memory.size());
    };
    const std::vector<double> doubles(40 * 40, 0.25);
    const int kind = in.below(6);
    const index_t x = 1 + in.below(40), y = 1 + in.below(40), taps = 1 + in.below(3);
    if (kind == 0) {
        return pack(hone::plan(hone::gemm_desc{.m = 3, .n = x, .k = y}), hone::row_major(weights.data(), y, x));
    }
    if (kind == 1) {
        const index_t n = x / 2 * 2;
        return pack(hone::plan(hone::gemm_desc{.m = 3, .n = n, .k = y}, hone::policy{}, hone::gated(hone::silu)),
                    hone::row_major(weights.data(), y, n));
    }
    if (kind == 4) {
        return pack(hone::plan<double>(hone::gemm_desc{.m = 3, .n = x, .k = y}), hone::row_major(doubles.data(), y, x));
    }
    if (kind == 5) {
        const index_t n = x / 2 * 2;
        const hone::gemm_desc desc{.m = 3, .n = n, .k = y};
        return pack(hone::plan<double>(desc, hone::policy{}, hone::gated(hone::silu)),
                    hone::row_major(doubles.data(), y, n));
    }
    const index_t ic = kind == 2 ? y : x;
    const hone::conv_desc desc{.h = 5, .w = 5, .ic = ic, .oc = x, .kh = taps, .kw = taps, .groups = kind == 2 ? 1 : x};
    return pack(hone::plan(desc), kind == 2 ? hone::oihw(weights.data(), x, y, taps, taps)
                                            : hone::oihw(weights.data(), 1, 1, taps, taps, x));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bytes_in in(data, size);
    const int what = in.byte(), extra = in.byte();
    std::vector<std::byte> bytes;
    if (what & 8) {
        bytes = packed_by_plan(in);
        if (what & 16) bytes.resize(bytes.size() - static_cast<std::size_t>(extra) % bytes.size());
        while (in.left() > 0 && !bytes.empty()) {
            const std::size_t at = (what & 32) ? in.byte() : in.raw<std::uint16_t>();
            bytes[at % bytes.size()] ^= static_cast<std::byte>(in.byte());
        }
    } else {
        bytes.resize(in.left() + (what & 16 ? static_cast<std::size_t>(extra) * 64 : 0));
        if (in.left() > 0) std::memcpy(bytes.data(), in.rest(), in.left());
    }
    exact_memory memory(bytes.size());
    if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
    repair(memory, what);

    const auto view = hone::packed_view::open(memory.span());
    if (memory.size() > 64) FUZZ_CHECK(!hone::packed_view::open({memory.data() + 1, memory.size() - 1}));
    if (!view) {
        check_refusal(view.status());
        return 0;
    }
    const hone::packed_header h = view->header();
    FUZZ_CHECK(h.payload_bytes <= memory.size() - sizeof h);
    const hone::status s = view->verify();
    if (!s.ok()) check_refusal(s);
    if ((what & 3) == 3) FUZZ_CHECK(s.ok());
    // Not verified weights run too: a wrong payload gives wrong numbers, never an access outside.
    try_gemm<float>(memory, h.n, h.k, h.kind == hone::packed_kind::gemm_b_halves);
    try_gemm<double>(memory, h.n, h.k, h.kind == hone::packed_kind::gemm_b_halves);
    if (h.kind == hone::packed_kind::depthwise) try_conv(memory, h.n, 1, 1, h.kh, h.kw);
    else if (h.kh > 0 && h.kw > 0 && h.kh < 64 && h.kw < 64)
        try_conv(memory, h.groups, h.k / (h.kh * h.kw), h.n, h.kh, h.kw);
    return 0;
}
