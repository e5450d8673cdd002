// SPDX-License-Identifier: BSL-1.0
// What a product, a plan, a packing or its scratch says when an argument is wrong: code, argument, value, limit, and
// the exact words; and that nothing is written then. Case names begin with the number of the public report they come
// from.
#include "reference.hpp"

#include <utility>

using hone::argument;
using hone::code;
using hone::gemm_desc;
using hone::status;
using test::index_t;

namespace {

constexpr index_t most_bytes = INT64_MAX / 2;

// Dense operands of one product, C filled with a value that no product gives.
struct operands {
    operands(index_t m, index_t n, index_t k)
        : a(static_cast<std::size_t>(m * k), 1.0f),
          b(static_cast<std::size_t>(k * n), 2.0f),
          c(static_cast<std::size_t>(m * n), 77.0f),
          va(hone::row_major<const float>(a.data(), m, k)),
          vb(hone::row_major<const float>(b.data(), k, n)),
          vc(hone::row_major(c.data(), m, n)) {}
    bool untouched() const {
        return std::all_of(c.begin(), c.end(), [](float x) { return x == 77.0f; });
    }
    std::vector<float> a, b, c;
    hone::matrix_view<const float> va, vb;
    hone::matrix_view<float> vc;
};

void check(const status& got, const status& want, std::string_view words) {
    CHECK(got == want);
    CHECK(std::string(got.message().view()) == std::string(words));
}

status planned(const gemm_desc& desc, const hone::policy& p = {}) { return hone::plan(desc, p).status(); }

const char* best() { return hone::isa_name(hone::explain().best); }

}  // namespace

TEST_CASE("success says ok") { check(planned({.m = 2, .n = 3, .k = 4}), status{}, "ok"); }

TEST_CASE("negative extents") {
    check(planned({.m = -1, .n = 3, .k = 4}), {code::negative, argument::m, -1, 0}, "m = -1 must be at least 0");
    check(planned({.m = 1, .n = -3, .k = 4}), {code::negative, argument::n, -3, 0}, "n = -3 must be at least 0");
    check(planned({.m = 1, .n = 3, .k = INT64_MIN}), {code::negative, argument::k, INT64_MIN, 0},
          "k = -9223372036854775808 must be at least 0");
    operands o(2, 3, 4);
    o.vc.rows = -2;
    check(hone::gemm(o.va, o.vb, o.vc), {code::negative, argument::m, -2, 0}, "m = -2 must be at least 0");
    const auto plan = hone::plan({.m = 2, .n = 3, .k = 4, .dynamic_m = true});
    REQUIRE(plan.status() == status{});
    check(plan->run(o.va, o.vb, o.vc), {code::negative, argument::c_rows, -2, 0}, "c.rows = -2 must be at least 0");
    CHECK(o.untouched());
}

TEST_CASE("extents that do not match each other or the plan") {
    const auto plan = hone::plan({.m = 2, .n = 3, .k = 4});
    const auto bound = hone::plan({.m = 2, .n = 3, .k = 4, .dynamic_m = true});
    REQUIRE(plan.status() == status{});
    REQUIRE(bound.status() == status{});
    operands o(3, 4, 5);
    const auto run = [&](index_t am, index_t ak, index_t bk, index_t bn, index_t cm, index_t cn, const auto& p) {
        return p->run(hone::row_major<const float>(o.a.data(), am, ak),
                      hone::row_major<const float>(o.b.data(), bk, bn), hone::row_major(o.c.data(), cm, cn));
    };
    check(run(2, 4, 4, 3, 3, 3, plan), {code::mismatch, argument::c_rows, 3, 2}, "c.rows = 3 must equal 2");
    check(run(2, 4, 4, 3, 3, 3, bound), {code::too_large, argument::c_rows, 3, 2}, "c.rows = 3 must be at most 2");
    check(run(2, 4, 4, 3, 2, 4, plan), {code::mismatch, argument::c_cols, 4, 3}, "c.cols = 4 must equal 3");
    check(run(3, 4, 4, 3, 2, 3, plan), {code::mismatch, argument::a_rows, 3, 2}, "a.rows = 3 must equal 2");
    check(run(2, 4, 4, 3, 1, 3, bound), {code::mismatch, argument::a_rows, 2, 1}, "a.rows = 2 must equal 1");
    check(run(2, 5, 4, 3, 2, 3, plan), {code::mismatch, argument::a_cols, 5, 4}, "a.cols = 5 must equal 4");
    check(run(2, 4, 5, 3, 2, 3, plan), {code::mismatch, argument::b_rows, 5, 4}, "b.rows = 5 must equal 4");
    check(run(2, 4, 4, 4, 2, 3, plan), {code::mismatch, argument::b_cols, 4, 3}, "b.cols = 4 must equal 3");
    CHECK(o.untouched());
    // One call: k is A's.
    check(hone::gemm(hone::row_major<const float>(o.a.data(), 2, 5), hone::row_major<const float>(o.b.data(), 4, 3),
                     hone::row_major(o.c.data(), 2, 3)),
          {code::mismatch, argument::b_rows, 4, 5}, "b.rows = 4 must equal 5");
    check(hone::gemm(hone::row_major<const float>(o.a.data(), 3, 4), hone::row_major<const float>(o.b.data(), 4, 3),
                     hone::row_major(o.c.data(), 2, 3)),
          {code::mismatch, argument::a_rows, 3, 2}, "a.rows = 3 must equal 2");
    CHECK(o.untouched());
}

TEST_CASE("B100 strides that are not the plan's") {
    const auto plan = hone::plan({.m = 2, .n = 3, .k = 4});
    REQUIRE(plan.status() == status{});
    operands o(4, 6, 8);
    const auto with = [&](auto change) {
        hone::matrix_view<const float> a = hone::row_major<const float>(o.a.data(), 2, 4),
                                       b = hone::row_major<const float>(o.b.data(), 4, 3);
        hone::matrix_view<float> c = hone::row_major(o.c.data(), 2, 3);
        change(a, b, c);
        return plan->run(a, b, c);
    };
    check(with([](auto& a, auto&, auto&) { a.row_stride = 5; }), {code::mismatch, argument::a_row_stride, 5, 4},
          "a.row_stride = 5 must equal 4");
    check(with([](auto& a, auto&, auto&) { a.col_stride = -1; }), {code::mismatch, argument::a_col_stride, -1, 1},
          "a.col_stride = -1 must equal 1");
    check(with([](auto&, auto& b, auto&) { b.row_stride = 2; }), {code::mismatch, argument::b_row_stride, 2, 3},
          "b.row_stride = 2 must equal 3");
    check(with([](auto&, auto& b, auto&) { b.col_stride = 2; }), {code::mismatch, argument::b_col_stride, 2, 1},
          "b.col_stride = 2 must equal 1");
    check(with([](auto&, auto&, auto& c) { c.row_stride = 4; }), {code::mismatch, argument::c_row_stride, 4, 3},
          "c.row_stride = 4 must equal 3");
    check(with([](auto&, auto&, auto& c) { c.col_stride = 2; }), {code::mismatch, argument::c_col_stride, 2, 1},
          "c.col_stride = 2 must equal 1");
    CHECK(o.untouched());
    // The stride of an extent of one means nothing.
    const auto row = hone::plan({.m = 1, .n = 1, .k = 1});
    REQUIRE(row.status() == status{});
    CHECK(row->run({o.a.data(), 1, 1, -7, 99}, {o.b.data(), 1, 1, 0, 0}, {o.c.data(), 1, 1, 5, 0}) == status{});
    CHECK(o.c[0] == 2.0f);
}

