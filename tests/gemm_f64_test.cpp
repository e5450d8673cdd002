// SPDX-License-Identifier: BSL-1.0
// gemm.hpp of doubles: the numbers of every kernel, bit for bit, the memory it touches, every stage, and what is refused.
// Where the flags have no FMA the numbers of native are compared with long double.
#include "reference.hpp"

#include <optional>
#include <span>

using test::edge;
using test::guarded;
using test::index_t;
using test::kernel;
using test::layout;
using test::matrix;
using test::random_source;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

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
    // Spoils operands after the random fill.
    void (*spoil)(matrix<double>& a, matrix<double>& b, matrix<double>& c) = nullptr;

    std::string text() const {
        const auto lay = [](const std::optional<layout>& l) {
            return l ? "(" + std::to_string(l->row) + ", " + std::to_string(l->col) + ")" : std::string("dense");
        };
        std::ostringstream s;
        s << m << "x" << n << "x" << k << " alpha " << alpha << " beta " << beta << " isa " << hone::isa_name(policy.isa)
          << " tile " << policy.tile.mr << "x" << policy.tile.nr << " block " << policy.block.mc << "," << policy.block.kc
          << "," << policy.block.nc << (packed ? " packed B" : "") << " A " << lay(a) << " B " << lay(b) << " C " << lay(c)
          << ", " << name(side);
        return s.str();
    }
};

bool bitwise(hone::isa id) { return test::reproducible(id == hone::isa::dynamic ? hone::active_isa() : id); }

