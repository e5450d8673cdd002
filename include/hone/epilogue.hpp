// SPDX-License-Identifier: BSL-1.0
// What happens to a sum on its way to C: stages as plain values, joined left to right in the order they run.
//
//   hone::gemm(a, b, c, hone::bias(v) | hone::gelu);
//   hone::gemm(a, b, c, hone::scale(0.5f) | hone::map([=](auto& x, auto at) { x = x * s + at.cols(t); }));
//
// A stage is any copyable type derived from hone::stage with
//     template <class V, class At> void operator()(V& x, const At& at) const;
// x is a vec<T, W> of W consecutive columns of one row, at says which: only the first at.lanes lanes are stored, what the
// others hold does not matter. It runs inside the kernel's own target region, so no flags and no attributes are needed.
// Each operation is rounded as written: x * s + t is two roundings on every ISA, hone::fma(x, s, t) is one.
//
// Stages hold pointers, not copies: what they point to must live until the call returns, and must not overlap C, except
// that add(view) and mul(view) may be given C itself. They may be called from several threads at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "config.hpp"
#include "core/access.hpp"
#include "core/math.hpp"
#include "core/status.hpp"
#include "core/vec.hpp"
#include "core/view.hpp"

HONE_STRICT_MATH_BEGIN

namespace hone::inline HONE_ABI {

// Where in C a vector of W columns lies. For a convolution a row is an output pixel, counted through n, h and w.
template <class T, int W>
struct place {
    index_t row = 0, col = 0;
    index_t n = 0, h = 0, w = 0;  // convolution only; else 0
    int lanes = W;                // how many of the W columns exist

    // p[col .. col + lanes): a vector with one element per column of C.
    template <class U>
    HONE_INLINE vec<T, W> cols(const U* p) const {
        return load_as<T, W>(p + col, lanes);
    }
    // p[row] in every lane: a vector with one element per row of C.
    template <class U>
    HONE_INLINE vec<T, W> rows(const U* p) const {
        return vec<T, W>::set(detail::element_as<T>(p[row]));
    }
    // v(row, col .. col + lanes).
    template <class U>
    HONE_INLINE vec<T, W> load(const matrix_view<U>& v) const {
        const auto* p = v.at(row, col);
        return v.col_stride == 1 ? load_as<T, W>(p, lanes) : gather_as<T, W>(p, v.col_stride, lanes);
    }
    // v(n, h, w, col .. col + lanes): for convolutions.
    template <class U>
    HONE_INLINE vec<T, W> load(const image_view<U>& v) const {
        const auto* p = v.at(n, h, w, col);
        return v.c_stride == 1 ? load_as<T, W>(p, lanes) : gather_as<T, W>(p, v.c_stride, lanes);
    }
};

// What a stage will be applied to; it checks its own extents against it before anything is written.
struct epilogue_extent {
    index_t rows = 0, cols = 0;          // where the stage stands: of the product, or of C behind a stage that halves the columns
    index_t n = 0, h = 0, w = 0;         // convolution only
    bool image = false;
};

// Base of every stage: nothing to check, nothing thrown, C keeps its own type.
struct stage {
    static constexpr bool nothrow = true;
    static constexpr bool halves = false;      // true: takes two vectors, n / 2 columns apart, and leaves one: C has n / 2 columns
    static constexpr bool whole_rows = false;  // true: sees each row from its first column to its last, so only rows are split
    static constexpr bool may_view_c = false;  // true: may read elements of C as they were, so no partial sum may be put there
    template <class T>
    using stored = T;

    // Copying is the user's own so that every ABI passes stages by hidden reference: on AArch64 GCC otherwise notes, for
    // each stage of a few doubles, that C++17 passes a class with an empty base as C++14 did.
    constexpr stage() = default;
    HONE_INLINE constexpr stage(const stage&) {}
    HONE_INLINE constexpr stage& operator=(const stage&) { return *this; }