// SGEMM's ldc below the number of rows: the argument that is named is the distance of columns, and nothing is written.
TEST_CASE("B100 a leading dimension that is too small") {
    for (hone::isa id : test::isas()) {
        operands o(5, 4, 3);
        const auto run = [&](const hone::matrix_view<float>& c) {
            const auto plan = hone::plan(hone::describe(o.va, o.vb, c), {.isa = id});
            const status s = hone::gemm(o.va, o.vb, c);
            CHECK(plan.status() == s);
            CHECK(plan->run(o.va, o.vb, c).code != code::ok);
            return s;
        };
        check(run(hone::col_major(o.c.data(), 5, 4, 4)), {code::bad_stride, argument::c_col_stride, 4, 5},
              "c.col_stride = 4 makes elements of C coincide; it must be at least 5");
        check(run(hone::col_major(o.c.data() + 19, 5, 4, -3)), {code::bad_stride, argument::c_col_stride, -3, 5},
              "c.col_stride = -3 makes elements of C coincide; it must be at least 5");
        check(run(hone::row_major(o.c.data(), 5, 4, 3)), {code::bad_stride, argument::c_row_stride, 3, 4},
              "c.row_stride = 3 makes elements of C coincide; it must be at least 4");
        CHECK(o.untouched());
    }
}

TEST_CASE("null pointers where there are elements") {
    const auto plan = hone::plan({.m = 2, .n = 3, .k = 4});
    REQUIRE(plan.status() == status{});
    operands o(2, 3, 4);
    const hone::matrix_view<const float> no_a{nullptr, 2, 4, 4, 1}, no_b{nullptr, 4, 3, 3, 1};
    const hone::matrix_view<float> no_c{nullptr, 2, 3, 3, 1};
    check(plan->run(no_a, o.vb, o.vc), {code::null_pointer, argument::a_data, 0, 8},
          "a.data = 0 must not be null: elements at stake are 8");
    check(plan->run(o.va, no_b, o.vc), {code::null_pointer, argument::b_data, 0, 12},
          "b.data = 0 must not be null: elements at stake are 12");
    check(plan->run(o.va, o.vb, no_c), {code::null_pointer, argument::c_data, 0, 6},
          "c.data = 0 must not be null: elements at stake are 6");
    check(plan->run(o.va, hone::packed_view{}, o.vc), {code::null_pointer, argument::packed_bytes, 0, 1},
          "packed.bytes = 0 must not be null: elements at stake are 1");
    check(hone::packed_view{}.verify(), {code::null_pointer, argument::packed_payload, 0, 1},
          "packed payload = 0 must not be null: elements at stake are 1");
    CHECK(o.untouched());
}

TEST_CASE("elements of C that coincide") {
    check(planned({.m = 2, .n = 3, .k = 4, .c = {0, 1}}), {code::bad_stride, argument::c_row_stride, 0, 3},
          "c.row_stride = 0 makes elements of C coincide; it must be at least 3");
    check(planned({.m = 2, .n = 3, .k = 4, .c = {2, 1}}), {code::bad_stride, argument::c_row_stride, 2, 3},
          "c.row_stride = 2 makes elements of C coincide; it must be at least 3");
    check(planned({.m = 2, .n = 3, .k = 4, .c = {3, 0}}), {code::bad_stride, argument::c_col_stride, 0, 1},
          "c.col_stride = 0 makes elements of C coincide; it must be at least 1");
    check(planned({.m = 4, .n = 3, .k = 4, .c = {2, 4}}), {code::bad_stride, argument::c_col_stride, 4, 8},
          "c.col_stride = 4 makes elements of C coincide; it must be at least 8");
    CHECK(planned({.m = 2, .n = 3, .k = 4, .c = {3, 2}}) == status{});  // 0 2 4 and 3 5 7: interleaved
    CHECK(planned({.m = 2, .n = 3, .k = 4, .c = {-1, -2}}) == status{});
    CHECK(planned({.m = 1, .n = 3, .k = 4, .c = {0, 1}}) == status{});
    CHECK(planned({.m = 0, .n = 3, .k = 4, .c = {0, 0}}) == status{});
    // Operands that are only read may repeat.
    CHECK(planned({.m = 2, .n = 3, .k = 4, .a = {0, 0}, .b = {1, 1}}) == status{});
}

TEST_CASE("elements of C that coincide, against every small view") {
    for (index_t m = 1; m <= 4; ++m) {
        for (index_t n = 1; n <= 4; ++n) {
            for (index_t r = -9; r <= 9; ++r) {
                for (index_t s = -9; s <= 9; ++s) {
                    std::vector<index_t> at;
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j) at.push_back(i * r + j * s);
                    }
                    std::sort(at.begin(), at.end());
                    const bool twice = std::adjacent_find(at.begin(), at.end()) != at.end();
                    INFO(m << "x" << n << " strides " << r << ", " << s);
                    REQUIRE((planned({.m = m, .n = n, .k = 1, .c = {r, s}}).code == code::bad_stride) == twice);
                }
            }
        }
    }
}

