// SPDX-License-Identifier: BSL-1.0
// batched.hpp and grouped.hpp: the bits of single products whatever the mix of operands, the memory they touch, how work is
// cut, and what they say of wrong arguments.
#include <hone/grouped.hpp>

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <tuple>

#include "reference.hpp"

#include "allocations.hpp"

using hone::argument;
using hone::batch;
using hone::code;
using hone::status;
using test::guarded;
using test::index_t;
using test::layout;
using test::random_source;

namespace {

enum class form { strided, pointers, shared };
const char* name(form f) { return f == form::strided ? "strided" : f == form::pointers ? "pointers" : "shared"; }

// `count` matrices in one guarded buffer, `gap` elements between them; behind pointers they lie in no order. A negative gap
// lays them out from the last to the first.
template <class T>
class operand {
public:
    operand(form f, index_t count, index_t rows, index_t cols, layout l, index_t gap, std::uint64_t seed)
        : form_(f), count_(count), rows_(rows), cols_(cols), l_(l), memory_(f == form::shared ? span(0) : count > 0 ? count * span(gap) : 0) {
        T* first = memory_.data();
        std::fill(first, first + memory_.size(), test::gap<T>());
        const index_t low = rows > 0 && cols > 0 ? std::min<index_t>((rows - 1) * l.row, 0) + std::min<index_t>((cols - 1) * l.col, 0) : 0;
        step_ = f == form::shared ? 0 : gap < 0 ? -span(gap) : span(gap);
        for (index_t i = 0; i < count; ++i) {
            const index_t slot = f == form::shared ? 0 : f == form::pointers ? (i * 7 + 3) % count : gap < 0 ? count - 1 - i : i;
            pointers_.push_back(first + slot * std::abs(step_) - low);
        }
        random_source source(seed);
        for (index_t i = 0; i < (f == form::shared ? std::min<index_t>(count, 1) : count); ++i) {
            for (index_t r = 0; r < rows; ++r) {
                for (index_t c = 0; c < cols; ++c) *(*this)[i].at(r, c) = source.template of<T>();
            }
        }
        remember();
    }
    hone::matrix_view<T> operator[](index_t i) const { return {pointers_[static_cast<std::size_t>(i)], rows_, cols_, l_.row, l_.col}; }
    // Calls f with the operand as hone takes it. E: T or const T.
    template <class E, class F>
    auto as(F f) const {
        T* first = count_ > 0 ? pointers_[0] : nullptr;
        if (form_ == form::shared) return f(hone::matrix_view<E>{first, rows_, cols_, l_.row, l_.col});
        return as_batch<E>(f);
    }
    template <class E, class F>
    auto as_batch(F f) const {
        T* first = count_ > 0 ? pointers_[0] : nullptr;
        if (form_ == form::strided) return f(hone::batch_view<E>{first, count_, rows_, cols_, step_, l_.row, l_.col});
        const std::vector<E*> list(pointers_.begin(), pointers_.end());
        return f(hone::pointer_batch<E>{list, rows_, cols_, l_.row, l_.col});
    }
    void remember() { before_.assign(memory_.data(), memory_.data() + memory_.size()); }
    void restore() { std::copy(before_.begin(), before_.end(), memory_.data()); }
    bool unchanged() const { return memory_.intact() && same_as(before_); }
    // What is no element of a matrix.
    bool gaps_unchanged() const {
        std::vector<T> want = before_;
        for (index_t i = 0; i < count_; ++i) {
            for (index_t r = 0; r < rows_; ++r) {
                for (index_t c = 0; c < cols_; ++c) want[static_cast<std::size_t>((*this)[i].at(r, c) - memory_.data())] = *(*this)[i].at(r, c);
            }
        }
        return memory_.intact() && same_as(want);
    }
    T old(index_t i, index_t r, index_t c) const { return before_[static_cast<std::size_t>((*this)[i].at(r, c) - memory_.data())]; }
    index_t step() const { return step_; }

private:
    index_t span(index_t gap) const { return test::span_of(rows_, cols_, l_) + std::abs(gap); }
    bool same_as(const std::vector<T>& want) const {
        return want.empty() || std::memcmp(want.data(), memory_.data(), want.size() * sizeof(T)) == 0;
    }
    form form_;
    index_t count_, rows_, cols_, step_ = 0;
    layout l_;
    guarded<T> memory_;
    std::vector<T*> pointers_;
    std::vector<T> before_;
};

struct problem {
    index_t count = 0, m = 0, n = 0, k = 0;
    form a = form::strided, b = form::strided, c = form::strided;
    bool packed = false;  // B, which is shared
    layout la{}, lb{}, lc{};  // left out: dense rows
    index_t gap = 0;
    double alpha = 1, beta = 0;
    hone::policy policy{};
    hone::executor_ref executor{};

    std::string text() const {
        std::ostringstream s;
        s << count << " of " << m << "x" << n << "x" << k << " " << hone::isa_name(policy.isa) << " A " << name(a) << " B "
          << (packed ? "packed" : name(b)) << " C " << name(c) << " gap " << gap << " alpha " << alpha << " beta " << beta << " kc "
          << policy.block.kc << " strides of C " << lc.row << ", " << lc.col;
        return s.str();
    }
};

// "" when the batch is bit for bit what single plans compute, and near what f64 says, and nothing else was touched.
template <class T>
std::string run(problem p) {
    const auto dense = [](layout l, index_t cols) { return l.row == 0 && l.col == 0 ? test::rows_of(cols) : l; };
    p.la = dense(p.la, p.k);
    p.lb = dense(p.lb, p.n);
    p.lc = dense(p.lc, p.n);
    operand<T> a(p.a, p.count, p.m, p.k, p.la, p.gap, 1), b(p.b, p.count, p.k, p.n, p.lb, p.gap, 2), c(p.c, p.count, p.m, p.n, p.lc, p.gap, 3);
    const hone::gemm_desc item{.m = p.m, .n = p.n, .k = p.k, .a = {p.la.row, p.la.col}, .b = {p.lb.row, p.lb.col}, .c = {p.lc.row, p.lc.col},
                               .alpha = p.alpha, .beta = p.beta};
    hone::batched_desc desc{.item = item, .count = p.count, .b = p.b == form::shared ? 0 : hone::strides::unset};
    if (p.a == form::strided) desc.a = a.step();
    if (p.c == form::strided) desc.c = c.step();
    const hone::context ctx{.executor = p.executor};
    const auto plan = hone::plan<T>(desc, p.policy, hone::identity, ctx);
    if (!plan) return "no plan: " + std::string(plan.status().message().view());
    const auto single = hone::plan<T>(item, p.policy);
    if (!single) return "no single plan: " + std::string(single.status().message().view());

    hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
    hone::packed_view weights;
    if (p.packed && p.count > 0) {
        const std::span<std::byte> bytes(memory.data(), memory.size());
        if (status s = plan->pack(b[0], bytes); !s.ok()) return "not packed: " + std::string(s.message().view());
        const auto opened = hone::packed_view::open(bytes);
        if (!opened) return "not opened";
        weights = *opened;
    }
    // Single products, kept.
    std::vector<T> want;
    for (index_t i = 0; i < p.count; ++i) {
        if (status s = single->run(a[i], b[i], c[i]); !s.ok()) return "single: " + std::string(s.message().view());
        for (index_t r = 0; r < p.m; ++r) {
            for (index_t j = 0; j < p.n; ++j) want.push_back(*c[i].at(r, j));
        }
    }
    for (const bool own_scratch : {false, true}) {
        c.restore();
        const index_t bytes = plan->scratch_bytes(p.executor.concurrency(), p.packed);
        const guarded<std::byte> scratch((bytes + 63) / 64 * 64);
        hone::context with = ctx;
        if (own_scratch) {
            if (bytes % 64 != 0) return "scratch is no multiple of 64";
            if (bytes > 0) with.scratch = {scratch.data(), static_cast<std::size_t>(bytes)};
        }
        const status s = a.template as<const T>([&](const auto& va) {
            return c.template as_batch<T>([&](const auto& vc) {
                if (p.packed) return plan->run(va, weights, vc, hone::identity, with);
                return b.template as<const T>([&](const auto& vb) { return plan->run(va, vb, vc, hone::identity, with); });
            });
        });
        if (!s.ok()) return std::string(s.message().view());
        if (!a.unchanged()) return "A was written, or memory around it";
        if (!b.unchanged()) return "B was written, or memory around it";
        if (!c.gaps_unchanged()) return "memory outside C was written";
        if (!scratch.intact()) return "memory around the scratch was written";
        std::size_t at = 0;
        for (index_t i = 0; i < p.count; ++i) {
            for (index_t r = 0; r < p.m; ++r) {
                for (index_t j = 0; j < p.n; ++j, ++at) {
                    const T got = *c[i].at(r, j);
                    const auto near = test::dot(p.alpha, a[i], b[i], p.beta, static_cast<double>(c.old(i, r, j)), r, j);
                    if (test::same(got, want[at]) && test::near(static_cast<double>(got), near.value, near.bound)) continue;
                    std::ostringstream text;
                    text.precision(17);
                    text << "C[" << i << "](" << r << ", " << j << ") is " << got << ", alone " << want[at] << ", in f64 " << near.value;
                    return text.str();
                }
            }
        }
    }
    return "";
}

template <class T>
void check_mixes(index_t m, index_t n, index_t k) {
    test::reverse_executor five(5);
    test::thread_executor three(3);
    int turn = 0;
    for (hone::isa id : test::isas()) {
        for (form fa : {form::strided, form::pointers, form::shared}) {
            for (form fb : {form::strided, form::pointers, form::shared}) {
                for (form fc : {form::strided, form::pointers}) {
                    for (bool packed : {false, true}) {
                        if (packed && fb != form::shared) continue;
                        ++turn;
                        problem p{.count = turn % 3 == 0 ? 1 : 6, .m = m, .n = n, .k = k, .a = fa, .b = fb, .c = fc, .packed = packed};
                        p.policy.isa = id;
                        p.gap = turn % 2 ? 0 : turn % 5 - 2;
                        if (turn % 4 == 1) p.alpha = -1.5, p.beta = 0.25;
                        if (turn % 4 == 2) p.beta = 1;
                        if (turn % 5 == 1) p.policy.block.kc = 8;
                        if (turn % 3 == 1) p.executor = hone::executor_ref(five);
                        if (turn % 3 == 2) p.executor = hone::executor_ref(three);
                        INFO(p.text());
                        CHECK(run<T>(p) == "");
                    }
                }
            }
        }
    }
}

void check(const status& got, const status& want, std::string_view words) {
    CHECK(got == want);
    CHECK(std::string(got.message().view()) == std::string(words));
}

template <class T>
std::vector<T> numbers(index_t count, std::uint64_t seed) {
    random_source source(seed);
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) x = source.template of<T>();
    return v;
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

}  // namespace