// Runs it in guarded memory with exactly the scratch it asks for. "" when every element is what the contract says, and no gap,
// no operand and no guard was touched.
std::string run(const problem& p, std::vector<double>* out = nullptr) {
    const layout la = p.a.value_or(test::rows_of(p.k)), lb = p.b.value_or(test::rows_of(p.n)), lc = p.c.value_or(test::rows_of(p.n));
    guarded<double> am(test::span_of(p.m, p.k, la), p.side), bm(test::span_of(p.k, p.n, lb), p.side),
        cm(test::span_of(p.m, p.n, lc), p.side);
    matrix<double> a(am, p.m, p.k, la), b(bm, p.k, p.n, lb), c(cm, p.m, p.n, lc);
    random_source source(1);
    a.fill(source);
    b.fill(source);
    c.fill(source);
    if (p.spoil) p.spoil(a, b, c);
    a.remember();
    b.remember();
    c.remember();

    hone::gemm_desc desc{.m = p.m, .n = p.n, .k = p.k, .a = {la.row, la.col}, .b = {lb.row, lb.col}, .c = {lc.row, lc.col},
                         .alpha = p.alpha, .beta = p.beta};
    if (p.dynamic_m >= 0) {
        desc.m = p.dynamic_m;
        desc.dynamic_m = true;
    }
    hone::context ctx{.executor = p.executor};
    const auto plan = hone::plan<double>(desc, p.policy, hone::identity, ctx);
    if (!plan) return "no plan: " + std::string(plan.status().message().view());
    const index_t bytes = plan->scratch_bytes(hone::executor_ref(p.executor).concurrency(), p.packed);
    guarded<std::byte> scratch(bytes);
    std::byte none{};
    ctx.scratch = {bytes != 0 ? scratch.data() : &none, static_cast<std::size_t>(bytes)};
    hone::status s;
    if (p.packed) {
        const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
        const std::span<std::byte> packed(memory.data(), memory.size());
        s = plan->pack(b.in(), packed);
        if (!s.ok()) return "not packed: " + std::string(s.message().view());
        const auto opened = hone::packed_view::open(packed);
        if (!opened || !opened->verify().ok()) return "not verified";
        s = plan->run(a.in(), *opened, c.view(), hone::identity, ctx);
    } else {
        s = plan->run(a.in(), b.in(), c.view(), hone::identity, ctx);
    }
    if (!s.ok()) return std::string(s.message().view());
    if (!scratch.intact()) return "memory around the scratch was written";
    if (!a.unchanged()) return "A was written, or memory around it";
    if (!b.unchanged()) return "B was written, or memory around it";
    if (!c.gaps_unchanged()) return "memory outside C was written";
    const bool exact = bitwise(p.policy.isa);
    for (index_t i = 0; i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) {
            const double got = c(i, j), want = test::strict_sum(p.beta, c.old(i, j), test::strict_dot(p.alpha, a.in(), b.in(), i, j));
            bool right = test::same(got, want);
            if (!exact && !right) {
                const test::near_value v = test::dot(p.alpha, a.in(), b.in(), p.beta, c.old(i, j), i, j);
                right = test::near(got, v.value, v.bound);
            }
            if (out) out->push_back(got);
            if (right) continue;
            std::ostringstream text;
            text.precision(17);
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
    chains(const hone::matrix_view<const double>& a, const hone::matrix_view<const double>& b) : m_(a.rows), n_(b.cols) {
        t_.resize(static_cast<std::size_t>((a.cols + 1) * m_ * n_), 0.0);
        size_.resize(t_.size(), 0.0);
        exact_.resize(t_.size(), 0.0L);
        for (index_t p = 0; p < a.cols; ++p) {
            for (index_t i = 0; i < m_; ++i) {
                for (index_t j = 0; j < n_; ++j) {
                    const double x = *a.at(i, p), y = *b.at(p, j);
                    t_[at(p + 1, i, j)] = std::fma(x, y, t_[at(p, i, j)]);
                    exact_[at(p + 1, i, j)] = exact_[at(p, i, j)] + static_cast<long double>(x) * y;
                    size_[at(p + 1, i, j)] = size_[at(p, i, j)] + std::abs(x * y);
                }
            }
        }
    }
    double sum(index_t k, index_t i, index_t j) const { return t_[at(k, i, j)]; }
    long double exact(index_t k, index_t i, index_t j) const { return exact_[at(k, i, j)]; }
    double size(index_t k, index_t i, index_t j) const { return size_[at(k, i, j)]; }

private:
    std::size_t at(index_t k, index_t i, index_t j) const { return static_cast<std::size_t>((k * m_ + i) * n_ + j); }
    index_t m_, n_;
    std::vector<double> t_, size_;
    std::vector<long double> exact_;
};

// All m of `ms`, n of `ns` and k of `ks` with one kernel, each twice: C = A B, and C = -1.5 A B + 0.5 C.
std::string small_shapes(const kernel& kn, edge side, const std::vector<index_t>& ms, const std::vector<index_t>& ns,
                         const std::vector<index_t>& ks, std::size_t& count) {
    const index_t most_m = ms.back(), most_n = ns.back(), most_k = ks.back();
    std::vector<double> a_all(static_cast<std::size_t>(most_m * most_k)), b_all(static_cast<std::size_t>(most_k * most_n));
    random_source source(static_cast<std::uint64_t>(kn.mr * 1000 + kn.nr));
    for (double& x : a_all) x = source.of<double>();
    for (double& x : b_all) x = source.of<double>();
    const auto a_from = hone::row_major<const double>(a_all.data(), most_m, most_k);
    const auto b_from = hone::row_major<const double>(b_all.data(), most_k, most_n);
    const chains want(a_from, b_from);
    constexpr index_t a_gap = 3, b_gap = 5, c_gap = 2;
    guarded<double> am(most_m * (most_k + a_gap), side), bm(most_k * (most_n + b_gap), side), cm(most_m * (most_n + c_gap), side);
    const bool exact = bitwise(kn.isa);
    for (index_t k : ks) {
        for (index_t n : ns) {
            matrix<double> b(bm, k, n, test::rows_of(n, b_gap));
            b.fill([&](index_t p, index_t j) { return *b_from.at(p, j); });
            b.remember();
            for (index_t m : ms) {
                matrix<double> a(am, m, k, test::rows_of(k, a_gap));
                a.fill([&](index_t i, index_t p) { return *a_from.at(i, p); });
                a.remember();
                for (const bool plain : {true, false}) {
                    matrix<double> c(cm, m, n, test::rows_of(n, c_gap));
                    if (!plain) c.fill([&](index_t i, index_t j) { return static_cast<double>(i - 2 * j) * 0.37; });
                    c.remember();
                    hone::gemm_desc desc = hone::describe(a.in(), b.in(), c.view());
                    if (!plain) {
                        desc.alpha = -1.5;
                        desc.beta = 0.5;
                    }
                    const auto plan = hone::plan<double>(desc, kn.policy());
                    const hone::status s = plan ? plan->run(a.in(), b.in(), c.view()) : plan.status();
                    ++count;
                    std::ostringstream where;
                    where << m << "x" << n << "x" << k << (plain ? "" : " with alpha and beta") << ", " << name(side) << ": ";
                    if (!s.ok()) return where.str() + std::string(s.message().view());
                    if (!c.gaps_unchanged()) return where.str() + "memory outside C was written";
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j) {
                            const double t = want.sum(k, i, j), got = c(i, j);
                            const double v = plain ? t : std::fma(0.5, c.old(i, j), test::rounded((k == 0 ? 1.0 : -1.5) * t));
                            if (test::same(got, v)) continue;
                            const long double alpha = plain ? 1.0L : -1.5L, beta = plain ? 0.0L : 0.5L;
                            const long double old = plain ? 0.0L : static_cast<long double>(c.old(i, j));
                            const double bound = (2.0 * static_cast<double>(k) + 5) * 0x1p-53 * 1.5 * want.size(k, i, j) +
                                                 5 * 0x1p-53 * static_cast<double>(std::abs(beta * old));
                            if (!exact && test::near(got, static_cast<double>(alpha * want.exact(k, i, j) + beta * old), bound)) continue;
                            where.precision(17);
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

void spoil_c_with_nan(matrix<double>&, matrix<double>&, matrix<double>& c) {
    c.fill([](index_t, index_t) { return nan_value; });
}
void spoil_a_with_nan(matrix<double>& a, matrix<double>&, matrix<double>&) {
    a.fill([](index_t, index_t) { return nan_value; });
}

}  // namespace

TEST_CASE("f64: every line of kernels.def is a kernel with a body for each edge, panels of one line") {
    int lines[hone::isa_count] = {};
#define HONE_GEMM(region, type, mr, registers) \
    if (std::is_same_v<type, double>) ++lines[static_cast<int>(hone::isa::region)];
#include <hone/kernels.def>
    for (hone::isa id : test::isas()) {
        const auto& list = hone::detail::gemm_kernels<double>(id);
        const auto& floats = hone::detail::gemm_kernels<float>(id);
        INFO(hone::isa_name(id));
        REQUIRE(list.count == lines[static_cast<int>(id)]);
        REQUIRE(list.count > 0);
        for (int r = 0; r < list.count; ++r) {
            const auto& row = list.row[r];
            CHECK(row.isa == id);
            CHECK(row.pack_lines != nullptr);
            CHECK(row.nr % row.lanes == 0);
            CHECK(row.panel * 8 >= 64);
            CHECK(row.panel * 2 == floats.row[0].panel);
            CHECK(row.lanes * (id == hone::isa::scalar ? 1 : 2) == floats.row[0].lanes);
            CHECK((row.tiny[0] != nullptr) == (floats.row[0].tiny[0] != nullptr));
            CHECK((row.rank[1][1] != nullptr) == (floats.row[0].rank[1][1] != nullptr));
            CHECK((row.narrow != nullptr) == (floats.row[0].narrow != nullptr));
            const int registers = row.nr / row.lanes;
            for (index_t rows = 1; rows <= 2 * row.mr; ++rows) {
                for (int narrowest = 1; narrowest <= registers; ++narrowest) {
                    for (index_t left = rows; left > 0;) {
                        const hone::detail::tile_run tiles = hone::detail::next_run(row, left, narrowest);
                        REQUIRE(tiles.count > 0);
                        for (int v = narrowest; v <= registers; ++v) CHECK(row.micro[tiles.index][v - 1] != nullptr);
                        left -= tiles.count * tiles.height;
                    }
                }
            }
        }
    }
}

TEST_CASE("f64: all small shapes of every kernel, in guarded memory, to the bit") {
    for (const kernel& kn : test::kernels<double>()) {
        std::vector<index_t> ms = all_to(2 * kn.mr + 1), ns = all_to(2 * kn.nr + 1), ks = all_to(9);
        for (index_t k : {16, 17, 33, 64, 65}) ks.push_back(k);
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

TEST_CASE("f64: all four transposes, with and without gaps") {
    for (const kernel& kn : test::kernels<double>()) {
        for (index_t m : around(kn.mr)) {
            for (index_t n : test::quick() ? std::vector<index_t>{1, kn.nr + 1} : around(kn.nr)) {
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

TEST_CASE("f64: any strides: negative, repeated, columns of C not contiguous") {
    for (const kernel& kn : test::first_kernels<double>()) {
        for (index_t m : {index_t{1}, index_t{3}, index_t{kn.mr + 1}}) {
            for (index_t n : {index_t{1}, index_t{kn.lanes + 1}, index_t{kn.nr + 3}}) {
                for (index_t k : {1, 2, 9}) {
                    const layout as[] = {{k, 1}, {-k, 1}, {k, -1}, {-2 * k, -2}, {0, 1}, {1, 0}, {0, 0}, {3, 3 * m + 2}, {1, m}, {-1, -m}};
                    const layout bs[] = {{n, 1}, {-n, 1}, {n, -1}, {0, 1}, {1, 0}, {0, 0}, {2, 2 * k}, {-1, k}, {1, 1}};
                    const layout cs[] = {{n, 1}, {-n, 1}, {n, -1}, {1, m}, {-1, -m}, {2, 2 * m}, {2 * n, 2}, {-3 * n - 1, -3}};
                    std::size_t turn = 0;
                    for (const layout& a : as) {
                        for (const layout& b : bs) {
                            const layout& c = cs[turn++ % std::size(cs)];
                            REQUIRE_RIGHT({.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .policy = kn.policy(),
                                           .side = turn % 2 ? edge::end : edge::begin});
                        }
                    }
                    for (const layout& c : cs) {
                        REQUIRE_RIGHT({.m = m, .n = n, .k = k, .alpha = 0.75, .beta = -2, .c = c, .policy = kn.policy()});
                    }
                }
            }
        }
    }
}

TEST_CASE("f64: alpha and beta, -0, numbers that float would round, and what must not be read") {
    for (const kernel& kn : test::kernels<double>()) {
        for (double alpha : {1.0, -1.0, 0.1, 1e-300, 0.0, -0.0}) {
            for (double beta : {0.0, -0.0, 1.0, -1.0, 0.3, 1e200}) {
                for (const bool blocked : {false, true}) {
                    hone::policy p = kn.policy();
                    if (blocked) p.block.kc = 3;
                    REQUIRE_RIGHT({.m = kn.mr + 1, .n = kn.lanes + 1, .k = 7, .alpha = alpha, .beta = beta, .policy = p,
                                   .spoil = beta == 0.0 ? spoil_c_with_nan : nullptr});
                    REQUIRE_RIGHT({.m = kn.mr + 1, .n = kn.nr + 1, .k = 0, .alpha = alpha, .beta = beta, .policy = p,
                                   .spoil = beta == 0.0 ? spoil_c_with_nan : nullptr});
                }
            }
            REQUIRE_RIGHT({.m = 2, .n = kn.nr + 1, .k = 7, .alpha = alpha, .policy = kn.policy(),
                           .spoil = alpha == 0.0 ? spoil_a_with_nan : nullptr});
        }
    }
}

TEST_CASE("f64: infinities, NaN and subnormal numbers where IEEE 754 gives them, nowhere else") {
    const auto spoil = [](matrix<double>& a, matrix<double>& b, matrix<double>& c) {
        const index_t m = a.view().rows, n = b.view().cols, k = b.view().rows;
        a(0, 0) = nan_value;
        if (m > 1) a(1, k - 1) = inf;
        if (m > 2) a(2, 0) = 1.7e308;
        if (m > 2 && k > 1) a(2, 1) = -1.7e308;
        if (m > 3) a(3, k / 2) = 5e-324;
        b(0, n - 1) = -inf;
        b(k - 1, n / 2) = 0.0;
        if (n > 2) b(k - 1, 0) = 1e300;
        c(m - 1, 0) = nan_value;
    };
    for (const kernel& kn : test::kernels<double>()) {
        for (index_t k : {1, 2, 9}) {
            for (double beta : {0.0, -2.0}) {
                for (double alpha : {1.0, -3.0, 0.0}) {
                    hone::policy p = kn.policy();
                    REQUIRE_RIGHT({.m = 2 * kn.mr + 1, .n = kn.nr + 1, .k = k, .alpha = alpha, .beta = beta, .policy = p, .spoil = spoil});
                    p.block.kc = 2;
                    REQUIRE_RIGHT({.m = kn.mr, .n = kn.lanes, .k = k, .alpha = alpha, .beta = beta, .policy = p, .packed = true,
                                   .spoil = spoil});
                }
            }
        }
    }
}

TEST_CASE("f64: k blocks: partial sums in C and in scratch, mc and nc small, packed or not") {
    constexpr int kc = 6;
    for (const kernel& kn : test::kernels<double>()) {
        const int unit = std::max(kn.nr, kn.panel);
        const std::vector<hone::blocking> blocks = {{0, kc, 0},    {kn.mr, kc, unit}, {2 * kn.mr, kc, 2 * unit},
                                                    {kn.mr, 1, 0}, {0, kc, unit},     {kn.mr, 0, unit}};
        const index_t m = 3 * kn.mr + 1, n = test::quick() ? unit + 1 : 2 * unit + kn.lanes + 1;
        for (const hone::blocking& block : blocks) {
            hone::policy p = kn.policy();
            p.block = block;
            for (index_t k : {kc - 1, kc, kc + 1, 3 * kc + 2}) {
                for (const bool packed : {false, true}) {
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .alpha = 0.5, .c = test::rows_of(n, 1), .policy = p, .packed = packed,
                                   .spoil = spoil_c_with_nan});
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .beta = 2, .c = test::rows_of(n, 1), .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .beta = -1, .a = test::cols_of(m, 1), .b = test::cols_of(k, 1),
                                   .c = layout{-2 * n, -2}, .policy = p, .packed = packed, .side = edge::begin});
                }
            }
        }
    }
}

TEST_CASE("f64: packed B runs on every instruction set with the same panels; panels of f32 are refused") {
    const std::vector<kernel> list = test::kernels<double>();
    for (const kernel& kn : list) {
        for (index_t n : {index_t{1}, index_t{kn.panel - 1}, index_t{kn.panel}, index_t{kn.panel + 1}, index_t{2 * kn.nr + 1}}) {
            for (const layout& b : {layout{n, 1}, layout{1, 17}, layout{-n, 1}, layout{0, 1}, layout{3 * n, -3}}) {
                REQUIRE_RIGHT({.m = kn.mr + 1, .n = n, .k = 17, .b = b, .policy = kn.policy(), .packed = true,
                               .side = n % 2 ? edge::end : edge::begin});
            }
        }
    }
    const index_t m = 7, k = 19;
    random_source source(3);
    for (const kernel& from : list) {
        for (const kernel& to : list) {
            const index_t n = 2 * std::max(from.nr, to.nr) + 3;
            std::vector<double> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), c(static_cast<std::size_t>(m * n)),
                want(c.size());
            for (double& x : a) x = source.of<double>();
            for (double& x : b) x = source.of<double>();
            const auto va = hone::row_major<const double>(a.data(), m, k), vb = hone::row_major<const double>(b.data(), k, n);
            const auto packs = hone::plan<double>({.m = 1, .n = n, .k = k}, from.policy()),
                       runs = hone::plan<double>({.m = m, .n = n, .k = k}, to.policy());
            REQUIRE(packs.status() == hone::status{});
            REQUIRE(runs.status() == hone::status{});
            const hone::aligned_buffer memory(static_cast<std::size_t>(packs->packed_bytes()));
            const std::span<std::byte> bytes(memory.data(), memory.size());
            REQUIRE(packs->pack(vb, bytes) == hone::status{});
            const auto view = hone::packed_view::open(bytes);
            REQUIRE(view.status() == hone::status{});
            CHECK(view->header().element == 8);
            INFO(from.text() << " packs, " << to.text() << " runs");
            const hone::status s = runs->run(va, *view, hone::row_major(c.data(), m, n));
            if (from.panel != to.panel) {
                CHECK(s == hone::status{hone::code::corrupt, hone::argument::packed_layout, from.panel, to.panel});
                continue;
            }
            REQUIRE(s == hone::status{});
            REQUIRE(runs->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
            CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(double)) == 0);

            const auto floats = hone::plan({.m = m, .n = n, .k = k}, {.isa = to.isa});
            REQUIRE(floats.status() == hone::status{});
            std::vector<float> fa(a.size(), 1.0f), fc(c.size(), 7.0f);
            CHECK(floats->run(hone::row_major<const float>(fa.data(), m, k), *view, hone::row_major(fc.data(), m, n)) ==
                  hone::status{hone::code::corrupt, hone::argument::packed_layout, 8, 4});
            CHECK(std::all_of(fc.begin(), fc.end(), [](float x) { return x == 7.0f; }));
        }
    }
}

TEST_CASE("f64: workers in any order give the same bits; dynamic m") {
    for (const kernel& kn : test::kernels<double>()) {
        for (const bool blocked : {false, true}) {
            hone::policy p = kn.policy();
            if (blocked) p.block = {.mc = kn.mr, .kc = 5, .nc = std::max(kn.nr, kn.panel)};
            const index_t shapes[][3] = {{5 * kn.mr + 1, 3 * kn.nr + 1, 11}, {1, 5 * kn.nr + 2, 13}, {9 * kn.mr, 1, 12}};
            for (const auto& s : shapes) {
                const problem base{.m = s[0], .n = s[1], .k = s[2], .alpha = 1.25, .beta = 0.5, .policy = p};
                std::vector<double> serial;
                REQUIRE(run(base, &serial) == "");
                for (int workers : {1, 3, 8}) {
                    for (const bool packed : {false, true}) {
                        test::thread_executor threads(workers);
                        test::reverse_executor reverse(workers);
                        problem with = base;
                        with.packed = packed;
                        for (hone::executor_ref x : {hone::executor_ref(threads), hone::executor_ref(reverse)}) {
                            with.executor = x;
                            std::vector<double> got;
                            INFO(with.text() << ", workers " << workers);
                            CHECK(run(with, &got) == "");
                            REQUIRE(got.size() == serial.size());
                            CHECK(std::memcmp(got.data(), serial.data(), got.size() * sizeof(double)) == 0);
                        }
                        if (workers > 1 && (s[0] > kn.mr || s[1] > std::max(kn.nr, kn.panel))) CHECK(reverse.most_tasks > 1);
                    }
                }
            }
        }
        const index_t bound = 3 * kn.mr + 1;
        for (index_t m = 0; m <= bound; ++m) {
            REQUIRE_RIGHT({.m = m, .n = kn.nr + 1, .k = 9, .policy = kn.policy(), .dynamic_m = bound});
        }
    }
}

TEST_CASE("f64: B beyond L1 and L2, few rows and many, by rank updates and tiles") {
    const index_t n = test::quick() ? 130 : 260, k = test::quick() ? 300 : 700;
    for (hone::isa id : test::isas()) {
        for (index_t m : {1, 2, 3, 5, 9, 40, 130}) {
            if (m > 9 && (test::quick() || id == hone::isa::scalar)) continue;
            REQUIRE_RIGHT({.m = m, .n = n, .k = k, .policy = {.isa = id}});
            REQUIRE_RIGHT({.m = m, .n = n + 1, .k = k, .alpha = 0.5, .beta = 2, .policy = {.isa = id}, .side = edge::begin});
            REQUIRE_RIGHT({.m = m, .n = n, .k = k, .b = test::cols_of(k), .policy = {.isa = id}});
        }
        const auto row = hone::plan<double>({.m = 1, .n = n, .k = k}, {.isa = id});
        REQUIRE(row.status() == hone::status{});
        const bool ranks = hone::detail::gemm_kernels<double>(id).row[0].rank[0][0] != nullptr;
        CHECK(std::string_view(row->explain().kernel) == (ranks ? "gemm by rank updates" : "gemm"));
    }
}

TEST_CASE("f64: few columns and few rows, packed or not") {
    for (hone::isa id : test::isas()) {
        for (index_t few : {1, 2, 3, 4, 5}) {
            for (index_t wide : {7, 8, 9, 15, 16, 17, 33, 130, 300}) {
                for (index_t k : {7, 8, 9, 10, 11, 65, 512}) {
                    if ((test::quick() || id == hone::isa::scalar) && (few + wide + k) % 7 != 0) continue;
                    const edge side = (wide + k) % 2 ? edge::end : edge::begin;
                    for (const bool packed : {false, true}) {
                        REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .policy = {.isa = id}, .packed = packed, .side = side});
                        REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .alpha = 0.5, .beta = 2, .c = test::cols_of(wide), .policy = {.isa = id},
                                       .packed = packed, .side = side});
                        REQUIRE_RIGHT({.m = few, .n = wide, .k = k, .b = test::cols_of(k), .policy = {.isa = id}, .packed = packed,
                                       .side = side});
                    }
                    test::reverse_executor three(3);
                    REQUIRE_RIGHT({.m = wide, .n = few, .k = k, .beta = -1, .policy = {.isa = id}, .executor = three, .side = side});
                }
            }
        }
    }
}

TEST_CASE("f64: small products without a plan give the bits of planned ones, in guarded memory") {
    const std::vector<index_t> ms = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64}, ks = {1, 2, 3, 7, 16, 17, 64};
    const std::vector<index_t> ns = {1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64};
    random_source source(10);
    for (index_t m : ms) {
        for (index_t n : ns) {
            for (index_t k : ks) {
                if (test::quick() && (m + n + k) % 5 != 0) continue;
                for (const edge side : {edge::end, edge::begin}) {
                    for (const index_t gap : {0, 3}) {  // elements between rows
                        const auto size = [&](index_t rows, index_t cols) { return (rows - 1) * (cols + gap) + cols; };
                        guarded<double> a(size(m, k), side), b(size(k, n), side), c(size(m, n), side);
                        std::vector<double> want(static_cast<std::size_t>(m * n), nan_value);
                        for (index_t i = 0; i < size(m, k); ++i) a.data()[i] = source.of<double>();
                        for (index_t i = 0; i < size(k, n); ++i) b.data()[i] = source.of<double>();
                        for (index_t i = 0; i < size(m, n); ++i) c.data()[i] = 77.0;
                        const auto va = hone::row_major<const double>(a.data(), m, k, k + gap);
                        const auto vb = hone::row_major<const double>(b.data(), k, n, n + gap);
                        REQUIRE(hone::gemm(va, vb, hone::row_major(c.data(), m, n, n + gap)) == hone::status{});
                        const auto plan = hone::plan<double>({.m = m, .n = n, .k = k, .a = {k + gap, 1}, .b = {n + gap, 1}});
                        REQUIRE(plan.status() == hone::status{});
                        REQUIRE(plan->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
                        INFO(m << "x" << n << "x" << k << " gap " << gap << ", " << name(side));
                        CHECK((a.intact() && b.intact() && c.intact()));
                        index_t wrong = 0;
                        for (index_t i = 0; i < m; ++i) {
                            for (index_t j = 0; j < n + (i + 1 < m ? gap : 0); ++j) {
                                const double expected = j < n ? want[static_cast<std::size_t>(i * n + j)] : 77.0;
                                if (!test::same(c.data()[i * (n + gap) + j], expected)) ++wrong;
                            }
                        }
                        REQUIRE(wrong == 0);
                    }
                }
            }
        }
    }
    double x[64] = {};
    CHECK_FALSE(hone::gemm(hone::row_major(x, 4, 4), hone::row_major(x + 16, 4, 4), hone::row_major(x + 8, 4, 4)).ok());
    CHECK_FALSE(hone::gemm(hone::row_major(x, 4, 4), hone::row_major(x + 16, 3, 4), hone::row_major(x + 32, 4, 4)).ok());
}

TEST_CASE("f64: random shapes, layouts, blocks and workers") {
    random_source source(11);
    const int rounds = test::quick() ? 8 : 100;
    const index_t most = test::quick() ? 30 : 120;
    for (hone::isa id : test::isas()) {
        for (int round = 0; round < rounds; ++round) {
            problem p{.m = source.between(1, most), .n = source.between(1, most), .k = source.between(1, 2 * most)};
            const auto form = source.bits();
            p.a = form & 1 ? test::cols_of(p.m, source.between(0, 4)) : test::rows_of(p.k, source.between(0, 4));
            p.b = form & 2 ? test::cols_of(p.k, source.between(0, 4)) : test::rows_of(p.n, source.between(0, 4));
            p.c = form & 4 ? test::cols_of(p.m, source.between(0, 4)) : test::rows_of(p.n, source.between(0, 4));
            if (form & 8) p.alpha = source.of<double>();
            if (form & 16) p.beta = source.of<double>();
            p.policy.isa = id;
            if (form & 32) p.policy.block.kc = static_cast<int>(source.between(1, p.k + 1));
            if (form & 64) p.policy.block.mc = static_cast<int>(source.between(1, p.m + 1));
            if (form & 128) p.policy.block.nc = static_cast<int>(source.between(1, p.n + 1));
            if (form & 256) p.policy.packing = hone::packing::both;
            p.packed = (form & 512) != 0;
            if (form & 1024) p.side = edge::begin;
            test::reverse_executor workers(static_cast<int>(source.between(1, 5)));
            p.executor = workers;
            REQUIRE_RIGHT(p);
        }
    }
}

// ---- epilogues

namespace {

struct operands {
    index_t m, n, k;
    std::vector<double> a, b, sums;  // sums: the strict chains
    operands(index_t rows, index_t cols, index_t depth) : m(rows), n(cols), k(depth) {
        random_source source(41);
        a.resize(static_cast<std::size_t>(m * k));
        b.resize(static_cast<std::size_t>(k * n));
        for (double& x : a) x = source.of<double>();
        for (double& x : b) x = source.of<double>();
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) sums.push_back(test::strict_dot(1, va(), vb(), i, j));
        }
    }
    hone::matrix_view<const double> va() const { return hone::row_major<const double>(a.data(), m, k); }
    hone::matrix_view<const double> vb() const { return hone::row_major<const double>(b.data(), k, n); }
    double sum(index_t i, index_t j) const { return sums[static_cast<std::size_t>(i * n + j)]; }
};