TEST_CASE("B22 C shares elements with A or B") {
    const std::string_view a_words = "a.data = 1 or more elements shared with C; allowed are 0";
    for (index_t size : {5, 50}) {
        const auto at = [size](std::vector<float>& m, index_t row) {
            return hone::row_major(m.data() + row * size, size, size);
        };
        std::vector<float> x(static_cast<std::size_t>(3 * size * size), 1.0f), y(x.size(), 1.0f);
        const std::vector<float> before = x;
        const std::pair<hone::argument, index_t> cases[] = {{argument::a_data, 0},        {argument::a_data, size - 1},
                                                            {argument::a_data, 1 - size}, {argument::b_data, 0},
                                                            {argument::b_data, size - 1}, {argument::b_data, 1 - size}};
        for (const auto& [which, row] : cases) {
            const auto c = at(x, size + row), input = at(x, size), other = at(y, 0);
            const status s = which == argument::a_data ? hone::gemm(input, other, c) : hone::gemm(other, input, c);
            INFO("size " << size << " row " << row);
            CHECK(s.code == code::overlap);
            CHECK(s.argument == which);
            if (which == argument::a_data) CHECK(std::string(s.message().view()) == std::string(a_words));
            CHECK(x == before);
        }
        // Rows next to each other do not overlap; and C alone, in place through beta, is no overlap.
        for (index_t row : {-size, size}) CHECK(hone::gemm(at(x, size), at(y, 0), at(x, size + row)) == status{});
        CHECK(hone::gemm(1.0, at(y, 0), at(y, size), 1.0, at(x, 0)) == status{});
        // alpha = 0 reads neither: C may be either.
        CHECK(hone::gemm(0.0, at(x, 0), at(x, 0), 2.0, at(x, 0)) == status{});
    }
}

TEST_CASE("B22 C of another element type or layout over A") {
    std::vector<float> x(400, 1.0f), y(400, 1.0f);
    const std::vector<float> before = x;
    const auto a = hone::row_major<const float>(x.data(), 10, 10), b = hone::row_major<const float>(y.data(), 10, 10);
    // The same memory seen by columns, with wider rows, as one row of it, and as bf16.
    CHECK(hone::gemm(a, b, hone::col_major(x.data(), 10, 10)).code == code::overlap);
    CHECK(hone::gemm(a, b, hone::row_major(x.data() + 5, 10, 10, 20)).code == code::overlap);
    CHECK(hone::gemm(a, b, hone::row_major(x.data() + 90, 10, 10, 11)).code == code::overlap);
    CHECK(
        hone::gemm(a, b, hone::row_major(reinterpret_cast<hone::bf16*>(x.data()), 10, 10), hone::store_as<hone::bf16>())
            .code == code::overlap);
    CHECK(x == before);
}

TEST_CASE("interleaved views are no overlap") {
    // Three matrices as channels of one tensor: even columns, odd columns; left half, right half; even rows, odd rows.
    std::vector<float> t(12 * 40, 1.0f), y(400, 1.0f);
    const hone::matrix_view<const float> b = hone::row_major<const float>(y.data(), 6, 6);
    const auto view = [&](index_t at, index_t r, index_t c) {
        return hone::matrix_view<float>{t.data() + at, 6, 6, r, c};
    };
    CHECK(hone::gemm(view(0, 40, 2), b, view(1, 40, 2)) == status{});
    CHECK(hone::gemm(view(0, 40, 1), b, view(6, 40, 1)) == status{});
    CHECK(hone::gemm(view(0, 80, 1), b, view(40, 80, 1)) == status{});
    CHECK(hone::gemm(b, view(2, 40, 3), view(1, 40, 3)) == status{});
    CHECK(hone::gemm(view(0, 40, 1), b, view(200, -40, 1)).code == code::overlap);  // the same rows, upside down
}

// Small views of equal extents at every distance: an overlap is reported only where elements coincide, and always where
// the strides are equal.
TEST_CASE("B22 overlap against an exhaustive search") {
    std::vector<float> arena(400, 1.0f), y(16, 1.0f);
    test::random_source source(29);
    int found = 0, free_of_it = 0;
    for (int round = 0; round < (test::quick() ? 2000 : 40000); ++round) {
        const index_t size = source.between(1, 4);
        const bool equal = source.bits() % 2 == 0;
        const auto stride = [&] { return source.between(-9, 9); };
        const hone::matrix_view<const float> other = hone::row_major<const float>(y.data(), size, size);
        hone::matrix_view<float> c{arena.data() + 200, size, size, stride(), stride()};
        hone::matrix_view<const float> a{arena.data() + 200 + source.between(-30, 30), size, size, stride(), stride()};
        if (equal) {
            a.row_stride = c.row_stride;
            a.col_stride = c.col_stride;
        }
        const status s = hone::gemm(a, other, hone::matrix_view<float>(c));
        if (s.code == code::bad_stride) continue;
        bool coincide = false;
        for (index_t i = 0; i < size * size; ++i) {
            for (index_t j = 0; j < size * size; ++j) coincide |= a.at(i / size, i % size) == c.at(j / size, j % size);
        }
        INFO("extents " << size << " A strides " << a.row_stride << ", " << a.col_stride << " C strides "
                        << c.row_stride << ", " << c.col_stride << " distance " << a.data - c.data);
        if (!coincide) REQUIRE(s == status{});
        if (coincide && equal) REQUIRE(s == (status{code::overlap, argument::a_data, s.value, s.limit}));
        found += s.code == code::overlap;
        free_of_it += s.ok();
    }
    CHECK(found > 100);
    CHECK(free_of_it > 100);
}

TEST_CASE("add(view) and mul(view) may be C itself") {
    operands o(3, 4, 5);
    CHECK(hone::gemm(o.va, o.vb, o.vc, hone::add(o.vc)) == status{});
    CHECK(o.c == std::vector<float>(12, 87.0f));
}