// ---- batched: numbers

TEST_CASE("every mix of strided, pointers, one for all and packed, on every ISA") {
    check_mixes<float>(5, 7, 3);
    check_mixes<float>(17, 33, 40);
    check_mixes<float>(1, 50, 20);
    check_mixes<float>(2, 70, 30);
    if (test::quick()) return;
    check_mixes<float>(40, 3, 20);
    check_mixes<float>(64, 64, 64);
    check_mixes<float>(101, 95, 30);
}

TEST_CASE("every mix, of doubles") {
    check_mixes<double>(5, 7, 3);
    check_mixes<double>(17, 33, 40);
    if (test::quick()) return;
    check_mixes<double>(1, 40, 20);
    check_mixes<double>(64, 32, 16);
    check_mixes<double>(101, 50, 30);
}

TEST_CASE("batches of transposed operands, and of strides of either sign") {
    const index_t m = 13, n = 21, k = 18;
    const layout a[] = {test::rows_of(k, 3), test::cols_of(m), {-k, 1}, {2, 2 * m + 1}, {-1, m}, {0, 1}};
    const layout b[] = {test::cols_of(k, 2), {-n, 1}, test::rows_of(n, 5), {3 * n, 3}, {n, -1}, {0, 0}};
    const layout c[] = {test::rows_of(n, 4), test::cols_of(m), {-n - 2, 1}, {2 * n, 2}, {1, -m}};
    int turn = 0;
    for (hone::isa id : test::isas()) {
        for (const layout& la : a) {
            for (const layout& lb : b) {
                for (const layout& lc : c) {
                    if (++turn % (test::quick() ? 7 : 1) != 0) continue;
                    problem p{.count = 4, .m = m, .n = n, .k = k, .la = la, .lb = lb, .lc = lc};
                    p.a = turn % 3 == 0 ? form::pointers : form::strided;
                    p.b = turn % 2 == 0 ? form::shared : form::strided;
                    p.c = turn % 4 == 0 ? form::pointers : form::strided;
                    p.gap = turn % 5 - 2;
                    p.policy.isa = id;
                    if (turn % 3 == 1) p.beta = -0.5;
                    INFO(p.text() << " A " << la.row << ", " << la.col << " B " << lb.row << ", " << lb.col);
                    CHECK(run<float>(p) == "");
                }
            }
        }
    }
}

TEST_CASE("zero products, products of no elements, and sums of nothing") {
    for (hone::isa id : test::isas()) {
        for (const auto& [count, m, n, k] : {std::tuple<index_t, index_t, index_t, index_t>{0, 5, 6, 7}, {3, 0, 6, 7}, {3, 5, 0, 7}, {3, 5, 6, 0}, {2, 1, 1, 0}}) {
            for (form fc : {form::strided, form::pointers}) {
                for (form fb : {form::strided, form::shared}) {
                    for (double alpha : {1.0, 0.0}) {
                        problem p{.count = count, .m = m, .n = n, .k = k, .b = fb, .c = fc, .alpha = alpha, .beta = 0.5};
                        p.policy.isa = id;
                        INFO(p.text());
                        CHECK(run<float>(p) == "");
                    }
                }
            }
        }
    }
    // Nothing is there, and nothing is needed.
    const hone::batch_view<float> none{nullptr, 0, 4, 4, 16, 4, 1};
    CHECK(hone::gemm_batched(none, none, none) == status{});
    CHECK(hone::gemm_batched(hone::pointer_batch<float>{{}, 4, 4, 4, 1}, none, hone::pointer_batch<float>{{}, 4, 4, 4, 1}) == status{});
    CHECK(hone::gemm_batched(hone::batch_view<float>{nullptr, 3, 0, 4, 0, 4, 1}, hone::batch_view<float>{nullptr, 3, 4, 4, 0, 4, 1},
                             hone::batch_view<float>{nullptr, 3, 0, 4, 0, 4, 1}) == status{});
    // A and B are not read where no product is formed.
    std::vector<float> c(3 * 4, 2.0f);
    const hone::batch_view<float> no_data{nullptr, 3, 2, 2, 4, 2, 1}, out{c.data(), 3, 2, 2, 4, 2, 1};
    CHECK(hone::gemm_batched(0.0, no_data, no_data, 3.0, out) == status{});
    CHECK(c == std::vector<float>(12, 6.0f));
}

TEST_CASE("many small products: the bits of hone::gemm") {
    for (const auto& [count, m, n, k] : {std::tuple<index_t, index_t, index_t, index_t>{1000, 4, 4, 4}, {300, 16, 16, 16}, {100, 64, 64, 64}, {77, 7, 13, 17}, {50, 33, 64, 65}}) {
        const auto a = numbers<float>(count * m * k, 1), b = numbers<float>(count * k * n, 2);
        std::vector<float> c(static_cast<std::size_t>(count * m * n), 9.0f), want = c;
        const auto va = batch(hone::row_major<const float>(a.data(), m, k), count), vb = batch(hone::row_major<const float>(b.data(), k, n), count);
        const auto vc = batch(hone::row_major(c.data(), m, n), count), vw = batch(hone::row_major(want.data(), m, n), count);
        for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb[i], vw[i]) == status{});
        REQUIRE(hone::gemm_batched(va, vb, vc) == status{});
        CHECK(same_bits(c, want));
        std::fill(c.begin(), c.end(), 9.0f);
        test::thread_executor four(4);
        REQUIRE(hone::gemm_batched(va, vb, vc, hone::identity, {.executor = four}) == status{});
        CHECK(same_bits(c, want));
        CHECK(four.most_tasks <= 4);
        std::vector<const float*> pa, pb;
        std::vector<float*> pc;
        for (index_t i = 0; i < count; ++i) pa.push_back(va[i].data), pb.push_back(vb[i].data), pc.push_back(vc[i].data);
        for (const bool backward : {false, true}) {
            if (backward) std::reverse(pa.begin(), pa.end()), std::reverse(pb.begin(), pb.end()), std::reverse(pc.begin(), pc.end());
            std::fill(c.begin(), c.end(), 9.0f);
            REQUIRE(hone::gemm_batched(hone::pointer_batch<const float>{pa, m, k, k, 1}, hone::pointer_batch<const float>{pb, k, n, n, 1},
                                       hone::pointer_batch<float>{pc, m, n, n, 1}) == status{});
            CHECK(same_bits(c, want));
        }
    }
}

TEST_CASE("one B of a single row, whose stride means nothing, copied once for all") {
    const index_t m = 130, n = 100, count = 5;
    const auto a = numbers<float>(count * (m + 8), 1), b = numbers<float>(n, 2);
    std::vector<float> c(static_cast<std::size_t>(count * m * n));
    const auto va = hone::batch(hone::matrix_view<const float>{a.data(), m, 1, 1, 1}, count, m + 8);
    for (const index_t any : {index_t{0}, index_t{-3}, INT64_MAX, INT64_MIN}) {
        const hone::matrix_view<const float> vb{b.data(), 1, n, any, 1};
        REQUIRE(hone::gemm_batched(va, vb, batch(hone::row_major(c.data(), m, n), count)) == status{});
        index_t wrong = 0;
        for (index_t i = 0; i < count * m * n; ++i) {
            const float want = std::fma(*va[i / (m * n)].at(i / n % m, 0), *vb.at(0, i % n), 0.0f);
            if (!test::same(c[static_cast<std::size_t>(i)], want)) ++wrong;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("small products that ask for the operands of the next one") {
    for (hone::isa id : test::isas()) {
        const auto& kn = hone::detail::gemm_kernels<float>(id).row[0];
        for (const auto& [m, n, k] : {std::tuple<index_t, index_t, index_t>{64, 64, 64}, {13, 48, 64}, {64, 16, 1}, {3, 64, 33}, {1, 1, 1}, {40, 40, 40}}) {
            if (!hone::detail::fits_small(kn, n)) continue;
            INFO(hone::isa_name(id) << " " << m << "x" << n << "x" << k);
            // The next ones end at a protected page.
            operand<float> a(form::strided, 2, m, k, test::rows_of(k), 0, 1), b(form::strided, 2, k, n, test::rows_of(n), 0, 2);
            operand<float> c(form::strided, 2, m, n, test::rows_of(n), 0, 3);
            hone::detail::run_small<float>(kn, a[0], b[0], c[0], a[1].data, b[1].data);
            CHECK((a.unchanged() && b.unchanged() && c.gaps_unchanged()));
            bool right = true;
            for (index_t i = 0; i < m * n; ++i) {
                const auto near = test::dot(1, a[0], b[0], 0, 0, i / n, i % n);
                const float got = *c[0].at(i / n, i % n);
                right = right && test::near(static_cast<double>(got), near.value, near.bound);
                if (test::reproducible(id)) right = right && test::same(got, test::strict_dot(1, a[0], b[0], i / n, i % n));
                right = right && test::same(*c[1].at(i / n, i % n), c.old(1, i / n, i % n));
            }
            CHECK(right);
        }
    }
    // As many as L3 does not hold, where that is no more than memory to spare.
    const index_t count = hone::explain().cache.l3.bytes / 2 / (3 * 64 * 64 * 4) + 2;
    if (test::quick() || count > 2000) return;
    const auto a = numbers<float>(count * 64 * 64, 1), b = numbers<float>(count * 64 * 64, 2);
    std::vector<float> c(a.size()), want(a.size());
    const auto va = batch(hone::row_major<const float>(a.data(), 64, 64), count), vb = batch(hone::row_major<const float>(b.data(), 64, 64), count);
    const auto vc = batch(hone::row_major(c.data(), 64, 64), count), vw = batch(hone::row_major(want.data(), 64, 64), count);
    for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb[i], vw[i]) == status{});
    REQUIRE(hone::gemm_batched(va, vb, vc) == status{});
    CHECK(same_bits(c, want));
}

TEST_CASE("batch() finds where the next matrix lies") {
    std::vector<float> x(1000);
    CHECK(batch(hone::row_major(x.data(), 3, 5), 2).batch_stride == 15);
    CHECK(batch(hone::row_major(x.data(), 3, 5, 9), 2).batch_stride == 27);
    CHECK(batch(hone::col_major(x.data(), 3, 5, 4), 2).batch_stride == 20);
    CHECK(batch(hone::row_major(x.data() + 900, 3, 5, -5), 2).batch_stride == -15);
    const auto v = batch(hone::row_major(x.data(), 3, 5), 7, 100);
    CHECK(v[6].data == x.data() + 600);
    const hone::batch_view<const float> read = v;
    CHECK(read[1].at(2, 3) == x.data() + 113);
    const std::array<float*, 2> list{x.data(), x.data() + 50};
    CHECK(hone::pointer_batch<float>{list, 3, 5, 5, 1}[1].at(1, 1) == x.data() + 56);
}

// ---- batched: ways to do it

TEST_CASE("one B for products that lie end to end: one taller product") {
    const index_t count = 9, m = 12, n = 40, k = 30;
    const auto a = numbers<float>(count * m * k, 1), b = numbers<float>(k * n, 2), v = numbers<float>(n, 3);
    const auto va = batch(hone::row_major<const float>(a.data(), m, k), count);
    const auto vb = hone::row_major<const float>(b.data(), k, n);
    const auto stages = hone::bias(v) | hone::gelu | hone::scale(0.5) | hone::clip(-3, 3) | hone::relu;
    std::vector<float> c(static_cast<std::size_t>(count * m * n)), want = c;
    const auto vc = batch(hone::row_major(c.data(), m, n), count), vw = batch(hone::row_major(want.data(), m, n), count);
    for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb, vw[i], stages) == status{});
    REQUIRE(hone::gemm_batched(va, vb, vc, stages) == status{});
    CHECK(same_bits(c, want));

    const hone::batched_desc desc{.item = {.m = m, .n = n, .k = k}, .count = count, .a = m * k, .b = 0, .c = m * n};
    const auto plan = hone::plan(desc, {}, stages);
    REQUIRE(plan.status() == status{});
    const auto tall = hone::plan({.m = count * m, .n = n, .k = k, .dynamic_m = true}, {}, stages);
    REQUIRE(tall.status() == status{});
    CHECK(std::string(plan->explain().text().view()) == std::string(tall->explain().text().view()));
    CHECK(plan->scratch_bytes() == tall->scratch_bytes());
    // Fewer than planned for; and packed.
    std::fill(c.begin(), c.end(), 0.0f);
    auto some = vc;
    some.count = 4;
    auto some_a = va;
    some_a.count = 4;
    REQUIRE(plan->run(some_a, vb, some, stages) == status{});
    CHECK(std::equal(c.begin(), c.begin() + 4 * m * n, want.begin()));
    CHECK(std::all_of(c.begin() + 4 * m * n, c.end(), [](float x) { return x == 0.0f; }));
    hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
    REQUIRE(plan->pack(vb, {memory.data(), memory.size()}) == status{});
    REQUIRE(plan->run(va, *hone::packed_view::open({memory.data(), memory.size()}), vc, stages) == status{});
    CHECK(same_bits(c, want));
    REQUIRE(hone::gemm_batched(va, *hone::packed_view::open({memory.data(), memory.size()}), vc, stages) == status{});
    CHECK(same_bits(c, want));
    // Where a stage may look at row numbers they begin anew with each product.
    std::vector<float> rows = numbers<float>(m, 4);
    const auto by_row = hone::map([&](auto& x, auto at) { x = x + at.rows(rows.data()); });
    for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb, vw[i], by_row) == status{});
    REQUIRE(hone::gemm_batched(va, vb, vc, by_row) == status{});
    CHECK(same_bits(c, want));
    const auto kept = hone::plan(desc, {}, by_row);
    REQUIRE(kept.status() == status{});
    CHECK(kept->explain().text().view() != tall->explain().text().view());
}