// Compares C of every kernel, in k blocks and not, by rows and by columns, with want(i, j, old). Instruction sets
// that are not reproducible are left to the cases above.
template <class C, class E, class Want>
void check_epilogue(const char* what, const operands& o, const E& stages, double beta, const Want& want, index_t cols = -1) {
    if (cols < 0) cols = o.n;
    for (const kernel& kn : test::kernels<double>()) {
        if (!test::reproducible(kn.isa)) continue;
        if (E::halves && kn.nr % (2 * kn.panel) != 0 && 2 * kn.panel % kn.nr != 0) continue;  // such a tile holds no pair of panels
        for (int form = 0; form < 4; ++form) {
            hone::policy p = kn.policy();
            if (form & 1) p.block.kc = 5;
            guarded<C> memory(o.m * cols);
            matrix<C> c(memory, o.m, cols, form & 2 ? test::cols_of(o.m) : test::rows_of(cols));
            c.fill([](index_t i, index_t j) { return static_cast<C>(static_cast<float>(i) - 0.25f * static_cast<float>(j)); });
            c.remember();
            hone::gemm_desc desc{.m = o.m, .n = o.n, .k = o.k, .c = {c.view().row_stride, c.view().col_stride}, .beta = beta};
            const auto plan = hone::plan<double>(desc, p, stages);
            INFO(what << " " << kn.text() << " form " << form);
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(o.va(), o.vb(), c.view(), stages) == hone::status{});
            CHECK(c.gaps_unchanged());
            index_t wrong = 0;
            for (index_t i = 0; i < o.m; ++i) {
                for (index_t j = 0; j < cols; ++j) {
                    const C w = want(i, j, c.old(i, j));
                    if constexpr (sizeof(C) == 2) wrong += w.bits != c(i, j).bits;
                    else wrong += !test::same(w, c(i, j));
                }
            }
            CHECK(wrong == 0);
        }
    }
}

