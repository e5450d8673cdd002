// SPDX-License-Identifier: BSL-1.0
// fixed.hpp: products whose shape is a template argument, bit for bit on every instruction set, and the memory they touch.
#include <hone/fixed.hpp>

#include <hone/gemm.hpp>

#include <utility>

#include "reference.hpp"

using hone::argument;
using hone::code;
using hone::shape;
using hone::status;
using test::edge;
using test::guarded;
using test::index_t;
using test::layout;
using test::matrix;
using test::random_source;

namespace {

// Operands in guarded memory, and C as it must be.
template <shape S>
struct product {
    product(edge side, layout la, layout lb, layout lc)
        : am(test::span_of(S.m, S.k, la), side),
          bm(test::span_of(S.k, S.n, lb), side),
          cm(test::span_of(S.m, S.n, lc), side),
          a(am, S.m, S.k, la),
          b(bm, S.k, S.n, lb),
          c(cm, S.m, S.n, lc) {
        random_source source(static_cast<std::uint64_t>(S.m * 10000 + S.n * 100 + S.k));
        a.fill(source);
        b.fill(source);
        c.fill([](index_t, index_t) { return std::numeric_limits<float>::quiet_NaN(); });
        a.remember();
        b.remember();
        c.remember();
    }
    // "" when every element is what the contract says, and nothing else was touched.
    std::string fault(bool exact) const {
        if (!a.unchanged()) return "A was written, or memory around it";
        if (!b.unchanged()) return "B was written, or memory around it";
        if (!c.gaps_unchanged()) return "memory outside C was written";
        for (index_t i = 0; i < S.m; ++i) {
            for (index_t j = 0; j < S.n; ++j) {
                const float want = test::strict_dot(1, a.in(), b.in(), i, j);
                bool right = test::same(c(i, j), want);
                if (!exact && !right) {
                    const test::near_value v = test::dot(1, a.in(), b.in(), 0, 0, i, j);
                    right = test::near(static_cast<double>(c(i, j)), v.value, v.bound);
                }
                if (right) continue;
                std::ostringstream text;
                text.precision(9);
                text << "C(" << i << ", " << j << ") is " << c(i, j) << ", not " << want;
                return text.str();
            }
        }
        return "";
    }
    guarded<float> am, bm, cm;
    matrix<float> a, b, c;
};

template <shape S>
void check_shape() {
    INFO(S.m << "x" << S.n << "x" << S.k);
    for (const edge side : {edge::end, edge::begin}) {
        INFO(test::name(side));
        for (const hone::isa id : test::isas()) {
            INFO(hone::isa_name(id));
            const bool exact = test::reproducible(id);
            const auto dense = hone::fixed_gemm<S, hone::rows::dense>::on(id);
            REQUIRE(dense.status() == status{});
            product<S> d(side, test::rows_of(S.k), test::rows_of(S.n), test::rows_of(S.n));
            (*dense)(d.a.view().data, d.b.view().data, d.c.view().data);
            CHECK(d.fault(exact) == "");

            const auto strided = hone::fixed_gemm<S>::on(id);
            REQUIRE(strided.status() == status{});
            for (const index_t gap : {0, 3}) {
                product<S> s(side, test::rows_of(S.k, gap), test::rows_of(S.n, 2 * gap), test::rows_of(S.n, gap));
                (*strided)(s.a.view().data, s.a.view().row_stride, s.b.view().data, s.b.view().row_stride, s.c.view().data,
                           s.c.view().row_stride);
                CHECK(s.fault(exact) == "");
            }
            // Rows from the last to the first, and one row of A for all.
            product<S> back(side, {-S.k - 1, 1}, {-S.n, 1}, {-S.n - 2, 1});
            (*strided)(back.a.view().data, -S.k - 1, back.b.view().data, -S.n, back.c.view().data, -S.n - 2);
            CHECK(back.fault(exact) == "");
            product<S> repeated(side, {0, 1}, test::rows_of(S.n), test::rows_of(S.n));
            (*strided)(repeated.a.view().data, 0, repeated.b.view().data, S.n, repeated.c.view().data, S.n);
            CHECK(repeated.fault(exact) == "");
        }
        // What is dispatched: views, and the same bits from hone::gemm.
        const bool exact = test::reproducible(hone::active_isa());
        product<S> v(side, test::rows_of(S.k, 1), test::rows_of(S.n, 2), test::rows_of(S.n, 5));
        CHECK(hone::gemm<S>(v.a.in(), v.b.in(), v.c.view()) == status{});
        CHECK(v.fault(exact) == "");
        std::vector<float> other(static_cast<std::size_t>(S.m * S.n));
        const auto c = hone::row_major(other.data(), S.m, S.n);
        REQUIRE(hone::gemm(v.a.in(), v.b.in(), c).ok());
        CHECK(test::difference(v.c.in(), c) == "");
        product<S> d(side, test::rows_of(S.k), test::rows_of(S.n), test::rows_of(S.n));
        const hone::fixed_gemm<S, hone::rows::dense> multiply;
        multiply(d.a.view().data, d.b.view().data, d.c.view().data);
        CHECK(d.fault(exact) == "");
    }
}

template <shape... S>
void check_shapes() {
    (check_shape<S>(), ...);
}

void check(const status& got, const status& want, std::string_view words) {
    CHECK(got == want);
    CHECK(std::string(got.message().view()) == std::string(words));
}

}  // namespace