TEST_CASE("single rows of one B, wherever they lie, are one product; of C too near they are none") {
    const index_t count = 30, n = 50, k = 20;
    const auto a = numbers<float>(count * 100, 1), b = numbers<float>(k * n, 2);
    std::vector<float> c(static_cast<std::size_t>(count * 60), 7.0f), want = c;
    const auto vb = hone::row_major<const float>(b.data(), k, n);
    for (const index_t step : {60, -60}) {
        const auto out = [&](std::vector<float>& x) { return batch(hone::row_major(x.data() + (step < 0 ? (count - 1) * 60 : 0), 1, n), count, step); };
        const auto va = batch(hone::row_major<const float>(a.data(), 1, k), count, 100);
        for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb, out(want)[i]) == status{});
        REQUIRE(hone::gemm_batched(va, vb, out(c)) == status{});
        CHECK(same_bits(c, want));
    }
    const auto plan = hone::plan({.item = {.m = 1, .n = n, .k = k}, .count = count, .a = 100, .b = 0, .c = 60});
    REQUIRE(plan.status() == status{});
    CHECK(plan->d_.stacked);
    const auto close = hone::plan({.item = {.m = 1, .n = n, .k = k}, .count = count, .a = 100, .b = 0, .c = 49});
    REQUIRE(close.status() == status{});
    CHECK(!close->d_.stacked);
    check(close->run(batch(hone::row_major<const float>(a.data(), 1, k), count, 100), vb, batch(hone::row_major(c.data(), 1, n), count, 49)),
          {code::bad_stride, argument::c_batch_stride, 49, 50}, "c.batch_stride = 49 makes elements of C coincide; it must be at least 50");
}

TEST_CASE("one B that needs a copy is copied once") {
    const index_t count = 17, m = 23, n = 45, k = 70;  // 391 rows in all repay the copy
    const auto b = numbers<float>(k * n, 2);
    for (hone::isa id : test::isas()) {
        for (int form = 0; form < 8; ++form) {
            const bool by_columns = form & 1, in_order = form & 2;
            test::reverse_executor four(form & 4 ? 4 : 1);
            INFO(hone::isa_name(id) << (by_columns ? " by columns" : " by rows") << (in_order ? " strided " : " pointers ") << four.concurrency());
            const auto vb = by_columns ? hone::col_major<const float>(b.data(), k, n) : hone::row_major<const float>(b.data(), k, n);
            const auto a = numbers<float>(count * (m + 1) * k, 1);
            std::vector<float> c(static_cast<std::size_t>(count * (m + 2) * n), 5.0f), want = c;
            const auto va = batch(hone::row_major<const float>(a.data(), m, k), count, (m + 1) * k);
            const auto vc = batch(hone::row_major(c.data(), m, n), count, (m + 2) * n), vw = batch(hone::row_major(want.data(), m, n), count, (m + 2) * n);
            const hone::policy p{.isa = id};
            const hone::gemm_desc item{.m = m, .n = n, .k = k, .b = {vb.row_stride, vb.col_stride}};
            const auto single = hone::plan(item, p);
            REQUIRE(single.status() == status{});
            for (index_t i = 0; i < count; ++i) REQUIRE(single->run(va[i], vb, vw[i]) == status{});
            const hone::context ctx{.executor = four};
            const auto plan = hone::plan({.item = item, .count = count, .b = 0}, p, hone::identity, ctx);
            REQUIRE(plan.status() == status{});
            CHECK(std::string_view(plan->explain().b) == "packed once");
            std::vector<float*> pointers;
            for (index_t i = 0; i < count; ++i) pointers.push_back(vc[i].data);
            const status s = in_order ? plan->run(va, vb, vc, hone::identity, ctx)
                                      : plan->run(va, vb, hone::pointer_batch<float>{pointers, m, n, n, 1}, hone::identity, ctx);
            REQUIRE(s == status{});
            CHECK(same_bits(c, want));
            CHECK(four.most_tasks <= four.concurrency());
        }
    }
}

TEST_CASE("epilogues of a batch: bias, lambda, gated, another element type") {
    const index_t count = 5, m = 9, n = 34, k = 21;
    test::thread_executor three(3);
    const auto a = numbers<float>(count * m * k, 1), b = numbers<float>(count * k * n, 2), v = numbers<float>(n, 3);
    const auto va = batch(hone::row_major<const float>(a.data(), m, k), count), vb = batch(hone::row_major<const float>(b.data(), k, n), count);
    const auto compare = [&](auto zero, index_t cols, const auto& stages, const auto& right) {
        using C = decltype(zero);
        std::vector<C> c(static_cast<std::size_t>(count * m * cols), zero), want = c;
        const auto vc = batch(hone::row_major(c.data(), m, cols), count), vw = batch(hone::row_major(want.data(), m, cols), count);
        for (index_t i = 0; i < count; ++i) {
            if constexpr (std::is_same_v<std::decay_t<decltype(right)>, hone::matrix_view<const float>>) {
                REQUIRE(hone::gemm(va[i], right, vw[i], stages) == status{});
            } else {
                REQUIRE(hone::gemm(va[i], right[i], vw[i], stages) == status{});
            }
        }
        for (const bool parallel : {false, true}) {
            std::fill(c.begin(), c.end(), zero);
            hone::context ctx;
            if (parallel) ctx.executor = three;
            REQUIRE(hone::gemm_batched(va, right, vc, stages, ctx) == status{});
            CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(C)) == 0);
        }
    };
    compare(0.0f, n, hone::bias(v) | hone::gelu, vb);
    compare(0.0f, n, hone::bias(v) | hone::gelu, vb[0]);
    compare(0.0f, n / 2, hone::bias(v) | hone::gated(hone::silu), vb);
    compare(0.0f, n / 2, hone::bias(v) | hone::gated(hone::silu), vb[1]);
    compare(0.0f, n / 2, hone::gated(hone::map([](auto& x, auto at) { x = x * static_cast<float>(at.row); })), vb[1]);
    compare(hone::bf16{}, n, hone::relu | hone::store_as<hone::bf16>(), vb);
    compare(hone::bf16{}, n, hone::relu | hone::store_as<hone::bf16>(), vb[2]);
    compare(0.0, n, hone::store_as<double>(), vb);
    const float factor = 3.0f;
    compare(0.0f, n, hone::map([=](auto& x, auto at) { x = x * factor + static_cast<float>(at.row) + at.cols(v.data()); }), vb);
    const auto same_for_all = numbers<float>(m * n, 7);
    compare(0.0f, n, hone::add(hone::row_major<const float>(same_for_all.data(), m, n)), vb);
    compare(0.0f, n, hone::add(hone::row_major<const float>(same_for_all.data(), m, n)), vb[0]);
}

