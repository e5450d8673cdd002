// SPDX-License-Identifier: BSL-1.0
// Weights packed once, written to a file, and mapped by whoever runs the model: no copy and no packing at start-up. The
// bytes say what they are, so that a file of another layout, or a damaged one, is refused.
#include <hone/hone.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr hone::gemm_desc desc{.m = 10, .n = 130, .k = 300};

// What a converter does.
hone::status convert(hone::matrix_view<const float> b, std::FILE* file) {
    const auto plan = hone::plan(desc);
    if (!plan) return plan.status();
    hone::aligned_buffer memory(std::size_t(plan->packed_bytes()));
    if (hone::status s = plan->pack(b, {memory.data(), memory.size()}); !s.ok()) return s;
    std::fwrite(memory.data(), 1, memory.size(), file);
    return {};
}

// What an engine does. A mapped file lies on a page: aligned enough.
hone::status infer(hone::matrix_view<const float> a, std::span<const std::byte> mapped, hone::matrix_view<float> c) {
    const auto plan = hone::plan(desc);
    if (!plan) return plan.status();
    const auto weights = hone::packed_view::open(mapped);       // reads the header
    if (!weights) return weights.status();
    if (hone::status s = weights->verify(); !s.ok()) return s;  // reads all of it; may be left out
    return plan->run(a, *weights, c);
}

int failed(const char* what) {
    std::puts(what);
    return 1;
}

}  // namespace

int main() {
    std::vector<float> a_data(10 * 300), b_data(300 * 130), c_data(10 * 130), expected(10 * 130);
    for (std::size_t i = 0; i < a_data.size(); ++i) a_data[i] = (static_cast<float>(i % 31) - 15) / 17.0f;
    for (std::size_t i = 0; i < b_data.size(); ++i) b_data[i] = (static_cast<float>(i % 37) - 18) / 11.0f;
    const auto a = hone::row_major(a_data.data(), 10, 300), b = hone::row_major(b_data.data(), 300, 130);
    const auto c = hone::row_major(c_data.data(), 10, 130);
    hone::status s = hone::gemm(a, b, hone::row_major(expected.data(), 10, 130));
    if (!s.ok()) return failed(s.message().c_str());

    std::FILE* file = std::tmpfile();
    if (file == nullptr) return failed("no temporary file");
    s = convert(b, file);
    if (!s.ok()) return failed(s.message().c_str());
    if (std::fflush(file) != 0 || std::ferror(file)) return failed("the file cannot be written");
    const auto size = static_cast<std::size_t>(std::ftell(file));
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    std::fclose(file);
    if (memory == MAP_FAILED) return failed("the file cannot be mapped");

    auto* bytes = static_cast<std::byte*>(memory);
    s = infer(a, {bytes, size}, c);
    if (!s.ok()) return failed(s.message().c_str());
    const bool same = std::memcmp(c_data.data(), expected.data(), c_data.size() * sizeof(float)) == 0;
    std::printf("%zu bytes mapped; packed and unpacked weights: %s\n", size, same ? "the same bits" : "DIFFERENT BITS");

    // One bit of the private copy flips: verify() says so.
    bytes[size / 2] ^= std::byte{1};
    s = infer(a, {bytes, size}, c);
    std::puts(s.message().c_str());
    munmap(memory, size);
    return same && s.code == hone::code::corrupt ? 0 : 1;
}