    HONE_INLINE constexpr hone::status check(const epilogue_extent&) const { return {}; }
};

template <class S>
concept is_stage = std::derived_from<S, stage> && std::copy_constructible<S>;

// No stage: C is alpha * A * B + beta * C.
struct identity_stage : stage {
    template <class V, class At>
    HONE_INLINE void operator()(V&, const At&) const {}
};
inline constexpr identity_stage identity{};

namespace detail {

// The element type C is given: that of the last store_as in the chain, or the type of the sums.
template <class A, class B, class T>
using stored_by = std::conditional_t<std::is_same_v<typename B::template stored<T>, T>, typename A::template stored<T>,
                                     typename B::template stored<T>>;

}  // namespace detail

// Two stages, one after the other.
template <is_stage A, is_stage B>
struct chain : stage {
    A first;
    B second;

    HONE_INLINE constexpr chain(const A& a, const B& b) : first(a), second(b) {}
    static constexpr bool nothrow = A::nothrow && B::nothrow;
    static constexpr bool halves = A::halves || B::halves;
    static constexpr bool whole_rows = A::whole_rows || B::whole_rows;
    static_assert(!(A::halves && B::halves), "an epilogue can halve the number of columns once");
    static_assert(!(A::whole_rows && B::halves), "a stage that sees whole rows stands behind the one that halves the columns");
    static constexpr bool may_view_c = A::may_view_c || B::may_view_c;
    template <class T>
    using stored = detail::stored_by<A, B, T>;

    HONE_INLINE constexpr hone::status check(epilogue_extent e) const {
        const hone::status s = first.check(e);
        if (!s.ok()) return s;
        if constexpr (A::halves) e.cols /= 2;
        return second.check(e);
    }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        first(x, at);
        second(x, at);
    }
    // Where some stage halves the columns: y is n / 2 columns to the right of x; the result is x.
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at_x, V& y, const At& at_y) const {
        if constexpr (A::halves) {
            first(x, at_x, y, at_y);
            second(x, at_x);
        } else {
            first(x, at_x);
            first(y, at_y);
            second(x, at_x, y, at_y);
        }
    }
};

template <is_stage A, is_stage B>
HONE_INLINE constexpr chain<A, B> operator|(const A& a, const B& b) {
    return {a, b};
}

// One element per column of C: a pointer and, where it is known, the number of elements.
template <class U>
struct column_vector {
    const U* data = nullptr;
    index_t size = -1;  // -1: not known, the caller answers for it

    HONE_INLINE constexpr hone::status check(const epilogue_extent& e) const {
        if (size >= 0 && size != e.cols) return {code::mismatch, argument::epilogue_vector, size, e.cols};
        if (data == nullptr && e.rows > 0 && e.cols > 0) return {code::null_pointer, argument::epilogue_vector, 0, e.cols};
        return detail::check_aligned(data, argument::epilogue_vector);
    }
};

namespace detail {

template <class R>
concept contiguous_range = requires(const R& r) {
    { *r.data() };
    { r.size() } -> std::convertible_to<std::size_t>;
};

template <contiguous_range R>
using element_of = std::remove_cvref_t<decltype(*std::declval<const R&>().data())>;

template <contiguous_range R>
HONE_INLINE constexpr auto columns_of(const R& r) {
    return column_vector<element_of<R>>{r.data(), static_cast<index_t>(r.size())};
}

HONE_INLINE constexpr hone::status check_view(index_t rows, index_t cols, const void* data, const epilogue_extent& e) {
    if (rows != e.rows) return {code::mismatch, argument::epilogue_view, rows, e.rows};
    if (cols != e.cols) return {code::mismatch, argument::epilogue_view, cols, e.cols};
    if (data == nullptr && rows > 0 && cols > 0) return {code::null_pointer, argument::epilogue_view, 0, rows};
    return {};
}

template <class U>
HONE_INLINE constexpr hone::status check_against(const matrix_view<U>& v, const epilogue_extent& e) {
    const hone::status s = check_view(v.rows, v.cols, v.data, e);
    return s.ok() ? check_aligned(v.data, argument::epilogue_view) : s;
}
template <class U>
HONE_INLINE constexpr hone::status check_against(const image_view<U>& v, const epilogue_extent& e) {
    if (!e.image) return {code::unsupported, argument::epilogue_view, 4, 2};
    if (v.n != e.n) return {code::mismatch, argument::epilogue_view, v.n, e.n};
    if (v.h != e.h) return {code::mismatch, argument::epilogue_view, v.h, e.h};
    if (v.w != e.w) return {code::mismatch, argument::epilogue_view, v.w, e.w};
    const hone::status s = check_view(e.rows, v.c, v.data, e);
    return s.ok() ? check_aligned(v.data, argument::epilogue_view) : s;
}

}  // namespace detail