TEST_CASE("a batch with a policy, fixed at compile time and at run time") {
    const index_t count = 4, m = 19, n = 40, k = 33;
    const auto a = numbers<double>(count * m * k, 1), b = numbers<double>(count * k * n, 2);
    std::vector<double> c(static_cast<std::size_t>(count * m * n)), want = c;
    const auto va = batch(hone::row_major<const double>(a.data(), m, k), count), vb = batch(hone::row_major<const double>(b.data(), k, n), count);
    const auto vc = batch(hone::row_major(c.data(), m, n), count), vw = batch(hone::row_major(want.data(), m, n), count);
    constexpr hone::policy fixed{.isa = hone::isa::scalar, .tile = {4, 4}, .block = {.mc = 8, .kc = 7, .nc = 16}};
    for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm<fixed>(2.0, va[i], vb[i], 0.0, vw[i], hone::relu) == status{});
    REQUIRE(hone::gemm_batched<fixed>(2.0, va, vb, 0.0, vc, hone::relu) == status{});
    CHECK(same_bits(c, want));
    const hone::batched_desc desc{.item = {.m = m, .n = n, .k = k, .alpha = 2.0}, .count = count};
    const auto compiled = hone::plan<fixed, double>(desc, hone::relu);
    constexpr hone::policy registered{.isa = hone::isa::scalar, .block = {.mc = 8, .kc = 7, .nc = 16}};
    const auto chosen = hone::plan<double>(desc, registered, hone::relu);
    REQUIRE(compiled.status() == status{});
    REQUIRE(chosen.status() == status{});
    static_assert(std::is_trivially_copyable_v<std::decay_t<decltype(*chosen)>>);
    for (const auto& plan : {*compiled, *chosen}) {
        std::fill(c.begin(), c.end(), 0.0);
        REQUIRE(plan.run(va, vb, vc, hone::relu) == status{});
        CHECK(same_bits(c, want));
        CHECK(plan.explain().isa == hone::isa::scalar);
        CHECK(plan.explain().block.kc == 7);
    }
    // threads bounds the tasks; an upper bound of rows holds for each product.
    test::reverse_executor eight(8);
    const hone::context ctx{.executor = eight};
    const auto two = hone::plan<double>({.item = {.m = m + 5, .n = n, .k = k, .alpha = 2.0, .dynamic_m = true}, .count = count + 3}, {.isa = hone::isa::scalar, .threads = 2}, hone::relu, ctx);
    REQUIRE(two.status() == status{});
    CHECK(two->explain().workers == 2);
    std::fill(c.begin(), c.end(), 0.0);
    REQUIRE(two->run(va, vb, vc, hone::relu, ctx) == status{});
    CHECK(same_bits(c, want));
    CHECK(eight.most_tasks == 2);
}

TEST_CASE("heads beside each other in rows of one tensor") {
    // Q, K, V and the result of attention, (tokens, heads, width) each, as the three products of a head see them.
    const index_t tokens = 11, heads = 6, width = 16, row = heads * width;
    const auto q = numbers<float>(tokens * row, 1), k = numbers<float>(tokens * row, 2), v = numbers<float>(tokens * row, 3);
    std::vector<float> scores(static_cast<std::size_t>(heads * tokens * tokens)), out(static_cast<std::size_t>(tokens * row), 9.0f);
    const auto head = [&](const float* p) { return batch(hone::row_major<const float>(p, tokens, width, row), heads, width); };
    const auto vs = batch(hone::row_major(scores.data(), tokens, tokens), heads);
    auto kt = head(k.data());
    std::swap(kt.rows, kt.cols);
    std::swap(kt.row_stride, kt.col_stride);
    REQUIRE(hone::gemm_batched(head(q.data()), kt, vs, hone::scale(0.25)) == status{});
    REQUIRE(hone::gemm_batched(vs, head(v.data()), batch(hone::row_major(out.data(), tokens, width, row), heads, width)) == status{});
    for (index_t h = 0; h < heads; ++h) {
        std::vector<float> s(static_cast<std::size_t>(tokens * tokens)), o(static_cast<std::size_t>(tokens * width));
        const auto s_view = hone::row_major(s.data(), tokens, tokens), o_view = hone::row_major(o.data(), tokens, width);
        REQUIRE(hone::gemm(head(q.data())[h], kt[h], s_view, hone::scale(0.25)) == status{});
        REQUIRE(hone::gemm(s_view, head(v.data())[h], o_view) == status{});
        CHECK(test::difference(vs[h], s_view) == "");
        CHECK(test::difference(hone::row_major<const float>(out.data() + h * width, tokens, width, row), o_view) == "");
    }
    // The result in the place of the queries, beside keys and values in the same rows.
    std::vector<float> qkv = numbers<float>(tokens * 3 * row, 4);
    const std::vector<float> before = qkv;
    const auto slice = [&](index_t part) { return batch(hone::row_major(qkv.data() + part * row, tokens, width, 3 * row), heads, width); };
    REQUIRE(hone::gemm_batched(vs, slice(2), slice(0)) == status{});
    for (index_t h = 0; h < heads; ++h) {
        std::vector<float> o(static_cast<std::size_t>(tokens * width));
        const auto o_view = hone::row_major(o.data(), tokens, width);
        REQUIRE(hone::gemm(vs[h], hone::row_major<const float>(before.data() + 2 * row + h * width, tokens, width, 3 * row), o_view) == status{});
        CHECK(test::difference(slice(0)[h], o_view) == "");
    }
}

// ---- how work is cut

TEST_CASE("the cells of all products are cut among tasks: each once, and evenly") {
    random_source source(11);
    for (int round = 0; round < (test::quick() ? 200 : 3000); ++round) {
        const index_t count = source.between(1, 12), workers = source.between(1, 20);
        std::vector<hone::detail::cell_grid> grids;
        index_t total = 0, cells = 0, largest = 0;
        hone::detail::gemm_kernel<float> kn;
        kn.mr = static_cast<int>(source.between(1, 14));
        kn.panel = 16;
        kn.nr = 16 * static_cast<int>(source.between(1, 4));
        for (index_t i = 0; i < count; ++i) {
            const index_t m = source.between(1, source.between(0, 3) == 0 ? 3000 : 40), n = source.between(1, source.between(0, 2) == 0 ? 900 : 70);
            const index_t work = hone::detail::work_of(m, n, source.between(0, 500), count);
            grids.push_back(hone::detail::grid_of(kn, m, n, false, source.between(0, 9) == 0, work, static_cast<int>(workers)));
            total += work;
            cells += grids.back().cells();
            largest = std::max(largest, grids.back().work - (grids.back().cells() - 1) * grids.back().each());
        }
        const index_t tasks = std::min(workers, cells);
        std::vector<std::vector<char>> seen;
        for (const auto& g : grids) seen.emplace_back(static_cast<std::size_t>(g.m * g.n), 0);
        bool once = true, bounded = true, even = true;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t begin = hone::detail::share_begin(total, tasks, t), end = hone::detail::share_begin(total, tasks, t + 1);
            index_t at = 0, taken = 0;
            for (std::size_t i = 0; i < grids.size(); at += grids[i].work, ++i) {
                const auto& g = grids[i];
                const index_t from = g.before(begin - at), to = g.before(end - at), share = total / tasks + 1;
                taken += (to - from) * g.each();
                g.for_parts(from, to, [&](hone::detail::range rows, hone::detail::range cols) {
                    bounded = bounded && rows.end - rows.begin <= g.most_rows(share) && cols.end - cols.begin <= g.most_cols(share);
                    bounded = bounded && rows.begin % g.mr == 0 && cols.begin % g.unit == 0 && rows.begin < rows.end && cols.begin < cols.end;
                    for (index_t r = rows.begin; r < rows.end; ++r) {
                        for (index_t c = cols.begin; c < cols.end; ++c) once = once && ++seen[i][static_cast<std::size_t>(r * g.n + c)] == 1;
                    }
                });
            }
            even = even && taken <= total / tasks + 1 + 2 * largest;
        }
        for (const auto& s : seen) once = once && std::all_of(s.begin(), s.end(), [](char n) { return n == 1; });
        INFO("round " << round << ", " << count << " products, " << tasks << " tasks");
        REQUIRE(once);
        REQUIRE(bounded);
        REQUIRE(even);
    }
}

TEST_CASE("one large product of a batch or among groups is cut, too") {
    struct counter {
        index_t tasks = 0, runs = 0;
        int concurrency() const { return 8; }
        void run(index_t n, void (*task)(void*, index_t), void* state) {
            tasks = n;
            for (index_t i = n; i-- > 0;) task(state, i), ++runs;
        }
    } x;
    const auto a = numbers<float>(300 * 40, 1), b = numbers<float>(40 * 200, 2);
    std::vector<float> c(310 * 200), want = c;
    const auto va = hone::row_major<const float>(a.data(), 300, 40), vb = hone::row_major<const float>(b.data(), 40, 200);
    REQUIRE(hone::gemm(va, vb, hone::row_major(want.data(), 300, 200)) == status{});
    REQUIRE(hone::gemm(hone::row_major<const float>(a.data(), 10, 40), vb, hone::row_major(want.data() + 300 * 200, 10, 200)) == status{});
    std::vector<hone::gemm_group<>> groups;
    for (index_t i = 0; i < 5; ++i) groups.push_back({hone::row_major<const float>(a.data() + 2 * i * 40, 2, 40), vb, hone::row_major(c.data() + (300 + 2 * i) * 200, 2, 200)});
    groups.insert(groups.begin() + 2, {va, vb, hone::row_major(c.data(), 300, 200)});
    REQUIRE(hone::gemm_grouped(groups, {.executor = x}) == status{});
    CHECK(same_bits(c, want));
    CHECK(x.tasks == 8);
    CHECK(x.runs == 8);
    std::fill(c.begin(), c.begin() + 300 * 200, 0.0f);
    REQUIRE(hone::gemm_batched(batch(va, 1), batch(vb, 1), batch(hone::row_major(c.data(), 300, 200), 1), hone::identity, {.executor = x}) == status{});
    CHECK(same_bits(c, want));
    CHECK(x.tasks == 8);
}

// ---- grouped