// A stage that is a function of one number, alone: with vec<double, 1> the bits that any width must give. Outside a kernel GCC
// would make one operation of a product and a sum where the flags have FMA.
HONE_STRICT_MATH_BEGIN
template <class S>
HONE_NOINLINE double alone(const S& stage, double x) {
    hone::vec<double, 1> v(x);
    const hone::place<double, 1> at{};
    stage(v, at);
    return v[0];
}
HONE_STRICT_MATH_END

}  // namespace

TEST_CASE("f64: every stage, to the bit, on every instruction set with FMA") {
    const operands o(19, 37, 13);
    std::vector<double> t(37), r(19);
    std::vector<float> tf(37);
    std::vector<hone::bf16> th;
    std::vector<double> v(19 * 37);
    random_source source(7);
    for (double& x : t) x = source.of<double>();
    for (double& x : r) x = source.of<double>();
    for (double& x : v) x = source.of<double>();
    for (float& x : tf) {
        x = source.value();
        th.push_back(hone::bf16(x));
    }
    const auto view = hone::row_major<const double>(v.data(), 19, 37);
    const auto by_columns = hone::col_major<const double>(v.data(), 19, 37);
    const auto at = [](index_t i) { return static_cast<std::size_t>(i); };
    using test::rounded;
    check_epilogue<double>("identity, beta", o, hone::identity, 0.3,
                           [&](index_t i, index_t j, double old) { return std::fma(0.3, old, o.sum(i, j)); });
    check_epilogue<double>("bias, relu", o, hone::bias(t) | hone::relu, 0, [&](index_t i, index_t j, double) {
        const double x = rounded(o.sum(i, j) + t[at(j)]);
        return 0.0 > x ? 0.0 : x;
    });
    check_epilogue<double>("scale, bias of floats and halves, clip", o,
                           hone::scale(0.1) | hone::scale(t) | hone::bias(tf) | hone::bias(th) | hone::clip(-0.7, 0.9), -1.5,
                           [&](index_t i, index_t j, double old) {
                               double x = rounded(rounded(std::fma(-1.5, old, o.sum(i, j)) * 0.1) * t[at(j)]);
                               x = rounded(rounded(x + static_cast<double>(tf[at(j)])) + static_cast<double>(static_cast<float>(th[at(j)])));
                               return std::min(std::max(x, -0.7), 0.9);
                           });
    check_epilogue<double>("add, mul of views", o, hone::add(view) | hone::mul(by_columns), 0, [&](index_t i, index_t j, double) {
        return rounded(rounded(o.sum(i, j) + *view.at(i, j)) * *by_columns.at(i, j));
    });
    const double s = 1.0 / 3;
    const auto lambda = hone::map([&t, &r, s](auto& x, auto place) {
        x = hone::fma(x, s, place.cols(t.data())) * place.rows(r.data()) + 0.1;
    });
    check_epilogue<double>("a lambda", o, lambda, 0, [&](index_t i, index_t j, double) {
        return rounded(rounded(std::fma(o.sum(i, j), s, t[at(j)]) * r[at(i)]) + 0.1);
    });
    const auto of_one = [&](const char* what, const auto& stage) {
        check_epilogue<double>(what, o, stage, 0, [&](index_t i, index_t j, double) { return alone(stage, o.sum(i, j)); });
    };
    of_one("gelu", hone::gelu);
    of_one("gelu_tanh", hone::gelu_tanh);
    of_one("silu", hone::silu);
    of_one("sigmoid", hone::sigmoid);
    of_one("tanh", hone::tanh);
    of_one("hard_sigmoid", hone::hard_sigmoid);
    of_one("hard_swish", hone::hard_swish);

    // gated needs an even n.
    const operands even(11, 38, 9);
    check_epilogue<double>("gated", even, hone::bias(std::span<const double>(v.data(), 38)) | hone::gated(hone::silu), 0,
                           [&](index_t i, index_t j, double) {
                               const double x = rounded(even.sum(i, j) + v[at(j)]), y = rounded(even.sum(i, j + 19) + v[at(j + 19)]);
                               return rounded(alone(hone::silu, x) * y);
                           }, 19);
}

