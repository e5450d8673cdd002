// SPDX-License-Identifier: BSL-1.0
// Any description, policy and executor, of floats or of doubles: a plan or a refusal. What is small is run in memory of
// exact size, by a plan, by hone::gemm and with B packed, and compared with a plain loop; and run again with one field of
// a view wrong.
#include "fuzz.hpp"

namespace {

using desc = hone::gemm_desc;

hone::strides any_strides(bytes_in& in, index_t rows, index_t cols) {
    switch (in.below(10)) {
        case 0: case 1: return {};
        case 2: return {cols, 1};
        case 3: return {1, rows};
        case 4: return {static_cast<index_t>(static_cast<std::uint64_t>(cols) + in.byte()), 1};
        case 5: return {static_cast<index_t>(2 * static_cast<std::uint64_t>(cols)), 2};
        case 6: return {in.flag() ? 0 : 1, in.flag() ? 0 : 1};
        case 7: return {in.raw<std::int8_t>(), in.raw<std::int8_t>()};
        case 8: return {static_cast<index_t>(0 - static_cast<std::uint64_t>(cols)), in.flag() ? 1 : -1};
        default: return {in.wild(), in.wild()};
    }
}

hone::strides resolved(hone::strides s, index_t cols) { return s == hone::strides{} ? hone::strides{cols, 1} : s; }

template <class T>
struct operand {
    hone::matrix_view<T> view;
    exact_memory memory;
    std::vector<T> before;

