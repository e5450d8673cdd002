// SPDX-License-Identifier: BSL-1.0
// gemm.hpp: the numbers of every kernel, bit for bit, and the memory it touches. Case names begin with the number of
// the public report they come from.
#include "reference.hpp"

#include <memory>
#include <optional>

using test::edge;
using test::guarded;
using test::index_t;
using test::kernel;
using test::layout;
using test::matrix;
using test::random_source;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// One product and everything about it that must not change a bit of the result.
struct problem {
    index_t m = 0, n = 0, k = 0;
    double alpha = 1, beta = 0;
    std::optional<layout> a{}, b{}, c{};  // left out: dense rows
    hone::policy policy{};
    hone::executor_ref executor{};
    bool packed = false;     // B packed beforehand
    index_t dynamic_m = -1;  // >= 0: the plan's bound
    edge side = edge::end;
    std::uint64_t seed = 1;
    // Spoils operands after the random fill.
    void (*spoil)(matrix<float>& a, matrix<float>& b, matrix<float>& c) = nullptr;

    std::string text() const {
        std::ostringstream s;
        s << m << "x" << n << "x" << k << " alpha " << alpha << " beta " << beta << " isa "
          << hone::isa_name(policy.isa) << " tile " << policy.tile.mr << "x" << policy.tile.nr << " block "
          << policy.block.mc << "," << policy.block.kc << "," << policy.block.nc << (packed ? " packed B" : "") << " A "
          << lay(a) << " B " << lay(b) << " C " << lay(c) << ", " << name(side);
        return s.str();
    }
    static std::string lay(const std::optional<layout>& l) {
        return l ? "(" + std::to_string(l->row) + ", " + std::to_string(l->col) + ")" : "dense";
    }
};

bool bitwise(hone::isa id) { return test::reproducible(id == hone::isa::dynamic ? hone::active_isa() : id); }

// Runs it in guarded memory. "" when every element is what the contract says, no gap, no operand and no guard was
// touched. Where `out` is given, the elements of C are left there, row by row.
std::string run(const problem& p, std::vector<float>* out = nullptr) {
    const layout la = p.a.value_or(test::rows_of(p.k)), lb = p.b.value_or(test::rows_of(p.n)),
                 lc = p.c.value_or(test::rows_of(p.n));
    guarded<float> am(test::span_of(p.m, p.k, la), p.side), bm(test::span_of(p.k, p.n, lb), p.side),
        cm(test::span_of(p.m, p.n, lc), p.side);
    matrix<float> a(am, p.m, p.k, la), b(bm, p.k, p.n, lb), c(cm, p.m, p.n, lc);
    random_source source(p.seed);
    a.fill(source);
    b.fill(source);
    c.fill(source);
    if (p.spoil) p.spoil(a, b, c);
    a.remember();
    b.remember();
    c.remember();

    hone::gemm_desc desc{.m = p.m,
                         .n = p.n,
                         .k = p.k,
                         .a = {la.row, la.col},
                         .b = {lb.row, lb.col},
                         .c = {lc.row, lc.col},
                         .alpha = p.alpha,
                         .beta = p.beta};
    if (p.dynamic_m >= 0) {
        desc.m = p.dynamic_m;
        desc.dynamic_m = true;
    }
    const hone::context ctx{.executor = p.executor};
    const auto plan = hone::plan(desc, p.policy, hone::identity, ctx);
    if (!plan) return "no plan: " + std::string(plan.status().message().view());
    hone::status s;
    if (p.packed) {
        const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
        const std::span<std::byte> bytes(memory.data(), memory.size());
        s = plan->pack(b.in(), bytes);
        if (!s.ok()) return "not packed: " + std::string(s.message().view());
        const auto opened = hone::packed_view::open(bytes);
        if (!opened) return "not opened: " + std::string(opened.status().message().view());
        if (!opened->verify().ok()) return "not verified";
        s = plan->run(a.in(), *opened, c.view(), hone::identity, ctx);
    } else {
        s = plan->run(a.in(), b.in(), c.view(), hone::identity, ctx);
    }
    if (!s.ok()) return std::string(s.message().view());
    if (!a.unchanged()) return "A was written, or memory around it";
    if (!b.unchanged()) return "B was written, or memory around it";
    if (!c.gaps_unchanged()) return "memory outside C was written";
    const bool exact = bitwise(p.policy.isa);
    for (index_t i = 0; i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) {
            const float got = c(i, j),
                        want = test::strict_sum(p.beta, c.old(i, j), test::strict_dot(p.alpha, a.in(), b.in(), i, j));
            bool right = test::same(got, want);
            if (!exact && !right) {
                const test::near_value v =
                    test::dot(p.alpha, a.in(), b.in(), p.beta, static_cast<double>(c.old(i, j)), i, j);
                right = test::near(static_cast<double>(got), v.value, v.bound);
            }
            if (out) out->push_back(got);
            if (right) continue;
            std::ostringstream text;
            text.precision(9);
            text << "C(" << i << ", " << j << ") is " << got << ", not " << want;
            return text.str();
        }
    }
    return "";
}

#define REQUIRE_RIGHT(...)                                \
    do {                                                  \
        const problem wanted_ = __VA_ARGS__;              \
        const std::string wrong_ = run(wanted_);          \
        if (!wrong_.empty())                              \
            FAIL_CHECK(wanted_.text() << ": " << wrong_); \
        else                                              \
            SUCCEED();                                    \
    } while (false)

// Extents around the multiples of a tile.
std::vector<index_t> around(index_t unit) {
    std::vector<index_t> list = {1, 2, unit - 1, unit, unit + 1, 2 * unit - 1, 2 * unit, 2 * unit + 1};
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    std::erase_if(list, [](index_t x) { return x < 1; });
    return list;
}

std::vector<index_t> all_to(index_t last) {
    std::vector<index_t> list;
    for (index_t i = 0; i <= last; ++i) list.push_back(i);
    return list;
}

// Sums after 0, 1, 2 … k steps of every chain of A (m, k) B (k, n): the reference of all smaller products at once.
class chains {
public:
    chains(const hone::matrix_view<const float>& a, const hone::matrix_view<const float>& b) : m_(a.rows), n_(b.cols) {
        t_.resize(static_cast<std::size_t>((a.cols + 1) * m_ * n_), 0.0f);
        size_.resize(t_.size(), 0.0);
        exact_.resize(t_.size(), 0.0);
        for (index_t p = 0; p < a.cols; ++p) {
            for (index_t i = 0; i < m_; ++i) {
                for (index_t j = 0; j < n_; ++j) {
                    const float x = *a.at(i, p), y = *b.at(p, j);
                    const double product = static_cast<double>(x) * static_cast<double>(y);
                    t_[at(p + 1, i, j)] = std::fma(x, y, t_[at(p, i, j)]);
                    exact_[at(p + 1, i, j)] = exact_[at(p, i, j)] + product;
                    size_[at(p + 1, i, j)] = size_[at(p, i, j)] + std::abs(product);
                }
            }
        }
    }
    float sum(index_t k, index_t i, index_t j) const { return t_[at(k, i, j)]; }
    double exact(index_t k, index_t i, index_t j) const { return exact_[at(k, i, j)]; }
    double size(index_t k, index_t i, index_t j) const { return size_[at(k, i, j)]; }

private:
    std::size_t at(index_t k, index_t i, index_t j) const { return static_cast<std::size_t>((k * m_ + i) * n_ + j); }
    index_t m_, n_;
    std::vector<float> t_;
    std::vector<double> exact_, size_;
};

// All m of `ms`, n of `ns` and k of `ks` with one kernel, each twice: C = A B, and C = -1.5 A B + 0.5 C.
std::string small_shapes(const kernel& kn, edge side, const std::vector<index_t>& ms, const std::vector<index_t>& ns,
                         const std::vector<index_t>& ks, std::size_t& count) {
    const index_t most_m = ms.back(), most_n = ns.back(), most_k = ks.back();
    std::vector<float> a_all(static_cast<std::size_t>(most_m * most_k)),
        b_all(static_cast<std::size_t>(most_k * most_n));
    random_source source(static_cast<std::uint64_t>(kn.mr * 1000 + kn.nr));
    for (float& x : a_all) x = source.value();
    for (float& x : b_all) x = source.value();
    const auto a_from = hone::row_major<const float>(a_all.data(), most_m, most_k);
    const auto b_from = hone::row_major<const float>(b_all.data(), most_k, most_n);
    const chains want(a_from, b_from);
    constexpr index_t a_gap = 3, b_gap = 5, c_gap = 2;
    guarded<float> am(most_m * (most_k + a_gap), side), bm(most_k * (most_n + b_gap), side),
        cm(most_m * (most_n + c_gap), side);
    const bool exact = bitwise(kn.isa);
    for (index_t k : ks) {
        for (index_t n : ns) {
            matrix<float> b(bm, k, n, test::rows_of(n, b_gap));
            b.fill([&](index_t p, index_t j) { return *b_from.at(p, j); });
            b.remember();
            for (index_t m : ms) {
                matrix<float> a(am, m, k, test::rows_of(k, a_gap));
                a.fill([&](index_t i, index_t p) { return *a_from.at(i, p); });
                a.remember();
                for (const bool plain : {true, false}) {
                    matrix<float> c(cm, m, n, test::rows_of(n, c_gap));
                    if (!plain) c.fill([&](index_t i, index_t j) { return static_cast<float>(i - 2 * j) * 0.37f; });
                    c.remember();
                    hone::gemm_desc desc = hone::describe(a.in(), b.in(), c.view());
                    if (!plain) {
                        desc.alpha = -1.5;
                        desc.beta = 0.5;
                    }
                    const auto plan = hone::plan(desc, kn.policy());
                    const hone::status s = plan ? plan->run(a.in(), b.in(), c.view()) : plan.status();
                    ++count;
                    std::ostringstream where;
                    where << m << "x" << n << "x" << k << (plain ? "" : " with alpha and beta") << ", " << name(side)
                          << ": ";
                    if (!s.ok()) return where.str() + std::string(s.message().view());
                    if (!c.gaps_unchanged()) return where.str() + "memory outside C was written";
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j) {
                            const float t = want.sum(k, i, j), got = c(i, j);
                            const float v =
                                plain ? t : std::fma(0.5f, c.old(i, j), test::rounded((k == 0 ? 1.0f : -1.5f) * t));
                            if (test::same(got, v)) continue;
                            const double alpha = plain ? 1.0 : -1.5, beta = plain ? 0.0 : 0.5;
                            const double old = plain ? 0.0 : static_cast<double>(c.old(i, j));
                            const double bound =
                                (2.0 * static_cast<double>(k) + 4) * test::eps * 1.5 * want.size(k, i, j) +
                                4 * test::eps * std::abs(beta * old);
                            if (!exact &&
                                test::near(static_cast<double>(got), alpha * want.exact(k, i, j) + beta * old, bound))
                                continue;
                            where.precision(9);
                            where << "C(" << i << ", " << j << ") is " << got << ", not " << v;
                            return where.str();
                        }
                    }
                }
                if (!a.unchanged()) return "A was written";
            }
            if (!b.unchanged()) return "B was written";
        }
    }
    return "";
}