namespace {

struct expert {
    index_t m, n, k;
};

// Groups of these extents with dense operands, and the same products one by one.
template <class T, class F>
std::string run_groups(const std::vector<expert>& shapes, F epilogue_of, bool packed, index_t cols_of_n, double alpha, double beta, const hone::context& ctx) {
    using E = decltype(epilogue_of(0));
    std::vector<std::unique_ptr<operand<T>>> a, b, c;
    std::vector<hone::aligned_buffer> memory;
    std::vector<hone::gemm_group<T, E>> groups;
    std::vector<std::vector<T>> want;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto& [m, n, k] = shapes[i];
        const index_t cols = n / cols_of_n;
        a.push_back(std::make_unique<operand<T>>(form::strided, 1, m, k, test::rows_of(k, i % 2 == 0 ? 0 : 3), 0, 3 * i));
        b.push_back(std::make_unique<operand<T>>(form::strided, 1, k, n, i % 3 == 2 ? test::cols_of(k) : test::rows_of(n), 0, 3 * i + 1));
        c.push_back(std::make_unique<operand<T>>(form::strided, 1, m, cols, test::rows_of(cols, i % 2 == 0 ? 0 : 1), 0, 3 * i + 2));
        const hone::matrix_view<const T> va = (*a[i])[0], vb = (*b[i])[0];
        const auto vc = (*c[i])[0];
        if (packed) {
            const auto plan = hone::plan<T>(hone::gemm_desc{.m = m, .n = n, .k = k, .b = {vb.row_stride, vb.col_stride}}, {}, epilogue_of(static_cast<index_t>(i)));
            if (!plan) return "no plan";
            memory.emplace_back(static_cast<std::size_t>(plan->packed_bytes()));
            if (status s = plan->pack(vb, {memory.back().data(), memory.back().size()}); !s.ok()) return "not packed";
            groups.push_back({va, *hone::packed_view::open({memory.back().data(), memory.back().size()}), vc, epilogue_of(static_cast<index_t>(i))});
        } else {
            groups.push_back({va, vb, vc, epilogue_of(static_cast<index_t>(i))});
        }
        if (status s = hone::gemm(alpha, va, vb, beta, vc, epilogue_of(static_cast<index_t>(i))); !s.ok()) return std::string(s.message().view());
        want.emplace_back();
        for (index_t r = 0; r < m; ++r) {
            for (index_t j = 0; j < cols; ++j) want.back().push_back(*vc.at(r, j));
        }
    }
    const auto bytes = hone::grouped_scratch_bytes(groups, ctx.executor.concurrency(), alpha, beta);
    if (!bytes) return "no size: " + std::string(bytes.status().message().view());
    for (const bool own_scratch : {false, true}) {
        for (auto& x : c) x->restore();
        const guarded<std::byte> scratch(*bytes);
        hone::context with = ctx;
        if (own_scratch && *bytes > 0) with.scratch = {scratch.data(), static_cast<std::size_t>(*bytes)};
        if (status s = hone::gemm_grouped(alpha, groups, beta, with); !s.ok()) return std::string(s.message().view());
        if (!scratch.intact()) return "memory around the scratch was written";
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            if (!a[i]->unchanged() || !b[i]->unchanged() || !c[i]->gaps_unchanged()) return "memory outside C was written, group " + std::to_string(i);
            std::size_t at = 0;
            for (index_t r = 0; r < shapes[i].m; ++r) {
                for (index_t j = 0; j < shapes[i].n / cols_of_n; ++j, ++at) {
                    if (!test::same(*(*c[i])[0].at(r, j), want[i][at])) return "group " + std::to_string(i) + " differs at " + std::to_string(r) + ", " + std::to_string(j);
                }
            }
        }
    }
    return "";
}

}  // namespace

TEST_CASE("groups: the bits of single products, for every number of workers") {
    const std::vector<expert> even{{3, 70, 50}, {0, 70, 50}, {40, 70, 50}, {1, 70, 50}, {0, 70, 50}, {129, 70, 50}, {2, 70, 50}};
    const std::vector<expert> mixed{{7, 13, 17}, {100, 3, 20}, {3, 100, 20}, {5, 6, 0}, {0, 3, 4}, {4, 0, 3}, {64, 64, 64}, {33, 129, 301}, {1, 1, 1}};
    const auto none = [](index_t) { return hone::identity; };
    for (const auto& shapes : {even, mixed, std::vector<expert>{}, std::vector<expert>{{0, 5, 5}}}) {
        for (int workers : {1, 2, 3, 7, 16}) {
            test::thread_executor threads(workers);
            test::reverse_executor reverse(workers);
            INFO(shapes.size() << " groups, " << workers << " workers");
            CHECK(run_groups<float>(shapes, none, false, 1, 1, 0, {.executor = threads}) == "");
            CHECK(run_groups<float>(shapes, none, true, 1, 1, 0, {.executor = reverse}) == "");
            CHECK(run_groups<double>(shapes, none, workers % 2 == 0, 1, -0.5, 1.5, {.executor = reverse}) == "");
            CHECK(threads.most_tasks <= workers);
            CHECK(reverse.most_tasks <= workers);
        }
    }
}

TEST_CASE("groups: each with an epilogue of its own") {
    const std::vector<expert> shapes{{3, 40, 30}, {0, 40, 30}, {50, 40, 30}, {17, 40, 30}};
    const auto v = numbers<float>(200, 9);
    test::thread_executor three(3);
    const auto bias = [&](index_t i) { return hone::bias(std::span<const float>(v.data() + 40 * i, 40)) | hone::scale(static_cast<double>(i + 1)); };
    CHECK(run_groups<float>(shapes, bias, false, 1, 1, 0, {.executor = three}) == "");
    CHECK(run_groups<float>(shapes, bias, true, 1, 2, 0.5, {}) == "");
    const auto gated = [&](index_t i) { return hone::bias(std::span<const float>(v.data() + 40 * i, 40)) | hone::gated(hone::silu); };
    CHECK(run_groups<float>(shapes, gated, false, 2, 1, 0, {.executor = three}) == "");
    CHECK(run_groups<float>(shapes, gated, true, 2, 1, 0, {}) == "");
    const auto lambda = [&](index_t i) {
        return hone::map([i, p = v.data()](auto& x, auto at) { x = x * static_cast<float>(i) + static_cast<float>(at.row) + at.cols(p); });
    };
    CHECK(run_groups<float>(shapes, lambda, false, 1, 1, 0, {.executor = three}) == "");

    // A second output a group, which a batch cannot have.
    const auto a = numbers<float>(70 * 30, 1), b = numbers<float>(30 * 40, 2);
    std::vector<float> c(70 * 40), sums(70, -1.0f);
    using group = hone::gemm_group<float, hone::row_sum_stage<float>>;
    std::vector<group> groups;
    index_t first = 0;
    for (const index_t m : {3, 0, 50, 17}) {
        groups.push_back({hone::row_major(a.data() + first * 30, m, 30), hone::row_major(b.data(), 30, 40), hone::row_major(c.data() + first * 40, m, 40), hone::row_sum(sums.data() + first)});
        first += m;
    }
    REQUIRE(hone::gemm_grouped(groups, {.executor = three}) == status{});
    for (index_t r = 0; r < 70; ++r) {
        float sum = 0;
        for (index_t j = 0; j < 40; ++j) sum = test::rounded(sum + c[static_cast<std::size_t>(r * 40 + j)]);
        CHECK(test::same(sums[static_cast<std::size_t>(r)], sum));
    }
}

TEST_CASE("groups: tokens sorted by expert, weights shared, deduced types, policies") {
    const index_t n = 33, k = 20, tokens = 60;
    const std::array<index_t, 6> offsets{0, 7, 7, 40, 41, 60};
    const auto a = numbers<float>(tokens * k, 1), w = numbers<float>(5 * k * n, 2);
    std::vector<float> c(static_cast<std::size_t>(tokens * n)), want = c;
    const auto x = hone::row_major<const float>(a.data(), tokens, k);
    const auto y = hone::row_major(c.data(), tokens, n), z = hone::row_major(want.data(), tokens, n);
    const auto plan = hone::plan({.m = 1, .n = n, .k = k});
    REQUIRE(plan.status() == status{});
    hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
    REQUIRE(plan->pack(hone::row_major<const float>(w.data(), k, n), {memory.data(), memory.size()}) == status{});
    const auto packed = *hone::packed_view::open({memory.data(), memory.size()});
    std::vector<hone::gemm_group<>> groups;
    for (std::size_t e = 0; e + 1 < offsets.size(); ++e) {
        const index_t rows = offsets[e + 1] - offsets[e];
        const hone::matrix_view<const float> weights = hone::row_major<const float>(w.data() + (e % 2 == 0 ? 0 : static_cast<index_t>(e) * k * n), k, n);
        const auto in = hone::row_major(x.at(offsets[e], 0), rows, k);
        if (e % 2 == 0) groups.push_back({in, packed, hone::row_major(y.at(offsets[e], 0), rows, n)});
        else groups.push_back({in, weights, hone::row_major(y.at(offsets[e], 0), rows, n)});
        REQUIRE(hone::gemm(in, weights, hone::row_major(z.at(offsets[e], 0), rows, n)) == status{});
    }
    REQUIRE(hone::gemm_grouped(groups) == status{});
    CHECK(same_bits(c, want));
    std::fill(c.begin(), c.end(), 0.0f);
    std::reverse(groups.begin(), groups.end());
    std::swap(groups[0], groups[2]);
    // Weights of registers up to 512 bits are packed alike.
    if (packed.header().panel == 16) {
        REQUIRE(hone::gemm_grouped<hone::policy{.isa = hone::isa::scalar, .block = {.kc = 8}}>(groups) == status{});
        if (test::reproducible(hone::active_isa())) CHECK(same_bits(c, want));
    }
    std::fill(c.begin(), c.end(), 0.0f);
    REQUIRE(hone::gemm_grouped(std::span<const hone::gemm_group<>>(groups), {}) == status{});
    CHECK(same_bits(c, want));

    const std::array one{hone::gemm_group{x, hone::row_major(w.data(), k, n), y}};
    static_assert(std::is_same_v<decltype(one), const std::array<hone::gemm_group<float>, 1>>);
    REQUIRE(hone::gemm_grouped(one) == status{});
    const std::array with_stage{hone::gemm_group{x, packed, y, hone::relu}};
    static_assert(std::is_same_v<decltype(with_stage), const std::array<hone::gemm_group<float, hone::relu_stage>, 1>>);
    REQUIRE(hone::gemm_grouped(with_stage) == status{});
    REQUIRE(hone::gemm(x, hone::row_major(w.data(), k, n), z, hone::relu) == status{});
    CHECK(same_bits(c, want));
}

#if HONE_EXCEPTIONS
TEST_CASE("what an epilogue of a batch or a group throws arrives at the caller") {
    const auto a = numbers<float>(40 * 40, 1);
    std::vector<float> c(40 * 40);
    const auto fails = hone::map([](auto&, auto at) {
        if (at.row == 1) throw 42;
    });
    test::thread_executor three(3);
    const auto va = batch(hone::row_major<const float>(a.data(), 4, 4), 100);
    const auto vc = batch(hone::row_major(c.data(), 4, 4), 100);
    CHECK_THROWS_AS(hone::gemm_batched(va, va, vc, fails, {.executor = three}).ok(), int);
    const std::array groups{hone::gemm_group{va[0], va[1], vc[0], fails}, hone::gemm_group{va[0], va[1], vc[1], fails}};
    CHECK_THROWS_AS(hone::gemm_grouped(groups, {.executor = three}).ok(), int);
    static_assert(noexcept(hone::gemm_batched(va, va, vc)) && !noexcept(hone::gemm_batched(va, va, vc, fails)));
    static_assert(!noexcept(hone::gemm_grouped(groups)));
}
#endif

// ---- errors