    operand(index_t rows, index_t cols, hone::strides s, const span_of_view& span)
        : view{nullptr, rows, cols, s.row, s.col}, memory(span.bytes<T>()) {
        for (index_t i = 0; i < span.count; ++i) memory.as<T>()[i] = std::numeric_limits<T>::quiet_NaN();
        view.data = memory.as<T>() + span.before;
    }
    void fill(values& v) {
        for (index_t i = 0; i < view.rows; ++i) {
            for (index_t j = 0; j < view.cols; ++j) *view.at(i, j) = v.of<T>();
        }
        keep();
    }
    void keep() { before.assign(memory.as<T>(), memory.as<T>() + memory.size() / sizeof(T)); }
    void restore() {
        if (!before.empty()) std::memcpy(memory.data(), before.data(), memory.size());
    }
    bool untouched() const { return before.empty() || std::memcmp(memory.data(), before.data(), memory.size()) == 0; }
};

// What the header of gemm.hpp promises, one element at a time.
template <class T>
void expect(const desc& d, const operand<T>& a, const operand<T>& b, operand<T>& c, const T* bias, bool halves,
            bool biased) {
    const auto alpha = static_cast<T>(d.alpha), beta = static_cast<T>(d.beta);
    const auto product = [&](index_t i, index_t j) {
        T t = 0;
        if (alpha != 0) {
            for (index_t p = 0; p < d.k; ++p) t = std::fma(*a.view.at(i, p), *b.view.at(p, j), t);
        }
        return alpha == 1 || alpha == 0 || d.k == 0 ? t : alpha * t;
    };
    std::vector<T> expected = c.before;
    const T* const got_all = c.memory.template as<T>();
    const index_t base = c.view.data - got_all;
    std::vector<bool> element(expected.size());
    for (index_t i = 0; i < c.view.rows; ++i) {
        for (index_t j = 0; j < c.view.cols; ++j) {
            const auto at = static_cast<std::size_t>(base + i * c.view.row_stride + j * c.view.col_stride);
            T x = product(i, j);
            if (beta != 0) x = std::fma(beta, expected[at], x);
            const auto relu = [](T y) { return y > 0 || std::isnan(y) ? y : T(0); };
            if (halves) x = relu(x) * product(i, j + c.view.cols);
            if (biased) x = relu(x + bias[j]);
            element[at] = true;
            expected[at] = x;
        }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const T got = got_all[i];
        if (element[i] ? same(got, expected[i], false) : std::memcmp(&got, &expected[i], sizeof got) == 0) continue;
        std::fprintf(stderr, "element %zu of C's memory%s: %a, expected %a\n", i, element[i] ? "" : " (in a gap)",
                     static_cast<double>(got), static_cast<double>(expected[i]));
        std::abort();
    }
}

// One field of one view wrong: refused with C untouched, or, where that field is not looked at, computed.
template <class T, class Plan, class E>
void run_wrong(bytes_in& in, const Plan& plan, const E& stages, operand<T>& a, operand<T>& b, operand<T>& c) {
    auto va = a.view, vb = b.view, vc = c.view;
    hone::matrix_view<T>& v = in.below(3) == 0 ? va : in.flag() ? vb : vc;
    const index_t other = in.flag() ? in.wild() : static_cast<index_t>(in.byte()) - 100;
    switch (in.below(5)) {
        case 0: v.rows = other; break;
        case 1: v.cols = other; break;
        case 2: v.row_stride = other; break;
        case 3: v.col_stride = other; break;
        default: v.data = nullptr; break;
    }
    c.restore();
    const hone::status s = plan.run(va, vb, vc, stages);
    if (s.ok()) return;
    check_refusal(s);
    FUZZ_CHECK(c.untouched());
}

template <class T, class E>
void fuzz(bytes_in& in, const desc& d, const hone::policy& p, const E& stages, const T* bias, index_t least_bias,
          bool sane) {
    constexpr bool halves = E::halves, biased = !halves && !std::is_same_v<E, hone::identity_stage>;
    backwards pool{in.below(8) == 0 ? in.raw<int>() : 1 + in.below(5)};
    hone::context context{.executor = pool};
    const auto plan = hone::plan<T>(d, p, stages, context);
    if (!plan) {
        check_refusal(plan.status());
        FUZZ_CHECK(!(sane && p == hone::policy{} && !halves));
        return;
    }
    check_answers(*plan, in, pool.count);

    const index_t m = d.dynamic_m && d.m > 0 && d.m < 4096 ? in.byte() % (d.m + 1) : d.m, c_cols = halves ? d.n / 2 : d.n;
    if (m > 4096 || d.n > 4096 || d.k > 4096 || m * d.n * (d.k + 1) > 60000) return;
    if (biased && d.n > least_bias) return;
    const hone::strides sa = resolved(d.a, d.k), sb = resolved(d.b, d.n), sc = resolved(d.c, c_cols);
    constexpr index_t most = 40000;
    const span_of_view span_a({{m, sa.row}, {d.k, sa.col}}, most), span_b({{d.k, sb.row}, {d.n, sb.col}}, most),
        span_c({{m, sc.row}, {c_cols, sc.col}}, most);
    if (!span_a.fits || !span_b.fits || !span_c.fits) return;

    // native has no fused multiply-add without flags: its sums are those of the loop only where both are exact.
    const bool native = plan->explain().isa == hone::isa::native && !HONE_NATIVE_FMA;
    const auto simple = [](double x) { return x == 1 || x == 0 || x == -1 || x == 0.5 || x == 2; };
    // Relaxed sums are those of the loop where every order is exact.
    const bool exact = native || p.numerics == hone::numerics::relaxed || in.flag();
    if (native && (!simple(d.alpha) || !simple(d.beta))) return;
    values next(in.raw<std::uint16_t>(), exact);
    operand<T> a(m, d.k, sa, span_a), b(d.k, d.n, sb, span_b), c(m, c_cols, sc, span_c);
    a.fill(next);
    b.fill(next);
    c.fill(next);

    exact_memory scratch(static_cast<std::size_t>(plan->scratch_bytes(pool.count)));
    if (in.flag() && scratch.size() > 0) context.scratch = scratch.span();
    check_done(plan->run(a.view, b.view, c.view, stages, context));
    FUZZ_CHECK(a.untouched() && b.untouched());
    expect(d, a, b, c, bias, halves, biased);

    if (p == hone::policy{}) {
        c.restore();
        check_done(hone::gemm(d.alpha, a.view, b.view, d.beta, c.view, stages, hone::context{.executor = pool}));
        FUZZ_CHECK(a.untouched() && b.untouched());
        expect(d, a, b, c, bias, halves, biased);
    }

    if (plan->packed_bytes() < 100000) {
        exact_memory weights(static_cast<std::size_t>(plan->packed_bytes()));
        check_done(plan->pack(b.view, weights.span()));
        const auto packed = hone::packed_view::open(weights.span());
        FUZZ_CHECK(packed && packed->verify().ok());
        exact_memory less(static_cast<std::size_t>(plan->scratch_bytes(pool.count, true)));
        context.scratch = less.size() > 0 ? less.span() : std::span<std::byte>{};
        c.restore();
        check_done(plan->run(a.view, *packed, c.view, stages, context));
        expect(d, a, b, c, bias, halves, biased);
        if (less.size() > 0 && m > 0 && c_cols > 0) {
            context.scratch = {less.data(), less.size() - 1};
            c.restore();
            if (context.scratch.size() > 0) {
                check_refusal(plan->run(a.view, *packed, c.view, stages, context));
                FUZZ_CHECK(c.untouched());
            }
        }
    }
    run_wrong(in, *plan, stages, a, b, c);
}

template <class T>
void fuzz_product(bytes_in& in, int small) {
    desc d{.m = in.extent(small), .n = in.extent(small), .k = in.extent(small)};
    const int epilogue = in.below(4);
    const bool dense = in.flag();
    if (!dense) {
        d.a = any_strides(in, d.m, d.k);
        d.b = any_strides(in, d.k, d.n);
        d.c = any_strides(in, d.m, epilogue == 1 ? d.n / 2 : d.n);
    }
    if (in.flag()) {
        d.alpha = in.number();
        d.beta = in.number();
    }
    d.dynamic_m = in.below(4) == 0;
    hone::policy p = in.policy();
    if (in.below(4) == 0) p.numerics = hone::numerics::relaxed;
    const auto fits = [](index_t x) { return x >= 0 && x < 200; };
    const bool sane = dense && fits(d.m) && fits(d.n) && fits(d.k);
    std::vector<T> bias(200);
    values next(7, true);
    for (T& x : bias) x = next.of<T>();
    if (epilogue == 1) {
        fuzz(in, d, p, hone::gated(hone::relu), bias.data(), 200, sane);
    } else if (epilogue == 2) {
        fuzz(in, d, p, hone::bias(bias.data()) | hone::relu, bias.data(), 200, sane);
    } else {
        fuzz(in, d, p, hone::identity, bias.data(), 200, sane);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bytes_in in(data, size);
    const int kind = in.byte(), small = kind & 1 ? 12 : 70;
    if (kind & 2) fuzz_product<double>(in, small);
    else fuzz_product<float>(in, small);
    return 0;
}