TEST_CASE("f64: row_max and row_sum into doubles and floats") {
    const operands o(9, 41, 6);
    for (const kernel& kn : test::kernels<double>()) {
        guarded<double> c(9 * 41), largest(9), sum(9);
        guarded<float> largest_float(9), sum_float(9);
        test::reverse_executor four(4);
        const hone::context ctx{.executor = four};
        const auto stages = hone::row_max(largest.data()) | hone::row_sum(sum.data()) | hone::row_max(largest_float.data()) |
                            hone::row_sum(sum_float.data());
        const auto plan = hone::plan<double>({.m = 9, .n = 41, .k = 6}, kn.policy(), stages, ctx);
        REQUIRE(plan.status() == hone::status{});
        CHECK(plan->explain().col_parts == 1);
        REQUIRE(plan->run(o.va(), o.vb(), hone::row_major(c.data(), 9, 41), stages, ctx) == hone::status{});
        INFO(kn.text());
        CHECK((c.intact() && largest.intact() && sum.intact() && largest_float.intact() && sum_float.intact()));
        for (index_t i = 0; i < 9; ++i) {
            const double* row = c.data() + i * 41;
            double most = row[0], all = 0;
            float all_float = 0;
            for (index_t j = 0; j < 41; ++j) {
                most = std::max(most, row[j]);
                all = test::rounded(all + row[j]);
                all_float = test::rounded(all_float + static_cast<float>(row[j]));
            }
            CHECK(test::same(largest.data()[i], most));
            CHECK(test::same(sum.data()[i], all));
            CHECK(test::same(largest_float.data()[i], static_cast<float>(most)));
            CHECK(test::same(sum_float.data()[i], all_float));
        }
    }
}

