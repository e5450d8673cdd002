// SPDX-License-Identifier: BSL-1.0
// Weights packed once, written to a file, and mapped by whoever runs the model: no copy and no packing at start-up. The
// bytes say what they are, so that a file of another layout, or a damaged one, is refused.
#include <hone/hone.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr hone::index_t m = 10, n = 130, k = 300;
constexpr hone::gemm_desc desc{.m = m, .n = n, .k = k};

int failed(const hone::status& s) {
    std::puts(s.message().c_str());
    return 1;
}

// What a converter does: pack and write.
int convert(int file, const std::vector<float>& b) {
    const auto plan = hone::plan(desc);
    if (!plan) return failed(plan.status());
    hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
    if (const hone::status s = plan->pack(hone::row_major(b.data(), k, n), {memory.data(), memory.size()}); !s.ok()) {
        return failed(s);
    }
    return write(file, memory.data(), memory.size()) == static_cast<ssize_t>(memory.size()) ? 0 : 1;
}

// What an engine does: open, verify once, run as often as it likes. A mapped file lies on a page: aligned enough.
int infer(std::span<const std::byte> mapped, const std::vector<float>& a, std::vector<float>& c) {
    const auto plan = hone::plan(desc);
    if (!plan) return failed(plan.status());
    const auto weights = hone::packed_view::open(mapped);
    if (!weights) return failed(weights.status());
    if (const hone::status s = weights->verify(); !s.ok()) return failed(s);
    const hone::status s = plan->run(hone::row_major(a.data(), m, k), *weights, hone::row_major(c.data(), m, n));
    return s.ok() ? 0 : failed(s);
}

}  // namespace

int main() {
    std::vector<float> a(10 * 300), b(300 * 130), c(10 * 130), expected(10 * 130);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 31) - 15) / 17.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 37) - 18) / 11.0f;
    const hone::status s = hone::gemm(hone::row_major(a.data(), m, k), hone::row_major(b.data(), k, n),
                                      hone::row_major(expected.data(), m, n));
    if (!s.ok()) return failed(s);

    char name[] = "/tmp/hone-weights-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0) {
        std::perror(name);
        return 1;
    }
    unlink(name);
    if (convert(file, b) != 0) return 1;
    const auto size = static_cast<std::size_t>(lseek(file, 0, SEEK_END));
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        std::perror("mmap");
        return 1;
    }
    auto* bytes = static_cast<std::byte*>(memory);
    if (infer({bytes, size}, a, c) != 0) return 1;
    const bool same = std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0;
    std::printf("%zu bytes mapped; packed and unpacked weights: %s\n", size, same ? "the same bits" : "DIFFERENT BITS");

    // One bit of the private copy flips: verify() says so.
    bytes[size / 2] ^= std::byte{1};
    const bool refused = infer({bytes, size}, a, c) != 0;
    munmap(memory, size);
    return same && refused ? 0 : 1;
}