// x * factor.
struct scale_stage : stage {
    double factor;
    HONE_INLINE constexpr explicit scale_stage(double f) : factor(f) {}
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        x = x * V::set(static_cast<typename V::element>(factor));
    }
};
HONE_INLINE constexpr scale_stage scale(double factor) { return scale_stage(factor); }

struct plus {
    template <class V>
    static HONE_INLINE V of(const V& x, const V& y) {
        return x + y;
    }
};
struct times {
    template <class V>
    static HONE_INLINE V of(const V& x, const V& y) {
        return x * y;
    }
};

// Op(x, v[column]).
template <class U, class Op>
struct columns_stage : stage {
    column_vector<U> v;
    HONE_INLINE constexpr explicit columns_stage(column_vector<U> u) : v(u) {}
    HONE_INLINE constexpr hone::status check(const epilogue_extent& e) const { return v.check(e); }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        x = Op::of(x, at.cols(v.data));
    }
};

// Op(x, view(row, column)), or Op(x, image(n, h, w, column)).
template <class View, class Op>
struct view_stage : stage {
    static constexpr bool may_view_c = true;
    View view;
    HONE_INLINE constexpr explicit view_stage(const View& v) : view(v) {}
    HONE_INLINE constexpr hone::status check(const epilogue_extent& e) const { return detail::check_against(view, e); }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        x = Op::of(x, at.load(view));
    }
};

// x * v[column]. From anything contiguous (its length must equal n), or from a pointer to n elements.
template <detail::contiguous_range R>
HONE_INLINE constexpr auto scale(const R& v) {
    return columns_stage<detail::element_of<R>, times>(detail::columns_of(v));
}
template <class U>
HONE_INLINE constexpr auto scale(const U* v) {
    return columns_stage<U, times>(column_vector<U>{v, -1});
}

// x + v[column]. From anything contiguous (its length must equal n), or from a pointer to n elements.
template <detail::contiguous_range R>
HONE_INLINE constexpr auto bias(const R& v) {
    return columns_stage<detail::element_of<R>, plus>(detail::columns_of(v));
}
template <class U>
HONE_INLINE constexpr auto bias(const U* v) {
    return columns_stage<U, plus>(column_vector<U>{v, -1});
}

// x + view(row, column), or x + image(n, h, w, column). The view may be C itself.
template <class U>
HONE_INLINE constexpr auto add(const matrix_view<U>& v) {
    return view_stage<matrix_view<const U>, plus>(v);
}
template <class U>
HONE_INLINE constexpr auto add(const image_view<U>& v) {
    return view_stage<image_view<const U>, plus>(v);
}

// x * view(row, column), or x * image(n, h, w, column). The view may be C itself.
template <class U>
HONE_INLINE constexpr auto mul(const matrix_view<U>& v) {
    return view_stage<matrix_view<const U>, times>(v);
}
template <class U>
HONE_INLINE constexpr auto mul(const image_view<U>& v) {
    return view_stage<image_view<const U>, times>(v);
}

// max(x, 0); NaN stays NaN.
struct relu_stage : stage {
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        x = max(x, V::set(0));
    }
};
inline constexpr relu_stage relu{};

// min(max(x, low), high); NaN stays NaN. low must not exceed high.
struct clip_stage : stage {
    double low, high;
    HONE_INLINE constexpr clip_stage(double l, double h) : low(l), high(h) {}
    HONE_INLINE constexpr hone::status check(const epilogue_extent&) const {
        if (low <= high) return {};
        const auto whole = [](double x) { return x > -9e18 && x < 9e18 ? static_cast<index_t>(x) : 0; };  // NaN and beyond: 0
        return {code::too_large, argument::epilogue_bounds, whole(low), whole(high)};
    }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        using E = typename V::element;
        x = min(max(x, V::set(static_cast<E>(low))), V::set(static_cast<E>(high)));
    }
};
HONE_INLINE constexpr clip_stage clip(double low, double high) { return {low, high}; }