namespace {

// The half nearest to x, ties to even, found among the neighbours of what rounding twice gives: none of them is off by more.
template <class H>
H nearest(double x) {
    if (std::isnan(x)) return H(std::numeric_limits<float>::quiet_NaN());
    const H twice(static_cast<float>(x));
    constexpr std::uint16_t infinity = std::is_same_v<H, hone::bf16> ? 0x7f80 : 0x7c00;
    const std::uint16_t sign = twice.bits & 0x8000u;
    const double size = std::abs(x);
    const auto value = [](int bits) {  // infinity stands where the next number would
        const auto as = [](int b) { return static_cast<double>(static_cast<float>(H::from_bits(static_cast<std::uint16_t>(b)))); };
        return bits < infinity ? as(bits) : 2 * as(infinity - 1) - as(infinity - 2);
    };
    const int middle = twice.bits & 0x7fff;
    int best = middle;
    for (int bits = std::max(middle - 1, 0); bits <= std::min(middle + 1, static_cast<int>(infinity)); ++bits) {
        const double off = std::abs(value(bits) - size), least = std::abs(value(best) - size);
        if (off < least || (off == least && bits % 2 == 0)) best = bits;
    }
    return H::from_bits(static_cast<std::uint16_t>(best | sign));
}

}  // namespace