TEST_CASE("B23 address arithmetic that does not fit 64 bits") {
    constexpr index_t far = (index_t{1} << 30) + 1;
    CHECK(planned({.m = 3, .n = 1, .k = 2, .a = {far, 1}}) == status{});
    CHECK(planned({.m = 3, .n = 1, .k = 2, .a = {-far, 1}, .c = {-far, 1}}) == status{});
    CHECK(planned({.m = 3, .n = 2, .k = 1, .c = {far, -far * 5}}) == status{});
    const std::string limit = " must be at most " + std::to_string(most_bytes);
    check(planned({.m = 3, .n = 2, .k = 2, .a = {INT64_MAX / 2, 1}}),
          {code::too_large, argument::a_rows, 3, most_bytes}, "a.rows = 3" + limit);
    check(planned({.m = 3, .n = 2, .k = 2, .a = {INT64_MAX / 2 + 2, 1}}),
          {code::too_large, argument::a_rows, 3, most_bytes}, "a.rows = 3" + limit);
    check(planned({.m = 3, .n = 2, .k = 4, .a = {1, INT64_MAX / 2}}),
          {code::too_large, argument::a_cols, 4, most_bytes}, "a.cols = 4" + limit);
    check(planned({.m = 3, .n = 2, .k = 3, .b = {INT64_MIN, 1}}), {code::too_large, argument::b_rows, 3, most_bytes},
          "b.rows = 3" + limit);
    check(planned({.m = 3, .n = 4, .k = 3, .b = {1, INT64_MIN / 2}}),
          {code::too_large, argument::b_cols, 4, most_bytes}, "b.cols = 4" + limit);
    check(planned({.m = 3, .n = 4, .k = 3, .c = {INT64_MAX, 1}}), {code::too_large, argument::c_rows, 3, most_bytes},
          "c.rows = 3" + limit);
    check(planned({.m = 1, .n = 4, .k = 3, .c = {1, INT64_MAX}}), {code::too_large, argument::c_cols, 4, most_bytes},
          "c.cols = 4" + limit);
    // Elements of one view on either side of its first one, each a quarter of the address space away.
    check(planned({.m = 3, .n = 2, .k = 3, .a = {INT64_MAX / 16, -INT64_MAX / 16}}),
          {code::too_large, argument::a_rows, 3, most_bytes}, "a.rows = 3" + limit);
    check(planned({.m = 3, .n = 3, .k = 2, .c = {-INT64_MAX / 16, INT64_MAX / 16 - 1}}),
          {code::too_large, argument::c_rows, 3, most_bytes}, "c.rows = 3" + limit);
    // Extents beyond the limit of operands without an element.
    check(planned({.m = INT64_MAX, .n = 0, .k = 0}), {code::too_large, argument::a_rows, INT64_MAX, most_bytes},
          "a.rows = 9223372036854775807" + limit);
    check(planned({.m = 0, .n = INT64_MAX, .k = 0, .b = {0, 0}, .c = {0, 0}}),
          {code::too_large, argument::b_cols, INT64_MAX, most_bytes}, "b.cols = 9223372036854775807" + limit);
    CHECK(planned({.m = most_bytes, .n = 0, .k = 0}) == status{});
    CHECK(planned({.m = INT64_MAX, .n = 4, .k = 3}).code == code::too_large);
    CHECK(planned({.m = 3, .n = INT64_MAX, .k = 3}).code == code::too_large);
    CHECK(planned({.m = 3, .n = INT64_MAX, .k = 0}).code == code::too_large);
    CHECK(planned({.m = 3, .n = 4, .k = INT64_MAX}).code == code::too_large);
    CHECK(planned({.m = 3, .n = 4, .k = INT64_MAX, .a = {0, 0}, .b = {0, 0}}).code == code::too_large);
}

TEST_CASE("B26 giant extents: a plan or a status, never a negative block") {
    const index_t shapes[][3] = {{64, 176379826, 9},          {8, 536870912, 1},        {2147483648, 2, 1},
                                 {2147483648, 2147483648, 1}, {1, 1, 4294967297},       {3, 1, index_t{1} << 59},
                                 {index_t{1} << 59, 1, 3},    {1, index_t{1} << 59, 3}, {3000000000, 3000000000, 300}};
    const hone::blocking blocks[] = {
        {}, {.kc = 1}, {.mc = INT32_MAX, .kc = INT32_MAX, .nc = INT32_MAX}, {.mc = 1, .kc = INT32_MAX, .nc = 1}};
    for (hone::isa id : test::isas()) {
        for (const auto& s : shapes) {
            for (const hone::blocking& block : blocks) {
                for (int concurrency : {1, 64}) {
                    test::reverse_executor x(concurrency);
                    const auto plan = hone::plan({.m = s[0], .n = s[1], .k = s[2]}, {.isa = id, .block = block},
                                                 hone::identity, {.executor = x});
                    INFO(hone::isa_name(id) << " " << s[0] << "x" << s[1] << "x" << s[2] << " block " << block.mc << ","
                                            << block.kc << "," << block.nc << " workers " << concurrency);
                    if (!plan) {
                        CHECK((plan.status().code == code::too_large || plan.status().code == code::unsupported));
                        continue;
                    }
                    const hone::explanation e = plan->explain();
                    CHECK(e.block.mc > 0);
                    CHECK(e.block.kc > 0);
                    CHECK(e.block.nc > 0);
                    CHECK(e.workers > 0);
                    CHECK(e.workers <= concurrency);
                    CHECK(plan->scratch_bytes(concurrency) > 0);
                    CHECK(plan->packed_bytes() > 0);
                    CHECK(plan->packed_bytes() / 4 >= s[1] * s[2]);
                }
            }
        }
    }
}

// 2^32 and a few: what an int would take for a few.
TEST_CASE("B29 extents are not narrowed to 32 bits") {
    constexpr index_t wide = index_t{1} << 32;
    const auto plan = hone::plan({.m = 2, .n = 3, .k = 4});
    REQUIRE(plan.status() == status{});
    operands o(2, 3, 4);
    const auto with = [&](auto change) {
        hone::matrix_view<const float> a = o.va, b = o.vb;
        hone::matrix_view<float> c = o.vc;
        change(a, b, c);
        return plan->run(a, b, c);
    };
    CHECK(with([](auto& a, auto&, auto&) { a.rows += wide; }) == status{code::mismatch, argument::a_rows, wide + 2, 2});
    CHECK(with([](auto& a, auto&, auto&) { a.cols += wide; }) == status{code::mismatch, argument::a_cols, wide + 4, 4});
    CHECK(with([](auto&, auto& b, auto&) { b.rows += wide; }) == status{code::mismatch, argument::b_rows, wide + 4, 4});
    CHECK(with([](auto&, auto& b, auto&) { b.cols += wide; }) == status{code::mismatch, argument::b_cols, wide + 3, 3});
    CHECK(with([](auto&, auto&, auto& c) { c.rows += wide; }) == status{code::mismatch, argument::c_rows, wide + 2, 2});
    CHECK(with([](auto&, auto&, auto& c) { c.cols += wide; }) == status{code::mismatch, argument::c_cols, wide + 3, 3});
    CHECK(with([](auto& a, auto&, auto&) { a.row_stride += wide; }).argument == argument::a_row_stride);
    CHECK(with([](auto&, auto& b, auto&) { b.col_stride += wide; }).argument == argument::b_col_stride);
    CHECK(with([](auto&, auto&, auto& c) { c.row_stride += wide; }).argument == argument::c_row_stride);
    CHECK(hone::gemm(o.va, o.vb, o.vc, hone::bias(std::span<const float>(o.a.data(), std::size_t{wide} + 3))) ==
          status{code::mismatch, argument::epilogue_vector, wide + 3, 3});
    CHECK(o.untouched());

    for (hone::isa id : test::isas()) {
        const auto bytes = [&](const gemm_desc& desc) {
            const auto p = hone::plan(desc, {.isa = id});
            REQUIRE(p.status() == status{});
            return p->packed_bytes();
        };
        CHECK(bytes({.m = wide, .n = 1, .k = 1}) < 4096);
        CHECK(bytes({.m = 1, .n = wide, .k = 1}) >= 4 * wide);
        CHECK(bytes({.m = 1, .n = 1, .k = wide}) >= 4 * wide);
        // Weights of 2^32 + 4 rows are not those of 4.
        const auto few = hone::plan({.m = 2, .n = 3, .k = 4}, {.isa = id});
        REQUIRE(few.status() == status{});
        const hone::aligned_buffer memory(static_cast<std::size_t>(few->packed_bytes()));
        const std::span<std::byte> span(memory.data(), memory.size());
        REQUIRE(few->pack(o.vb, span) == status{});
        for (auto field : {&hone::packed_header::k, &hone::packed_header::n}) {
            hone::packed_header h;
            std::memcpy(&h, span.data(), sizeof h);
            const hone::packed_header before = h;
            h.*field += wide;
            h.header_checksum = hone::detail::header_checksum(h);
            std::memcpy(span.data(), &h, sizeof h);
            const auto view = hone::packed_view::open(span);
            if (view) CHECK(few->run(o.va, *view, o.vc).argument == argument::packed_extent);
            std::memcpy(span.data(), &before, sizeof before);
        }
        CHECK(o.untouched());
    }
}

