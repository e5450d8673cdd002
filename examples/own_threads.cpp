// SPDX-License-Identifier: BSL-1.0
// Bringing threads: anything with concurrency() and run() is an executor. The result has the same bits as on one thread.
#include <hone/hone.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

// Hands out task numbers to a few threads. An engine would pass its own pool instead.
struct threads {
    int count;
    int concurrency() const { return count; }
    void run(hone::index_t n, void (*task)(void*, hone::index_t), void* state) const {
        std::atomic<hone::index_t> next{0};
        const auto work = [&] {
            for (hone::index_t i = next++; i < n; i = next++) task(state, i);
        };
        std::vector<std::thread> others;
        for (int i = 1; i < count; ++i) others.emplace_back(work);
        work();
        for (std::thread& t : others) t.join();
    }
};

int main() {
    const hone::index_t m = 300, n = 400, k = 500;
    std::vector<float> a(300 * 500), b(500 * 400), one(300 * 400), many(300 * 400);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 101) - 50) / 37.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 89) - 44) / 53.0f;
    const auto va = hone::row_major(a.data(), m, k);
    const auto vb = hone::row_major(b.data(), k, n);

    threads pool{4};
    const hone::context context{.executor = pool};
    const hone::status s1 = hone::gemm(va, vb, hone::row_major(one.data(), m, n));
    const hone::status s2 = hone::gemm(va, vb, hone::row_major(many.data(), m, n), hone::identity, context);
    if (!s1.ok() || !s2.ok()) {
        std::puts((s1.ok() ? s2 : s1).message().c_str());
        return 1;
    }
    const bool same = std::memcmp(one.data(), many.data(), one.size() * sizeof(float)) == 0;
    std::printf("one thread and four: %s\n", same ? "the same bits" : "DIFFERENT BITS");
    return same ? 0 : 1;
}
