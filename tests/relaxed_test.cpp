// SPDX-License-Identifier: BSL-1.0
// numerics::relaxed: sums in any order are right to what rounding allows, touch no other memory, are the same bits each
// time and for any number of workers, and leave strict sums as they were.
#include "reference.hpp"

#if HONE_X86 || HONE_ARM64  // native, which only stands in there, has the kernels in this test alone
#define HONE_REGION native
#define HONE_REGION_OF_UNIT
#include <hone/isa/begin.hpp>
#include <hone/kernel/all_relaxed.inl>
#include <hone/isa/end.hpp>
#endif

#include <optional>
#include <set>
#include <span>

using test::edge;
using test::guarded;
using test::index_t;
using test::layout;
using test::matrix;
using test::random_source;

namespace {

constexpr auto relaxed = hone::numerics::relaxed;

template <class T>
constexpr double roundoff = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

struct problem {
    index_t m = 0, n = 0, k = 0;
    std::optional<layout> a{}, b{}, c{};  // left out: dense rows
    double alpha = 1, beta = 0;
    hone::policy policy{.numerics = relaxed};
    hone::executor_ref executor{};
    bool packed = false;     // B packed beforehand
    index_t dynamic_m = -1;  // >= 0: the plan's bound
    edge side = edge::end;

    layout la() const { return a.value_or(test::rows_of(k)); }
    layout lb() const { return b.value_or(test::rows_of(n)); }
    layout lc() const { return c.value_or(test::rows_of(n)); }
    std::string text() const {
        const auto lay = [](const layout& l) {
            return "(" + std::to_string(l.row) + ", " + std::to_string(l.col) + ")";
        };
        std::ostringstream s;
        s << m << "x" << n << "x" << k << " alpha " << alpha << " beta " << beta << " isa "
          << hone::isa_name(policy.isa) << " A " << lay(la()) << " B " << lay(lb()) << " C " << lay(lc())
          << (packed ? " packed" : "") << ", " << name(side);
        return s.str();
    }
};

// "" or the first element of C that no order of the sum could have given. Any order of k fused steps errs by at most k
// roundoffs of sum |a| |b| and their squares (Higham: Accuracy and Stability of Numerical Algorithms, section 4.2);
// test::dot allows twice that.
template <class T>
std::string wrong(const matrix<T>& a, const matrix<T>& b, const matrix<T>& c, double alpha, double beta) {
    for (index_t i = 0; i < c.view().rows; ++i) {
        for (index_t j = 0; j < c.view().cols; ++j) {
            const test::near_value want =
                test::dot(alpha, a.in(), b.in(), beta, static_cast<double>(c.old(i, j)), i, j);
            if (test::near(static_cast<double>(c(i, j)), want.value, want.bound)) continue;
            std::ostringstream text;
            text.precision(17);
            text << "C(" << i << ", " << j << ") is " << c(i, j) << ", not within " << want.bound << " of "
                 << want.value;
            return text.str();
        }
    }
    return "";
}

// Runs it in guarded memory with exactly the scratch it asks for. "" when C is right, and no gap, operand or guard was
// touched.
template <class T>
std::string run(const problem& p, std::string* kernel = nullptr, std::vector<T>* out = nullptr) {
    guarded<T> am(test::span_of(p.m, p.k, p.la()), p.side), bm(test::span_of(p.k, p.n, p.lb()), p.side),
        cm(test::span_of(p.m, p.n, p.lc()), p.side);
    matrix<T> a(am, p.m, p.k, p.la()), b(bm, p.k, p.n, p.lb()), c(cm, p.m, p.n, p.lc());
    random_source source(static_cast<std::uint64_t>(p.m * 1009 + p.n * 31 + p.k));
    a.fill(source);
    b.fill(source);
    c.fill(source);
    a.remember();
    b.remember();
    c.remember();
    hone::gemm_desc desc = {.m = p.dynamic_m >= 0 ? p.dynamic_m : p.m,
                            .n = p.n,
                            .k = p.k,
                            .a = {p.la().row, p.la().col},
                            .b = {p.lb().row, p.lb().col},
                            .c = {p.lc().row, p.lc().col},
                            .alpha = p.alpha,
                            .beta = p.beta,
                            .dynamic_m = p.dynamic_m >= 0};
    hone::context ctx{.executor = p.executor};
    const auto plan = hone::plan<T>(desc, p.policy, hone::identity, ctx);
    if (!plan) return "no plan: " + std::string(plan.status().message().view());
    if (kernel) *kernel = plan->explain(p.packed).kernel;
    const index_t bytes = plan->scratch_bytes(hone::executor_ref(p.executor).concurrency(), p.packed);
    guarded<std::byte> scratch(bytes);
    std::byte none{};
    ctx.scratch = {bytes != 0 ? scratch.data() : &none, static_cast<std::size_t>(bytes)};
    hone::status s;
    if (p.packed) {
        const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
        const std::span<std::byte> weights(memory.data(), memory.size());
        s = plan->pack(b.in(), weights);
        if (s.ok()) s = plan->run(a.in(), *hone::packed_view::open(weights), c.view(), hone::identity, ctx);
    } else {
        s = plan->run(a.in(), b.in(), c.view(), hone::identity, ctx);
    }
    if (!s.ok()) return std::string(s.message().view());
    if (!scratch.intact()) return "memory around the scratch was written";
    if (!a.unchanged()) return "A was written, or memory around it";
    if (!b.unchanged()) return "B was written, or memory around it";
    if (!c.gaps_unchanged()) return "memory outside C was written";
    for (index_t i = 0; out && i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) out->push_back(c(i, j));
    }
    return wrong(a, b, c, p.alpha, p.beta);
}