TEST_CASE("policies that break a rule") {
    const gemm_desc desc{.m = 20, .n = 30, .k = 40};
    const hone::isa id = hone::active_isa();
    const auto& list = hone::detail::gemm_kernels<float>(id);
    const int mr = list.row[0].mr, nr = list.row[0].nr;
    const auto rule = [](argument a, index_t value, index_t limit) {
        return status{code::bad_policy, a, value, limit};
    };
    check(planned(desc, {.isa = static_cast<hone::isa>(99)}), rule(argument::policy_isa, 99, hone::isa_count - 1),
          "policy.isa = 99 breaks the rule of validate<P>(); the limit is 7");
    check(planned(desc, {.isa = id, .tile = {3, nr}}), rule(argument::policy_tile, 3, 16),
          "policy.tile = 3 breaks the rule of validate<P>(); the limit is 16");
    CHECK(planned(desc, {.isa = id, .tile = {-4, nr}}) == rule(argument::policy_tile, -4, 16));
    CHECK(planned(desc, {.isa = id, .tile = {mr, -nr}}) == rule(argument::policy_tile, -nr, 0));
    CHECK(planned(desc, {.isa = id, .tile = {mr, 0}}) == rule(argument::policy_tile, mr, 0));
    CHECK(planned(desc, {.isa = id, .tile = {0, nr}}) == rule(argument::policy_tile, nr, 0));
    CHECK(planned(desc, {.isa = id, .tile = {mr, nr}, .block = {.mc = mr + 1}}) ==
          rule(argument::policy_mc, mr + 1, mr));
    check(planned(desc, {.block = {.mc = -1}}), rule(argument::policy_mc, -1, 0),
          "policy.block.mc = -1 breaks the rule of validate<P>(); the limit is 0");
    check(planned(desc, {.block = {.kc = -5}}), rule(argument::policy_kc, -5, 0),
          "policy.block.kc = -5 breaks the rule of validate<P>(); the limit is 0");
    check(planned(desc, {.block = {.nc = INT32_MIN}}), rule(argument::policy_nc, INT32_MIN, 0),
          "policy.block.nc = -2147483648 breaks the rule of validate<P>(); the limit is 0");
    CHECK(planned(desc, {.isa = id, .tile = {mr, nr}, .block = {.nc = nr + 1}}) ==
          rule(argument::policy_nc, nr + 1, nr));
    check(planned(desc, {.threads = -2}), rule(argument::policy_threads, -2, 0),
          "policy.threads = -2 breaks the rule of validate<P>(); the limit is 0");
    check(planned(desc, {.packing = static_cast<hone::packing>(9)}), rule(argument::policy_packing, 9, 4),
          "policy.packing = 9 breaks the rule of validate<P>(); the limit is 4");
    check(planned(desc, {.numerics = static_cast<hone::numerics>(7)}), rule(argument::policy_numerics, 7, 1),
          "policy.numerics = 7 breaks the rule of validate<P>(); the limit is 1");
    check(planned(desc, {.isa = id, .tile = {mr, nr + 1}}), {code::unsupported, argument::policy_tile, nr + 1, nr},
          "policy.tile = " + std::to_string(nr + 1) + " is not supported; the nearest that is " + std::to_string(nr));
}

TEST_CASE("B101 an instruction set that cannot run here") {
    int absent = 0;
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        if (hone::available(id)) continue;
        ++absent;
        operands o(2, 3, 4);
        const auto best_value = static_cast<std::int64_t>(hone::explain().best);
        const auto plan = hone::plan({.m = 2, .n = 3, .k = 4}, {.isa = id});
        check(
            plan.status(), {code::isa_unavailable, argument::policy_isa, i, best_value},
            std::string("policy.isa = ") + hone::isa_name(id) + " cannot run here; the best that can is isa " + best());
        CHECK_FALSE(plan.has_value());
        CHECK(o.untouched());
    }
    CHECK(absent > 0);  // x86 has no neon, Arm no avx2
#if HONE_X86
    operands o(2, 3, 4);
    if (!hone::available(hone::isa::avx512)) {
        constexpr hone::policy p{.isa = hone::isa::avx512, .tile = {8, 48}};
        CHECK(hone::gemm<p>(o.va, o.vb, o.vc).code == code::isa_unavailable);
        constexpr hone::policy any{.isa = hone::isa::avx512};
        CHECK(hone::gemm<any>(o.va, o.vb, o.vc).code == code::isa_unavailable);
        CHECK(o.untouched());
    }
#endif
}

TEST_CASE("B101 a plan that was never made is an error, not a crash") {
    const hone::gemm_plan<> empty{};
    operands o(2, 3, 4);
    check(empty.run(o.va, o.vb, o.vc), {code::mismatch, argument::c_rows, 2, 0}, "c.rows = 2 must equal 0");
    CHECK(o.untouched());
    CHECK(empty.scratch_bytes() >= 0);
    CHECK(empty.scratch_bytes(8) >= 0);
    CHECK(empty.packed_bytes() >= 0);
    CHECK(empty.explain().workers >= 0);
    std::byte none[1];
    CHECK_FALSE(empty.pack({nullptr, 0, 0, 0, 0}, {none, 1}).ok());
    const auto refused = hone::plan({.m = -1});
    CHECK_FALSE(refused.has_value());
    CHECK(refused->scratch_bytes() >= 0);
}