void spoil_c_with_nan(matrix<float>&, matrix<float>&, matrix<float>& c) {
    c.fill([](index_t, index_t) { return nan_value; });
}
void spoil_a_with_nan(matrix<float>& a, matrix<float>&, matrix<float>&) {
    a.fill([](index_t, index_t) { return nan_value; });
}

}  // namespace

TEST_CASE("B68 every line of kernels.def is a kernel with a body for each edge") {
    int lines[hone::isa_count] = {};
#define HONE_GEMM(region, type, mr, registers) \
    if (std::is_same_v<type, float>) ++lines[static_cast<int>(hone::isa::region)];
#include <hone/kernels.def>
    for (hone::isa id : test::isas()) {
        const auto& list = hone::detail::gemm_kernels<float>(id);
        INFO(hone::isa_name(id));
        REQUIRE(list.count == lines[static_cast<int>(id)]);
        REQUIRE(list.count > 0);
        for (int r = 0; r < list.count; ++r) {
            const auto& row = list.row[r];
            CHECK(row.isa == id);
            CHECK(row.pack_lines != nullptr);
            CHECK(row.nr % row.lanes == 0);
            const int registers = row.nr / row.lanes;
            for (index_t rows = 1; rows <= 2 * row.mr; ++rows) {
                for (int narrowest = 1; narrowest <= registers; ++narrowest) {
                    for (index_t left = rows; left > 0;) {
                        const hone::detail::tile_run run = hone::detail::next_run(row, left, narrowest);
                        REQUIRE(run.count > 0);
                        CHECK(run.height <= hone::detail::tile_heights[run.index]);
                        for (int v = narrowest; v <= registers; ++v) CHECK(row.micro[run.index][v - 1] != nullptr);
                        left -= run.count * run.height;
                        CHECK(left >= 0);
                    }
                }
            }
            CHECK(hone::detail::next_run(row, row.mr, registers).height == row.mr);
        }
    }
}

// m and n from 0 to twice the tile and one, all of them; k from 0 to 17 and around multiples of 16. That is 190,000
// products of the widest kernel (6 x 64), a second or two, because one table of chains is the reference of all of them.
// Quick: only the edges.
TEST_CASE("B20 B31 B68 all small shapes of every kernel, in guarded memory, to the bit") {
    for (const kernel& kn : test::kernels()) {
        std::vector<index_t> ms = all_to(2 * kn.mr + 1), ns = all_to(2 * kn.nr + 1), ks = all_to(17);
        for (index_t k : {31, 32, 33, 47, 48, 49, 64, 65}) ks.push_back(k);
        if (test::quick()) {
            ms = around(kn.mr);
            ns = around(kn.nr);
            ns.push_back(kn.lanes + 1);
            ns.push_back(kn.nr + kn.lanes);
            std::sort(ns.begin(), ns.end());
            ms.insert(ms.begin(), 0);
            ns.insert(ns.begin(), 0);
            ks = {0, 1, 2, 3, 5, 16, 17};
        }
        for (edge side : {edge::end, edge::begin}) {
            std::size_t count = 0;
            const std::string wrong = small_shapes(kn, side, ms, ns, ks, count);
            INFO(kn.text() << ": " << count << " products");
            CHECK(wrong == "");
            CHECK(count == 2 * ms.size() * ns.size() * ks.size());
        }
    }
}

TEST_CASE("all four transposes, with and without gaps") {
    for (const kernel& kn : test::kernels()) {
        const std::vector<index_t> ms = around(kn.mr),
                                   ns = test::quick() ? std::vector<index_t>{1, kn.nr + 1} : around(kn.nr);
        for (index_t m : ms) {
            for (index_t n : ns) {
                for (index_t k : {1, 4, 7, 18}) {
                    for (int form = 0; form < 8; ++form) {
                        const index_t more = form & 4 ? 3 : 0;
                        REQUIRE_RIGHT({.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = form & 1 ? test::cols_of(m, more) : test::rows_of(k, more),
                                       .b = form & 2 ? test::cols_of(k, more) : test::rows_of(n, more),
                                       .c = test::rows_of(n, more),
                                       .policy = kn.policy(),
                                       .side = form & 1 ? edge::begin : edge::end});
                    }
                }
            }
        }
    }
}

TEST_CASE("any strides: negative, repeated, columns of C not contiguous") {
    for (const kernel& kn : test::first_kernels()) {
        for (index_t m : {index_t{1}, index_t{3}, index_t{kn.mr + 1}}) {
            for (index_t n : {index_t{1}, index_t{kn.lanes + 1}, index_t{kn.nr + 3}}) {
                for (index_t k : {1, 2, 9}) {
                    const layout as[] = {{k, 1}, {-k, 1},        {k, -1}, {-2 * k, -2}, {0, 1}, {1, 0},
                                         {0, 0}, {3, 3 * m + 2}, {1, m},  {-1, -m},     {1, 1}};
                    const layout bs[] = {{n, 1}, {-n, 1}, {n, -1}, {0, 1}, {1, 0}, {0, 0}, {2, 2 * k}, {-1, k}, {1, 1}};
                    const layout cs[] = {{n, 1},   {-n, 1},    {n, -1},    {1, m},
                                         {-1, -m}, {2, 2 * m}, {2 * n, 2}, {-3 * n - 1, -3}};
                    std::size_t turn = 0;
                    for (const layout& a : as) {
                        for (const layout& b : bs) {
                            const layout& c = cs[turn++ % std::size(cs)];
                            REQUIRE_RIGHT({.m = m,
                                           .n = n,
                                           .k = k,
                                           .a = a,
                                           .b = b,
                                           .c = c,
                                           .policy = kn.policy(),
                                           .side = turn % 2 ? edge::end : edge::begin});
                        }
                    }
                    for (const layout& c : cs) {
                        REQUIRE_RIGHT(
                            {.m = m, .n = n, .k = k, .alpha = 0.75, .beta = -2, .c = c, .policy = kn.policy()});
                    }
                }
            }
        }
    }
}

TEST_CASE("B19 row stride 3 and column stride 1000 for A, B and C") {
    for (hone::isa id : test::isas()) {
        const index_t last = test::quick() ? 200 : 300;
        for (index_t size = 200; size <= last; size += 25) {
            const index_t m = test::quick() ? 5 : size;
            REQUIRE_RIGHT({.m = m,
                           .n = size,
                           .k = 8,
                           .a = layout{3, 1000},
                           .b = layout{3, 1000},
                           .c = layout{3, 1000},
                           .policy = {.isa = id}});
            REQUIRE_RIGHT({.m = m,
                           .n = size,
                           .k = 8,
                           .beta = 1,
                           .a = layout{1000, 3},
                           .b = layout{1000, 3},
                           .c = layout{1000, 3},
                           .policy = {.isa = id}});
        }
    }
}

TEST_CASE("B01 B02 beta = 0 must not read C, in full tiles and at edges") {
    for (const kernel& kn : test::kernels()) {
        for (float left : {nan_value, inf, -inf}) {
            for (double beta : {0.0, -0.0}) {
                for (index_t m : {index_t{5}, index_t{kn.mr + 1}}) {
                    for (index_t n : {index_t{5}, index_t{kn.nr + 1}}) {
                        for (double alpha : {1.0, 2.0, 0.0}) {
                            std::vector<float> a(static_cast<std::size_t>(m * 5), 0.0f),
                                b(static_cast<std::size_t>(5 * n), 0.0f), c(static_cast<std::size_t>(m * n), left);
                            const auto va = hone::row_major<const float>(a.data(), m, 5);
                            const auto vb = hone::row_major<const float>(b.data(), 5, n);
                            const auto vc = hone::row_major(c.data(), m, n);
                            hone::gemm_desc desc = hone::describe(va, vb, vc);
                            desc.alpha = alpha;
                            desc.beta = beta;
                            const auto plan = hone::plan(desc, kn.policy());
                            REQUIRE(plan.status() == hone::status{});
                            REQUIRE(plan->run(va, vb, vc) == hone::status{});
                            INFO(kn.text() << " left " << left << " alpha " << alpha);
                            CHECK(std::all_of(c.begin(), c.end(), [](float x) { return test::same(x, 0.0f); }));
                        }
                        REQUIRE_RIGHT(
                            {.m = m, .n = n, .k = 5, .beta = beta, .policy = kn.policy(), .spoil = spoil_c_with_nan});
                        REQUIRE_RIGHT({.m = m,
                                       .n = n,
                                       .k = 5,
                                       .alpha = 3,
                                       .beta = beta,
                                       .policy = kn.policy(),
                                       .spoil = spoil_c_with_nan});
                    }
                }
            }
        }
    }
}