namespace {

constexpr index_t far_apart = INT64_MAX / 8;

// Three products of 2 x 3 x 4 whose C is 77 all over.
struct three_products {
    std::vector<float> a = std::vector<float>(100, 1.0f), b = std::vector<float>(100, 2.0f), c = std::vector<float>(100, 77.0f);
    hone::batch_view<const float> va = batch(hone::row_major<const float>(a.data(), 2, 4), 3), vb = batch(hone::row_major<const float>(b.data(), 4, 3), 3);
    hone::batch_view<float> vc = batch(hone::row_major(c.data(), 2, 3), 3);
    bool untouched() const {
        return std::all_of(c.begin(), c.end(), [](float x) { return x == 77.0f; });
    }
    // gemm_batched with one thing changed.
    template <class F>
    status with(F change) const {
        auto x = va;
        auto y = vb;
        auto z = vc;
        change(x, y, z);
        return hone::gemm_batched(x, y, z);
    }
};

}  // namespace

TEST_CASE("extents, counts and strides of a batch that do not go together") {
    three_products o;
    CHECK(o.with([](auto&, auto&, auto&) {}) == status{});
    std::fill(o.c.begin(), o.c.end(), 77.0f);
    check(o.with([](auto& a, auto&, auto&) { a.count = 2; }), {code::mismatch, argument::a_count, 2, 3}, "a.count = 2 must equal 3");
    check(o.with([](auto&, auto& b, auto&) { b.count = 4; }), {code::mismatch, argument::b_count, 4, 3}, "b.count = 4 must equal 3");
    check(o.with([](auto& a, auto&, auto&) { a.count = -1; }), {code::mismatch, argument::a_count, -1, 3}, "a.count = -1 must equal 3");
    check(o.with([](auto&, auto&, auto& c) { c.count = -1; }), {code::negative, argument::c_count, -1, 0}, "c.count = -1 must be at least 0");
    check(o.with([](auto& a, auto&, auto&) { a.rows = 3; }), {code::mismatch, argument::a_rows, 3, 2}, "a.rows = 3 must equal 2");
    check(o.with([](auto& a, auto&, auto&) { a.cols = 5; }), {code::mismatch, argument::b_rows, 4, 5}, "b.rows = 4 must equal 5");
    check(o.with([](auto&, auto& b, auto&) { b.cols = 2; }), {code::mismatch, argument::b_cols, 2, 3}, "b.cols = 2 must equal 3");
    check(o.with([](auto&, auto&, auto& c) { c.rows = -2; }), {code::negative, argument::m, -2, 0}, "m = -2 must be at least 0");
    check(o.with([](auto&, auto&, auto& c) { c.row_stride = 2; }), {code::bad_stride, argument::c_row_stride, 2, 3},
          "c.row_stride = 2 makes elements of C coincide; it must be at least 3");
    check(o.with([](auto&, auto&, auto& c) { c.batch_stride = 0; }), {code::bad_stride, argument::c_batch_stride, 0, 6},
          "c.batch_stride = 0 makes elements of C coincide; it must be at least 6");
    check(o.with([](auto&, auto&, auto& c) { c.batch_stride = -5; c.data += 50; }), {code::bad_stride, argument::c_batch_stride, -5, 6},
          "c.batch_stride = -5 makes elements of C coincide; it must be at least 6");
    check(o.with([](auto& a, auto&, auto&) { a.batch_stride = far_apart; }), {code::too_large, argument::a_count, 3, INT64_MAX / 2},
          "a.count = 3 must be at most 4611686018427387903");
    check(o.with([](auto&, auto& b, auto&) { b.batch_stride = INT64_MIN; }), {code::too_large, argument::b_count, 3, INT64_MAX / 2},
          "b.count = 3 must be at most 4611686018427387903");
    check(o.with([](auto&, auto&, auto& c) { c.batch_stride = far_apart; }), {code::too_large, argument::c_count, 3, INT64_MAX / 2},
          "c.count = 3 must be at most 4611686018427387903");
    // One row of one product: the batch stride of a count of one means nothing.
    CHECK(o.with([](auto& a, auto& b, auto& c) { a.count = b.count = c.count = 1; a.batch_stride = b.batch_stride = far_apart; c.batch_stride = 0; }) == status{});
    CHECK(o.c[0] == 8.0f);
    std::fill(o.c.begin(), o.c.end(), 77.0f);

    const auto plan = hone::plan({.item = {.m = 2, .n = 3, .k = 4}, .count = 2, .a = 8, .b = 12, .c = 6});
    REQUIRE(plan.status() == status{});
    const auto planned = [&](auto change) {
        auto a = o.va;
        auto b = o.vb;
        auto c = o.vc;
        a.count = b.count = c.count = 2;
        change(a, b, c);
        return plan->run(a, b, c);
    };
    check(planned([](auto& a, auto& b, auto& c) { a.count = b.count = c.count = 3; }), {code::too_large, argument::c_count, 3, 2}, "c.count = 3 must be at most 2");
    check(planned([](auto& a, auto&, auto&) { a.batch_stride = 16; }), {code::mismatch, argument::a_batch_stride, 16, 8}, "a.batch_stride = 16 must equal 8");
    check(planned([](auto&, auto& b, auto&) { b.batch_stride = 0; }), {code::mismatch, argument::b_batch_stride, 0, 12}, "b.batch_stride = 0 must equal 12");
    check(planned([](auto&, auto&, auto& c) { c.batch_stride = 7; }), {code::mismatch, argument::c_batch_stride, 7, 6}, "c.batch_stride = 7 must equal 6");
    check(planned([](auto&, auto&, auto& c) { c.rows = 1; }), {code::mismatch, argument::c_rows, 1, 2}, "c.rows = 1 must equal 2");
    check(planned([](auto& a, auto&, auto&) { a.col_stride = 2; }), {code::mismatch, argument::a_col_stride, 2, 1}, "a.col_stride = 2 must equal 1");
    const std::array<const float*, 2> pa{o.a.data(), o.a.data() + 8};
    auto two_b = o.vb;
    auto two_c = o.vc;
    two_b.count = two_c.count = 2;
    check(plan->run(hone::pointer_batch<const float>{pa, 2, 4, 4, 1}, two_b, two_c), {code::mismatch, argument::a_batch_stride, 0, 8}, "a.batch_stride = 0 must equal 8");
    const auto one_b = hone::plan({.item = {.m = 2, .n = 3, .k = 4}, .count = 2, .b = 0});
    REQUIRE(one_b.status() == status{});
    const std::array<const float*, 2> pb{o.b.data(), o.b.data() + 12};
    auto two_a = o.va;
    two_a.count = 2;
    check(one_b->run(two_a, hone::pointer_batch<const float>{pb, 4, 3, 3, 1}, two_c), {code::mismatch, argument::b_count, 2, 1}, "b.count = 2 must equal 1");
    const auto stacked = hone::plan({.item = {.m = 2, .n = 3, .k = 4}, .count = 2, .a = 8, .b = 0, .c = 6});
    REQUIRE(stacked.status() == status{});
    auto tall_c = two_c;
    tall_c.rows = 3;
    check(stacked->run(two_a, o.vb[0], tall_c), {code::mismatch, argument::c_rows, 3, 2}, "c.rows = 3 must equal 2");
    auto tall_a = two_a;
    tall_a.rows = 1;
    check(stacked->run(tall_a, o.vb[0], two_c), {code::mismatch, argument::a_rows, 1, 2}, "a.rows = 1 must equal 2");
    check(hone::plan({.item = {.m = 2, .n = 3, .k = 4}, .count = -2}).status(), {code::negative, argument::c_count, -2, 0}, "c.count = -2 must be at least 0");
    check(hone::plan({.item = {.m = 2, .n = 3, .k = 4}, .count = INT64_MAX}).status(), {code::too_large, argument::c_count, INT64_MAX, index_t{1} << 48},
          "c.count = 9223372036854775807 must be at most 281474976710656");
    for (const index_t giant : {index_t{1} << 20, index_t{1} << 31, index_t{1} << 40}) {
        for (const hone::batched_desc& desc : {hone::batched_desc{.item = {.m = giant, .n = giant / 1000, .k = 9}, .count = index_t{1} << 48},
                                               hone::batched_desc{.item = {.m = 3, .n = giant, .k = giant}, .count = index_t{1} << 30, .b = 0}}) {
            test::reverse_executor many(1000);
            const auto huge = hone::plan(desc, {}, hone::identity, {.executor = many});
            if (huge) CHECK((huge->explain().workers >= 1 && huge->scratch_bytes(1000) >= 0));
            else CHECK(huge.status().code == code::too_large);
        }
    }
    CHECK(hone::plan({.item = {.m = 2, .n = -3, .k = 4}, .count = 2}).status() == status{code::negative, argument::n, -3, 0});
    CHECK(hone::plan(hone::batched_desc{.item = {.m = 2, .n = 3, .k = 4}, .count = 2}, {.threads = -1}).status() == status{code::bad_policy, argument::policy_threads, -1, 0});
    // What a stage says of its own.
    const std::vector<float> four(4);
    check(hone::gemm_batched(o.va, o.vb, o.vc, hone::bias(four)), {code::mismatch, argument::epilogue_vector, 4, 3}, "epilogue vector = 4 must equal 3");
    check(hone::gemm_batched(1.0, o.va, o.vb, 1.0, hone::batch_view<float>{o.c.data(), 3, 2, 1, 2, 1, 1}, hone::gated(hone::silu)),
          {code::mismatch, argument::n, 3, 4}, "n = 3 must equal 4");
    CHECK(o.untouched());
}