TEST_CASE("scratch of the caller: too small, not aligned") {
    const auto plan = hone::plan({.m = 20, .n = 30, .k = 40});
    REQUIRE(plan.status() == status{});
    const index_t bytes = plan->scratch_bytes();
    REQUIRE(bytes > 0);
    operands o(20, 30, 40);
    const hone::aligned_buffer memory(static_cast<std::size_t>(bytes) + 64);
    const auto run = [&](std::byte* at, index_t size) {
        return plan->run(o.va, o.vb, o.vc, hone::identity, {.scratch = {at, static_cast<std::size_t>(size)}});
    };
    const std::string need = std::to_string(bytes);
    check(run(memory.data(), bytes - 1), {code::too_small, argument::scratch, bytes - 1, bytes},
          "scratch = " + std::to_string(bytes - 1) + " is too small; bytes or elements needed are " + need);
    check(run(memory.data(), 1), {code::too_small, argument::scratch, 1, bytes},
          "scratch = 1 is too small; bytes or elements needed are " + need);
    for (index_t off : {1, 4, 16, 32}) {
        check(run(memory.data() + off, bytes), {code::misaligned, argument::scratch, off, 64},
              "scratch = " + std::to_string(off) + " must be aligned to bytes 64");
    }
    CHECK(o.untouched());
    CHECK(run(memory.data(), bytes) == status{});
    CHECK(run(memory.data() + 64, bytes) == status{});
    CHECK(o.c == std::vector<float>(600, 80.0f));
}

TEST_CASE("packing that the strides do not allow is refused") {
    using hone::packing;
    const auto says = [](const hone::gemm_desc& d, packing how) {
        return std::string(hone::plan(d, hone::policy{.packing = how}).status().message().view());
    };
    const hone::gemm_desc rows{.m = 5, .n = 20, .k = 7};
    const hone::gemm_desc a_by_columns{.m = 5, .n = 20, .k = 7, .a = {1, 5}};
    const hone::gemm_desc b_by_columns{.m = 5, .n = 20, .k = 7, .b = {1, 7}};
    for (packing how : {packing::none, packing::a, packing::b, packing::both}) CHECK(says(rows, how) == "ok");
    CHECK(says(a_by_columns, packing::none) == "policy.packing = 1 is not supported; the nearest that is 2");
    CHECK(says(a_by_columns, packing::b) == "policy.packing = 3 is not supported; the nearest that is 4");
    CHECK(says(a_by_columns, packing::a) == "ok");
    CHECK(says(b_by_columns, packing::none) == "policy.packing = 1 is not supported; the nearest that is 3");
    CHECK(says(b_by_columns, packing::a) == "policy.packing = 2 is not supported; the nearest that is 4");
    CHECK(says(b_by_columns, packing::both) == "ok");
    CHECK(says(a_by_columns, packing::dynamic) == "ok");
}

TEST_CASE("B37 packing: memory too small or not aligned, B of other extents") {
    const index_t n = 30, k = 40;
    const auto plan = hone::plan({.m = 20, .n = n, .k = k});
    REQUIRE(plan.status() == status{});
    operands o(20, n, k);
    const index_t bytes = plan->packed_bytes();
    const hone::aligned_buffer memory(static_cast<std::size_t>(bytes) + 64);
    const auto pack = [&](const hone::matrix_view<const float>& b, std::byte* at, index_t size) {
        std::fill(memory.data(), memory.data() + memory.size(), std::byte{0x5A});
        const status s = plan->pack(b, {at, static_cast<std::size_t>(size)});
        CHECK((s.ok() || std::all_of(memory.data(), memory.data() + memory.size(),
                                     [](std::byte x) { return x == std::byte{0x5A}; })));
        return s;
    };
    check(pack(o.vb, memory.data(), bytes - 1), {code::too_small, argument::memory, bytes - 1, bytes},
          "memory = " + std::to_string(bytes - 1) + " is too small; bytes or elements needed are " +
              std::to_string(bytes));
    check(pack(o.vb, memory.data() + 4, bytes), {code::misaligned, argument::memory, 4, 64},
          "memory = 4 must be aligned to bytes 64");
    check(pack(hone::row_major<const float>(o.b.data(), k - 1, n), memory.data(), bytes),
          {code::mismatch, argument::b_rows, k - 1, k}, "b.rows = 39 must equal 40");
    check(pack(hone::row_major<const float>(o.b.data(), k, n - 1), memory.data(), bytes),
          {code::mismatch, argument::b_cols, n - 1, n}, "b.cols = 29 must equal 30");
    check(pack(hone::row_major<const float>(nullptr, k, n), memory.data(), bytes),
          {code::null_pointer, argument::b_data, 0, n * k}, "b.data = 0 must not be null: elements at stake are 1200");
    CHECK(pack({o.b.data(), k, n, INT64_MAX / 2, 1}, memory.data(), bytes).code == code::too_large);
    CHECK(pack(o.vb, memory.data(), bytes) == status{});
    for (std::size_t i = static_cast<std::size_t>(bytes); i < memory.size(); ++i)
        CHECK(memory.data()[i] == std::byte{0x5A});
}