TEST_CASE("B01 beta = 0 and columns of C not contiguous, several k blocks, epilogues") {
    for (const kernel& kn : test::kernels()) {
        hone::policy blocked = kn.policy();
        blocked.block.kc = 2;
        for (const layout& c : {layout{kn.nr + 1, 1}, layout{1, kn.mr + 1}, layout{2 * kn.nr + 2, 2}}) {
            REQUIRE_RIGHT(
                {.m = kn.mr + 1, .n = kn.nr + 1, .k = 5, .c = c, .policy = kn.policy(), .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT(
                {.m = kn.mr + 1, .n = kn.nr + 1, .k = 5, .c = c, .policy = blocked, .spoil = spoil_c_with_nan});
        }
        std::vector<float> a(25, 0.0f), b(25, 0.0f), c(25, nan_value);
        const auto va = hone::row_major<const float>(a.data(), 5, 5), vb = hone::row_major<const float>(b.data(), 5, 5);
        const auto vc = hone::row_major(c.data(), 5, 5);
        const auto stages = hone::scale(2.0) | hone::relu;
        const auto plan = hone::plan(hone::describe(va, vb, vc), blocked, stages);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(va, vb, vc, stages) == hone::status{});
        CHECK(std::all_of(c.begin(), c.end(), [](float x) { return test::same(x, 0.0f); }));
    }
}

TEST_CASE("B04 alpha = 0 reads neither A nor B") {
    for (hone::isa id : test::isas()) {
        const auto product = [id](double alpha, double beta) {
            std::vector<float> a(16, 1.0f), b(16, 1.0f), c(16, 3.0f);
            a[0] = nan_value;
            const auto va = hone::row_major<const float>(a.data(), 4, 4),
                       vb = hone::row_major<const float>(b.data(), 4, 4);
            const auto vc = hone::row_major(c.data(), 4, 4);
            hone::gemm_desc desc = hone::describe(va, vb, vc);
            desc.alpha = alpha;
            desc.beta = beta;
            const auto plan = hone::plan(desc, {.isa = id});
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(va, vb, vc) == hone::status{});
            return c;
        };
        CHECK(product(0, 1) == std::vector<float>(16, 3.0f));
        CHECK(product(0, 0) == std::vector<float>(16, 0.0f));
        CHECK(product(0, 2) == std::vector<float>(16, 6.0f));
        CHECK(product(-0.0, 2) == std::vector<float>(16, 6.0f));
        const std::vector<float> c = product(1, 0);
        for (std::size_t i = 0; i < 16; ++i) CHECK((i < 4 ? std::isnan(c[i]) : c[i] == 4.0f));

        // Neither is touched: both point at a protected page.
        guarded<float> none(1, edge::begin);
        float* beyond = none.data() - 64;
        std::vector<float> kept(12, 2.0f);
#if HONE_TEST_GUARD_PAGES
        hone::gemm_desc desc{.m = 3, .n = 4, .k = 5, .alpha = 0, .beta = 0.5};
        const auto plan = hone::plan(desc, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(beyond, 3, 5), hone::row_major<const float>(beyond, 5, 4),
                          hone::row_major(kept.data(), 3, 4)) == hone::status{});
        CHECK(kept == std::vector<float>(12, 1.0f));
        const hone::packed_view absent{};
        REQUIRE(plan->run(hone::row_major<const float>(nullptr, 3, 5), absent, hone::row_major(kept.data(), 3, 4)) ==
                hone::status{});
        CHECK(kept == std::vector<float>(12, 0.5f));
#else
        static_cast<void>(beyond);
#endif
    }
}

TEST_CASE("alpha and beta, -0 and values that float rounds") {
    for (const kernel& kn : test::kernels()) {
        for (double alpha : {1.0, -1.0, 0.1, 1e-30, 0.0, -0.0}) {
            for (double beta : {0.0, -0.0, 1.0, -1.0, 0.3, 1e20}) {
                for (const bool blocked : {false, true}) {
                    hone::policy p = kn.policy();
                    if (blocked) p.block.kc = 3;
                    REQUIRE_RIGHT(
                        {.m = kn.mr + 1, .n = kn.lanes + 1, .k = 7, .alpha = alpha, .beta = beta, .policy = p});
                }
            }
            REQUIRE_RIGHT({.m = 2,
                           .n = kn.nr + 1,
                           .k = 7,
                           .alpha = alpha,
                           .policy = kn.policy(),
                           .spoil = alpha == 0.0 ? spoil_a_with_nan : nullptr});
        }
    }
}

TEST_CASE("a chain begins at +0: a product of -0 gives +0") {
    for (const kernel& kn : test::kernels()) {
        for (index_t k : {1, 2, 5}) {
            std::vector<float> a(static_cast<std::size_t>(k), -0.0f), b(static_cast<std::size_t>(k), 1.0f), c(1, 7.0f);
            const auto va = hone::row_major<const float>(a.data(), 1, k),
                       vb = hone::row_major<const float>(b.data(), k, 1);
            const auto vc = hone::row_major(c.data(), 1, 1);
            const auto plan = hone::plan(hone::describe(va, vb, vc), kn.policy());
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(va, vb, vc) == hone::status{});
            INFO(kn.text());
            CHECK(test::same(c[0], 0.0f));
        }
        // u = alpha * +0 is -0 for a negative alpha.
        REQUIRE_RIGHT({.m = 3,
                       .n = 3,
                       .k = 2,
                       .alpha = -1,
                       .policy = kn.policy(),
                       .spoil = [](matrix<float>& a, matrix<float>&, matrix<float>&) {
                           a.fill([](index_t, index_t) { return 0.0f; });
                       }});
    }
}

TEST_CASE("B13 k = 0 gives beta * C through the epilogue") {
    for (const kernel& kn : test::kernels()) {
        for (double alpha : {1.0, 2.0}) {
            REQUIRE_RIGHT({.m = 1,
                           .n = 1,
                           .k = 0,
                           .alpha = alpha,
                           .a = layout{2, 1},
                           .b = layout{1, 1},
                           .c = layout{2, 1},
                           .policy = kn.policy(),
                           .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 9,
                           .n = 2,
                           .k = 0,
                           .alpha = alpha,
                           .a = layout{1, 10},
                           .b = layout{1, 1},
                           .c = layout{1, 10},
                           .policy = kn.policy(),
                           .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 4, .n = 4, .k = 0, .alpha = alpha, .policy = kn.policy(), .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 4, .n = 4, .k = 0, .alpha = alpha, .beta = 1, .policy = kn.policy()});
            REQUIRE_RIGHT(
                {.m = 2 * kn.mr + 1, .n = 2 * kn.nr + 1, .k = 0, .alpha = alpha, .beta = -0.5, .policy = kn.policy()});
            REQUIRE_RIGHT({.m = kn.mr, .n = kn.nr, .k = 0, .beta = 1, .policy = kn.policy(), .packed = true});
        }
        // With null operands, a bias and ReLU: max(7 + b, 0).
        std::vector<float> c(16, 7.0f);
        const std::vector<float> b = {1, -8, -7, 0.5f};
        const auto stages = hone::bias(b) | hone::relu;
        const auto plan = hone::plan({.m = 4, .n = 4, .k = 0, .beta = 1}, kn.policy(), stages);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(nullptr, 4, 0), hone::row_major<const float>(nullptr, 0, 4),
                          hone::row_major(c.data(), 4, 4), stages) == hone::status{});
        for (std::size_t i = 0; i < 16; ++i) CHECK(c[i] == std::vector<float>{8, 0, 0, 7.5f}[i % 4]);
    }
}

TEST_CASE("B14 m = 0 or n = 0 touches nothing") {
    for (hone::isa id : test::isas()) {
        const index_t shapes[][3] = {{0, 5, 3}, {5, 0, 3}, {0, 0, 0}, {0, 5, 0}, {0, 0, 4}};
        for (const auto& s : shapes) {
            const hone::matrix_view<const float> a{nullptr, s[0], s[2], 0, 0}, b{nullptr, s[2], s[1], 0, 0};
            const hone::matrix_view<float> c{nullptr, s[0], s[1], 0, 0};
            const auto plan = hone::plan(hone::describe(a, b, c), {.isa = id});
            REQUIRE(plan.status() == hone::status{});
            CHECK(plan->run(a, b, c) == hone::status{});
            CHECK(plan->run(a, hone::packed_view{}, c) == hone::status{});
            CHECK(plan->scratch_bytes() >= 0);
            CHECK(hone::gemm(2.0, a, b, 3.0, c, hone::gelu) == hone::status{});
            test::reverse_executor many(8);
            CHECK(hone::gemm(a, b, c, hone::identity, {.executor = many}) == hone::status{});
        }
    }
    // A leading dimension of 0 where there is one row.
    float a[] = {1, 2}, b[] = {3, 4}, c[] = {0};
    CHECK(hone::gemm(hone::row_major<const float>(a, 1, 2, 0), hone::row_major<const float>(b, 2, 1, 1),
                     hone::row_major(c, 1, 1, 0)) == hone::status{});
    CHECK(c[0] == 11.0f);
}

