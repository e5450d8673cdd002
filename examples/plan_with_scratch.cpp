// SPDX-License-Identifier: BSL-1.0
// A plan is made once, its memory given beforehand; running it allocates nothing, however many rows arrive.
#include <hone/hone.hpp>

#include <cstdio>
#include <vector>

namespace {

struct request {
    hone::matrix_view<const float> a;
    hone::matrix_view<float> c;
};

// B is column-major, as its strides say, so each call packs it into the scratch.
hone::status serve(const std::vector<request>& requests, hone::matrix_view<const float> b,
                   const std::vector<float>& v) {
    const hone::gemm_desc desc{.m = 64, .n = 256, .k = 128, .b = {.row = 1, .col = 128}, .dynamic_m = true};
    const auto epilogue = hone::bias(v) | hone::relu;
    const auto plan = hone::plan(desc, hone::policy{}, epilogue);
    if (!plan) return plan.status();

    hone::aligned_buffer scratch(std::size_t(plan->scratch_bytes()));  // or leave it to hone
    const hone::context context{.scratch = {scratch.data(), scratch.size()}};
    for (const auto& [a, c] : requests) {                              // up to 64 rows each; nothing is allocated
        if (hone::status s = plan->run(a, b, c, epilogue, context); !s.ok()) return s;
    }
    return {};
}

}  // namespace

int main() {
    std::vector<float> a_data(100 * 128), b_data(128 * 256), c_data(100 * 256), v(256);
    for (std::size_t i = 0; i < a_data.size(); ++i) a_data[i] = static_cast<float>(i % 5) - 2;
    for (std::size_t i = 0; i < b_data.size(); ++i) b_data[i] = static_cast<float>(i % 3) - 1;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 9) - 4;
    const auto a = hone::row_major(a_data.data(), 100, 128), c = hone::row_major(c_data.data(), 100, 256);
    const auto b = hone::col_major(b_data.data(), 128, 256);

    std::vector<request> requests;
    hone::index_t first = 0;
    for (const hone::index_t rows : {1, 17, 64, 18}) {
        requests.push_back({hone::row_major(a.at(first, 0), rows, 128), hone::row_major(c.at(first, 0), rows, 256)});
        first += rows;
    }
    if (const hone::status s = serve(requests, b, v); !s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }

    // Too little is refused, not overrun: C stays as it was.
    hone::aligned_buffer little(64);
    const hone::status less = hone::gemm(a, b, c, hone::identity, {.scratch = {little.data(), little.size()}});

    int wrong = 0;
    for (hone::index_t i = 0; i < 100; ++i) {
        for (hone::index_t j = 0; j < 256; ++j) {
            float sum = 0;
            for (hone::index_t p = 0; p < 128; ++p) sum += *a.at(i, p) * *b.at(p, j);  // whole numbers: exact
            sum += v[static_cast<std::size_t>(j)];
            if (!(*c.at(i, j) == (sum > 0 ? sum : 0))) ++wrong;
        }
    }
    std::printf("%zu requests, %d elements wrong; with 64 bytes: %s\n", requests.size(), wrong, less.message().c_str());
    return wrong == 0 && less.code == hone::code::too_small ? 0 : 1;
}
