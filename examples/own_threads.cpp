// SPDX-License-Identifier: BSL-1.0
// Bringing threads: anything with concurrency() and run() is an executor. The result has the same bits as on one.
// This one starts a thread per task; an engine hands the tasks to its own pool.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct threads {
    int count;
    int concurrency() const { return count; }
    void run(hone::index_t n, void (*task)(void*, hone::index_t), void* state) const {
        std::vector<std::thread> team;
        for (hone::index_t i = 0; i < n; ++i) team.emplace_back(task, state, i);
        for (std::thread& t : team) t.join();
    }
};

hone::status on_four(hone::matrix_view<float> a, hone::matrix_view<float> b, hone::matrix_view<float> c) {
    const threads four{4};
    return hone::gemm(a, b, c, hone::identity, {.executor = four});
}

}  // namespace

int main() {
    std::vector<float> a_data(300 * 500), b_data(500 * 400), one(300 * 400), four(300 * 400);
    for (std::size_t i = 0; i < a_data.size(); ++i) a_data[i] = (static_cast<float>(i % 101) - 50) / 37.0f;
    for (std::size_t i = 0; i < b_data.size(); ++i) b_data[i] = (static_cast<float>(i % 89) - 44) / 53.0f;
    const auto a = hone::row_major(a_data.data(), 300, 500), b = hone::row_major(b_data.data(), 500, 400);

    const hone::status s1 = hone::gemm(a, b, hone::row_major(one.data(), 300, 400));
    const hone::status s4 = on_four(a, b, hone::row_major(four.data(), 300, 400));
    if (!s1.ok() || !s4.ok()) {
        std::puts((s1.ok() ? s4 : s1).message().c_str());
        return 1;
    }
    const bool same = std::memcmp(one.data(), four.data(), one.size() * sizeof(float)) == 0;
    std::printf("one thread and four: %s\n", same ? "the same bits" : "DIFFERENT BITS");
    return same ? 0 : 1;
}
