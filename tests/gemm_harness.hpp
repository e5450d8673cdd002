// SPDX-License-Identifier: BSL-1.0
// What the tests of GEMM of floats and of doubles share: one product in guarded memory, compared to the bit, and the
// cases that do not depend on the element.
#pragma once

#include "reference.hpp"

#include <optional>
#include <span>

namespace test {

// Whether the bits of this instruction set are promised.
inline bool bitwise(hone::isa id) { return reproducible(id == hone::isa::dynamic ? hone::active_isa() : id); }

// ---- one product
// -----------------------------------------------------------------------------------------------------

// One product and everything about it that must not change a bit of the result.
template <class T>
struct gemm_problem {
    index_t m = 0, n = 0, k = 0;
    double alpha = 1, beta = 0;
    std::optional<layout> a{}, b{}, c{};  // left out: dense rows
    hone::policy policy{};
    hone::executor_ref executor{};
    bool packed = false;     // B packed beforehand
    index_t dynamic_m = -1;  // >= 0: the plan's bound
    edge side = edge::end;
    // Spoils operands after the random fill.
    void (*spoil)(matrix<T>& a, matrix<T>& b, matrix<T>& c) = nullptr;
    std::uint64_t seed = 1;
    bool near_too = false;   // bits are right, and the sum in more precision is near

    std::string text() const {
        const auto lay = [](const std::optional<layout>& l) {
            return l ? "(" + std::to_string(l->row) + ", " + std::to_string(l->col) + ")" : std::string("dense");
        };
        std::ostringstream s;
        s << m << "x" << n << "x" << k << " alpha " << alpha << " beta " << beta << " isa "
          << hone::isa_name(policy.isa) << " tile " << policy.tile.mr << "x" << policy.tile.nr << " block "
          << policy.block.mc << "," << policy.block.kc << "," << policy.block.nc << (packed ? " packed B" : "") << " A "
          << lay(a) << " B " << lay(b) << " C " << lay(c) << ", " << name(side);
        return s.str();
    }
};

// Runs it in guarded memory, with exactly the scratch it asks for and with the calling thread's. "" when every element
// is what the contract says, and no gap, no operand and no guard was touched. Where `out` is given, the elements of C
// are left there, row by row.
template <class T>
std::string run(const gemm_problem<T>& p, std::vector<T>* out = nullptr) {
    const layout la = p.a.value_or(rows_of(p.k)), lb = p.b.value_or(rows_of(p.n)), lc = p.c.value_or(rows_of(p.n));
    guarded<T> am(span_of(p.m, p.k, la), p.side), bm(span_of(p.k, p.n, lb), p.side), cm(span_of(p.m, p.n, lc), p.side);
    matrix<T> a(am, p.m, p.k, la), b(bm, p.k, p.n, lb), c(cm, p.m, p.n, lc);
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
    const hone::context serial{.executor = p.executor};
    const auto plan = hone::plan<T>(desc, p.policy, hone::identity, serial);
    if (!plan) return "no plan: " + std::string(plan.status().message().view());
    const hone::aligned_buffer memory(static_cast<std::size_t>(p.packed ? plan->packed_bytes() : 0));
    const std::span<std::byte> bytes(memory.data(), memory.size());
    hone::packed_view packed_b;
    if (p.packed) {
        const hone::status s = plan->pack(b.in(), bytes);
        if (!s.ok()) return "not packed: " + std::string(s.message().view());
        const auto opened = hone::packed_view::open(bytes);
        if (!opened) return "not opened: " + std::string(opened.status().message().view());
        if (!opened->verify().ok()) return "not verified";
        packed_b = *opened;
    }
    const index_t scratch_bytes = plan->scratch_bytes(p.executor.concurrency(), p.packed);
    const guarded<std::byte> scratch(scratch_bytes);
    std::byte none{};
    std::vector<T> first;
    for (const bool own : {true, false}) {
        hone::context ctx{.executor = p.executor};
        if (own) ctx.scratch = {scratch_bytes != 0 ? scratch.data() : &none, static_cast<std::size_t>(scratch_bytes)};
        else c.fill([&](index_t i, index_t j) { return c.old(i, j); });
        const hone::status s = p.packed ? plan->run(a.in(), packed_b, c.view(), hone::identity, ctx)
                                        : plan->run(a.in(), b.in(), c.view(), hone::identity, ctx);
        if (!s.ok()) return std::string(s.message().view());
        if (!scratch.intact()) return "memory around the scratch was written";
        if (!a.unchanged()) return "A was written, or memory around it";
        if (!b.unchanged()) return "B was written, or memory around it";
        if (!c.gaps_unchanged()) return "memory outside C was written";
        if (own) first.assign(cm.data(), cm.data() + cm.size());
    }
    if (!first.empty() && std::memcmp(first.data(), cm.data(), first.size() * sizeof(T)) != 0) {
        return "the calling thread's scratch gives other bits than the caller's";
    }
    const bool exact = bitwise(p.policy.isa);
    for (index_t i = 0; i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) {
            const T got = c(i, j);
            const T want = strict_sum(p.beta, c.old(i, j), strict_dot(p.alpha, a.in(), b.in(), i, j));
            const bool same_bits = same(got, want);
            if (out) out->push_back(got);
            if (same_bits && !p.near_too) continue;
            const near_value v = dot(p.alpha, a.in(), b.in(), p.beta, static_cast<double>(c.old(i, j)), i, j);
            if ((same_bits || !exact) && near(static_cast<double>(got), v.value, v.bound)) continue;
            std::ostringstream text;
            text.precision(std::numeric_limits<T>::max_digits10);
            text << "C(" << i << ", " << j << ") is " << got << ", not " << want << ", and is to be near " << v.value;
            return text.str();
        }
    }
    return "";
}

