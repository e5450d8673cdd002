// SPDX-License-Identifier: BSL-1.0
// A plan is made once, its memory given beforehand; running it allocates nothing, however many rows arrive.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

int main() {
    const hone::index_t most_rows = 48, n = 96, k = 700;
    std::vector<float> a(48 * 700), b(700 * 96), c(48 * 96);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 3) - 1);

    // dynamic_m: m is only the most that will come. B is column-major, as its strides say, so each call packs it.
    const hone::gemm_desc desc{.m = most_rows, .n = n, .k = k, .b = {.row = 1, .col = k}, .dynamic_m = true};
    const auto plan = hone::plan(desc);
    if (!plan) {
        std::puts(plan.status().message().c_str());
        return 1;
    }
    hone::aligned_buffer scratch(static_cast<std::size_t>(plan->scratch_bytes()));
    const hone::context context{.scratch = {scratch.data(), scratch.size()}};
    std::printf("scratch: %zu bytes\n", scratch.size());

    int wrong = 0;
    for (const hone::index_t rows : {hone::index_t{1}, hone::index_t{17}, most_rows}) {
        const hone::status s = plan->run(hone::row_major(a.data(), rows, k), hone::col_major(b.data(), k, n),
                                         hone::row_major(c.data(), rows, n), hone::identity, context);
        if (!s.ok()) {
            std::puts(s.message().c_str());
            return 1;
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
            for (std::size_t j = 0; j < 96; ++j) {
                float sum = 0;
                for (std::size_t p = 0; p < 700; ++p) sum += a[i * 700 + p] * b[p + j * 700];  // whole numbers: exact
                if (!(c[i * 96 + j] == sum)) ++wrong;
            }
        }
    }

    // Too little is refused, not overrun.
    const hone::status less = plan->run(hone::row_major(a.data(), most_rows, k), hone::col_major(b.data(), k, n),
                                        hone::row_major(c.data(), most_rows, n), hone::identity,
                                        {.scratch = {scratch.data(), 64}});
    std::printf("%d wrong; with 64 bytes: %s\n", wrong, less.message().c_str());
    return wrong == 0 && less.code == hone::code::too_small ? 0 : 1;
}