// Elements at addresses that are no multiples of their alignment, as a pointer into a mapped file may be: reading them
// is undefined and faults on some machines, so they are refused.
TEST_CASE("B37 operands and what stages view at odd addresses") {
    const index_t m = 3, n = 4, k = 5;
    for (hone::isa id : test::isas()) {
        operands o(m, n, k);
        std::vector<float> spare(64, 1.0f);
        const auto off = [&](const auto* type, index_t bytes) {
            using U = std::remove_pointer_t<decltype(type)>;
            return reinterpret_cast<U*>(reinterpret_cast<const char*>(spare.data()) + bytes);
        };
        const float* const as_float = nullptr;
        const hone::bf16* const as_bf16 = nullptr;
        for (index_t by : {1, 2, 3}) {
            const float* odd = off(as_float, by);
            const auto run = [&](const auto& a, const auto& b, const auto& c, const auto& stages) {
                const auto plan = hone::plan({.m = m, .n = n, .k = k}, {.isa = id}, stages);
                REQUIRE(plan.status() == status{});
                return plan->run(a, b, c, stages);
            };
            const auto refused = [&](const status& s, argument which, const char* what) {
                check(s, {code::misaligned, which, by, 4},
                      std::string(what) + " = " + std::to_string(by) + " must be aligned to bytes 4");
            };
            refused(run(hone::row_major(odd, m, k), o.vb, o.vc, hone::identity), argument::a_data, "a.data");
            refused(run(o.va, hone::row_major(odd, k, n), o.vc, hone::identity), argument::b_data, "b.data");
            refused(run(o.va, o.vb, hone::row_major(const_cast<float*>(odd), m, n), hone::identity), argument::c_data,
                    "c.data");
            refused(run(o.va, o.vb, o.vc, hone::bias(odd)), argument::epilogue_vector, "epilogue vector");
            refused(run(o.va, o.vb, o.vc, hone::relu | hone::scale(odd)), argument::epilogue_vector, "epilogue vector");
            refused(run(o.va, o.vb, o.vc, hone::add(hone::row_major(odd, m, n))), argument::epilogue_view,
                    "epilogue view");
            refused(run(o.va, o.vb, o.vc, hone::row_max(const_cast<float*>(odd))), argument::epilogue_vector,
                    "epilogue vector");
            const auto plan = hone::plan({.m = m, .n = n, .k = k}, {.isa = id});
            REQUIRE(plan.status() == status{});
            const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
            refused(plan->pack(hone::row_major(odd, k, n), {memory.data(), memory.size()}), argument::b_data, "b.data");
            // Elements of two bytes lie at even addresses; at such the numbers are right.
            const hone::bf16* halves = off(as_bf16, by);
            const status s = run(o.va, o.vb, o.vc, hone::bias(halves));
            if (by % 2) {
                check(s, {code::misaligned, argument::epilogue_vector, 1, 2},
                      "epilogue vector = 1 must be aligned to bytes 2");
                CHECK(run(o.va, o.vb, hone::row_major(const_cast<hone::bf16*>(halves), m, n),
                          hone::store_as<hone::bf16>()) == status{code::misaligned, argument::c_data, 1, 2});
            } else {
                CHECK(s == status{});
                std::fill(o.c.begin(), o.c.end(), 77.0f);
            }
            CHECK(o.untouched());
        }
        CHECK(spare == std::vector<float>(64, 1.0f));
        // alpha = 0 reads neither A nor B.
        CHECK(hone::gemm(0.0, hone::row_major(off(as_float, 1), m, k), o.vb, 1.0, o.vc) == status{});
    }
}

TEST_CASE("packed weights that are truncated, damaged or something else") {
    const index_t m = 20, n = 30, k = 40;
    const auto plan = hone::plan({.m = m, .n = n, .k = k});
    REQUIRE(plan.status() == status{});
    operands o(m, n, k);
    const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()) + 64);
    const std::size_t size = static_cast<std::size_t>(plan->packed_bytes());
    const std::span<std::byte> bytes(memory.data(), size);
    REQUIRE(plan->pack(o.vb, bytes) == status{});
    const std::vector<std::byte> good(bytes.begin(), bytes.end());
    const auto restore = [&] { std::copy(good.begin(), good.end(), bytes.begin()); };
    const auto header = [&] {
        hone::packed_header h;
        std::memcpy(&h, memory.data(), sizeof h);
        return h;
    };
    const auto opened = [&](std::span<const std::byte> s) { return hone::packed_view::open(s).status(); };
    const auto total = static_cast<std::int64_t>(size);

    CHECK(header().kind == hone::packed_kind::gemm_b);
    CHECK(header().k == k);
    CHECK(header().n == n);
    CHECK(header().finite == 1);
    check(opened({}), {code::too_small, argument::packed_bytes, 0, 128},
          "packed.bytes = 0 is too small; bytes or elements needed are 128");
    check(opened(bytes.first(127)), {code::too_small, argument::packed_bytes, 127, 128},
          "packed.bytes = 127 is too small; bytes or elements needed are 128");
    check(opened(bytes.first(size - 1)), {code::too_small, argument::packed_bytes, total - 1, total},
          "packed.bytes = " + std::to_string(total - 1) + " is too small; bytes or elements needed are " +
              std::to_string(total));
    std::memmove(memory.data() + 8, memory.data(), size);
    check(opened({memory.data() + 8, size}), {code::misaligned, argument::packed_bytes, 8, 64},
          "packed.bytes = 8 must be aligned to bytes 64");
    restore();

    // Any byte of the header.
    for (std::size_t i = 0; i < sizeof(hone::packed_header); ++i) {
        memory.data()[i] ^= std::byte{0x10};
        const status s = opened(bytes);
        INFO("byte " << i);
        CHECK(s.code == code::corrupt);
        CHECK(s.argument == (i < 8    ? argument::packed_magic
                             : i < 12 ? argument::packed_version
                                      : argument::packed_header));
        restore();
    }
    memory.data()[8] = std::byte{2};
    check(opened(bytes), {code::corrupt, argument::packed_version, 2, 1},
          "packed.version = 2 does not match what was packed; expected 1");
    restore();
    // Any byte of the payload: open() does not read it, verify() does.
    for (std::size_t i = sizeof(hone::packed_header); i < size; i += 97) {
        memory.data()[i] ^= std::byte{0x01};
        const auto view = hone::packed_view::open(bytes);
        REQUIRE(view.status() == status{});
        const status s = view->verify();
        CHECK(s.code == code::corrupt);
        CHECK(s.argument == argument::packed_payload);
        restore();
    }
    CHECK(hone::packed_view::open(bytes)->verify() == status{});

    // What a plan asks for and what was packed.
    const auto run_with = [&](auto change) {
        hone::packed_header h = header();
        change(h);
        h.header_checksum = hone::detail::header_checksum(h);
        std::memcpy(memory.data(), &h, sizeof h);
        const auto view = hone::packed_view::open(bytes);
        REQUIRE(view.status() == status{});
        const status s = plan->run(o.va, *view, o.vc);
        restore();
        return s;
    };
    check(run_with([](auto& h) { h.kind = hone::packed_kind::conv; }), {code::corrupt, argument::packed_layout, 2, 1},
          "packed.layout = 2 does not match what was packed; expected 1");
    check(run_with([](auto& h) { h.element = 8; }), {code::corrupt, argument::packed_layout, 8, 4},
          "packed.layout = 8 does not match what was packed; expected 4");
    const auto panel = static_cast<std::int64_t>(header().panel);
    check(run_with([](auto& h) { h.panel *= 2; }), {code::corrupt, argument::packed_layout, 2 * panel, panel},
          "packed.layout = " + std::to_string(2 * panel) + " does not match what was packed; expected " +
              std::to_string(panel));
    check(run_with([](auto& h) { h.groups = 3; }), {code::corrupt, argument::packed_extent, 3, 1},
          "packed extent = 3 does not match what was packed; expected 1");
    CHECK(run_with([](auto& h) { h.k = 39; }) == status{code::corrupt, argument::packed_extent, 39, 40});
    CHECK(run_with([](auto& h) { h.n = 29; }) == status{code::corrupt, argument::packed_extent, 29, 30});
    CHECK(run_with([](auto& h) { h.kh = 3; }) == status{code::corrupt, argument::packed_extent, 3, 0});
    CHECK(run_with([](auto& h) { h.kw = 3; }) == status{code::corrupt, argument::packed_extent, 3, 0});
    CHECK(o.untouched());
    // Damage after it was opened.
    const auto view = hone::packed_view::open(bytes);
    memory.data()[20] ^= std::byte{1};
    CHECK(plan->run(o.va, *view, o.vc).code == code::corrupt);
    CHECK(o.untouched());
    restore();
    CHECK(plan->run(o.va, *view, o.vc) == status{});
    CHECK(o.c == std::vector<float>(600, 80.0f));
    // Weights that are not finite say so.
    o.b[7] = std::numeric_limits<float>::infinity();
    REQUIRE(plan->pack(o.vb, bytes) == status{});
    CHECK(header().finite == 0);
}