#define REQUIRE_RIGHT(T, ...)                   \
    do {                                        \
        const problem wanted_ = __VA_ARGS__;    \
        CHECK_RIGHT(wanted_, run<T>(wanted_));  \
    } while (false)

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

// Form f of eight: each operand by rows or by columns, with a gap between them.
problem in_form(index_t m, index_t n, index_t k, int f) {
    problem p{.m = m, .n = n, .k = k};
    p.a = f & 1 ? test::cols_of(m, 3) : test::rows_of(k, 5);
    p.b = f & 2 ? test::cols_of(k, 1) : test::rows_of(n, 2);
    p.c = f & 4 ? test::cols_of(m, 1) : test::rows_of(n, 4);
    p.side = (m + n + k + f) % 2 ? edge::end : edge::begin;
    return p;
}

// Operands of whole numbers: every order of their sums is exact, so relaxed and strict give the same bits.
template <class T>
struct whole_numbers {
    std::vector<T> a, b;
    whole_numbers(index_t m, index_t n, index_t k)
        : a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)) {
        random_source source(static_cast<std::uint64_t>(m + n + k));
        for (T& x : a) x = static_cast<T>(source.between(-8, 8));
        for (T& x : b) x = static_cast<T>(source.between(-8, 8));
    }
};

}  // namespace

TEMPLATE_TEST_CASE("relaxed: what is compared can fail", "", float, double) {
    using T = TestType;
    const index_t m = 2, n = 3, k = 40;
    guarded<T> am(m * k), bm(k * n), cm(m * n);
    matrix<T> a(am, m, k, test::rows_of(k)), b(bm, k, n, test::rows_of(n)), c(cm, m, n, test::rows_of(n));
    random_source source(3);
    a.fill(source);
    b.fill(source);
    c.fill(source);
    c.remember();
    for (index_t i = 0; i < m; ++i) {
        for (index_t j = 0; j < n; ++j) c(i, j) = static_cast<T>(test::dot(1, a.in(), b.in(), 0, 0, i, j).value);
    }
    REQUIRE(wrong(a, b, c, 1, 0) == "");
    const T right = c(1, 2);
    const double bound = test::dot(1, a.in(), b.in(), 0, 0, 1, 2).bound;
    CHECK(bound < 100 * roundoff<T> * static_cast<double>(k));
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                        right - a(1, k - 1) * b(k - 1, 2), static_cast<T>(static_cast<double>(right) + 2 * bound)}) {
        c(1, 2) = bad;
        CHECK(wrong(a, b, c, 1, 0) != "");
    }
}

TEMPLATE_TEST_CASE("relaxed: all k up to 70, every layout, in guarded memory", "", float, double) {
    using T = TestType;
    constexpr index_t shapes[][2] = {{1, 1},  {1, 2},  {1, 3},  {1, 4},  {1, 5},  {1, 8}, {1, 15},  {1, 16},
                                     {1, 17}, {1, 33}, {1, 49}, {1, 64}, {2, 2},  {2, 8}, {2, 16},  {3, 5},
                                     {3, 16}, {4, 7},  {4, 16}, {5, 1},  {5, 33}, {8, 1}, {9, 9},   {12, 20},
                                     {16, 3}, {16, 4}, {17, 3}, {33, 8}, {40, 2}, {8, 8}, {1, 140}, {140, 1}};
    for (hone::isa id : test::isas()) {
        std::set<std::string> kernels;
        for (index_t k = 0; k <= 70; ++k) {
            for (const auto& s : shapes) {
                for (int f = 0; f < 8; ++f) {
                    if (test::quick() && (k * 7 + s[0] * 5 + s[1] * 3 + f) % 23 != 0) continue;
                    problem p = in_form(s[0], s[1], k, f);
                    p.policy.isa = id;
                    p.packed = (k + f) % 5 == 0;
                    std::string kernel;
                    const std::string bad = run<T>(p, &kernel);
                    if (!bad.empty()) FAIL_CHECK(p.text() << ", " << kernel << ": " << bad);
                    kernels.insert(kernel);
                }
            }
        }
        INFO(hone::isa_name(id));
        const bool has = hone::detail::relaxed_kernels_of<T>(id) != nullptr;
        CHECK((kernels.count("gemm by dots") > 0) == has);
        CHECK((kernels.count("gemm by split sums") > 0) == has);
        CHECK(kernels.count("gemm") > 0);
    }
}