TEST_CASE("B16 4x4x4 of 0 to 15") {
    for (const kernel& kn : test::kernels()) {
        float a[16], c[16];
        for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i);
        const auto v = hone::row_major<const float>(a, 4, 4);
        const auto plan = hone::plan({.m = 4, .n = 4, .k = 4}, kn.policy());
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(v, v, hone::row_major(c, 4, 4)) == hone::status{});
        CHECK(std::vector<float>(c, c + 16) ==
              std::vector<float>{56, 62, 68, 74, 152, 174, 196, 218, 248, 286, 324, 362, 344, 398, 452, 506});
    }
}

TEST_CASE("B17 the smallest product, B packed and not") {
    for (const kernel& kn : test::kernels()) {
        float a[] = {1, 2, 3, 4}, b[] = {5, 7, 6, 8}, c[4];
        const auto va = hone::row_major<const float>(a, 2, 2), vb = hone::row_major<const float>(b, 2, 2);
        const auto plan = hone::plan({.m = 2, .n = 2, .k = 2}, kn.policy());
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(va, vb, hone::row_major(c, 2, 2)) == hone::status{});
        CHECK(std::vector<float>(c, c + 4) == std::vector<float>{17, 23, 39, 53});
        const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
        const std::span<std::byte> bytes(memory.data(), memory.size());
        REQUIRE(plan->pack(vb, bytes) == hone::status{});
        std::fill(c, c + 4, nan_value);
        REQUIRE(plan->run(va, *hone::packed_view::open(bytes), hone::row_major(c, 2, 2)) == hone::status{});
        CHECK(std::vector<float>(c, c + 4) == std::vector<float>{17, 23, 39, 53});
    }
}

TEST_CASE("k blocks: partial sums in C and in scratch, mc and nc small") {
    constexpr int kc = 6;
    for (const kernel& kn : test::kernels()) {
        const int unit = std::max(kn.nr, kn.panel);
        const std::vector<hone::blocking> blocks = {{0, kc, 0},    {kn.mr, kc, unit}, {2 * kn.mr, kc, 2 * unit},
                                                    {kn.mr, 1, 0}, {0, kc, unit},     {kn.mr, 0, unit}};
        const index_t m = 3 * kn.mr + 1, n = test::quick() ? unit + 1 : 2 * unit + kn.lanes + 1;
        for (const hone::blocking& block : blocks) {
            hone::policy p = kn.policy();
            p.block = block;
            for (index_t k : {kc - 1, kc, kc + 1, 3 * kc + 2}) {
                for (const bool packed : {false, true}) {
                    // Sums in C; in scratch because beta reads C; in scratch because columns of C are apart.
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m,
                                   .n = n,
                                   .k = k,
                                   .alpha = 0.5,
                                   .c = test::rows_of(n, 1),
                                   .policy = p,
                                   .packed = packed,
                                   .spoil = spoil_c_with_nan});
                    REQUIRE_RIGHT(
                        {.m = m, .n = n, .k = k, .beta = 2, .c = test::rows_of(n, 1), .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .c = test::cols_of(m, 1), .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m,
                                   .n = n,
                                   .k = k,
                                   .beta = -1,
                                   .a = test::cols_of(m, 1),
                                   .c = layout{-2 * n, -2},
                                   .policy = p,
                                   .packed = packed,
                                   .side = edge::begin});
                }
            }
        }
    }
}

TEST_CASE("packed B: from any strides, and from the plan of another instruction set with the same panels") {
    const std::vector<kernel> list = test::kernels();
    for (const kernel& kn : list) {
        for (index_t n :
             {index_t{1}, index_t{kn.panel - 1}, index_t{kn.panel}, index_t{kn.panel + 1}, index_t{2 * kn.nr + 1}}) {
            for (index_t k : {1, 5, 17}) {
                for (const layout& b : {layout{n, 1}, layout{1, k}, layout{-n, 1}, layout{0, 1}, layout{3 * n, -3}}) {
                    REQUIRE_RIGHT({.m = kn.mr + 1,
                                   .n = n,
                                   .k = k,
                                   .b = b,
                                   .policy = kn.policy(),
                                   .packed = true,
                                   .side = n % 2 ? edge::end : edge::begin});
                }
            }
        }
    }
    for (const kernel& from : list) {
        for (const kernel& to : list) {
            const index_t m = 7, n = 2 * std::max(from.nr, to.nr) + 3, k = 19;
            std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
                c(static_cast<std::size_t>(m * n));
            random_source source(3);
            for (float& x : a) x = source.value();
            for (float& x : b) x = source.value();
            const auto va = hone::row_major<const float>(a.data(), m, k),
                       vb = hone::row_major<const float>(b.data(), k, n);
            const auto packs = hone::plan({.m = 1, .n = n, .k = k}, from.policy()),
                       runs = hone::plan({.m = m, .n = n, .k = k}, to.policy());
            REQUIRE(packs.status() == hone::status{});
            REQUIRE(runs.status() == hone::status{});
            const hone::aligned_buffer memory(static_cast<std::size_t>(packs->packed_bytes()));
            const std::span<std::byte> bytes(memory.data(), memory.size());
            REQUIRE(packs->pack(vb, bytes) == hone::status{});
            const hone::status s = runs->run(va, *hone::packed_view::open(bytes), hone::row_major(c.data(), m, n));
            INFO(from.text() << " packs, " << to.text() << " runs");
            if (from.panel != to.panel) {
                CHECK(s == hone::status{hone::code::corrupt, hone::argument::packed_layout, from.panel, to.panel});
                continue;
            }
            REQUIRE(s == hone::status{});
            std::vector<float> want(c.size());
            REQUIRE(runs->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
            CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(float)) == 0);
        }
    }
}

TEST_CASE("dynamic m: any number of rows up to the bound, with the scratch of the bound") {
    for (const kernel& kn : test::first_kernels()) {
        const index_t bound = 3 * kn.mr + 1, n = kn.nr + 1;
        for (index_t m = 0; m <= bound; ++m) {
            REQUIRE_RIGHT({.m = m, .n = n, .k = 9, .policy = kn.policy(), .dynamic_m = bound});
            hone::policy p = kn.policy();
            p.block = {.mc = kn.mr, .kc = 4, .nc = 0};
            test::reverse_executor four(4);
            REQUIRE_RIGHT({.m = m,
                           .n = n,
                           .k = 9,
                           .alpha = 2,
                           .beta = 1,
                           .a = test::cols_of(bound),
                           .policy = p,
                           .executor = four,
                           .dynamic_m = bound});
            REQUIRE_RIGHT({.m = m, .n = n, .k = 9, .policy = p, .executor = four, .packed = true, .dynamic_m = bound});
        }
    }
}

TEST_CASE("one plan, many runs: other operands, other threads") {
    const index_t m = 13, n = 37, k = 21;
    const auto plan = hone::plan({.m = m, .n = n, .k = k});
    REQUIRE(plan.status() == hone::status{});
    const auto copy = *plan;
    static_assert(std::is_trivially_copyable_v<std::remove_cv_t<decltype(copy)>>);
    const auto once = [&](std::uint64_t seed) -> std::string {
        std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n));
        random_source source(seed);
        for (float& x : a) x = source.value();
        for (float& x : b) x = source.value();
        const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
        const hone::status s = copy.run(va, vb, hone::row_major(c.data(), m, n));
        if (!s.ok()) return std::string(s.message().view());
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) {
                const test::near_value v = test::dot(1, va, vb, 0, 0, i, j);
                const float got = c[static_cast<std::size_t>(i * n + j)];
                if (!test::near(static_cast<double>(got), v.value, v.bound)) return "differs";
                if (bitwise(hone::isa::dynamic) && !test::same(got, test::strict_dot(1, va, vb, i, j)))
                    return "differs in a bit";
            }
        }
        return "";
    };
    for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(once(seed) == "");
    std::vector<std::string> wrong(8);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < 20; ++i) wrong[t] += once(t * 100 + i);
        });
    }
    for (std::thread& t : threads) t.join();
    for (const std::string& w : wrong) CHECK(w == "");
}

TEST_CASE("B88 executors: 1 to 8 std::threads and tasks in reverse order give the same bits") {
    for (const kernel& kn : test::kernels()) {
        for (const bool blocked : {false, true}) {
            hone::policy p = kn.policy();
            if (blocked) p.block = {.mc = kn.mr, .kc = 5, .nc = std::max(kn.nr, kn.panel)};
            const index_t shapes[][3] = {
                {5 * kn.mr + 1, 3 * kn.nr + 1, 11}, {1, 5 * kn.nr + 2, 13}, {9 * kn.mr, 1, 12}, {kn.mr, kn.nr, 6}};
            for (const auto& s : shapes) {
                const problem base{.m = s[0], .n = s[1], .k = s[2], .alpha = 1.25, .beta = 0.5, .policy = p};
                std::vector<float> serial;
                REQUIRE(run(base, &serial) == "");
                index_t most = 1;
                for (int workers = 1; workers <= 8; ++workers) {
                    if (test::quick() && workers != 1 && workers != 3 && workers != 8) continue;
                    for (const bool packed : {false, true}) {
                        test::thread_executor threads(workers);
                        test::reverse_executor reverse(workers);
                        problem with = base;
                        with.packed = packed;
                        for (hone::executor_ref x : {hone::executor_ref(threads), hone::executor_ref(reverse)}) {
                            with.executor = x;
                            std::vector<float> got;
                            INFO(with.text() << ", workers " << workers);
                            CHECK(run(with, &got) == "");
                            REQUIRE(got.size() == serial.size());
                            CHECK(std::memcmp(got.data(), serial.data(), got.size() * sizeof(float)) == 0);
                        }
                        CHECK(threads.most_tasks <= workers);
                        CHECK(reverse.most_tasks <= workers);
                        most = std::max(most, reverse.most_tasks);
                    }
                }
                const bool divisible = s[0] > kn.mr || s[1] > std::max(kn.nr, kn.panel);
                CHECK((most > 1) == divisible);
            }
        }
    }
}

