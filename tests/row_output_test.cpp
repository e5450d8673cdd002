// SPDX-License-Identifier: BSL-1.0
// row_max and row_sum: second outputs of an epilogue, against what C itself holds, on every ISA and split.
#include "reference.hpp"

#include <hone/conv.hpp>

#include <cmath>

using test::index_t;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// A row of C as the stages define it: the maximum with NaN winning, and one chain of additions.
struct expected_row {
    float largest = 0, sum = 0;
};
expected_row of(const float* row, index_t cols) {
    expected_row e{row[0], 0.0f};
    for (index_t j = 0; j < cols; ++j) {
        if (std::isnan(row[j])) e.largest = nan_value;
        if (row[j] > e.largest) e.largest = row[j];
        e.sum = test::rounded(e.sum + row[j]);
    }
    return e;
}

}  // namespace

TEST_CASE("row_max and row_sum say what C holds, whatever the ISA, blocks and workers") {
    test::reverse_executor five(5);
    test::random_source source(77);
    for (hone::isa id : test::isas()) {
        for (const auto& [m, n, k] : {std::tuple<index_t, index_t, index_t>{1, 1, 1}, {5, 15, 7}, {9, 16, 3}, {30, 17, 40}, {13, 150, 21}}) {
            for (int form = 0; form < 4; ++form) {
                INFO(hone::isa_name(id) << " " << m << " x " << n << " x " << k << " form " << form);
                test::guarded<float> a(m * k), b(k * n), c(m * n), largest(m), sum(m);
                for (index_t i = 0; i < a.size(); ++i) a.data()[i] = source.value();
                for (index_t i = 0; i < b.size(); ++i) b.data()[i] = source.value();
                if (form == 3) a.data()[k * (m / 2)] = nan_value;
                hone::context ctx;
                if (form & 1) ctx.executor = five;
                const auto stages = hone::scale(2.0) | hone::row_max(largest.data()) | hone::row_sum(sum.data());
                const hone::policy p{.isa = id, .block = {.kc = form & 2 ? 5 : 0, .nc = 0}};
                const auto plan = hone::plan({.m = m, .n = n, .k = k}, p, stages, ctx);
                REQUIRE(plan.status() == hone::status{});
                CHECK(plan->explain().col_parts == 1);
                REQUIRE(plan->run(hone::row_major<const float>(a.data(), m, k), hone::row_major<const float>(b.data(), k, n),
                                  hone::row_major(c.data(), m, n), stages, ctx) == hone::status{});
                for (index_t i = 0; i < m; ++i) {
                    const expected_row want = of(c.data() + i * n, n);
                    CHECK(test::same(largest.data()[i], want.largest));
                    CHECK(test::same(sum.data()[i], want.sum));
                }
                CHECK((largest.intact() && sum.intact() && c.intact()));
            }
        }
    }
}

TEST_CASE("row_max of a convolution is the largest channel of each pixel, all groups together") {
    const index_t h = 7, w = 6, groups = 3, icg = 2, ocg = 5, oc = groups * ocg;
    std::vector<float> in(static_cast<std::size_t>(h * w * groups * icg)), f(static_cast<std::size_t>(oc * icg * 9));
    test::random_source source(3);
    for (float& x : in) x = source.value();
    for (float& x : f) x = source.value();
    test::reverse_executor four(4);
    for (hone::isa id : test::isas()) {
        std::vector<float> out(static_cast<std::size_t>(h * w * oc)), largest(static_cast<std::size_t>(h * w));
        const auto stages = hone::row_max(largest.data());
        const hone::conv_desc desc{.n = 1, .h = h, .w = w, .ic = groups * icg, .oc = oc, .kh = 3, .kw = 3, .groups = groups,
                                   .window = {.pad = {1, 1, 1, 1}}};
        hone::context ctx;
        ctx.executor = four;
        const auto plan = hone::plan(desc, hone::policy{.isa = id}, stages, ctx);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::nhwc<const float>(in.data(), 1, h, w, groups * icg), hone::oihw<const float>(f.data(), ocg, icg, 3, 3, groups),
                          hone::nhwc(out.data(), 1, h, w, oc), stages, ctx) == hone::status{});
        for (index_t i = 0; i < h * w; ++i) {
            INFO(hone::isa_name(id) << " pixel " << i);
            CHECK(test::same(largest[static_cast<std::size_t>(i)], of(out.data() + i * oc, oc).largest));
        }
    }
}

TEST_CASE("row_max and row_sum without memory are refused") {
    std::vector<float> a(6, 1.0f), b(6, 1.0f), c(4, 7.0f);
    const auto va = hone::row_major<const float>(a.data(), 2, 3), vb = hone::row_major<const float>(b.data(), 3, 2);
    for (const hone::status& s : {hone::gemm(va, vb, hone::row_major(c.data(), 2, 2), hone::row_max(static_cast<float*>(nullptr))),
                                  hone::gemm(va, vb, hone::row_major(c.data(), 2, 2), hone::row_sum(static_cast<float*>(nullptr)))}) {
        CHECK(std::string(s.message().view()) == "epilogue vector = 0 must not be null: elements at stake are 2");
    }
    for (float x : c) CHECK(x == 7.0f);
}