TEST_CASE("null and misaligned pointers of a batch, and weights of another shape") {
    three_products o;
    check(o.with([](auto& a, auto&, auto&) { a.data = nullptr; }), {code::null_pointer, argument::a_data, 0, 8}, "a.data = 0 must not be null: elements at stake are 8");
    check(o.with([](auto&, auto& b, auto&) { b.data = nullptr; }), {code::null_pointer, argument::b_data, 0, 12}, "b.data = 0 must not be null: elements at stake are 12");
    check(o.with([](auto&, auto&, auto& c) { c.data = nullptr; }), {code::null_pointer, argument::c_data, 0, 6}, "c.data = 0 must not be null: elements at stake are 6");
    const auto off = [](auto* p) { return reinterpret_cast<decltype(p)>(reinterpret_cast<std::uintptr_t>(p) + 2); };
    check(o.with([&](auto& a, auto&, auto&) { a.data = off(a.data); }), {code::misaligned, argument::a_data, 2, 4}, "a.data = 2 must be aligned to bytes 4");
    CHECK(o.with([&](auto&, auto& b, auto&) { b.data = off(b.data); }) == status{code::misaligned, argument::b_data, 2, 4});
    CHECK(o.with([&](auto&, auto&, auto& c) { c.data = off(c.data); }) == status{code::misaligned, argument::c_data, 2, 4});

    std::array<const float*, 3> pa{o.va[0].data, o.va[1].data, o.va[2].data}, pb{o.vb[0].data, o.vb[1].data, o.vb[2].data};
    std::array<float*, 3> pc{o.vc[0].data, o.vc[1].data, o.vc[2].data};
    const auto pointers = [&] {
        return hone::gemm_batched(hone::pointer_batch<const float>{pa, 2, 4, 4, 1}, hone::pointer_batch<const float>{pb, 4, 3, 3, 1}, hone::pointer_batch<float>{pc, 2, 3, 3, 1});
    };
    const auto a1 = pa[1], b2 = pb[2];
    auto* const c0 = pc[0];
    pa[1] = nullptr;
    check(pointers(), {code::null_pointer, argument::a_item, 1, 8}, "a of item = 1 must not be null: elements at stake are 8");
    pa[1] = off(a1);
    CHECK(pointers() == status{code::misaligned, argument::a_data, 2, 4});
    pa[1] = a1;
    pb[2] = nullptr;
    check(pointers(), {code::null_pointer, argument::b_item, 2, 12}, "b of item = 2 must not be null: elements at stake are 12");
    pb[2] = b2;
    pc[0] = nullptr;
    check(pointers(), {code::null_pointer, argument::c_item, 0, 6}, "c of item = 0 must not be null: elements at stake are 6");
    pc[0] = c0;
    CHECK(o.untouched());
    CHECK(pointers() == status{});

    std::fill(o.c.begin(), o.c.end(), 77.0f);
    const auto other = hone::plan({.m = 2, .n = 4, .k = 3});
    REQUIRE(other.status() == status{});
    hone::aligned_buffer memory(static_cast<std::size_t>(other->packed_bytes()));
    REQUIRE(other->pack(hone::row_major<const float>(o.b.data(), 3, 4), {memory.data(), memory.size()}) == status{});
    const auto weights = *hone::packed_view::open({memory.data(), memory.size()});
    check(hone::gemm_batched(o.va, weights, o.vc), {code::corrupt, argument::packed_extent, 3, 4}, "packed extent = 3 does not match what was packed; expected 4");
    check(hone::gemm_batched(o.va, hone::packed_view{}, o.vc), {code::null_pointer, argument::packed_bytes, 0, 1}, "packed.bytes = 0 must not be null: elements at stake are 1");
    hone::aligned_buffer small(64);
    const auto plan = hone::plan({.item = {.m = 200, .n = 300, .k = 100, .b = {1, 100}}, .count = 3, .c = 60000});
    REQUIRE(plan.status() == status{});
    REQUIRE(plan->scratch_bytes() > 64);
    std::vector<float> big(3 * 60000, 1.0f), out(3 * 60000, 77.0f);
    check(plan->run(batch(hone::row_major<const float>(big.data(), 200, 100), 3), hone::col_major<const float>(big.data(), 100, 300), batch(hone::row_major(out.data(), 200, 300), 3),
                    hone::identity, {.scratch = {small.data(), small.size()}}),
          {code::too_small, argument::scratch, 64, plan->scratch_bytes()}, "scratch = 64 is too small; bytes or elements needed are " + std::to_string(plan->scratch_bytes()));
    CHECK(std::all_of(out.begin(), out.end(), [](float x) { return x == 77.0f; }));
    CHECK(o.untouched());
}

TEST_CASE("C of one product over an operand of another") {
    three_products o;
    std::vector<float> x(200, 1.0f);
    const std::vector<float> before = x;
    const auto c_in = [&](index_t at, index_t step) { return batch(hone::row_major(x.data() + at, 2, 3), 3, step); };
    const auto a_in = batch(hone::row_major<const float>(x.data(), 2, 4), 3, 20), b_in = batch(hone::row_major<const float>(x.data(), 4, 3), 3, 20);
    check(hone::gemm_batched(a_in, o.vb, c_in(27, 100)), {code::item_overlap, argument::a_item, 1, 0}, "a of item = 1 shares elements with c of item 0");
    check(hone::gemm_batched(o.va, b_in, c_in(35, 30)), {code::item_overlap, argument::b_item, 2, 0}, "b of item = 2 shares elements with c of item 0");
    check(hone::gemm_batched(a_in, o.vb, c_in(150, -65)), {code::item_overlap, argument::a_item, 1, 2}, "a of item = 1 shares elements with c of item 2");
    // In between, and in place of nothing else.
    CHECK(hone::gemm_batched(a_in, o.vb, c_in(8, 20)) == status{});
    CHECK(hone::gemm_batched(a_in, o.vb, c_in(14, 20)) == status{});
    x = before;
    // One A, or one B, for all.
    check(hone::gemm_batched(hone::row_major<const float>(x.data() + 60, 2, 4), o.vb, c_in(14, 25)), {code::item_overlap, argument::a_item, 0, 2}, "a of item = 0 shares elements with c of item 2");
    check(hone::gemm_batched(o.va, hone::row_major<const float>(x.data() + 38, 4, 3), c_in(14, 25)), {code::item_overlap, argument::b_item, 0, 1}, "b of item = 0 shares elements with c of item 1");
    // Pointers in any order.
    std::array<float*, 4> pc{x.data() + 90, x.data(), x.data() + 60, x.data() + 30};
    const std::array<const float*, 4> pa{o.a.data(), o.a.data(), o.a.data(), o.a.data()}, pb{o.b.data(), o.b.data(), x.data() + 120, o.b.data()};
    const auto pointers = [&](const auto& a, const auto& b) {
        return hone::gemm_batched(hone::pointer_batch<const float>{a, 2, 4, 4, 1}, hone::pointer_batch<const float>{b, 4, 3, 3, 1}, hone::pointer_batch<float>{pc, 2, 3, 3, 1});
    };
    CHECK(pointers(pa, pb) == status{});
    x = before;
    pc[3] = x.data() + 64;
    check(pointers(pa, pb), {code::item_overlap, argument::c_item, 3, 2}, "c of item = 3 shares elements with c of item 2");
    pc[3] = pc[0];
    check(pointers(pa, pb), {code::item_overlap, argument::c_item, 3, 0}, "c of item = 3 shares elements with c of item 0");
    pc[3] = x.data() + 119;
    check(pointers(pa, pb), {code::item_overlap, argument::b_item, 2, 3}, "b of item = 2 shares elements with c of item 3");
    CHECK(x == before);
}

TEST_CASE("overlap of a strided C against an exhaustive search") {
    std::vector<float> arena(4000, 1.0f), y(64, 1.0f);
    random_source source(31);
    int found = 0, free_of_it = 0;
    for (int round = 0; round < (test::quick() ? 2000 : 20000); ++round) {
        const index_t rows = source.between(1, 4), cols = source.between(1, 4), count = source.between(1, 90);
        hone::batch_view<float> c{arena.data() + 2000, count, rows, cols, source.between(-20, 20), source.between(-24, 24), source.between(-24, 24)};
        if (source.bits() % 4 == 0) c.col_stride = count, c.row_stride = count * cols, c.batch_stride = 1;
        std::set<const float*> at;
        bool one = true, all = true;
        for (index_t i = 0; i < count; ++i) {
            for (index_t r = 0; r < rows; ++r) {
                for (index_t j = 0; j < cols; ++j) {
                    const bool fresh = at.insert(c[i].at(r, j)).second;
                    all = all && fresh;
                    if (i == 0) one = one && fresh;
                }
            }
        }
        const auto a = hone::row_major<const float>(y.data(), rows, 1), b = hone::row_major<const float>(y.data(), 1, cols);
        const status s = hone::gemm_batched(a, b, c, hone::map([](auto&, auto) {}));
        const status t = hone::gemm_batched(a, b, c);
        INFO("count " << count << ", " << rows << "x" << cols << " strides " << c.batch_stride << ", " << c.row_stride << ", " << c.col_stride);
        REQUIRE(s == t);
        if (all) REQUIRE(s == status{});
        if (!one) REQUIRE((s.code == code::bad_stride && s.argument != argument::c_batch_stride));
        if (one && !all) REQUIRE(s == (status{code::bad_stride, argument::c_batch_stride, c.batch_stride, s.limit}));
        found += one && !all;
        free_of_it += all;
    }
    CHECK(found > 100);
    CHECK(free_of_it > 100);
}

TEST_CASE("overlap of pointers and groups against an exhaustive search") {
    std::vector<float> arena(3000, 1.0f), y(64, 1.0f);
    random_source source(37);
    int found = 0, free_of_it = 0;
    for (int round = 0; round < (test::quick() ? 1000 : 10000); ++round) {
        const index_t rows = source.between(1, 4), cols = source.between(1, 4), k = source.between(1, 3), count = source.between(1, 14);
        const index_t spread = source.between(1, 3) == 1 ? 150 : 2500;
        const index_t c_row = source.between(std::max(cols, k), 12), a_row = source.between(k, c_row);
        std::vector<float*> pc;
        std::vector<const float*> pa;
        for (index_t i = 0; i < count; ++i) {
            pc.push_back(arena.data() + source.between(0, spread));
            pa.push_back(arena.data() + source.between(0, spread));
        }
        if (source.bits() % 2 == 0) std::sort(pc.begin(), pc.end());
        const auto b = hone::row_major<const float>(y.data(), k, cols);
        std::vector<hone::gemm_group<>> groups;
        for (index_t i = 0; i < count; ++i) {
            const auto u = static_cast<std::size_t>(i);
            groups.push_back({hone::row_major(pa[u], rows, k, a_row), b, hone::row_major(pc[u], rows, cols, c_row)});
        }
        // Which C is where; -1: none.
        std::vector<index_t> owner(arena.size(), -1);
        bool each_other = false, reads = false;
        for (index_t i = 0; i < count; ++i) {
            for (index_t e = 0; e < rows * cols; ++e) {
                index_t& who = owner[static_cast<std::size_t>(groups[static_cast<std::size_t>(i)].c.at(e / cols, e % cols) - arena.data())];
                each_other = each_other || who >= 0;
                who = i;
            }
        }
        for (index_t i = 0; i < count; ++i) {
            for (index_t e = 0; e < rows * k; ++e) reads = reads || owner[static_cast<std::size_t>(groups[static_cast<std::size_t>(i)].a.at(e / k, e % k) - arena.data())] >= 0;
        }
        const std::vector<float> before = arena;
        const status s = hone::gemm_batched(hone::pointer_batch<const float>{pa, rows, k, a_row, 1}, b, hone::pointer_batch<float>{pc, rows, cols, c_row, 1});
        const bool wrote = arena != before;
        arena = before;
        const status g = hone::gemm_grouped(groups);
        INFO("round " << round << ", count " << count << ", " << rows << "x" << cols << "x" << k << " rows of A " << a_row << " of C " << c_row << ": " << s.message().view() << "; "
                      << g.message().view());
        // C of equal strides are compared exactly; A of other strides by the corners, so that only what is certain is found.
        if (each_other) {
            REQUIRE((s.code == code::item_overlap && s.argument == argument::c_item));
            REQUIRE((g.code == code::item_overlap || g.code == code::overlap));
        } else if (reads && (rows == 1 || (a_row == c_row && k == 1 && cols == 1))) {
            REQUIRE((s.code == code::item_overlap && s.argument == argument::a_item));
            REQUIRE((g.code == code::item_overlap || g.code == code::overlap));
        } else if (!reads) {
            REQUIRE(s == status{});
            REQUIRE(g == status{});
        }
        if (!s.ok()) REQUIRE(!wrote);
        if (!g.ok()) REQUIRE(arena == before);
        arena = before;
        found += !s.ok();
        free_of_it += s.ok();
    }
    CHECK(found > 100);
    CHECK(free_of_it > 100);
}