TEST_CASE("f64: store_as rounds once, also where rounding to float in between would be seen") {
    // Half steps of bf16 and f16 and what lies a little beside them; beyond the largest numbers; subnormal ones.
    std::vector<double> values = {0.0, -0.0, 1.0, inf, -inf, 1e300, -1e300, 1e-300, 65519.999999, 65520.0, 65504.0, 0x1p-25, 0x1.0000001p-25,
                                  0x1.ffffffffp-26, 0x1p-24, 0x1p-134, 0x1.00000001p-134, 0x1.fep127, 0x1.ffp127, 0x1.feffffffffp127};
    random_source source(13);
    for (int i = 0; i < 400; ++i) {
        const double base = std::ldexp(1 + static_cast<double>(source.between(0, 2047)) / 2048, static_cast<int>(source.between(-30, 16)));
        for (double beside : {0.0, 0x1p-40, -0x1p-40}) values.push_back((i % 2 ? base : -base) * (1 + beside));
    }
    const auto n = static_cast<index_t>(values.size());
    const double one = 1;
    operands o(1, n, 1);
    o.a = {one};
    o.b = values;
    const auto check = [&](const char* what, auto zero, const auto& rounding) {
        using C = decltype(zero);
        for (const kernel& kn : test::kernels<double>()) {
            for (const bool apart : {false, true}) {
                const index_t step = apart ? 2 : 1;
                std::vector<C> c(static_cast<std::size_t>(step * n), zero);
                const auto plan = hone::plan<double>({.m = 1, .n = n, .k = 1, .c = {step * n, step}}, kn.policy(), hone::store_as<C>());
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(o.va(), o.vb(), hone::matrix_view<C>{c.data(), 1, n, step * n, step}, hone::store_as<C>()) == hone::status{});
                index_t wrong = 0;
                for (index_t j = 0; j < n; ++j) {
                    // A chain from +0 loses the sign of a zero.
                    const C got = c[static_cast<std::size_t>(step * j)], want = rounding(values[static_cast<std::size_t>(j)] + 0.0);
                    wrong += std::memcmp(&got, &want, sizeof got) != 0;
                }
                INFO(what << " " << kn.text() << (apart ? " columns apart" : ""));
                CHECK(wrong == 0);
            }
        }
    };
    check("float", 0.0f, [](double x) { return static_cast<float>(x); });
    check("bf16", hone::bf16(0.0f), [](double x) { return nearest<hone::bf16>(x); });
    check("f16", hone::f16(0.0f), [](double x) { return nearest<hone::f16>(x); });
    // Rounded twice some of them differ, or the case would show nothing.
    int twice = 0;
    for (double x : values) twice += nearest<hone::bf16>(x).bits != hone::bf16(static_cast<float>(x)).bits;
    CHECK(twice > 10);
}

// ---- exp, tanh, sigmoid and erf of doubles