TEST_CASE("shapes that engines and solvers name") {
    check_shapes<shape{4, 4, 4}, shape{8, 8, 8}, shape{16, 16, 16}, shape{23, 23, 23}, shape{32, 32, 32}, shape{64, 64, 64},
                 shape{7, 13, 17}>();
}

TEST_CASE("extents from 1 to 17: every count of lanes and rows that is left over") {
    check_shapes<shape{1, 1, 1}, shape{2, 1, 3}, shape{3, 2, 2}, shape{5, 3, 4}, shape{1, 4, 7}, shape{2, 5, 1}, shape{3, 6, 9},
                 shape{4, 7, 5}, shape{6, 8, 10}, shape{9, 9, 9}, shape{10, 10, 6}, shape{11, 11, 3}, shape{12, 12, 12},
                 shape{13, 14, 11}, shape{15, 15, 15}, shape{17, 17, 17}, shape{14, 4, 13}, shape{17, 3, 8}>();
}

TEST_CASE("columns and rows split unevenly, and the largest extents") {
    check_shapes<shape{33, 70, 10}, shape{19, 84, 5}, shape{128, 3, 2}, shape{2, 128, 3}, shape{5, 20, 128}>();
}

TEST_CASE("NaN and infinity in fixed shapes pass into their own elements only") {
    constexpr float inf = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();
    constexpr shape s{5, 7, 6};
    for (const hone::isa id : test::isas()) {
        INFO(hone::isa_name(id));
        product<s> o(edge::end, test::rows_of(s.k), test::rows_of(s.n), test::rows_of(s.n));
        o.a(4, 5) = inf;
        o.a(1, 0) = nan_value;
        o.b(2, 6) = -inf;
        o.b(3, 0) = nan_value;
        o.a.remember();
        o.b.remember();
        const auto f = hone::fixed_gemm<s>::on(id);
        REQUIRE(f.status() == status{});
        (*f)(o.a.view().data, s.k, o.b.view().data, s.n, o.c.view().data, s.n);
        CHECK(o.fault(test::reproducible(id)) == "");
        CHECK(!std::isnan(o.c(0, 1)));
        CHECK(!std::isnan(o.c(3, 6)));
    }
}

TEST_CASE("a product of zeros is +0 where the chain begins at +0, and keeps no -0") {
    constexpr shape s{3, 5, 1};
    for (const hone::isa id : test::isas()) {
        if (id == hone::isa::native && HONE_FAST_MATH) continue;  // follows the unit's flags, and they ignore the sign of zero
        INFO(hone::isa_name(id));
        product<s> o(edge::end, test::rows_of(s.k), test::rows_of(s.n), test::rows_of(s.n));
        o.a.fill([](index_t, index_t) { return -0.0f; });
        o.b.fill([](index_t, index_t) { return 1.0f; });
        o.a.remember();
        o.b.remember();
        const auto f = hone::fixed_gemm<s>::on(id);
        REQUIRE(f.status() == status{});
        (*f)(o.a.view().data, s.k, o.b.view().data, s.n, o.c.view().data, s.n);
        CHECK(o.fault(true) == "");
        CHECK(!std::signbit(o.c(2, 4)));
    }
}

TEST_CASE("an instruction set that cannot run is a status") {
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        const auto f = hone::fixed_gemm<shape{4, 4, 4}>::on(id);
        INFO(hone::isa_name(id));
        CHECK(f.has_value() == hone::available(id));
        if (!f) CHECK(f.status().code == code::isa_unavailable);
    }
    CHECK(hone::fixed_gemm<shape{4, 4, 4}>::on(hone::isa::dynamic).has_value());
    CHECK(hone::fixed_gemm<shape{4, 4, 4}>::on(static_cast<hone::isa>(99)).status().code == code::isa_unknown);
    static_assert(sizeof(hone::fixed_gemm<shape{4, 4, 4}>) == sizeof(void*));
    static_assert(std::is_trivially_copyable_v<hone::fixed_gemm<shape{4, 4, 4}>>);
}