TEST_CASE("policy.threads bounds the workers") {
    for (int limit : {1, 2, 3}) {
        test::reverse_executor eight(8);
        const index_t size = 300;
        const auto plan =
            hone::plan({.m = size, .n = size, .k = 2}, {.threads = limit}, hone::identity, {.executor = eight});
        REQUIRE(plan.status() == hone::status{});
        CHECK(plan->explain().workers <= limit);
        REQUIRE_RIGHT({.m = size, .n = size, .k = 2, .policy = {.threads = limit}, .executor = eight});
        CHECK(eight.most_tasks <= limit);
    }
}

TEST_CASE("B88 row 0 does not depend on m, workers, pointer offsets or blocks") {
    const index_t k = 4097, n = test::quick() ? 5 : 33;
    std::vector<float> a(static_cast<std::size_t>(64 * k + 16)), b(static_cast<std::size_t>(k * n + 16));
    random_source source(5);
    std::vector<float> a_values(static_cast<std::size_t>(64 * k)), b_values(static_cast<std::size_t>(k * n));
    for (float& x : a_values) x = source.value();
    for (float& x : b_values) x = source.value();
    std::vector<float> want;
    for (index_t j = 0; j < n; ++j) {
        want.push_back(test::strict_dot(1, hone::row_major<const float>(a_values.data(), 64, k),
                                        hone::row_major<const float>(b_values.data(), k, n), 0, j));
    }
    for (hone::isa id : test::isas()) {
        std::vector<float> first = want;
        bool have_first = test::reproducible(id);
        std::vector<hone::blocking> blocks = {{}, {.kc = 100}, {.mc = 64, .kc = 4096, .nc = 64}};
        // What machines with other caches would take.
        const auto& kn = hone::detail::gemm_kernels<float>(id).row[0];
        for (std::int64_t l1 : {16, 32, 128, 1024}) {
            hone::machine::cache_info caches;
            caches.l1d.bytes = l1 << 10;
            caches.l1d.ways = 8;
            caches.l2.bytes = caches.l3.bytes = std::max<std::int64_t>(caches.l1d.bytes, l1 << 13);
            blocks.push_back(hone::detail::model_blocks(caches, kn.mr, kn.nr, 64, 4));
        }
        CHECK_FALSE(blocks[3] == blocks[6]);
        for (index_t m : {1, 2, 7, 64}) {
            if (test::quick() && m > 7) continue;
            for (std::ptrdiff_t offset = 0; offset < 16; offset += test::quick() ? 5 : 1) {
                for (const hone::blocking& block : blocks) {
                    std::copy(a_values.begin(), a_values.begin() + m * k, a.begin() + offset);
                    std::copy(b_values.begin(), b_values.end(), b.begin() + offset);
                    std::vector<float> c(static_cast<std::size_t>(m * n + 16));
                    test::reverse_executor workers(static_cast<int>(offset) + 1);
                    const hone::context ctx{.executor = workers};
                    const auto plan =
                        hone::plan({.m = m, .n = n, .k = k}, {.isa = id, .block = block}, hone::identity, ctx);
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(hone::row_major<const float>(a.data() + offset, m, k),
                                      hone::row_major<const float>(b.data() + offset, k, n),
                                      hone::row_major(c.data() + offset, m, n), hone::identity, ctx) == hone::status{});
                    if (!have_first) {
                        first.assign(c.begin() + offset, c.begin() + offset + n);
                        have_first = true;
                    }
                    INFO(hone::isa_name(id) << " m " << m << " offset " << offset << " kc " << block.kc);
                    CHECK(std::memcmp(c.data() + offset, first.data(), first.size() * sizeof(float)) == 0);
                }
            }
        }
    }
}

TEST_CASE("B89 a hundred repetitions give the same bits") {
    const index_t m = 65, n = 97, k = 130;
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), first,
        c(static_cast<std::size_t>(m * n));
    random_source source(6);
    for (float& x : a) x = source.value();
    for (float& x : b) x = source.value();
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto vc = hone::row_major(c.data(), m, n);
    test::thread_executor one(1), eight(8);
    for (hone::isa id : test::isas()) {
        first.clear();
        for (int i = 0; i < (test::quick() ? 3 : 100); ++i) {
            for (test::thread_executor* x : {&one, &eight}) {
                const hone::context ctx{.executor = *x};
                const auto plan = hone::plan(hone::describe(va, vb, vc), {.isa = id}, hone::identity, ctx);
                std::fill(c.begin(), c.end(), nan_value);
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(va, vb, vc, hone::identity, ctx) == hone::status{});
                if (first.empty()) {
                    first = c;
                    CHECK(std::none_of(first.begin(), first.end(), [](float v) { return std::isnan(v); }));
                }
                INFO(hone::isa_name(id) << " repetition " << i);
                REQUIRE(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0);
            }
        }
        CHECK(eight.most_tasks > 4);
    }
}

TEST_CASE("caller's scratch: the exact size is enough, nothing behind it is written") {
    for (const kernel& kn : test::kernels()) {
        const int unit = std::max(kn.nr, kn.panel);
        const hone::blocking blocks[] = {
            {}, {.kc = 3}, {.mc = kn.mr, .kc = 3, .nc = unit}, {.mc = 2 * kn.mr, .kc = 5, .nc = 2 * unit}};
        for (const hone::blocking& block : blocks) {
            for (int workers : {1, 2, 5}) {
                for (int form = 0; form < 4; ++form) {
                    const index_t m = 4 * kn.mr + 1, n = 2 * unit + 1, k = 8;
                    hone::policy p = kn.policy();
                    p.block = block;
                    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
                        c(static_cast<std::size_t>(m * n)), want(c.size());
                    random_source source(8);
                    for (float& x : a) x = source.value();
                    for (float& x : b) x = source.value();
                    const auto va = form & 1 ? hone::col_major<const float>(a.data(), m, k)
                                             : hone::row_major<const float>(a.data(), m, k);
                    const auto vb = hone::row_major<const float>(b.data(), k, n);
                    const auto vc = form & 2 ? hone::col_major(c.data(), m, n) : hone::row_major(c.data(), m, n);
                    const auto vw = form & 2 ? hone::col_major(want.data(), m, n) : hone::row_major(want.data(), m, n);
                    test::reverse_executor x(workers);
                    const auto plan = hone::plan(hone::describe(va, vb, vc), p, hone::identity, {.executor = x});
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(va, vb, vw) == hone::status{});
                    for (const bool packed : {false, true}) {
                        const index_t bytes = plan->scratch_bytes(workers, packed);
                        CHECK(plan->explain(packed).scratch_bytes == bytes);
                        INFO(kn.text() << " workers " << workers << " form " << form << " scratch " << bytes);
                        REQUIRE(bytes >= 0);
                        REQUIRE(bytes % 64 == 0);
                        guarded<std::byte> memory(bytes, edge::end);
                        const hone::context ctx{.executor = x,
                                                .scratch = {memory.data(), static_cast<std::size_t>(bytes)}};
                        std::fill(c.begin(), c.end(), nan_value);
                        if (packed) {
                            const hone::aligned_buffer held(static_cast<std::size_t>(plan->packed_bytes()));
                            const std::span<std::byte> span(held.data(), held.size());
                            REQUIRE(plan->pack(vb, span) == hone::status{});
                            REQUIRE(plan->run(va, *hone::packed_view::open(span), vc, hone::identity, ctx) ==
                                    hone::status{});
                        } else {
                            REQUIRE(plan->run(va, vb, vc, hone::identity, ctx) == hone::status{});
                        }
                        CHECK(memory.intact());
                        CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(float)) == 0);
                        if (bytes == 0) continue;
                        // One byte too few.
                        std::fill(c.begin(), c.end(), 5.0f);
                        const hone::context small{.executor = x,
                                                  .scratch = {memory.data(), static_cast<std::size_t>(bytes - 1)}};
                        if (!packed) {
                            CHECK(plan->run(va, vb, vc, hone::identity, small) ==
                                  hone::status{hone::code::too_small, hone::argument::scratch, bytes - 1, bytes});
                        }
                        CHECK(std::all_of(c.begin(), c.end(), [&](float v) { return packed || v == 5.0f; }));
                    }
                }
            }
        }
    }
}