// Stages that are functions of one number can be called on a vector too: y = hone::sigmoid(x).
template <class Self>
struct unary_stage : stage {
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        x = Self::of(x);
    }
    template <class T, int N>
    HONE_INLINE vec<T, N> operator()(const vec<T, N>& x) const {
        return Self::of(x);
    }
};

// 1 / (1 + exp(-x)).
struct sigmoid_stage : unary_stage<sigmoid_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        return vectors::sigmoid(x);
    }
};
inline constexpr sigmoid_stage sigmoid{};

struct tanh_stage : unary_stage<tanh_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        return vectors::tanh(x);
    }
};
inline constexpr tanh_stage tanh{};

// x * sigmoid(x).
struct silu_stage : unary_stage<silu_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        return x * vectors::sigmoid(x);
    }
};
inline constexpr silu_stage silu{};

// x / 2 * (1 + erf(x / sqrt(2))). Hendrycks, Gimpel: Gaussian Error Linear Units, arXiv 1606.08415.
struct gelu_stage : unary_stage<gelu_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        using E = typename V::element;
        const V half = x * V::set(static_cast<E>(0.5));
        return half + half * erf(x * V::set(static_cast<E>(0.70710678118654752440)));
    }
};
inline constexpr gelu_stage gelu{};

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))): the approximation of the same paper.
struct gelu_tanh_stage : unary_stage<gelu_tanh_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        using E = typename V::element;
        const V cube = x * x * x * V::set(static_cast<E>(0.044715));
        const V half = x * V::set(static_cast<E>(0.5));
        return half + half * vectors::tanh((x + cube) * V::set(static_cast<E>(0.79788456080286535588)));
    }
};
inline constexpr gelu_tanh_stage gelu_tanh{};

// clip(alpha * x + beta, 0, 1), with the alpha and beta of ONNX HardSigmoid.
struct hard_sigmoid_stage : stage {
    double alpha = 0.2, beta = 0.5;
    HONE_INLINE constexpr hard_sigmoid_stage(double a = 0.2, double b = 0.5) : alpha(a), beta(b) {}
    HONE_INLINE constexpr hard_sigmoid_stage operator()(double a, double b) const { return {a, b}; }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        using E = typename V::element;
        x = min(max(x * V::set(static_cast<E>(alpha)) + V::set(static_cast<E>(beta)), V::set(0)), V::set(1));
    }
};
inline constexpr hard_sigmoid_stage hard_sigmoid{};

// x * clip(x / 6 + 1 / 2, 0, 1). Howard et al.: Searching for MobileNetV3, arXiv 1905.02244.
struct hard_swish_stage : unary_stage<hard_swish_stage> {
    template <class V>
    static HONE_INLINE V of(const V& x) {
        using E = typename V::element;
        const V gate = x * V::set(static_cast<E>(1.0 / 6.0)) + V::set(static_cast<E>(0.5));
        return x * min(max(gate, V::set(0)), V::set(1));
    }
};
inline constexpr hard_swish_stage hard_swish{};

// Stages with a second output of one number a row, of float or double.
template <class U>
struct row_output_stage : stage {
    static_assert(std::is_same_v<U, float> || std::is_same_v<U, double>, "a row output is of float or double");
    static constexpr bool whole_rows = true;
    U* out;
    HONE_INLINE constexpr explicit row_output_stage(U* o) : out(o) {}
    HONE_INLINE constexpr hone::status check(const epilogue_extent& e) const {
        if (out == nullptr && e.rows > 0 && e.cols > 0) return {code::null_pointer, argument::epilogue_vector, 0, e.rows};
        return detail::check_aligned(out, argument::epilogue_vector);
    }
};

// A second output: the largest x of each row as it stands at this stage, out[row]. Any NaN in a row makes it NaN. The rows of
// a convolution are its output pixels. out has as many elements as C has rows and must not overlap C; like C it is
// unspecified where the call fails half-way. Work is split along rows only.
template <class U>
struct row_max_stage : row_output_stage<U> {
    using row_output_stage<U>::out;
    HONE_INLINE constexpr explicit row_max_stage(U* o) : row_output_stage<U>(o) {}
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        auto largest = at.col == 0 ? x[0] : static_cast<typename V::element>(out[at.row]);
        for (int i = 0; i < V::size && i < at.lanes; ++i) {
            if (!(x[i] <= largest) && largest == largest) largest = x[i];
        }
        out[at.row] = static_cast<U>(largest);
    }
};
template <class U>
HONE_INLINE constexpr row_max_stage<U> row_max(U* out) {
    return row_max_stage<U>(out);
}