TEST_CASE("gemm of a shape names the argument that is not of it") {
    static constexpr shape s{3, 5, 4};
    std::vector<float> am(64, 1.0f), bm(64, 2.0f), cm(64, 77.0f);
    const auto a = hone::row_major<const float>(am.data(), 3, 4);
    const auto b = hone::row_major<const float>(bm.data(), 4, 5);
    const auto c = hone::row_major(cm.data(), 3, 5);
    const auto run = [](auto x, auto y, auto z) { return hone::gemm<s>(x, y, z); };
    const auto with = [](auto view, auto change) {
        change(view);
        return view;
    };
    check(run(with(a, [](auto& v) { v.rows = 2; }), b, c), {code::mismatch, argument::a_rows, 2, 3}, "a.rows = 2 must equal 3");
    check(run(with(a, [](auto& v) { v.cols = 5; }), b, c), {code::mismatch, argument::a_cols, 5, 4}, "a.cols = 5 must equal 4");
    check(run(a, with(b, [](auto& v) { v.rows = -4; }), c), {code::mismatch, argument::b_rows, -4, 4}, "b.rows = -4 must equal 4");
    check(run(a, with(b, [](auto& v) { v.cols = 0; }), c), {code::mismatch, argument::b_cols, 0, 5}, "b.cols = 0 must equal 5");
    check(run(a, b, with(c, [](auto& v) { v.rows = 4; })), {code::mismatch, argument::c_rows, 4, 3}, "c.rows = 4 must equal 3");
    check(run(a, b, with(c, [](auto& v) { v.cols = 6; })), {code::mismatch, argument::c_cols, 6, 5}, "c.cols = 6 must equal 5");
    check(run(with(a, [](auto& v) { v.col_stride = 2; }), b, c), {code::mismatch, argument::a_col_stride, 2, 1},
          "a.col_stride = 2 must equal 1");
    check(run(a, with(b, [](auto& v) { v.col_stride = -1; }), c), {code::mismatch, argument::b_col_stride, -1, 1},
          "b.col_stride = -1 must equal 1");
    check(run(a, b, with(c, [](auto& v) { v.col_stride = 3; })), {code::mismatch, argument::c_col_stride, 3, 1},
          "c.col_stride = 3 must equal 1");
    check(run(a, b, with(c, [](auto& v) { v.row_stride = 4; })), {code::bad_stride, argument::c_row_stride, 4, 5},
          "c.row_stride = 4 makes elements of C coincide; it must be at least 5");
    check(run(with(a, [](auto& v) { v.row_stride = INT64_MAX; }), b, c),
          {code::too_large, argument::a_rows, 3, INT64_MAX / 2}, "a.rows = 3 must be at most 4611686018427387903");
    check(run(with(a, [](auto& v) { v.data = nullptr; }), b, c), {code::null_pointer, argument::a_data, 0, 12},
          "a.data = 0 must not be null: elements at stake are 12");
    check(run(a, with(b, [](auto& v) { v.data = nullptr; }), c), {code::null_pointer, argument::b_data, 0, 20},
          "b.data = 0 must not be null: elements at stake are 20");
    check(run(a, b, with(c, [](auto& v) { v.data = nullptr; })), {code::null_pointer, argument::c_data, 0, 15},
          "c.data = 0 must not be null: elements at stake are 15");
    CHECK(run(hone::row_major<const float>(cm.data() + 14, 3, 4), b, c) == status{code::overlap, argument::a_data, 1, 0});
    CHECK(run(a, hone::row_major<const float>(cm.data(), 4, 5), c) == status{code::overlap, argument::b_data, 1, 0});
    const auto off = [](const float* p) { return reinterpret_cast<const float*>(reinterpret_cast<const char*>(p) + 2); };
    CHECK(run(with(a, [&](auto& v) { v.data = off(v.data); }), b, c) == status{code::misaligned, argument::a_data, 2, 4});
    CHECK(std::all_of(cm.begin(), cm.end(), [](float x) { return x == 77.0f; }));
}

TEST_CASE("gemm of a shape takes views that interleave, and strides of single rows and columns that mean nothing") {
    // A beside B beside C in rows of one matrix.
    std::vector<float> all(6 * 20, 1.0f);
    const auto a = hone::row_major<const float>(all.data(), 6, 6, 20);
    const auto b = hone::row_major<const float>(all.data() + 6, 6, 5, 20);
    const auto c = hone::row_major(all.data() + 11, 6, 5, 20);
    CHECK(hone::gemm<shape{6, 5, 6}>(a, b, c) == status{});
    for (index_t i = 0; i < 6; ++i) {
        for (index_t j = 0; j < 20; ++j) {
            CHECK(all[static_cast<std::size_t>(i * 20 + j)] == (j >= 11 && j < 16 ? 6.0f : 1.0f));
        }
    }
    std::vector<float> x{2, 3, 4}, y{10}, z(3);
    CHECK(hone::gemm<shape{3, 1, 1}>(hone::matrix_view<const float>{x.data(), 3, 1, 1, -7},
                                     hone::matrix_view<const float>{y.data(), 1, 1, 0, 0},
                                     hone::matrix_view<float>{z.data(), 3, 1, 1, 0}) == status{});
    CHECK(z == std::vector<float>{20, 30, 40});
}