TEST_CASE("epilogues whose operands do not fit") {
    operands o(3, 4, 5);
    const std::vector<float> four(4, 1.0f), five(5, 1.0f);
    const auto run = [&](const auto& stages) { return hone::gemm(o.va, o.vb, o.vc, stages); };
    const std::string_view five_words = "epilogue vector = 5 must equal 4";
    check(run(hone::bias(five)), {code::mismatch, argument::epilogue_vector, 5, 4}, five_words);
    check(run(hone::scale(five)), {code::mismatch, argument::epilogue_vector, 5, 4}, five_words);
    check(run(hone::relu | hone::bias(four) | hone::bias(five) | hone::gelu),
          {code::mismatch, argument::epilogue_vector, 5, 4}, five_words);
    check(run(hone::bias(std::vector<float>{})), {code::mismatch, argument::epilogue_vector, 0, 4},
          "epilogue vector = 0 must equal 4");
    check(run(hone::bias(static_cast<const float*>(nullptr))), {code::null_pointer, argument::epilogue_vector, 0, 4},
          "epilogue vector = 0 must not be null: elements at stake are 4");
    const auto view = [&](index_t r, index_t c) { return hone::row_major<const float>(o.a.data(), r, c); };
    check(run(hone::add(view(2, 4))), {code::mismatch, argument::epilogue_view, 2, 3},
          "epilogue view = 2 must equal 3");
    check(run(hone::add(view(3, 5))), {code::mismatch, argument::epilogue_view, 5, 4},
          "epilogue view = 5 must equal 4");
    check(run(hone::mul(view(3, 5))), {code::mismatch, argument::epilogue_view, 5, 4},
          "epilogue view = 5 must equal 4");
    check(run(hone::add(hone::row_major<const float>(nullptr, 3, 4))),
          {code::null_pointer, argument::epilogue_view, 0, 3},
          "epilogue view = 0 must not be null: elements at stake are 3");
    check(run(hone::add(hone::nhwc<const float>(o.a.data(), 1, 1, 3, 4))),
          {code::unsupported, argument::epilogue_view, 4, 2},
          "epilogue view = 4 is not supported; the nearest that is 2");
    check(run(hone::clip(2, 1)), {code::too_large, argument::epilogue_bounds, 2, 1},
          "epilogue bounds = 2 must be at most 1");
    constexpr double none = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    for (const auto& [low, high] :
         {std::pair{none, 1.0}, std::pair{0.0, none}, std::pair{inf, -inf}, std::pair{0.9, 0.1}}) {
        CHECK(run(hone::clip(low, high)).argument == argument::epilogue_bounds);
    }
    CHECK(o.untouched());
    CHECK(run(hone::clip(-inf, inf) | hone::bias(four)) == status{});
    CHECK(o.c == std::vector<float>(12, 11.0f));
}

TEST_CASE("B14 m = 0 or n = 0: null pointers in stages are fine too") {
    const hone::matrix_view<const float> a{nullptr, 0, 5, 5, 1}, b{nullptr, 5, 4, 4, 1}, none{nullptr, 0, 4, 4, 1};
    const hone::matrix_view<float> c{nullptr, 0, 4, 4, 1};
    CHECK(hone::gemm(a, b, c, hone::add(none) | hone::mul(none)) == status{});
    CHECK(hone::gemm(a, b, c, hone::bias(static_cast<const float*>(nullptr))) == status{});
    CHECK(hone::gemm(hone::row_major<const float>(nullptr, 3, 5), hone::row_major<const float>(nullptr, 5, 0),
                     hone::row_major<float>(nullptr, 3, 0),
                     hone::bias(static_cast<const float*>(nullptr))) == status{});
}

#if defined(__SANITIZE_ADDRESS__)
#define HONE_TEST_ALLOCATOR_ABORTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define HONE_TEST_ALLOCATOR_ABORTS 1
#endif
#endif

TEST_CASE("B82 scratch that the system cannot give") {
#ifdef HONE_TEST_ALLOCATOR_ABORTS
    WARN("skipped: a sanitizer ends the program where memory runs out");
#else
    // 2^20 rows of 2^30 columns of B in one block: 2^52 bytes. C is never reached.
    const index_t n = index_t{1} << 30, k = index_t{1} << 20;
    const index_t m = index_t{1} << 14;  // more rows than a block has: B is packed whole
    static float one = 1;
    float c = 77;
    const hone::policy p{.block = {.kc = 1 << 20, .nc = 1 << 30}};
    const hone::matrix_view<const float> a{&one, m, k, 0, 0}, b{&one, k, n, 0, 0};
    const auto plan = hone::plan({.m = m, .n = n, .k = k, .a = {0, 0}, .b = {0, 0}}, p);
    REQUIRE(plan.status() == status{});
    const index_t bytes = plan->scratch_bytes();
    REQUIRE(bytes >= index_t{1} << 52);
    // As far as the system's allocator is concerned; one element of C stands for all.
    const status s = plan->run(a, b, hone::matrix_view<float>{&c, m, n, n, 1});
    check(s, {code::out_of_memory, argument::scratch, bytes, bytes},
          "scratch = " + std::to_string(bytes) + " could not be allocated; bytes asked were " + std::to_string(bytes));
    CHECK(c == 77.0f);
    // The next call works.
    operands o(2, 3, 4);
    CHECK(hone::gemm(o.va, o.vb, o.vc) == status{});
#endif
}