// hone::gemm does small row-major products without a plan; a plan does them the general way.
TEST_CASE("B20 B31 small products without a plan give the bits of planned ones, in guarded memory") {
    const std::vector<index_t> ms = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33, 64}, ks = {1, 2, 3, 7, 16, 17, 64};
    const std::vector<index_t> ns = {1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 48, 63, 64};
    random_source source(10);
    for (index_t m : ms) {
        for (index_t n : ns) {
            for (index_t k : ks) {
                if (test::quick() && (m + n + k) % 5 != 0) continue;
                for (const edge side : {edge::end, edge::begin}) {
                    for (const index_t gap : {0, 3}) {  // elements between rows
                        const auto size = [&](index_t rows, index_t cols) { return (rows - 1) * (cols + gap) + cols; };
                        guarded<float> a(size(m, k), side), b(size(k, n), side), c(size(m, n), side);
                        std::vector<float> want(static_cast<std::size_t>(m * n), nan_value);
                        for (index_t i = 0; i < size(m, k); ++i) a.data()[i] = source.value();
                        for (index_t i = 0; i < size(k, n); ++i) b.data()[i] = source.value();
                        for (index_t i = 0; i < size(m, n); ++i) c.data()[i] = 77.0f;
                        const auto va = hone::row_major<const float>(a.data(), m, k, k + gap);
                        const auto vb = hone::row_major<const float>(b.data(), k, n, n + gap);
                        REQUIRE(hone::gemm(va, vb, hone::row_major(c.data(), m, n, n + gap)) == hone::status{});
                        const auto plan = hone::plan({.m = m, .n = n, .k = k, .a = {k + gap, 1}, .b = {n + gap, 1}});
                        REQUIRE(plan.status() == hone::status{});
                        REQUIRE(plan->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
                        INFO(m << "x" << n << "x" << k << " gap " << gap << ", " << name(side));
                        CHECK(a.intact());
                        CHECK(b.intact());
                        CHECK(c.intact());
                        index_t wrong = 0;
                        for (index_t i = 0; i < m; ++i) {
                            for (index_t j = 0; j < n + (i + 1 < m ? gap : 0); ++j) {
                                const float expected = j < n ? want[static_cast<std::size_t>(i * n + j)] : 77.0f;
                                if (std::memcmp(&c.data()[i * (n + gap) + j], &expected, sizeof expected) != 0) ++wrong;
                            }
                        }
                        REQUIRE(wrong == 0);
                    }
                }
            }
        }
    }
    // What the short way does not take is refused as ever.
    float x[64] = {};
    CHECK_FALSE(hone::gemm(hone::row_major(x, 4, 4), hone::row_major(x + 16, 4, 4), hone::row_major(x + 8, 4, 4)).ok());
    CHECK_FALSE(hone::gemm(hone::row_major(x, 4, 4), hone::row_major(x + 16, 3, 4), hone::row_major(x + 32, 4, 4)).ok());
    CHECK_FALSE(hone::gemm(hone::row_major<float>(nullptr, 4, 4), hone::row_major(x + 16, 4, 4), hone::row_major(x + 32, 4, 4)).ok());
    CHECK_FALSE(hone::gemm(hone::row_major(x, 4, 4), hone::row_major(x + 16, 4, 4), hone::row_major(x + 32, 4, 4, 3)).ok());
}

// Blocks of B that L1 does not hold are packed a tile of columns at a time, in whatever order the tiles come; few rows take
// rank updates where B lies in rows.
TEST_CASE("caller's scratch: the exact size is enough for B beyond L1, of few rows and of many") {
    const index_t n = 261, k = 700;
    std::vector<float> a_values(130 * 700), b_values(static_cast<std::size_t>(n * k)), offsets(static_cast<std::size_t>(n));
    random_source source(9);
    for (float& x : a_values) x = source.value();
    for (float& x : b_values) x = source.value();
    for (float& x : offsets) x = source.value();
    const auto stages = hone::bias(offsets) | hone::relu;
    const auto with = [&](hone::isa id, index_t m, bool by_columns, const auto& epilogue, std::vector<float>& c) {
        const auto va = hone::row_major<const float>(a_values.data(), m, k);
        const auto vb = by_columns ? hone::col_major<const float>(b_values.data(), k, n)
                                   : hone::row_major<const float>(b_values.data(), k, n);
        guarded<float> held(m * n);
        for (index_t i = 0; i < m * n; ++i) held.data()[i] = nan_value;
        const auto vc = hone::row_major(held.data(), m, n);
        const auto plan = hone::plan(hone::describe(va, vb, vc), {.isa = id}, epilogue);
        REQUIRE(plan.status() == hone::status{});
        const index_t bytes = plan->scratch_bytes();
        guarded<std::byte> memory(bytes, edge::end);
        std::byte none{};
        const hone::context ctx{.scratch = {bytes ? memory.data() : &none, static_cast<std::size_t>(bytes)}};
        REQUIRE(plan->run(va, vb, vc, epilogue, ctx) == hone::status{});
        CHECK(memory.intact());
        CHECK(held.intact());
        c.assign(held.data(), held.data() + m * n);
    };
    std::vector<float> want, c;
    for (const bool by_columns : {false, true}) {
        for (index_t m : {1, 2, 3, 5, 8, 9, 40, 130}) {
            if (test::quick() && m > 9) continue;
            for (const bool staged : {false, true}) {
                for (hone::isa id : test::isas()) {
                    INFO(hone::isa_name(id) << " m " << m << (by_columns ? " B by columns" : " B by rows") << " staged " << staged);
                    const bool first = id == test::isas().front();
                    std::vector<float>& out = first ? want : c;
                    if (staged) with(id, m, by_columns, stages, out);
                    else with(id, m, by_columns, hone::identity, out);
                    if (first || !test::reproducible(id) || !test::reproducible(test::isas().front())) continue;
                    CHECK(std::memcmp(want.data(), c.data(), want.size() * sizeof(float)) == 0);
                }
            }
        }
    }
}