// `problem` is a gemm_problem of some element.
#define REQUIRE_RIGHT(...)                    \
    do {                                      \
        const problem wanted_ = __VA_ARGS__;  \
        CHECK_RIGHT(wanted_, run(wanted_));   \
    } while (false)

template <class T>
void spoil_c_with_nan(matrix<T>&, matrix<T>&, matrix<T>& c) {
    c.fill([](index_t, index_t) { return std::numeric_limits<T>::quiet_NaN(); });
}
template <class T>
void spoil_a_with_nan(matrix<T>& a, matrix<T>&, matrix<T>&) {
    a.fill([](index_t, index_t) { return std::numeric_limits<T>::quiet_NaN(); });
}

// ---- sweeps
// ----------------------------------------------------------------------------------------------------------

// Extents around the multiples of a tile.
inline std::vector<index_t> around(index_t unit) {
    std::vector<index_t> list = {1, 2, unit - 1, unit, unit + 1, 2 * unit - 1, 2 * unit, 2 * unit + 1};
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    std::erase_if(list, [](index_t x) { return x < 1; });
    return list;
}

inline std::vector<index_t> all_to(index_t last) {
    std::vector<index_t> list;
    for (index_t i = 0; i <= last; ++i) list.push_back(i);
    return list;
}

// Elements in a row, as vectors are filled.
template <class T>
std::vector<T> numbers(index_t count, random_source& source) {
    std::vector<T> list(static_cast<std::size_t>(count));
    for (T& x : list) x = source.of<T>();
    return list;
}

// Sums after 0, 1, 2 … k steps of every chain of A (m, k) B (k, n): the reference of all smaller products at once, in
// T and in more precision.
template <class T>
class chains {
public:
    using wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

    chains(const hone::matrix_view<const T>& a, const hone::matrix_view<const T>& b) : m_(a.rows), n_(b.cols) {
        t_.resize(static_cast<std::size_t>((a.cols + 1) * m_ * n_), T(0));
        size_.resize(t_.size(), 0.0);
        exact_.resize(t_.size(), wide(0));
        for (index_t p = 0; p < a.cols; ++p) {
            for (index_t i = 0; i < m_; ++i) {
                for (index_t j = 0; j < n_; ++j) {
                    const T x = *a.at(i, p), y = *b.at(p, j);
                    const wide product = static_cast<wide>(x) * static_cast<wide>(y);
                    t_[at(p + 1, i, j)] = std::fma(x, y, t_[at(p, i, j)]);
                    exact_[at(p + 1, i, j)] = exact_[at(p, i, j)] + product;
                    size_[at(p + 1, i, j)] = size_[at(p, i, j)] + static_cast<double>(std::abs(product));
                }
            }
        }
    }
    T sum(index_t k, index_t i, index_t j) const { return t_[at(k, i, j)]; }
    wide exact(index_t k, index_t i, index_t j) const { return exact_[at(k, i, j)]; }
    double size(index_t k, index_t i, index_t j) const { return size_[at(k, i, j)]; }

private:
    std::size_t at(index_t k, index_t i, index_t j) const { return static_cast<std::size_t>((k * m_ + i) * n_ + j); }
    index_t m_, n_;
    std::vector<T> t_;
    std::vector<double> size_;
    std::vector<wide> exact_;
};