TEMPLATE_TEST_CASE("relaxed: m 1 to 16 by n 1 to 64, B by rows, by columns and packed", "", float, double) {
    using T = TestType;
    for (hone::isa id : test::isas()) {
        for (index_t m = 1; m <= 16; ++m) {
            for (index_t n = 1; n <= 64; ++n) {
                if ((test::quick() || id == hone::isa::scalar) && (m * 5 + n) % 11 != 0) continue;
                const index_t k = 64 + (m * 7 + n) % 70;
                REQUIRE_RIGHT(T, {.m = m, .n = n, .k = k, .policy = {.isa = id, .numerics = relaxed}});
                REQUIRE_RIGHT(
                    T, {.m = m, .n = n, .k = k, .b = test::cols_of(k), .policy = {.isa = id, .numerics = relaxed}});
                REQUIRE_RIGHT(T, {.m = m, .n = n, .k = k, .policy = {.isa = id, .numerics = relaxed}, .packed = true});
            }
        }
    }
}

TEMPLATE_TEST_CASE("relaxed: long sums and many rows or columns, one worker and several", "", float, double) {
    using T = TestType;
    constexpr index_t shapes[][3] = {{1, 300, 1027}, {1, 129, 4097}, {300, 1, 1501}, {7, 260, 333}, {16, 150, 517},
                                     {129, 8, 515},  {515, 4, 129},  {1, 60, 5001},  {4, 16, 3001}, {1, 1, 10007},
                                     {2, 31, 2050},  {8, 1, 777},    {13, 257, 64},  {1, 17, 70001}};
    for (hone::isa id : test::isas()) {
        for (const auto& s : shapes) {
            if (test::quick() && s[0] * s[1] * s[2] > 200000) continue;
            for (int f = 0; f < 8; ++f) {
                problem p = in_form(s[0], s[1], s[2], f);
                p.policy.isa = id;
                std::vector<T> one, again, several;
                const std::string bad = run<T>(p, nullptr, &one);
                if (!bad.empty()) FAIL_CHECK(p.text() << ": " << bad);
                INFO(p.text());
                CHECK(run<T>(p, nullptr, &again) == "");
                CHECK(same_bits(one, again));
                for (const int workers : {2, 3, 7}) {
                    test::reverse_executor executor(workers);
                    p.executor = executor;
                    several.clear();
                    CHECK(run<T>(p, nullptr, &several) == "");
                    CHECK(same_bits(one, several));
                }
                if (f == 2) {
                    test::thread_executor executor(3);
                    p.executor = executor;
                    several.clear();
                    CHECK(run<T>(p, nullptr, &several) == "");
                    CHECK(same_bits(one, several));
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("relaxed: strides of any sign, broadcast rows, alpha and beta, fewer rows than planned", "", float,
                   double) {
    using T = TestType;
    for (hone::isa id : test::isas()) {
        const hone::policy policy{.isa = id, .numerics = relaxed};
        for (index_t m : {1, 2, 5, 16}) {
            for (index_t n : {1, 3, 16, 33}) {
                for (index_t k : {40, 131}) {
                    if (test::quick() && (m + n + k) % 3 != 0) continue;
                    REQUIRE_RIGHT(T, {.m = m,
                                      .n = n,
                                      .k = k,
                                      .a = layout{-k - 1, 1},
                                      .b = layout{1, -k},
                                      .c = layout{-n, 1},
                                      .policy = policy});
                    REQUIRE_RIGHT(T,
                                  {.m = m, .n = n, .k = k, .a = layout{k, -1}, .b = layout{-1, k}, .policy = policy});
                    REQUIRE_RIGHT(T, {.m = m, .n = n, .k = k, .a = layout{0, 1}, .b = layout{1, 0}, .policy = policy});
                    REQUIRE_RIGHT(T, {.m = m,
                                      .n = n,
                                      .k = k,
                                      .a = layout{2 * k, 2},
                                      .b = layout{3 * n, 3},
                                      .c = layout{2 * n, 2},
                                      .policy = policy});
                    REQUIRE_RIGHT(T, {.m = m, .n = n, .k = k, .a = layout{1, 1}, .b = layout{1, 1}, .policy = policy});
                    for (const auto& [alpha, beta] :
                         {std::pair{-1.5, 0.0}, {1.0, 1.0}, {0.25, -2.0}, {0.0, 1.0}, {0.0, 0.0}}) {
                        for (const bool columns : {false, true}) {
                            const layout b = columns ? test::cols_of(k, 2) : test::rows_of(n, 1);
                            REQUIRE_RIGHT(
                                T, {.m = m, .n = n, .k = k, .b = b, .alpha = alpha, .beta = beta, .policy = policy});
                            REQUIRE_RIGHT(T, {.m = m,
                                              .n = n,
                                              .k = k,
                                              .b = b,
                                              .c = test::cols_of(16, 1),
                                              .alpha = alpha,
                                              .beta = beta,
                                              .policy = policy,
                                              .packed = !columns,
                                              .dynamic_m = 16,
                                              .side = edge::begin});
                        }
                    }
                }
            }
        }
    }
}

// Every stage sees the same numbers in the same places: with whole numbers that is a comparison of bits.
TEMPLATE_TEST_CASE("relaxed: alpha, beta and epilogues as in strict sums, to the bit where sums are exact", "", float,
                   double) {
    using T = TestType;
    constexpr index_t shapes[][3] = {{1, 128, 96}, {1, 300, 77},  {3, 200, 130}, {8, 36, 150}, {1, 34, 64}, {2, 16, 50},
                                     {130, 1, 64}, {200, 4, 150}, {33, 8, 131},  {1, 2, 40},   {1, 60, 33}};
    for (hone::isa id : test::isas()) {
        for (const auto& s : shapes) {
            const index_t m = s[0], n = s[1], k = s[2];
            if (test::quick() && m * n > 300) continue;
            const whole_numbers<T> w(m, n, k);
            std::vector<float> offsets(static_cast<std::size_t>(n));
            for (std::size_t j = 0; j < offsets.size(); ++j) offsets[j] = static_cast<float>(j % 7) - 3;
            const std::span<const float> bias(offsets);
            const auto a = hone::row_major<const T>(w.a.data(), m, k);
            for (const bool columns : {false, true}) {
                const auto b =
                    columns ? hone::col_major<const T>(w.b.data(), k, n) : hone::row_major<const T>(w.b.data(), k, n);
                for (const int workers : {1, 3}) {
                    test::reverse_executor executor(workers);
                    const hone::context ctx{.executor = executor};
                    INFO(hone::isa_name(id) << ' ' << m << 'x' << n << 'x' << k
                                            << (columns ? " B by columns, " : " B by rows, ") << workers);
                    const auto both = [&]<class C>(index_t c_cols, double alpha, double beta, const auto& stages,
                                                   C first, bool c_by_columns) {
                        std::vector<C> c[2];
                        for (int r = 0; r < 2; ++r) {
                            c[r].assign(static_cast<std::size_t>(m * c_cols), first);
                            const auto view = c_by_columns ? hone::col_major(c[r].data(), m, c_cols)
                                                           : hone::row_major(c[r].data(), m, c_cols);
                            hone::gemm_desc desc = hone::describe(a, b, view);
                            desc.n = n;
                            desc.alpha = alpha;
                            desc.beta = beta;
                            const auto plan = hone::plan<T>(
                                desc, hone::policy{.isa = id, .numerics = r ? relaxed : hone::numerics::strict}, stages,
                                ctx);
                            REQUIRE(plan.status() == hone::status{});
                            REQUIRE(plan->run(a, b, view, stages, ctx) == hone::status{});
                        }
                        CHECK(same_bits(c[0], c[1]));
                    };
                    for (const bool c_by_columns : {false, true}) {
                        both(n, 1, 0, hone::identity, T(9), c_by_columns);
                        both(n, -2, 3, hone::identity, T(9), c_by_columns);
                        both(n, 1, 0, hone::bias(bias) | hone::relu, T(9), c_by_columns);
                        both(n, 1, 1, hone::scale(0.5f) | hone::bias(bias) | hone::silu, T(9), c_by_columns);
                        both(n, 1, 0, hone::store_as<hone::bf16>(), hone::bf16::from_bits(0x7fc1), c_by_columns);
                        both(n, 1, 0,
                             hone::map([](auto& x, auto at) { x = x + static_cast<T>(at.row * 1000 + at.col); }), T(9),
                             c_by_columns);
                        if (n % 2 == 0)
                            both(n / 2, 1, 0,
                                 hone::bias(bias) | hone::gated(hone::silu) |
                                     hone::bias(bias.first(static_cast<std::size_t>(n / 2))),
                                 T(9), c_by_columns);
                    }
                    std::vector<T> largest[2], sum[2];
                    for (int r = 0; r < 2; ++r) {
                        largest[r].assign(static_cast<std::size_t>(m), T(0));
                        sum[r] = largest[r];
                        std::vector<T> c(static_cast<std::size_t>(m * n));
                        const auto stages = hone::row_max(largest[r].data()) | hone::row_sum(sum[r].data());
                        const auto view = hone::row_major(c.data(), m, n);
                        const auto plan = hone::plan<T>(
                            hone::describe(a, b, view),
                            hone::policy{.isa = id, .numerics = r ? relaxed : hone::numerics::strict}, stages, ctx);
                        REQUIRE(plan.status() == hone::status{});
                        REQUIRE(plan->run(a, b, view, stages, ctx) == hone::status{});
                    }
                    CHECK(same_bits(largest[0], largest[1]));
                    CHECK(same_bits(sum[0], sum[1]));
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("relaxed: NaN and infinities stay in their rows and columns", "", float, double) {
    using T = TestType;
    const T nan_value = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    for (hone::isa id : test::isas()) {
        for (const auto& s :
             {std::array<index_t, 3>{3, 9, 83}, {1, 20, 83}, {1, 9, 83}, {20, 5, 67}, {16, 5, 131}, {2, 10, 131}}) {
            const index_t m = s[0], n = s[1], k = s[2];
            for (const bool columns : {false, true}) {
                for (index_t at : {index_t{0}, k / 2, k - 1}) {
                    std::vector<T> a(static_cast<std::size_t>(m * k), T(1)), b(static_cast<std::size_t>(k * n), T(1)),
                        c(static_cast<std::size_t>(m * n));
                    const auto va = hone::row_major<T>(a.data(), m, k);
                    const auto vb = columns ? hone::col_major<T>(b.data(), k, n) : hone::row_major<T>(b.data(), k, n);
                    *va.at(m - 1, at) = nan_value;
                    *vb.at(at, n - 1) = inf;
                    const auto vc = hone::row_major<T>(c.data(), m, n);
                    const auto plan =
                        hone::plan<T>(hone::describe(va, vb, vc), hone::policy{.isa = id, .numerics = relaxed});
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(va, vb, vc) == hone::status{});
                    bool right = true;
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j) {
                            const T want = i == m - 1 ? nan_value : j == n - 1 ? inf : static_cast<T>(k);
                            right = right && test::same(*vc.at(i, j), want);
                        }
                    }
                    INFO(hone::isa_name(id) << ' ' << m << 'x' << n << 'x' << k
                                            << (columns ? " B by columns" : " B by rows") << " at " << at);
                    CHECK(right);
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("relaxed: strict sums beside it are the chain they were, to the bit", "", float, double) {
    using T = TestType;
    for (hone::isa id : test::isas()) {
        if (!test::reproducible(id)) continue;
        for (const auto& s : {std::array<index_t, 3>{1, 33, 130},
                              {1, 200, 67},
                              {4, 16, 131},
                              {7, 60, 64},
                              {40, 3, 257},
                              {16, 1, 300}}) {
            const index_t m = s[0], n = s[1], k = s[2];
            std::vector<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
                c(static_cast<std::size_t>(m * n)), other(c);
            random_source source(9);
            for (T& x : a) x = source.of<T>();
            for (T& x : b) x = source.of<T>();
            const auto va = hone::row_major<const T>(a.data(), m, k);
            for (const bool columns : {false, true}) {
                const auto vb =
                    columns ? hone::col_major<const T>(b.data(), k, n) : hone::row_major<const T>(b.data(), k, n);
                const auto vc = hone::row_major(c.data(), m, n), vo = hone::row_major(other.data(), m, n);
                const hone::gemm_desc desc = hone::describe(va, vb, vc);
                const auto loose = hone::plan<T>(desc, hone::policy{.isa = id, .numerics = relaxed});
                const auto strict = hone::plan<T>(desc, hone::policy{.isa = id});
                // A tile, kc or packing that is named leaves the sums strict as well.
                const auto named =
                    hone::plan<T>(desc, hone::policy{.isa = id, .block = {.kc = 16}, .numerics = relaxed});
                REQUIRE((loose.status() == hone::status{} && strict.status() == hone::status{} &&
                         named.status() == hone::status{}));
                REQUIRE(loose->run(va, vb, vo) == hone::status{});
                for (const auto* plan : {&*strict, &*named}) {
                    REQUIRE(plan->run(va, vb, vc) == hone::status{});
                    bool right = true;
                    for (index_t i = 0; i < m; ++i) {
                        for (index_t j = 0; j < n; ++j)
                            right = right && test::same(*vc.at(i, j), test::strict_dot(1, va, vb, i, j));
                    }
                    INFO(hone::isa_name(id)
                         << ' ' << m << 'x' << n << 'x' << k << (columns ? " B by columns" : " B by rows"));
                    CHECK(right);
                }
            }
        }
    }
}

namespace {

template <hone::policy P, class T>
void fixed_policy() {
    if (P.isa != hone::isa::dynamic && !hone::available(P.isa)) return;
    for (const auto& s :
         {std::array<index_t, 3>{1, 130, 200}, {5, 40, 150}, {50, 2, 150}, {1, 20, 60}, {3, 3, 3}, {70, 70, 70}}) {
        const index_t m = s[0], n = s[1], k = s[2];
        std::vector<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n)), again(c), later(c);
        random_source source(4);
        for (T& x : a) x = source.of<T>();
        for (T& x : b) x = source.of<T>();
        for (const bool columns : {false, true}) {
            const auto va = hone::row_major<const T>(a.data(), m, k);
            const auto vb =
                columns ? hone::col_major<const T>(b.data(), k, n) : hone::row_major<const T>(b.data(), k, n);
            const auto vc = hone::row_major(c.data(), m, n);
            REQUIRE(hone::gemm<P>(va, vb, vc) == hone::status{});
            INFO(hone::isa_name(P.isa) << ' ' << m << 'x' << n << 'x' << k
                                       << (columns ? " B by columns" : " B by rows"));
            bool right = true;
            for (index_t i = 0; i < m; ++i) {
                for (index_t j = 0; j < n; ++j) {
                    const test::near_value want = test::dot(1, va, vb, 0, 0, i, j);
                    right = right && test::near(static_cast<double>(*vc.at(i, j)), want.value, want.bound);
                }
            }
            CHECK(right);
            // A plan of the policy as a template argument, and of the same one at run time.
            const hone::gemm_desc desc = hone::describe(va, vb, vc);
            const auto plan = hone::plan<P, T>(desc);
            const auto run_time = hone::plan<T>(desc, P);
            REQUIRE((plan.status() == hone::status{} && run_time.status() == hone::status{}));
            REQUIRE(plan->run(va, vb, hone::row_major(again.data(), m, n)) == hone::status{});
            REQUIRE(run_time->run(va, vb, hone::row_major(later.data(), m, n)) == hone::status{});
            CHECK(same_bits(again, later));
            CHECK(std::string_view(plan->explain().kernel) == run_time->explain().kernel);
        }
    }
}

}  // namespace

TEST_CASE("relaxed: policies fixed at compile time") {
    using hone::isa;
    fixed_policy<hone::policy{.numerics = relaxed}, float>();
    fixed_policy<hone::policy{.numerics = relaxed}, double>();
    fixed_policy<hone::policy{.isa = isa::scalar, .numerics = relaxed}, float>();
    fixed_policy<hone::policy{.isa = isa::native, .numerics = relaxed}, double>();
#if HONE_X86
    fixed_policy<hone::policy{.isa = isa::avx2, .numerics = relaxed}, float>();
    fixed_policy<hone::policy{.isa = isa::avx512, .numerics = relaxed, .threads = 1}, double>();
    fixed_policy<hone::policy{.isa = isa::avx2, .tile = {6, 16}, .numerics = relaxed}, float>();
#endif
#if HONE_ARM64
    fixed_policy<hone::policy{.isa = isa::neon, .numerics = relaxed}, float>();
#endif
}

namespace {

template <class T>
void each_kernel(hone::isa id, const hone::detail::relaxed_kernels<T>& kernels) {
    const hone::detail::gemm_kernel<T>& tile = hone::detail::gemm_kernels<T>(id).row[0];
    const int lanes = tile.lanes, panel = tile.panel;
    const bool masked = tile.masked;
    const char* const isa = hone::isa_name(id);
    random_source source(6);
    const edge side = edge::end;
    for (index_t k = lanes + 1; k <= 5 * lanes + 1; ++k) {
        for (const index_t rows : {1, 2, 3, 4, 5, 9}) {
            for (const index_t many : {1, 2, 3, 4, 5, 7, 8, 11}) {
                guarded<T> xm(rows * (k + 2), side), ym(many * (k + 1), side), om(rows * many, side);
                matrix<T> x(xm, rows, k, test::rows_of(k, 2)), y(ym, k, many, test::cols_of(k, 1)),
                    out(om, rows, many, test::rows_of(many));
                x.fill(source);
                y.fill(source);
                out.remember();
                hone::detail::dot_tile<T> t;
                t.x = x.view().data;
                t.x_row = k + 2;
                t.x_rows = rows;
                t.y = y.view().data;
                t.y_row = k + 1;
                t.y_rows = many;
                t.k = k;
                t.out = out.view().data;
                t.out_x = many;
                t.out_y = 1;
                INFO(isa << " dots " << rows << " by " << many << " k " << k);
                std::vector<T> first;
                for (const auto dot : kernels.dot) {
                    out.fill([](index_t, index_t) { return std::numeric_limits<T>::quiet_NaN(); });
                    dot(t);
                    CHECK(wrong(x, y, out, 1, 0) == "");
                    CHECK(om.intact());
                    const std::vector<T> got(om.data(), om.data() + rows * many);
                    if (first.empty()) first = got;
                    CHECK(same_bits(got, first));  // whatever the tile
                }
            }
        }
    }
    for (index_t k = 1; k <= 19; ++k) {
        for (index_t n = 1; n <= 4 * lanes; ++n) {
            const index_t regs = (n + lanes - 1) / lanes;
            if (!masked && n % lanes != 0) continue;
            for (index_t rows = 1; rows <= kernels.split_rows; ++rows) {
                const auto split = rows == 1 ? kernels.split[regs - 1] : kernels.split_several;
                if (split == nullptr || (rows > 1 && regs > 1)) continue;
                guarded<T> am(rows * (k + 1), side), bm(k * (n + 3), side), cm(rows * n, side);
                matrix<T> a(am, rows, k, test::rows_of(k, 1)), b(bm, k, n, test::rows_of(n, 3)),
                    c(cm, rows, n, test::rows_of(n));
                a.fill(source);
                b.fill(source);
                c.remember();
                hone::detail::split_tile<T> t;
                t.a = a.view().data;
                t.a_row = k + 1;
                t.b = b.view().data;
                t.b_step = n + 3;
                t.b_panel = panel;
                t.cols = t.b_cols = static_cast<int>(n - (regs - 1) * lanes);
                t.out = c.view().data;
                t.out_row = n;
                t.rows = rows;
                t.k = k;
                split(t);
                INFO(isa << " split sums " << rows << " by " << n << " k " << k);
                CHECK(wrong(a, b, c, 1, 0) == "");
                CHECK(cm.intact());
            }
        }
    }
}

}  // namespace

TEMPLATE_TEST_CASE("relaxed: the kernels of every region, dots of any tile to the bit", "", float, double) {
    using T = TestType;
    using namespace hone::detail;
    int rows = 0;
#define HONE_RELAXED(region, type) \
    if (std::is_same_v<T, type>) ++rows;
#include <hone/kernels.def>
    CHECK(rows > 0);
    for (hone::isa id : test::isas()) {
        if (const auto* kernels = relaxed_kernels_of<T>(id)) each_kernel<T>(id, *kernels);
    }
    each_kernel<T>(hone::isa::native, native::make_relaxed_kernels<T, false>());
    each_kernel<T>(hone::isa::native, native::make_relaxed_kernels<T, true>());
}

TEST_CASE("relaxed: which way sums are formed is a function of shape and layout") {
    using namespace hone::detail;
    using enum gemm_way;
    const auto dot = +[](const dot_tile<float>&) {};
    const auto split = +[](const split_tile<float>&) {};
    gemm_kernel<float> wide, narrow;
    wide.lanes = wide.panel = narrow.panel = 16;
    wide.masked = true;
    narrow.lanes = 8;
    const relaxed_kernels<float> many{16, 4, {dot, dot}, {split, split, split, split}, split},
        few{8, 2, {dot, dot}, {split, split, nullptr, nullptr}, split};
    const auto rows = [](const relaxed_kernels<float>& r, const gemm_kernel<float>& kn, index_t m, index_t n,
                         index_t k) { return relaxed_way_of(r, kn, m, n, k, true, true, n == 1, false); };
    const auto columns = [](const relaxed_kernels<float>& r, const gemm_kernel<float>& kn, index_t m, index_t n,
                            index_t k) { return relaxed_way_of(r, kn, m, n, k, true, n == 1, true, false); };
    CHECK(columns(many, wide, 1, 4096, 4096) == dots_of_columns);
    CHECK(columns(many, wide, 16, 4096, 4096) == dots_of_columns);
    CHECK(columns(many, wide, 17, 4096, 4096) == tiles);
    CHECK(columns(few, narrow, 8, 4096, 4096) == dots_of_columns);
    CHECK(columns(few, narrow, 9, 4096, 4096) == tiles);
    CHECK(columns(many, wide, 1, 4096, 32) == dots_of_columns);
    CHECK(columns(many, wide, 1, 4096, 31) == tiles);
    CHECK(columns(many, wide, 3, 4096, 127) == tiles);
    CHECK(columns(many, wide, 100, 8, 4096) == dots_of_rows);
    CHECK(columns(many, wide, 8, 8, 4096) == dots_of_rows);
    CHECK(columns(many, wide, 7, 8, 4096) == dots_of_columns);
    CHECK(rows(many, wide, 4096, 1, 4096) == dots_of_rows);
    CHECK(rows(many, wide, 1, 1, 4096) == dots_of_rows);
    CHECK(rows(many, wide, 32, 8, 4096) == dots_of_rows);
    CHECK(rows(many, wide, 31, 8, 4096) == tiles);
    CHECK(rows(many, wide, 4096, 9, 4096) == tiles);
    CHECK(rows(many, wide, 1, 64, 4096) == split_sums);
    CHECK(rows(many, wide, 1, 65, 4096) == tiles);
    CHECK(rows(many, wide, 4, 16, 4096) == split_sums);
    CHECK(rows(many, wide, 5, 16, 4096) == tiles);
    CHECK(rows(many, wide, 2, 17, 4096) == tiles);
    CHECK(rows(many, wide, 1, 16, 15) == tiles);
    CHECK(rows(few, narrow, 1, 16, 4096) == split_sums);
    CHECK(rows(few, narrow, 1, 15, 4096) == tiles);  // no masked loads
    CHECK(rows(few, narrow, 1, 24, 4096) == tiles);
    CHECK(rows(few, narrow, 2, 8, 4096) == split_sums);
    CHECK(rows(few, narrow, 3, 8, 4096) == tiles);
    // Where an epilogue halves the columns, only columns of B are read in place.
    CHECK(relaxed_way_of(many, wide, 1, 64, 4096, true, true, false, true) == tiles);
    CHECK(relaxed_way_of(many, wide, 100, 8, 4096, true, true, false, true) == tiles);
    CHECK(relaxed_way_of(many, wide, 1, 64, 4096, true, false, true, true) == dots_of_columns);
    // Neither operand has what it takes.
    CHECK(relaxed_way_of(many, wide, 100, 8, 4096, false, true, false, false) == tiles);
    CHECK(relaxed_way_of(many, wide, 1, 8, 4096, false, false, false, false) == tiles);
    CHECK(relaxed_way_of(many, wide, 1, 8, 4096, false, false, true, false) == dots_of_columns);
    CHECK(relaxed_way_of(many, wide, 0, 8, 4096, true, true, true, false) == tiles);
}

TEST_CASE("relaxed: explain() names the way and where sums are") {
    for (hone::isa id : test::isas()) {
        if (hone::detail::relaxed_kernels_of<float>(id) == nullptr) continue;
        INFO(hone::isa_name(id));
        const hone::policy policy{.isa = id, .numerics = relaxed};
        const auto dots = hone::plan({.m = 1, .n = 300, .k = 5000, .b = {1, 5000}}, policy);
        REQUIRE(dots.status() == hone::status{});
        CHECK(std::string_view(dots->explain().kernel) == "gemm by dots");
        CHECK(std::string_view(dots->explain().sums) == "registers");
        CHECK(std::string_view(dots->explain().b) == "in place");
        CHECK_FALSE(dots->explain().packs_b);
        CHECK(dots->scratch_bytes() == 0);
        CHECK(std::string_view(dots->explain(true).kernel) == "gemm");
        CHECK(std::string(dots->explain().text().view())
                  .find(std::string("gemm by dots f32 ") + hone::isa_name(id) + " (") == 0);
        const auto copied = hone::plan({.m = 64, .n = 4, .k = 5000}, policy);
        REQUIRE(copied.status() == hone::status{});
        CHECK(std::string_view(copied->explain().kernel) == "gemm by dots");
        CHECK(std::string_view(copied->explain().b) == "packed each call");
        CHECK(std::string_view(copied->explain(true).kernel) == "gemm by dots");
        const auto split = hone::plan({.m = 1, .n = 16, .k = 5000}, policy);
        REQUIRE(split.status() == hone::status{});
        const int lanes = hone::detail::gemm_kernels<float>(id).row[0].lanes;
        if (lanes >= 8) CHECK(std::string_view(split->explain().kernel) == "gemm by split sums");
        const auto strict = hone::plan({.m = 1, .n = 300, .k = 5000, .b = {1, 5000}}, {.isa = id});
        REQUIRE(strict.status() == hone::status{});
        CHECK(std::string_view(strict->explain().kernel) != "gemm by dots");
    }
}