// At most four columns, or rows where B's columns are contiguous, have a kernel of their own on some ISAs.
TEST_CASE("B20 B31 few columns and few rows, in guarded memory, to the bit") {
    random_source source(12);
    const hone::isa front = test::isas().front();
    for (index_t few : {1, 2, 3, 4, 5}) {
        for (index_t wide : {7, 8, 9, 31, 32, 33, 130, 300}) {
            for (index_t k : {7, 8, 9, 10, 11, 12, 65, 1024}) {
                if (test::quick() && (few + wide + k) % 7 != 0) continue;
                guarded<float> tall(wide * k), narrow(k * few), c(wide * few);
                std::vector<float> offsets(static_cast<std::size_t>(wide)), first, again;
                for (index_t i = 0; i < wide * k; ++i) tall.data()[i] = source.value();
                for (index_t i = 0; i < k * few; ++i) narrow.data()[i] = source.value();
                for (float& x : offsets) x = source.value();
                for (const bool swap : {false, true}) {
                    const auto a = swap ? hone::row_major<const float>(narrow.data(), few, k) : hone::row_major<const float>(tall.data(), wide, k);
                    const auto b = swap ? hone::col_major<const float>(tall.data(), k, wide) : hone::row_major<const float>(narrow.data(), k, few);
                    const index_t m = swap ? few : wide, n = swap ? wide : few;
                    for (int form = 0; form < 4; ++form) {
                        const auto vc = form & 1 ? hone::col_major(c.data(), m, n) : hone::row_major(c.data(), m, n);
                        for (hone::isa id : test::isas()) {
                            INFO(hone::isa_name(id) << ' ' << m << 'x' << n << 'x' << k << " form " << form);
                            for (index_t i = 0; i < m * n; ++i) c.data()[i] = nan_value;
                            test::reverse_executor workers(form == 3 ? 3 : 1);
                            const hone::context ctx{.executor = workers};
                            const auto with = [&](const auto& epilogue) {
                                const auto plan = hone::plan(hone::describe(a, b, vc), {.isa = id}, epilogue, ctx);
                                REQUIRE(plan.status() == hone::status{});
                                REQUIRE(plan->run(a, b, vc, epilogue, ctx) == hone::status{});
                                again.assign(c.data(), c.data() + m * n);
                                const hone::aligned_buffer held(static_cast<std::size_t>(plan->packed_bytes()));
                                const std::span<std::byte> span(held.data(), held.size());
                                REQUIRE(plan->pack(b, span) == hone::status{});
                                REQUIRE(plan->run(a, *hone::packed_view::open(span), vc, epilogue, ctx) == hone::status{});
                            };
                            if (form & 2) with(hone::bias(std::span<const float>(offsets).first(static_cast<std::size_t>(n))) | hone::relu);
                            else with(hone::identity);
                            CHECK(tall.intact());
                            CHECK(narrow.intact());
                            CHECK(c.intact());
                            const std::vector<float> got(c.data(), c.data() + m * n);
                            CHECK(std::memcmp(got.data(), again.data(), got.size() * sizeof(float)) == 0);
                            if (id == front) first = got;
                            else if (test::reproducible(id) && test::reproducible(front)) {
                                CHECK(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)) == 0);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("random shapes, layouts, blocks and workers against f64") {
    random_source source(11);
    const std::vector<hone::isa> list = test::isas();
    const int rounds = test::quick() ? 10 : 150;
    const index_t most = test::quick() ? 40 : 170;
    for (hone::isa id : list) {
        for (int round = 0; round < rounds; ++round) {
            const index_t m = source.between(1, most), n = source.between(1, most), k = source.between(1, 2 * most);
            const auto form = source.bits();
            const layout la =
                form & 1 ? test::cols_of(m, source.between(0, 4)) : test::rows_of(k, source.between(0, 4));
            const layout lb =
                form & 2 ? test::cols_of(k, source.between(0, 4)) : test::rows_of(n, source.between(0, 4));
            const layout lc =
                form & 4 ? test::cols_of(m, source.between(0, 4)) : test::rows_of(n, source.between(0, 4));
            const double alpha = form & 8 ? 1.0 : static_cast<double>(source.value());
            const double beta = form & 16 ? 0.0 : static_cast<double>(source.value());
            hone::policy p{.isa = id};
            if (form & 32) p.block.kc = static_cast<int>(source.between(1, k + 1));
            if (form & 64) p.block.mc = static_cast<int>(source.between(1, m + 1));
            if (form & 128) p.block.nc = static_cast<int>(source.between(1, n + 1));
            if (form & 256) p.packing = hone::packing::both;
            guarded<float> am(test::span_of(m, k, la)), bm(test::span_of(k, n, lb)), cm(test::span_of(m, n, lc));
            matrix<float> a(am, m, k, la), b(bm, k, n, lb), c(cm, m, n, lc);
            a.fill(source);
            b.fill(source);
            c.fill(source);
            c.remember();
            test::thread_executor threads(static_cast<int>(source.between(1, 5)));
            const hone::context ctx{.executor = threads};
            hone::gemm_desc desc = hone::describe(a.in(), b.in(), c.view());
            desc.alpha = alpha;
            desc.beta = beta;
            const auto plan = hone::plan(desc, p, hone::identity, ctx);
            INFO(hone::isa_name(id) << " " << m << "x" << n << "x" << k << " form " << form << " round " << round);
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(a.in(), b.in(), c.view(), hone::identity, ctx) == hone::status{});
            REQUIRE(c.gaps_unchanged());
            std::string wrong;
            for (index_t i = 0; i < m && wrong.empty(); ++i) {
                for (index_t j = 0; j < n && wrong.empty(); ++j) {
                    const test::near_value v =
                        test::dot(alpha, a.in(), b.in(), beta, static_cast<double>(c.old(i, j)), i, j);
                    if (!test::near(static_cast<double>(c(i, j)), v.value, v.bound)) {
                        wrong = "C(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                                std::to_string(c(i, j)) + ", not " + std::to_string(v.value);
                    } else if (test::reproducible(id) && (i * 7 + j) % 13 == 0 &&
                               !test::same(c(i, j), test::strict_sum(beta, c.old(i, j),
                                                                     test::strict_dot(alpha, a.in(), b.in(), i, j)))) {
                        wrong = "a bit of C(" + std::to_string(i) + ", " + std::to_string(j) + ") is wrong";
                    }
                }
            }
            REQUIRE(wrong == "");
        }
    }
}

// Blocks of one kernel with the tile of another leave terms out. tests/consumers/flags.sh compares what units of
// several flags decide.
TEST_CASE("B67 a large symmetric product, and its Cholesky factor") {
    for (hone::isa id : test::isas()) {
        // scalar: the same loops, a library call a step.
        const index_t n = test::quick() ? 67 : id == hone::isa::scalar ? 307 : 1107;
        const auto at = [n](index_t i, index_t j) { return static_cast<std::size_t>(i * n + j); };
        std::vector<float> l(at(n, 0), 0.0f), a(at(n, 0), nan_value);
        random_source source(static_cast<std::uint64_t>(n));
        for (index_t i = 0; i < n; ++i) {
            for (index_t j = 0; j < i; ++j) l[at(i, j)] = static_cast<float>(source.between(-3, 3)) / 4;
            l[at(i, i)] = 16;
        }
        const auto vl = hone::row_major<const float>(l.data(), n, n);
        const auto va = hone::row_major(a.data(), n, n);
        hone::gemm_desc desc = hone::describe(vl, hone::transposed(vl), va);
        const auto plan = hone::plan(desc, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(vl, hone::transposed(vl), va) == hone::status{});
        // Multiples of 1/16 below 2^10: exact in whatever order, and so is the factor.
        std::string wrong;
        for (index_t i = 0; i < n && wrong.empty(); ++i) {
            for (index_t j = 0; j < i && wrong.empty(); ++j) {
                if (!test::same(a[at(i, j)], a[at(j, i)])) wrong = "not symmetric at " + std::to_string(i);
            }
        }
        std::vector<double> d(at(n, 0), 0.0);
        for (index_t j = 0; j < n && wrong.empty(); ++j) {
            for (index_t i = j; i < n && wrong.empty(); ++i) {
                double s = static_cast<double>(a[at(i, j)]);
                for (index_t p = 0; p < j; ++p) s -= d[at(i, p)] * d[at(j, p)];
                d[at(i, j)] = i == j ? std::sqrt(s) : s / d[at(j, j)];
                if (!(d[at(i, j)] == static_cast<double>(l[at(i, j)])))
                    wrong = "factor(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                            std::to_string(d[at(i, j)]);
            }
        }
        INFO(hone::isa_name(id) << " n " << n);
        CHECK(wrong == "");
    }
}

TEST_CASE("B32 scratch follows the block, whatever the block and k are") {
    for (const kernel& kn : test::kernels()) {
        const index_t m = kn.mr + 1, n = std::max(kn.nr, kn.panel) + 1;
        const auto model = hone::plan({.m = m, .n = n, .k = 1 << 20}, kn.policy());
        REQUIRE(model.status() == hone::status{});
        const int kc = model->explain().block.kc;
        REQUIRE(kc > 1);
        for (int block : {kc, kc + 1, 4 * kc, 1000000}) {
            for (int k : {kc - 1, kc, kc + 1, 4 * kc + 1}) {
                if (test::quick() && k > kc + 1) continue;
                for (const bool by_columns : {false, true}) {
                    const layout la = by_columns ? test::cols_of(m) : test::rows_of(k),
                                 lb = by_columns ? test::cols_of(k) : test::rows_of(n);
                    guarded<float> am(m * k), bm(k * n), cm(m * n);
                    matrix<float> a(am, m, k, la), b(bm, k, n, lb), c(cm, m, n, test::rows_of(n));
                    random_source source(static_cast<std::uint64_t>(k));
                    a.fill(source);
                    b.fill(source);
                    c.fill([](index_t, index_t) { return nan_value; });
                    c.remember();
                    hone::policy p = kn.policy();
                    p.block.kc = block;
                    const auto plan = hone::plan(hone::describe(a.in(), b.in(), c.view()), p);
                    REQUIRE(plan.status() == hone::status{});
                    const index_t bytes = plan->scratch_bytes();
                    guarded<std::byte> memory(bytes, k % 2 ? edge::end : edge::begin);
                    INFO(kn.text() << " kc " << block << " k " << k << " scratch " << bytes);
                    REQUIRE(plan->run(a.in(), b.in(), c.view(), hone::identity,
                                      {.scratch = {memory.data(), static_cast<std::size_t>(bytes)}}) == hone::status{});
                    CHECK(memory.intact());
                    CHECK(c.gaps_unchanged());
                    std::string wrong;
                    for (index_t i = 0; i < m; i += kn.mr) {
                        for (index_t j = 0; j < n; ++j) {
                            const test::near_value v = test::dot(1, a.in(), b.in(), 0, 0, i, j);
                            const float got = c(i, j);
                            if (!test::near(static_cast<double>(got), v.value, v.bound) ||
                                (bitwise(kn.isa) && !test::same(got, test::strict_dot(1, a.in(), b.in(), i, j))))
                                wrong = "C(" + std::to_string(i) + ", " + std::to_string(j) + ")";
                        }
                    }
                    CHECK(wrong == "");
                }
            }
        }
    }
}

#if HONE_TEST_GUARD_PAGES
TEST_CASE("B23 B25 rows gigabytes apart, of either sign") {
    // The byte distance of the first overflows 32 bits with sign, the element distance of the second with (rows - 1).
    for (index_t stride : {(index_t{1} << 29) + 4096, (index_t{1} << 30) + 1, -(index_t{1} << 30) - 1}) {
        const index_t m = 3, last = (m - 1) * stride;
        const index_t low = std::min<index_t>(last, 0), high = std::max<index_t>(last, 0) + m;
        const test::far_memory am(low, high), bm(low, high), cm(low, high);
        if (!am || !bm || !cm) {
            WARN("skipped: no address space for " << last << " elements");
            continue;
        }
        const hone::matrix_view<const float> a{am.origin(), m, m, stride, 1}, b{bm.origin(), m, 1, stride, 1};
        const hone::matrix_view<float> c{cm.origin(), m, 1, stride, 1};
        CHECK(reinterpret_cast<std::intptr_t>(a.at(1, 0)) - reinterpret_cast<std::intptr_t>(a.at(0, 0)) == 4 * stride);
        if (stride == (index_t{1} << 29) + 4096) {
            CHECK(reinterpret_cast<const char*>(a.at(1, 0)) - reinterpret_cast<const char*>(a.data) == 2147500032);
        }
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < m; ++j) am.open(i * stride + j) = static_cast<float>(10 * i + j);
            bm.open(i * stride) = static_cast<float>(i + 1);
        }
        for (hone::isa id : test::isas()) {
            for (double beta : {0.0, 2.0}) {
                for (index_t i = 0; i < m; ++i) cm.open(i * stride) = 100;
                hone::gemm_desc desc = hone::describe(a, b, c);
                desc.beta = beta;
                const auto plan = hone::plan(desc, {.isa = id});
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(a, b, c) == hone::status{});
                INFO(hone::isa_name(id) << " stride " << stride << " beta " << beta);
                for (index_t i = 0; i < m; ++i)
                    CHECK(cm.open(i * stride) == static_cast<float>(60 * i + 8) + static_cast<float>(beta) * 100);
            }
        }
    }
}
#endif

TEST_CASE("B28 tall and long products of one column") {
    const std::vector<float> ones(static_cast<std::size_t>(test::quick() ? 4 << 15 : 4 << 24), 1.0f);
    for (hone::isa id : test::isas()) {
        // scalar: the same loops, a library call a step.
        const bool few = test::quick() || id == hone::isa::scalar;
        const index_t tall = few ? (1 << 14) + 1 : (1 << 23) + 1, deep = few ? (1 << 13) + 1 : 4194305;
        std::vector<float> y(static_cast<std::size_t>(tall));
        auto plan = hone::plan({.m = tall, .n = 1, .k = 4}, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(ones.data(), tall, 4),
                          hone::row_major<const float>(ones.data(), 4, 1),
                          hone::row_major(y.data(), tall, 1)) == hone::status{});
        CHECK(std::all_of(y.begin(), y.end(), [](float x) { return x == 4.0f; }));
        plan = hone::plan({.m = 2, .n = 1, .k = deep, .a = {1, 2}}, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::col_major<const float>(ones.data(), 2, deep),
                          hone::row_major<const float>(ones.data(), deep, 1),
                          hone::row_major(y.data(), 2, 1)) == hone::status{});
        CHECK(y[0] == static_cast<float>(deep));
        CHECK(y[1] == static_cast<float>(deep));
    }
}