// All m of `ms`, n of `ns` and k of `ks` with one kernel, each twice: C = A B, and C = -1.5 A B + 0.5 C.
template <class T>
std::string small_shapes(const kernel& kn, edge side, const std::vector<index_t>& ms, const std::vector<index_t>& ns,
                         const std::vector<index_t>& ks, std::size_t& count) {
    using wide = typename chains<T>::wide;
    constexpr double unit = std::is_same_v<T, float> ? eps : 0x1p-53;
    constexpr int terms = std::is_same_v<T, float> ? 4 : 5;  // as in dot()
    const index_t most_m = ms.back(), most_n = ns.back(), most_k = ks.back();
    random_source source(static_cast<std::uint64_t>(kn.mr * 1000 + kn.nr));
    const std::vector<T> a_all = numbers<T>(most_m * most_k, source), b_all = numbers<T>(most_k * most_n, source);
    const auto a_from = hone::row_major<const T>(a_all.data(), most_m, most_k);
    const auto b_from = hone::row_major<const T>(b_all.data(), most_k, most_n);
    const chains<T> want(a_from, b_from);
    constexpr index_t a_gap = 3, b_gap = 5, c_gap = 2;
    guarded<T> am(most_m * (most_k + a_gap), side), bm(most_k * (most_n + b_gap), side),
        cm(most_m * (most_n + c_gap), side);
    const bool exact = bitwise(kn.isa);
    for (index_t k : ks) {
        for (index_t n : ns) {
            matrix<T> b(bm, k, n, rows_of(n, b_gap));
            b.fill([&](index_t p, index_t j) { return *b_from.at(p, j); });
            b.remember();
            for (index_t m : ms) {
                matrix<T> a(am, m, k, rows_of(k, a_gap));
                a.fill([&](index_t i, index_t p) { return *a_from.at(i, p); });
                a.remember();
                for (const bool plain : {true, false}) {
                    matrix<T> c(cm, m, n, rows_of(n, c_gap));
                    if (!plain) c.fill([&](index_t i, index_t j) { return static_cast<T>(i - 2 * j) * T(0.37); });
                    c.remember();
                    hone::gemm_desc desc = hone::describe(a.in(), b.in(), c.view());
                    if (!plain) {
                        desc.alpha = -1.5;
                        desc.beta = 0.5;
                    }
                    const auto plan = hone::plan<T>(desc, kn.policy());
                    const hone::status s = plan ? plan->run(a.in(), b.in(), c.view()) : plan.status();
                    ++count;
                    std::ostringstream where;
                    where << m << "x" << n << "x" << k << (plain ? "" : " with alpha and beta") << ", " << name(side)
                          << ": ";
                    if (!s.ok()) return where.str() + std::string(s.message().view());
                    if (!c.gaps_unchanged()) return where.str() + "memory outside C was written";
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j) {
                            const T t = want.sum(k, i, j), got = c(i, j);
                            const T v =
                                plain ? t : std::fma(T(0.5), c.old(i, j), rounded((k == 0 ? T(1) : T(-1.5)) * t));
                            if (same(got, v)) continue;
                            const wide alpha = plain ? 1 : -1.5, beta = plain ? 0 : 0.5;
                            const wide old = plain ? wide(0) : static_cast<wide>(c.old(i, j));
                            const double bound =
                                (2.0 * static_cast<double>(k) + terms) * unit * 1.5 * want.size(k, i, j) +
                                terms * unit * static_cast<double>(std::abs(beta * old));
                            const auto value = static_cast<double>(alpha * want.exact(k, i, j) + beta * old);
                            if (!exact && near(static_cast<double>(got), value, bound)) continue;
                            where.precision(std::numeric_limits<T>::max_digits10);
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

// ---- cases
// -----------------------------------------------------------------------------------------------------------

// Every line of kernels.def for T is a kernel with a body for each edge.
template <class T>
void check_registry() {
    int lines[hone::isa_count] = {};
#define HONE_GEMM(region, type, mr, registers) \
    if (std::is_same_v<type, T>) ++lines[static_cast<int>(hone::isa::region)];
#include <hone/kernels.def>
    for (hone::isa id : isas()) {
        const auto& list = hone::detail::gemm_kernels<T>(id);
        INFO(hone::isa_name(id));
        REQUIRE(list.count == lines[static_cast<int>(id)]);
        REQUIRE(list.count > 0);
        for (int r = 0; r < list.count; ++r) {
            const auto& row = list.row[r];
            CHECK(row.isa == id);
            CHECK(row.pack_lines != nullptr);
            CHECK(row.nr % row.lanes == 0);
            CHECK(row.panel * static_cast<int>(sizeof(T)) >= 64);
            const int registers = row.nr / row.lanes;
            for (index_t rows = 1; rows <= 2 * row.mr; ++rows) {
                for (int narrowest = 1; narrowest <= registers; ++narrowest) {
                    for (index_t left = rows; left > 0;) {
                        const hone::detail::tile_run tiles = hone::detail::next_run(row, left, narrowest);
                        REQUIRE(tiles.count > 0);
                        CHECK(tiles.height <= hone::detail::tile_heights[tiles.index]);
                        for (int v = narrowest; v <= registers; ++v) CHECK(row.micro[tiles.index][v - 1] != nullptr);
                        left -= tiles.count * tiles.height;
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
template <class T>
void check_small_shapes() {
    for (const kernel& kn : kernels<T>()) {
        std::vector<index_t> ms = all_to(2 * kn.mr + 1), ns = all_to(2 * kn.nr + 1), ks = all_to(17);
        for (index_t k : {31, 32, 33, 47, 48, 49, 64, 65}) ks.push_back(k);
        if (quick()) {
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
            const std::string wrong = small_shapes<T>(kn, side, ms, ns, ks, count);
            INFO(kn.text() << ": " << count << " products");
            CHECK(wrong == "");
            CHECK(count == 2 * ms.size() * ns.size() * ks.size());
        }
    }
}

// All four transposes, with and without gaps.
template <class T>
void check_transposes() {
    using problem = gemm_problem<T>;
    for (const kernel& kn : kernels<T>()) {
        const std::vector<index_t> ms = around(kn.mr),
                                   ns = quick() ? std::vector<index_t>{1, kn.nr + 1} : around(kn.nr);
        for (index_t m : ms) {
            for (index_t n : ns) {
                for (index_t k : {1, 4, 7, 18}) {
                    for (int form = 0; form < 8; ++form) {
                        const index_t more = form & 4 ? 3 : 0;
                        REQUIRE_RIGHT({.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = form & 1 ? cols_of(m, more) : rows_of(k, more),
                                       .b = form & 2 ? cols_of(k, more) : rows_of(n, more),
                                       .c = rows_of(n, more),
                                       .policy = kn.policy(),
                                       .side = form & 1 ? edge::begin : edge::end});
                    }
                }
            }
        }
    }
}

// Any strides: negative, repeated, columns of C not contiguous.
template <class T>
void check_any_strides() {
    using problem = gemm_problem<T>;
    for (const kernel& kn : first_kernels<T>()) {
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

// The stride of an extent of one means nothing: it may be any number, which no address may be made of either, as
// UndefinedBehaviorSanitizer would say.
template <class T>
void check_strides_of_one() {
    using problem = gemm_problem<T>;
    constexpr index_t far = index_t{1} << 60;
    for (const kernel& kn : first_kernels<T>()) {
        for (index_t any : {index_t{0}, index_t{-3}, far, -far, INT64_MAX, INT64_MIN}) {
            for (index_t n : {index_t{1}, index_t{kn.nr + 1}}) {
                for (index_t k : {1, 7}) {
                    for (const bool packed : {false, true}) {
                        REQUIRE_RIGHT({.m = 1,
                                       .n = n,
                                       .k = k,
                                       .a = layout{any, k == 1 ? any : 1},
                                       .b = layout{k == 1 ? any : n, n == 1 ? any : 1},
                                       .c = layout{any, n == 1 ? any : 1},
                                       .policy = {.isa = kn.isa},
                                       .packed = packed});
                        // One row of a plan for several.
                        const index_t apart = any == 0 || any == -3 ? 2 * n + k : any / 256;
                        REQUIRE_RIGHT({.m = 1,
                                       .n = n,
                                       .k = k,
                                       .a = layout{apart, 1},
                                       .c = layout{apart, 1},
                                       .policy = {.isa = kn.isa},
                                       .packed = packed,
                                       .dynamic_m = 5});
                    }
                }
            }
            REQUIRE_RIGHT({.m = kn.mr + 1,
                           .n = kn.nr + 1,
                           .k = 1,
                           .a = layout{1, any},
                           .b = layout{any, 1},
                           .policy = kn.policy()});
        }
    }
}

// alpha and beta of both signs and of any size, -0, numbers that T rounds, and what must not be read.
template <class T>
void check_alpha_and_beta() {
    using problem = gemm_problem<T>;
    constexpr double tiny = std::is_same_v<T, float> ? 1e-30 : 1e-300, huge = std::is_same_v<T, float> ? 1e20 : 1e200;
    for (const kernel& kn : kernels<T>()) {
        for (double alpha : {1.0, -1.0, 0.1, tiny, 0.0, -0.0}) {
            for (double beta : {0.0, -0.0, 1.0, -1.0, 0.3, huge}) {
                for (const bool blocked : {false, true}) {
                    hone::policy p = kn.policy();
                    if (blocked) p.block.kc = 3;
                    for (index_t k : {7, 0}) {
                        REQUIRE_RIGHT({.m = kn.mr + 1,
                                       .n = k == 0 ? kn.nr + 1 : kn.lanes + 1,
                                       .k = k,
                                       .alpha = alpha,
                                       .beta = beta,
                                       .policy = p,
                                       .spoil = beta == 0.0 ? spoil_c_with_nan<T> : nullptr});
                    }
                }
            }
            REQUIRE_RIGHT({.m = 2,
                           .n = kn.nr + 1,
                           .k = 7,
                           .alpha = alpha,
                           .policy = kn.policy(),
                           .spoil = alpha == 0.0 ? spoil_a_with_nan<T> : nullptr});
        }
    }
}

// Infinities, NaN and subnormal numbers where IEEE 754 gives them, nowhere else.
template <class T>
void check_infinities() {
    using problem = gemm_problem<T>;
    const auto spoil = [](matrix<T>& a, matrix<T>& b, matrix<T>& c) {
        using limits = std::numeric_limits<T>;
        constexpr T large = limits::max() / T(1.1);
        const index_t m = a.view().rows, n = b.view().cols, k = b.view().rows;
        a(0, 0) = limits::quiet_NaN();                  // row 0 of C
        if (m > 1) a(1, k - 1) = limits::infinity();    // row 1: infinities, NaN where B is 0
        if (m > 2) a(2, 0) = large;                     // row 2: overflow in the chain
        if (m > 2 && k > 1) a(2, 1) = -large;
        if (m > 3) a(3, k / 2) = limits::denorm_min();  // row 3: subnormal products
        b(0, n - 1) = -limits::infinity();              // the last column
        b(k - 1, n / 2) = T(0);
        if (n > 2) b(k - 1, 0) = std::is_same_v<T, float> ? T(1e30) : static_cast<T>(1e300);
        c(m - 1, 0) = limits::quiet_NaN();              // with beta != 0
        if (m > 4) c(4, n / 2) = limits::infinity();
    };
    for (const kernel& kn : kernels<T>()) {
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

// k blocks: partial sums in C and in scratch, mc and nc small, packed or not.
template <class T>
void check_k_blocks() {
    using problem = gemm_problem<T>;
    constexpr int kc = 6;
    for (const kernel& kn : kernels<T>()) {
        const int unit = std::max(kn.nr, kn.panel);
        const std::vector<hone::blocking> blocks = {{0, kc, 0},    {kn.mr, kc, unit}, {2 * kn.mr, kc, 2 * unit},
                                                    {kn.mr, 1, 0}, {0, kc, unit},     {kn.mr, 0, unit}};
        const index_t m = 3 * kn.mr + 1, n = quick() ? unit + 1 : 2 * unit + kn.lanes + 1;
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
                                   .c = rows_of(n, 1),
                                   .policy = p,
                                   .packed = packed,
                                   .spoil = spoil_c_with_nan<T>});
                    REQUIRE_RIGHT(
                        {.m = m, .n = n, .k = k, .beta = 2, .c = rows_of(n, 1), .policy = p, .packed = packed});
                    REQUIRE_RIGHT({.m = m, .n = n, .k = k, .c = cols_of(m, 1), .policy = p, .packed = packed});
                    for (const bool b_by_columns : {false, true}) {
                        REQUIRE_RIGHT({.m = m,
                                       .n = n,
                                       .k = k,
                                       .beta = -1,
                                       .a = cols_of(m, 1),
                                       .b = b_by_columns ? cols_of(k, 1) : rows_of(n),
                                       .c = layout{-2 * n, -2},
                                       .policy = p,
                                       .packed = packed,
                                       .side = edge::begin});
                    }
                }
            }
        }
    }
}

// Packed B: from any strides, and from the plan of another instruction set with the same panels; panels of the other
// element are refused.
template <class T>
void check_packed() {
    using problem = gemm_problem<T>;
    using other = std::conditional_t<std::is_same_v<T, float>, double, float>;
    const std::vector<kernel> list = kernels<T>();
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
    random_source source(3);
    for (const kernel& from : list) {
        for (const kernel& to : list) {
            const index_t m = 7, n = 2 * std::max(from.nr, to.nr) + 3, k = 19;
            const std::vector<T> a = numbers<T>(m * k, source), b = numbers<T>(k * n, source);
            std::vector<T> c(static_cast<std::size_t>(m * n)), want(c.size());
            const auto va = hone::row_major<const T>(a.data(), m, k), vb = hone::row_major<const T>(b.data(), k, n);
            const auto packs = hone::plan<T>({.m = 1, .n = n, .k = k}, from.policy()),
                       runs = hone::plan<T>({.m = m, .n = n, .k = k}, to.policy());
            REQUIRE(packs.status() == hone::status{});
            REQUIRE(runs.status() == hone::status{});
            const hone::aligned_buffer memory(static_cast<std::size_t>(packs->packed_bytes()));
            const std::span<std::byte> bytes(memory.data(), memory.size());
            REQUIRE(packs->pack(vb, bytes) == hone::status{});
            const auto view = hone::packed_view::open(bytes);
            REQUIRE(view.status() == hone::status{});
            CHECK(view->header().element == sizeof(T));
            const hone::status s = runs->run(va, *view, hone::row_major(c.data(), m, n));
            INFO(from.text() << " packs, " << to.text() << " runs");
            if (from.panel != to.panel) {
                CHECK(s == hone::status{hone::code::corrupt, hone::argument::packed_layout, from.panel, to.panel});
                continue;
            }
            REQUIRE(s == hone::status{});
            REQUIRE(runs->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
            CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(T)) == 0);

            const auto others = hone::plan<other>({.m = m, .n = n, .k = k}, {.isa = to.isa});
            REQUIRE(others.status() == hone::status{});
            const std::vector<other> oa(a.size(), other(1));
            std::vector<other> oc(c.size(), other(7));
            CHECK(others->run(hone::row_major<const other>(oa.data(), m, k), *view, hone::row_major(oc.data(), m, n)) ==
                  hone::status{hone::code::corrupt, hone::argument::packed_layout, sizeof(T), sizeof(other)});
            CHECK(std::all_of(oc.begin(), oc.end(), [](other x) { return x == other(7); }));
        }
    }
}

// Dynamic m: any number of rows up to the bound, with the scratch of the bound.
template <class T>
void check_dynamic_m() {
    using problem = gemm_problem<T>;
    for (const kernel& kn : kernels<T>()) {
        const index_t bound = 3 * kn.mr + 1, n = kn.nr + 1;
        for (index_t m = 0; m <= bound; ++m) {
            REQUIRE_RIGHT({.m = m, .n = n, .k = 9, .policy = kn.policy(), .dynamic_m = bound});
            hone::policy p = kn.policy();
            p.block = {.mc = kn.mr, .kc = 4, .nc = 0};
            reverse_executor four(4);
            REQUIRE_RIGHT({.m = m,
                           .n = n,
                           .k = 9,
                           .alpha = 2,
                           .beta = 1,
                           .a = cols_of(bound),
                           .policy = p,
                           .executor = four,
                           .dynamic_m = bound});
            REQUIRE_RIGHT({.m = m, .n = n, .k = 9, .policy = p, .executor = four, .packed = true, .dynamic_m = bound});
        }
    }
}

// 1 to 8 std::threads, and tasks in reverse order, give the same bits.
template <class T>
void check_executors() {
    using problem = gemm_problem<T>;
    for (const kernel& kn : kernels<T>()) {
        for (const bool blocked : {false, true}) {
            hone::policy p = kn.policy();
            if (blocked) p.block = {.mc = kn.mr, .kc = 5, .nc = std::max(kn.nr, kn.panel)};
            const index_t shapes[][3] = {
                {5 * kn.mr + 1, 3 * kn.nr + 1, 11}, {1, 5 * kn.nr + 2, 13}, {9 * kn.mr, 1, 12}, {kn.mr, kn.nr, 6}};
            for (const auto& s : shapes) {
                const problem base{.m = s[0], .n = s[1], .k = s[2], .alpha = 1.25, .beta = 0.5, .policy = p};
                std::vector<T> serial;
                REQUIRE(run(base, &serial) == "");
                index_t most = 1;
                for (int workers = 1; workers <= 8; ++workers) {
                    if (quick() && workers != 1 && workers != 3 && workers != 8) continue;
                    for (const bool packed : {false, true}) {
                        thread_executor threads(workers);
                        reverse_executor reverse(workers);
                        problem with = base;
                        with.packed = packed;
                        for (hone::executor_ref x : {hone::executor_ref(threads), hone::executor_ref(reverse)}) {
                            with.executor = x;
                            std::vector<T> got;
                            INFO(with.text() << ", workers " << workers);
                            CHECK(run(with, &got) == "");
                            REQUIRE(got.size() == serial.size());
                            CHECK(std::memcmp(got.data(), serial.data(), got.size() * sizeof(T)) == 0);
                        }
                        CHECK(threads.most_tasks <= workers);
                        CHECK(reverse.most_tasks <= workers);
                        most = std::max(most, reverse.most_tasks);
                        const bool divisible = s[0] > kn.mr || s[1] > std::max(kn.nr, kn.panel);
                        CHECK((reverse.most_tasks > 1) == (divisible && workers > 1));
                    }
                }
            }
        }
    }
}

// hone::gemm does small row-major products without a plan; a plan does them the general way.
template <class T>
void check_small_without_plan() {
    const std::vector<index_t> ms = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33, 64}, ks = {1, 2, 3, 7, 16, 17, 64};
    const std::vector<index_t> ns = {1,  2,  3,  4,  5,  7,  8,  9,  11, 15, 16,
                                     17, 23, 24, 25, 31, 32, 33, 47, 48, 63, 64};
    random_source source(10);
    for (index_t m : ms) {
        for (index_t n : ns) {
            for (index_t k : ks) {
                if (quick() && (m + n + k) % 5 != 0) continue;
                for (const edge side : {edge::end, edge::begin}) {
                    for (const index_t gap : {0, 3}) {  // elements between rows
                        const auto size = [&](index_t rows, index_t cols) { return (rows - 1) * (cols + gap) + cols; };
                        guarded<T> a(size(m, k), side), b(size(k, n), side), c(size(m, n), side);
                        std::vector<T> want(static_cast<std::size_t>(m * n), std::numeric_limits<T>::quiet_NaN());
                        for (index_t i = 0; i < size(m, k); ++i) a.data()[i] = source.of<T>();
                        for (index_t i = 0; i < size(k, n); ++i) b.data()[i] = source.of<T>();
                        for (index_t i = 0; i < size(m, n); ++i) c.data()[i] = T(77);
                        const auto va = hone::row_major<const T>(a.data(), m, k, k + gap);
                        const auto vb = hone::row_major<const T>(b.data(), k, n, n + gap);
                        REQUIRE(hone::gemm(va, vb, hone::row_major(c.data(), m, n, n + gap)) == hone::status{});
                        const auto plan =
                            hone::plan<T>({.m = m, .n = n, .k = k, .a = {k + gap, 1}, .b = {n + gap, 1}});
                        REQUIRE(plan.status() == hone::status{});
                        REQUIRE(plan->run(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
                        INFO(m << "x" << n << "x" << k << " gap " << gap << ", " << name(side));
                        CHECK(a.intact());
                        CHECK(b.intact());
                        CHECK(c.intact());
                        index_t wrong = 0;
                        for (index_t i = 0; i < m; ++i) {
                            for (index_t j = 0; j < n + (i + 1 < m ? gap : 0); ++j) {
                                const T expected = j < n ? want[static_cast<std::size_t>(i * n + j)] : T(77);
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
    T x[64] = {};
    const auto at = [&x](int from, index_t rows) { return hone::row_major(x + from, rows, 4); };
    CHECK_FALSE(hone::gemm(at(0, 4), at(16, 4), at(8, 4)).ok());
    CHECK_FALSE(hone::gemm(at(0, 4), at(16, 3), at(32, 4)).ok());
    CHECK_FALSE(hone::gemm(hone::row_major<T>(nullptr, 4, 4), at(16, 4), at(32, 4)).ok());
    CHECK_FALSE(hone::gemm(at(0, 4), at(16, 4), hone::row_major(x + 32, 4, 4, 3)).ok());
}

// Random shapes up to `most`, layouts, blocks and workers, beside both references.
template <class T>
void check_random(int rounds, index_t most) {
    using problem = gemm_problem<T>;
    random_source source(11);
    for (hone::isa id : isas()) {
        for (int round = 0; round < rounds; ++round) {
            problem p{.m = source.between(1, most), .n = source.between(1, most), .k = source.between(1, 2 * most)};
            const auto form = source.bits();
            p.a = form & 1 ? cols_of(p.m, source.between(0, 4)) : rows_of(p.k, source.between(0, 4));
            p.b = form & 2 ? cols_of(p.k, source.between(0, 4)) : rows_of(p.n, source.between(0, 4));
            p.c = form & 4 ? cols_of(p.m, source.between(0, 4)) : rows_of(p.n, source.between(0, 4));
            if (form & 8) p.alpha = static_cast<double>(source.of<T>());
            if (form & 16) p.beta = static_cast<double>(source.of<T>());
            p.policy.isa = id;
            if (form & 32) p.policy.block.kc = static_cast<int>(source.between(1, p.k + 1));
            if (form & 64) p.policy.block.mc = static_cast<int>(source.between(1, p.m + 1));
            if (form & 128) p.policy.block.nc = static_cast<int>(source.between(1, p.n + 1));
            if (form & 256) p.policy.packing = hone::packing::both;
            p.packed = (form & 512) != 0;
            if (form & 1024) p.side = edge::begin;
            const int workers = static_cast<int>(source.between(1, 5));
            reverse_executor reverse(workers);
            thread_executor threads(workers);
            p.executor = form & 2048 ? hone::executor_ref(threads) : hone::executor_ref(reverse);
            p.seed = static_cast<std::uint64_t>(round);
            p.near_too = true;
            REQUIRE_RIGHT(p);
        }
    }
}

// A policy fixed at compile time, registered or not.
template <class T, hone::policy P>
void check_fixed_policy() {
    if (!hone::available(P.isa)) {
        WARN("skipped, this CPU cannot run it: a compile-time policy for " << hone::isa_name(P.isa));
        return;
    }
    const index_t mr = std::max(P.tile.mr, 1), nr = std::max(P.tile.nr, 1);
    for (index_t m : around(mr)) {
        for (index_t n : {index_t{1}, nr - 1, nr, nr + 1, 2 * nr + 1}) {
            for (index_t k : {1, 3, 9}) {
                if (n < 1) continue;
                guarded<T> am(m * k), bm(k * n), cm(m * n);
                matrix<T> a(am, m, k, rows_of(k)), b(bm, k, n, rows_of(n)), c(cm, m, n, rows_of(n));
                random_source source(23);
                a.fill(source);
                b.fill(source);
                c.fill(source);
                c.remember();
                REQUIRE(hone::gemm<P>(1.5, a.view(), b.view(), 0.25, c.view()) == hone::status{});
                const auto plan = hone::plan<P, T>(hone::describe(a.in(), b.in(), c.view()));
                REQUIRE(plan.status() == hone::status{});
                CHECK(plan->explain().isa == P.isa);
                if (P.tile.mr != 0) CHECK(plan->explain().tile == P.tile);
                CHECK(std::string_view(plan->explain().why_isa) == "policy");
                std::string wrong;
                for (index_t i = 0; i < m; ++i) {
                    for (index_t j = 0; j < n; ++j) {
                        const T want = strict_sum(0.25, c.old(i, j), strict_dot(1.5, a.in(), b.in(), i, j));
                        const near_value v = dot(1.5, a.in(), b.in(), 0.25, static_cast<double>(c.old(i, j)), i, j);
                        const bool right = reproducible(P.isa) ? same(c(i, j), want)
                                                               : near(static_cast<double>(c(i, j)), v.value, v.bound);
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

}  // namespace test