namespace {

double ulp64(double x) {
    const double size = std::abs(x);
    return size > 0x1p-1022 ? std::ldexp(1.0, std::ilogb(size) - 52) : 0x1p-1074;
}

// Greatest error in ulp of f against long double. Arguments: even over [low, high], and of all sizes from 2^-40 on.
template <class F, class Want>
double worst_ulp(F f, Want want, double low, double high) {
    random_source source(2024);
    double worst = 0;
    for (int i = 0; i < (test::quick() ? 2000 : 200000); ++i) {
        hone::vec<double, 4> x(0.0);
        for (int lane = 0; lane < 4; ++lane) {
            const double u = source.of<double>() / 2 + 0.5;
            double at = low + (high - low) * u;
            if (i % 2) at = std::ldexp(source.of<double>(), static_cast<int>(source.between(-40, 3)));
            x.set_lane(lane, std::min(std::max(at, low), high));
        }
        const hone::vec<double, 4> y = f(x);
        for (int lane = 0; lane < 4; ++lane) {
            const long double exact = want(static_cast<long double>(x[lane]));
            const double off = static_cast<double>(std::abs(static_cast<long double>(y[lane]) - exact)) / ulp64(static_cast<double>(exact));
            if (!(off <= worst)) worst = off;
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("f64: exp, tanh, sigmoid and erf keep the bounds that math.hpp states") {
    using V = hone::vec<double, 4>;
    using hone::exp, hone::erf;
    CHECK(worst_ulp([](const V& x) { return exp(x); }, [](long double x) { return std::exp(x); }, -745.1, 709.7) <= 1.1);
    CHECK(worst_ulp([](const V& x) { return hone::tanh(x); }, [](long double x) { return std::tanh(x); }, -21, 21) <= 3);
    CHECK(worst_ulp([](const V& x) { return hone::sigmoid(x); }, [](long double x) { return 1 / (1 + std::exp(-x)); }, -745, 40) <= 2.5);
    CHECK(worst_ulp([](const V& x) { return erf(x); }, [](long double x) { return std::erf(x); }, -7, 7) <= 2);
    CHECK(worst_ulp([](const V& x) { return erf(x); }, [](long double x) { return std::erf(x); }, 0.9, 1.1) <= 2);
    const auto one = [](auto f, double x) { return f(V(x))[2]; };
    const auto e = [](const V& x) { return exp(x); };
    const auto t = [](const V& x) { return hone::tanh(x); };
    const auto s = [](const V& x) { return hone::sigmoid(x); };
    const auto r = [](const V& x) { return erf(x); };
    CHECK(test::same(one(e, -inf), 0.0));
    CHECK(test::same(one(e, inf), inf));
    CHECK(test::same(one(e, -0.0), 1.0));
    CHECK(test::same(one(e, 709.79), inf));
    CHECK(test::same(one(e, -745.13), 5e-324));
    CHECK(test::same(one(e, -746.0), 0.0));
    CHECK(test::same(one(t, inf), 1.0));
    CHECK(test::same(one(t, -inf), -1.0));
    CHECK(test::same(one(t, -0.0), -0.0));
    CHECK(test::same(one(t, 5e-324), 5e-324));
    CHECK(test::same(one(s, -inf), 0.0));
    CHECK(test::same(one(s, inf), 1.0));
    CHECK(test::same(one(s, 0.0), 0.5));
    CHECK(test::same(one(r, inf), 1.0));
    CHECK(test::same(one(r, -inf), -1.0));
    CHECK(test::same(one(r, -0.0), -0.0));
    for (double size : {0.3, 0.99, 1.0, 2.5, 5.9, 1e300}) {
        CHECK(test::same(one(t, -size), -one(t, size)));
        CHECK(test::same(one(r, -size), -one(r, size)));
    }
    for (auto f : {one(e, nan_value), one(t, nan_value), one(s, nan_value), one(r, nan_value)}) CHECK(std::isnan(f));
}

// ---- policies and plans

namespace {

// A policy fixed at compile time, registered or not.
template <hone::policy P>
void fixed_policy() {
    if (!hone::available(P.isa)) return;
    const index_t mr = std::max(P.tile.mr, 1), nr = std::max(P.tile.nr, 1);
    for (index_t m : around(mr)) {
        for (index_t n : {index_t{1}, nr, nr + 1, 2 * nr + 1}) {
            for (index_t k : {1, 3, 9}) {
                guarded<double> am(m * k), bm(k * n), cm(m * n);
                matrix<double> a(am, m, k, test::rows_of(k)), b(bm, k, n, test::rows_of(n)), c(cm, m, n, test::rows_of(n));
                random_source source(23);
                a.fill(source);
                b.fill(source);
                c.fill(source);
                c.remember();
                REQUIRE(hone::gemm<P>(1.5, a.view(), b.view(), 0.25, c.view()) == hone::status{});
                const auto plan = hone::plan<P, double>(hone::describe(a.in(), b.in(), c.view()));
                REQUIRE(plan.status() == hone::status{});
                if (P.tile.mr != 0) CHECK(plan->explain().tile == P.tile);
                index_t wrong = 0;
                for (index_t i = 0; i < m; ++i) {
                    for (index_t j = 0; j < n; ++j) {
                        const double want = test::strict_sum(0.25, c.old(i, j), test::strict_dot(1.5, a.in(), b.in(), i, j));
                        wrong += !(test::reproducible(P.isa) ? test::same(c(i, j), want) : test::near(c(i, j), want, 1e-14));
                    }
                }
                INFO(hone::isa_name(P.isa) << " " << P.tile.mr << "x" << P.tile.nr << ": " << m << "x" << n << "x" << k);
                CHECK(wrong == 0);
            }
        }
    }
}

}  // namespace

TEST_CASE("f64: policies fixed at compile time, with tiles that are not registered") {
    using hone::isa;
    fixed_policy<hone::policy{.isa = isa::scalar, .tile = {8, 2}, .block = {.mc = 8, .kc = 2, .nc = 16}}>();
    fixed_policy<hone::policy{.isa = isa::native}>();
#if HONE_X86
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {4, 8}, .block = {.mc = 8, .kc = 2, .nc = 8}}>();
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {2, 16}}>();
    // No more than eight rows, whose pointers fit the registers: tests/disassembly.sh reads this binary.
    fixed_policy<hone::policy{.isa = isa::avx512, .tile = {8, 16}, .block = {.mc = 16, .kc = 4, .nc = 32}}>();
    fixed_policy<hone::policy{.isa = isa::avx512, .tile = {6, 8}, .precision = {.a = hone::dtype::f64, .c = hone::dtype::f64}}>();
#endif
#if HONE_ARM64
    fixed_policy<hone::policy{.isa = isa::neon, .tile = {6, 8}}>();
    fixed_policy<hone::policy{.isa = isa::neon, .tile = {12, 4}}>();
#endif
}

TEST_CASE("f64: the precision of a policy is that of the operands, or refused") {
    using hone::dtype;
    const hone::gemm_desc desc{.m = 3, .n = 4, .k = 5};
    const hone::policy all{.precision = {.a = dtype::f64, .b = dtype::f64, .accumulate = dtype::f64, .c = dtype::f64}};
    CHECK(hone::plan<double>(desc, all).status() == hone::status{});
    CHECK(hone::plan<float>(desc, all).status() ==
          hone::status{hone::code::unsupported, hone::argument::policy_precision, static_cast<int>(dtype::f64), static_cast<int>(dtype::f32)});
    const hone::policy sums{.precision = {.a = dtype::f32}};
    CHECK(hone::plan<double>(desc, sums).status() ==
          hone::status{hone::code::unsupported, hone::argument::policy_precision, static_cast<int>(dtype::f32), static_cast<int>(dtype::f64)});
    CHECK(hone::plan<double>(desc, {.precision = {.accumulate = dtype::f32}}).status().argument == hone::argument::policy_precision);
    CHECK(hone::plan<double>(desc, {.precision = {.c = dtype::f32}}).status().code == hone::code::mismatch);
    CHECK(hone::plan<double>(desc, {.precision = {.c = dtype::f32}}, hone::store_as<float>()).status() == hone::status{});
}

TEST_CASE("f64: explain() names the element; a plan is trivially copyable; lambdas of doubles alone") {
    const auto plan = hone::plan<double>({.m = 100, .n = 200, .k = 300});
    REQUIRE(plan.status() == hone::status{});
    static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*plan)>>);
    const std::string text(plan->explain().text().view());
    INFO(text);
    CHECK(text.find(std::string("gemm f64 ") + hone::isa_name(plan->explain().isa) + " (") == 0);
    // What throws where the sums are doubles is asked of doubles: these lambdas take nothing else.
    const auto quiet = hone::map([]<int N>(hone::vec<double, N>& x, const hone::place<double, N>&) noexcept { x = x * 2.0; });
    const auto loud = hone::map([]<int N>(hone::vec<double, N>& x, const hone::place<double, N>&) { x = x * 2.0; });
    static_assert(hone::gemm_plan<std::remove_const_t<decltype(quiet)>, double>::nothrow);
    static_assert(hone::gemm_plan<std::remove_const_t<decltype(loud)>, double>::nothrow == !HONE_EXCEPTIONS);
    const double a[] = {1, 2, 3, 4};
    double c[4] = {};
    REQUIRE(hone::gemm(hone::row_major(a, 2, 2), hone::row_major(a, 2, 2), hone::row_major(c, 2, 2), quiet | loud) == hone::status{});
    CHECK(std::vector<double>(c, c + 4) == std::vector<double>{28, 40, 60, 88});
}