TEST_CASE("B31 scaling C alone writes nothing around it") {
    for (hone::isa id : test::isas()) {
        for (index_t m = 1; m <= 9; ++m) {
            for (index_t n = 1; n <= 9; ++n) {
                for (edge side : {edge::end, edge::begin}) {
                    test::thread_executor twelve(test::quick() ? 2 : 12);
                    REQUIRE_RIGHT({.m = m,
                                   .n = n,
                                   .k = 3,
                                   .alpha = 0,
                                   .beta = 2,
                                   .c = test::rows_of(n, 1),
                                   .policy = {.isa = id},
                                   .executor = twelve,
                                   .side = side});
                }
            }
        }
    }
}

TEST_CASE("infinities and NaN where IEEE 754 gives them, nowhere else") {
    const auto spoil = [](matrix<float>& a, matrix<float>& b, matrix<float>& c) {
        const index_t m = a.view().rows, n = b.view().cols, k = b.view().rows;
        a(0, 0) = nan_value;           // row 0 of C
        if (m > 1) a(1, k - 1) = inf;  // row 1: infinities, NaN where B is 0
        if (m > 2) a(2, 0) = 3e38f;    // row 2: overflow in the chain
        if (m > 2 && k > 1) a(2, 1) = -3e38f;
        if (m > 3) a(3, k / 2) = 1e-45f;  // row 3: subnormal products
        b(0, n - 1) = -inf;               // the last column
        b(k - 1, n / 2) = 0.0f;
        if (n > 2) b(k - 1, 0) = 1e30f;
        c(m - 1, 0) = nan_value;  // with beta != 0
        if (m > 4) c(4, n / 2) = inf;
    };
    for (const kernel& kn : test::kernels()) {
        for (index_t k : {1, 2, 9}) {
            for (double beta : {0.0, 1.0, -2.0}) {
                for (double alpha : {1.0, -3.0, 0.0}) {
                    hone::policy p = kn.policy();
                    REQUIRE_RIGHT({.m = 2 * kn.mr + 1,
                                   .n = kn.nr + 1,
                                   .k = k,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .policy = p,
                                   .spoil = spoil});
                    p.block.kc = 2;
                    REQUIRE_RIGHT({.m = kn.mr,
                                   .n = kn.lanes,
                                   .k = k,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .policy = p,
                                   .packed = true,
                                   .spoil = spoil});
                }
            }
        }
    }
}

TEST_CASE("every instruction set with FMA gives the same bits, packed or not, whatever the tile") {
    const index_t m = 31, n = 75, k = 67;
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), first;
    random_source source(17);
    for (float& x : a) x = source.value() * std::exp2(static_cast<float>(source.between(-20, 20)));
    for (float& x : b) x = source.value() * std::exp2(static_cast<float>(source.between(-20, 20)));
    int compared = 0;
    for (const kernel& kn : test::kernels()) {
        if (!test::reproducible(kn.isa)) continue;
        using hone::packing;
        for (packing how : {packing::dynamic, packing::none, packing::a, packing::b, packing::both}) {
            std::vector<float> c(static_cast<std::size_t>(m * n));
            hone::policy p = kn.policy();
            p.packing = how;
            const auto plan = hone::plan({.m = m, .n = n, .k = k, .alpha = 1.1}, p);
            REQUIRE(plan.status() == hone::status{});
            CHECK(plan->explain().packs_a == (how == packing::a || how == packing::both));
            if (how != packing::dynamic) CHECK(plan->explain().packs_b == (how == packing::b || how == packing::both));
            REQUIRE(plan->run(hone::row_major<const float>(a.data(), m, k),
                              hone::row_major<const float>(b.data(), k, n),
                              hone::row_major(c.data(), m, n)) == hone::status{});
            if (first.empty()) first = c;
            INFO(kn.text());
            CHECK(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0);
            ++compared;
        }
    }
    CHECK(compared >= 2);
}

namespace {

// A policy fixed at compile time, registered or not.
template <hone::policy P>
void fixed_policy() {
    if (!hone::available(P.isa)) {
        WARN("skipped, this CPU cannot run it: a compile-time policy for " << hone::isa_name(P.isa));
        return;
    }
    const index_t mr = std::max(P.tile.mr, 1), nr = std::max(P.tile.nr, 1);
    for (index_t m : around(mr)) {
        for (index_t n : {index_t{1}, nr - 1, nr, nr + 1, 2 * nr + 1}) {
            for (index_t k : {1, 3, 9}) {
                if (n < 1) continue;
                guarded<float> am(m * k), bm(k * n), cm(m * n);
                matrix<float> a(am, m, k, test::rows_of(k)), b(bm, k, n, test::rows_of(n)),
                    c(cm, m, n, test::rows_of(n));
                random_source source(23);
                a.fill(source);
                b.fill(source);
                c.fill(source);
                c.remember();
                REQUIRE(hone::gemm<P>(1.5, a.view(), b.view(), 0.25, c.view()) == hone::status{});
                const auto plan = hone::plan<P>(hone::describe(a.in(), b.in(), c.view()));
                REQUIRE(plan.status() == hone::status{});
                CHECK(plan->explain().isa == P.isa);
                if (P.tile.mr != 0) CHECK(plan->explain().tile == P.tile);
                CHECK(std::string_view(plan->explain().why_isa) == "policy");
                std::string wrong;
                for (index_t i = 0; i < m; ++i) {
                    for (index_t j = 0; j < n; ++j) {
                        const float want =
                            test::strict_sum(0.25, c.old(i, j), test::strict_dot(1.5, a.in(), b.in(), i, j));
                        const test::near_value v =
                            test::dot(1.5, a.in(), b.in(), 0.25, static_cast<double>(c.old(i, j)), i, j);
                        const bool right = test::reproducible(P.isa)
                                               ? test::same(c(i, j), want)
                                               : test::near(static_cast<double>(c(i, j)), v.value, v.bound);
                        if (!right) wrong = "C(" + std::to_string(i) + ", " + std::to_string(j) + ")";
                    }
                }
                INFO(hone::isa_name(P.isa)
                     << " " << P.tile.mr << "x" << P.tile.nr << ": " << m << "x" << n << "x" << k);
                CHECK(wrong == "");
            }
        }
    }
}

}  // namespace

TEST_CASE("policies fixed at compile time, with tiles that are not registered") {
    using hone::isa;
    fixed_policy<hone::policy{.isa = isa::scalar}>();
    fixed_policy<hone::policy{.isa = isa::scalar, .tile = {1, 1}}>();
    fixed_policy<hone::policy{.isa = isa::scalar, .tile = {8, 2}, .block = {.mc = 8, .kc = 2, .nc = 16}}>();
    fixed_policy<hone::policy{.isa = isa::native}>();
#if HONE_X86
    fixed_policy<hone::policy{.isa = isa::avx2}>();
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {4, 16}, .block = {.mc = 8, .kc = 2, .nc = 16}}>();
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {14, 8}}>();
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {2, 32}}>();
    fixed_policy<hone::policy{.isa = isa::avx512, .tile = {14, 32}, .block = {.mc = 14, .kc = 4, .nc = 32}}>();
    fixed_policy<hone::policy{.isa = isa::avx512, .tile = {1, 64}}>();
    fixed_policy<hone::policy{.isa = isa::avx512, .tile = {16, 16}}>();
#endif
#if HONE_ARM64
    fixed_policy<hone::policy{.isa = isa::neon, .tile = {6, 16}}>();
    fixed_policy<hone::policy{.isa = isa::neon, .tile = {8, 8}}>();
    fixed_policy<hone::policy{.isa = isa::neon, .tile = {12, 4}}>();
#endif
}

TEST_CASE("explain() says what was decided and why") {
    const auto plan = hone::plan({.m = 100, .n = 200, .k = 300});
    REQUIRE(plan.status() == hone::status{});
    const hone::explanation e = plan->explain();
    CHECK(e.isa == hone::active_isa());
    CHECK(std::string_view(e.kernel) == "gemm");
    CHECK(e.tile.mr > 0);
    CHECK(e.block.kc > 0);
    CHECK(e.packs_b);
    CHECK_FALSE(plan->explain(true).packs_b);
    CHECK(e.scratch_bytes == plan->scratch_bytes());
    const std::string text(e.text().view());
    INFO(text);
    CHECK(text.find(std::string("gemm f32 ") + hone::isa_name(e.isa) + " (") == 0);
    CHECK(text.find("tile " + std::to_string(e.tile.mr) + "x" + std::to_string(e.tile.nr)) != std::string::npos);
    CHECK(text.find("workers 1 = 1 x 1") != std::string::npos);
    CHECK(text.size() < hone::text_line::capacity);
    for (hone::isa id : test::isas()) {
        const auto fixed = hone::plan({.m = 100, .n = 200, .k = 300}, {.isa = id, .block = {.kc = 64}});
        REQUIRE(fixed.status() == hone::status{});
        CHECK(fixed->explain().isa == id);
        CHECK(fixed->explain().block.kc == 64);
        CHECK(std::string_view(fixed->explain().why_isa) == "policy");
        CHECK(std::string_view(fixed->explain().why_block) == "policy");
        CHECK(std::string_view(fixed->explain().sums) == "C");
    }
}