// A second output: the sum of each row as it stands at this stage, out[row], as one chain of rounded additions from +0 over the
// columns in ascending order. It costs an addition's latency (4 cycles) a column: little beside k of 256 and more.
template <class U>
struct row_sum_stage : row_output_stage<U> {
    using row_output_stage<U>::out;
    HONE_INLINE constexpr explicit row_sum_stage(U* o) : row_output_stage<U>(o) {}
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        U sum = at.col == 0 ? U(0) : out[at.row];
        for (int i = 0; i < V::size && i < at.lanes; ++i) sum = sum + static_cast<U>(x[i]);
        out[at.row] = sum;
    }
};
template <class U>
HONE_INLINE constexpr row_sum_stage<U> row_sum(U* out) {
    return row_sum_stage<U>(out);
}

// f(x[j]) * x[j + n / 2]: a gated linear unit over the two halves of the product's columns; C has n / 2 of them. f is a stage
// that is a function of one number: gated(silu), gated(gelu), gated(sigmoid). Stages before it see all n columns, stages
// behind it n / 2. Shazeer: GLU Variants Improve Transformer, arXiv 2002.05202.
template <is_stage F>
struct gated_stage : stage {
    static constexpr bool halves = true;
    static constexpr bool nothrow = F::nothrow;
    static constexpr bool may_view_c = F::may_view_c;
    static_assert(!F::halves && !F::whole_rows, "gated() takes a stage that keeps the number of columns and sees no whole rows");
    F f;
    HONE_INLINE constexpr explicit gated_stage(const F& g) : f(g) {}
    HONE_INLINE constexpr hone::status check(epilogue_extent e) const {
        if (e.cols % 2 != 0) return {code::mismatch, argument::n, e.cols, e.cols + 1};
        e.cols /= 2;
        return f.check(e);
    }
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at_x, V& y, const At&) const {
        f(x, at_x);
        x = x * y;
    }
};
template <is_stage F>
HONE_INLINE constexpr gated_stage<F> gated(const F& f) {
    return gated_stage<F>(f);
}

// Rounds to nearest even into C's element type U (bf16, f16, float, double). The last stage of a chain.
template <class U>
struct store_as_stage : stage {
    template <class T>
    using stored = U;
    template <class V, class At>
    HONE_INLINE void operator()(V&, const At&) const {}
};
template <class U>
HONE_INLINE constexpr store_as_stage<U> store_as() {
    return {};
}

// A function of the user's own: f(x, at) changes x in place. It may capture, call other functions, and throw (then C is
// unspecified and the exception leaves the call that ran the epilogue).
template <std::copy_constructible F>
struct map_stage : stage {
    F f;
    HONE_INLINE constexpr explicit map_stage(const F& g) : f(g) {}
    static constexpr bool nothrow = std::is_nothrow_invocable_v<const F&, vec<float, 4>&, const place<float, 4>&>;
    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        f(x, at);
    }
};
template <std::copy_constructible F>
HONE_INLINE constexpr map_stage<F> map(const F& f) {
    return map_stage<F>(f);
}

namespace detail {

// Whether E throws nothing where the sums are of type T: a function of the user's own is only asked about the vectors it meets.
template <class E, class T>
inline constexpr bool nothrow_of = E::nothrow;
template <class A, class B, class T>
inline constexpr bool nothrow_of<chain<A, B>, T> = nothrow_of<A, T> && nothrow_of<B, T>;
template <class F, class T>
inline constexpr bool nothrow_of<gated_stage<F>, T> = nothrow_of<F, T>;
template <class F>
inline constexpr bool nothrow_of<map_stage<F>, double> =
    std::is_nothrow_invocable_v<const F&, vec<double, 4>&, const place<double, 4>&>;

}  // namespace detail

}  // namespace hone::inline HONE_ABI

HONE_STRICT_MATH_END