TEST_CASE("groups that are wrong: which of them, and why") {
    std::vector<float> a(100, 1.0f), b(100, 2.0f), c(100, 77.0f);
    const auto make = [&](index_t i) {
        return hone::gemm_group<>{hone::row_major(a.data() + 8 * i, 2, 4), hone::row_major(b.data() + 12 * i, 4, 3), hone::row_major(c.data() + 6 * i, 2, 3)};
    };
    const auto with = [&](index_t at, auto change, index_t want_which) {
        std::vector<hone::gemm_group<>> groups;
        for (index_t i = 0; i < 5; ++i) groups.push_back(make(i));
        change(groups[static_cast<std::size_t>(at)]);
        index_t which = -1;
        const status s = hone::gemm_grouped(groups, {}, &which);
        CHECK(which == want_which);
        CHECK(hone::gemm_grouped(groups) == s);
        return s;
    };
    check(with(3, [](auto& g) { g.a.cols = 5; }, 3), {code::mismatch, argument::b_rows, 4, 5}, "b.rows = 4 must equal 5");
    check(with(0, [](auto& g) { g.a.rows = 1; }, 0), {code::mismatch, argument::a_rows, 1, 2}, "a.rows = 1 must equal 2");
    check(with(1, [](auto& g) { g.b.cols = 2; }, 1), {code::mismatch, argument::b_cols, 2, 3}, "b.cols = 2 must equal 3");
    check(with(2, [](auto& g) { g.c.rows = -1; }, 2), {code::negative, argument::m, -1, 0}, "m = -1 must be at least 0");
    check(with(2, [](auto& g) { g.c.row_stride = 2; }, 2), {code::bad_stride, argument::c_row_stride, 2, 3}, "c.row_stride = 2 makes elements of C coincide; it must be at least 3");
    check(with(4, [](auto& g) { g.a.data = nullptr; }, 4), {code::null_pointer, argument::a_data, 0, 8}, "a.data = 0 must not be null: elements at stake are 8");
    check(with(4, [](auto& g) { g.b.data = nullptr; }, 4), {code::null_pointer, argument::b_data, 0, 12}, "b.data = 0 must not be null: elements at stake are 12");
    check(with(4, [](auto& g) { g.c.data = nullptr; }, 4), {code::null_pointer, argument::c_data, 0, 6}, "c.data = 0 must not be null: elements at stake are 6");
    check(with(3, [&](auto& g) { g.c.data = c.data() + 11; }, 3), {code::item_overlap, argument::c_item, 3, 1}, "c of item = 3 shares elements with c of item 1");
    check(with(2, [&](auto& g) { g.a.data = c.data() + 23; }, 2), {code::item_overlap, argument::a_item, 2, 4}, "a of item = 2 shares elements with c of item 4");
    check(with(2, [&](auto& g) { g.b.data = c.data() + 20; }, 2), {code::item_overlap, argument::b_item, 2, 4}, "b of item = 2 shares elements with c of item 4");
    check(with(2, [&](auto& g) { g.a.data = c.data() + 12; }, 2), {code::overlap, argument::a_data, 1, 0}, "a.data = 1 or more elements shared with C; allowed are 0");
    const auto plan = hone::plan({.m = 2, .n = 4, .k = 3});
    REQUIRE(plan.status() == status{});
    hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
    REQUIRE(plan->pack(hone::row_major<const float>(b.data(), 3, 4), {memory.data(), memory.size()}) == status{});
    check(with(1, [&](auto& g) { g.packed = *hone::packed_view::open({memory.data(), memory.size()}); }, 1), {code::corrupt, argument::packed_extent, 3, 4},
          "packed extent = 3 does not match what was packed; expected 4");
    const std::vector<float> two(2);
    std::vector three{hone::gemm_group{make(0).a, make(0).b, make(0).c, hone::bias(std::span<const float>(a.data(), 3))}};
    three.push_back({make(1).a, make(1).b, make(1).c, hone::bias(two)});
    index_t which = -1;
    check(hone::gemm_grouped(three, {}, &which), {code::mismatch, argument::epilogue_vector, 2, 3}, "epilogue vector = 2 must equal 3");
    CHECK(which == 1);
    check(hone::grouped_scratch_bytes(three).status(), {code::mismatch, argument::epilogue_vector, 2, 3}, "epilogue vector = 2 must equal 3");
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 77.0f; }));

    // Scratch that is too small is refused.
    std::vector<float> big(60000, 1.0f), out(60000, 77.0f);
    const std::array groups{hone::gemm_group{hone::row_major(big.data(), 200, 100), hone::col_major(big.data(), 100, 300), hone::row_major(out.data(), 200, 300)}};
    const auto bytes = hone::grouped_scratch_bytes(groups);
    REQUIRE(bytes.status() == status{});
    hone::aligned_buffer small(64);
    check(hone::gemm_grouped(groups, {.scratch = {small.data(), small.size()}}, &which), {code::too_small, argument::scratch, 64, *bytes},
          "scratch = 64 is too small; bytes or elements needed are " + std::to_string(*bytes));
    CHECK(which == 1);
    CHECK(std::all_of(out.begin(), out.end(), [](float x) { return x == 77.0f; }));
}

// ---- memory

TEST_CASE("batches and groups allocate nothing in the steady state") {
    if (!HONE_TEST_COUNTS_MALLOC) WARN("malloc is not counted here, operator new alone is");
    const auto a = numbers<float>(40 * 40 * 30, 1), b = numbers<float>(40 * 40 * 30, 2);
    std::vector<float> c(40 * 40 * 30);
    const auto bias = numbers<float>(40, 3);
    test::reverse_executor four(4);
    const auto va = batch(hone::row_major<const float>(a.data(), 40, 30), 20), vb = batch(hone::row_major<const float>(b.data(), 30, 40), 20);
    const auto vc = batch(hone::row_major(c.data(), 40, 40), 20);
    std::vector<float*> pointers;
    for (index_t i = 0; i < 20; ++i) pointers.push_back(vc[i * 7 % 20].data);
    const hone::pointer_batch<float> scattered{pointers, 40, 40, 40, 1};
    const auto stages = hone::bias(bias) | hone::gelu;
    const auto by_row = hone::map([](auto& x, auto at) { x = x * static_cast<float>(at.row); });
    std::vector<hone::gemm_group<float, decltype(stages)>> groups;
    for (index_t i = 20; i-- > 0;) {
        const index_t m = i * 7 % 40;
        groups.push_back({hone::row_major(va[i].data, m, 30), vb[i], hone::row_major(vc[i].data, m, 40), stages});
    }
    const auto plan = hone::plan({.item = {.m = 40, .n = 40, .k = 30}, .count = 20}, {}, stages, {.executor = four});
    REQUIRE(plan.status() == status{});
    const auto round = [&] {
        bool ok = hone::gemm_batched(va, vb, vc).ok();
        ok &= hone::gemm_batched(va, vb, scattered, hone::identity, {.executor = four}).ok();
        ok &= hone::gemm_batched(va, vb[0], vc, stages).ok();
        ok &= hone::gemm_batched(va, vb[0], scattered, by_row).ok();
        ok &= plan->run(va, vb, scattered, stages, {.executor = four}).ok();
        ok &= hone::gemm_grouped(groups, {.executor = four}).ok();
        ok &= hone::gemm_grouped(groups).ok();
        ok &= hone::grouped_scratch_bytes(groups, 4).has_value();
        ok &= !hone::gemm_batched(va, va, vc).ok();
        return ok;
    };
    REQUIRE(round());
    const long made = test::allocations.made.load(), freed = test::allocations.freed.load();
    bool ok = true;
    for (int i = 0; i < (test::quick() ? 5 : 100); ++i) ok = ok && round();
    const long more = test::allocations.made.load() - made, given = test::allocations.freed.load() - freed;
    CHECK(ok);
    CHECK(more == 0);
    CHECK(given == 0);
}

TEST_CASE("a batched plan made for one executor runs with another, in scratch of the size it says") {
    const index_t count = 3, m = 70, n = 90, k = 50;
    const auto a = numbers<float>(count * m * k, 1), b = numbers<float>(count * k * n, 2);
    std::vector<float> c(static_cast<std::size_t>(count * m * n)), want = c;
    const auto va = batch(hone::row_major<const float>(a.data(), m, k), count), vb = batch(hone::col_major<const float>(b.data(), k, n), count);
    const auto vc = batch(hone::row_major(c.data(), m, n), count), vw = batch(hone::row_major(want.data(), m, n), count);
    for (index_t i = 0; i < count; ++i) REQUIRE(hone::gemm(va[i], vb[i], vw[i]) == status{});
    for (int made_for : {1, 3, 8}) {
        test::thread_executor planned(made_for);
        const auto plan = hone::plan({.item = {.m = m, .n = n, .k = k, .b = {1, k}}, .count = count}, {.block = {.kc = 16}}, hone::identity, {.executor = planned});
        REQUIRE(plan.status() == status{});
        CHECK(plan->explain().workers == made_for);
        CHECK(plan->explain().scratch_bytes == plan->scratch_bytes(made_for));
        for (int run_with : {1, 2, 8, 32}) {
            test::thread_executor threads(run_with);
            const index_t bytes = plan->scratch_bytes(run_with);
            const guarded<std::byte> memory(bytes);
            std::fill(c.begin(), c.end(), 0.0f);
            INFO("made for " << made_for << ", run with " << run_with);
            REQUIRE(plan->run(va, vb, vc, hone::identity, {.executor = threads, .scratch = {memory.data(), static_cast<std::size_t>(bytes)}}) == status{});
            CHECK(same_bits(c, want));
            CHECK(memory.intact());
            CHECK(threads.most_tasks <= made_for);
        }
        CHECK(plan->scratch_bytes(1 << 30) == plan->scratch_bytes(made_for));
        CHECK(plan->scratch_bytes(-5) == plan->scratch_bytes(1));
    }
    const auto small = hone::plan({.item = {.m = 8, .n = 8, .k = 8}, .count = 100, .c = 64});
    REQUIRE(small.status() == status{});
    CHECK(small->scratch_bytes() == 0);
}
