// SPDX-License-Identifier: BSL-1.0
#include "operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops_hone.hpp"
#include "shapes.hpp"

namespace ocr {

namespace {

using index = std::int64_t;

// A loop nest over `dims` with the strides of up to two operands; neighbouring dimensions that every operand walks
// through alike are merged, so that the innermost loop is as long as the data allow.
struct nest {
    dims_t dims, a, b;

    void merge() {
        for (std::size_t i = dims.size(); i-- > 1;) {
            const bool alike = a[i - 1] == a[i] * dims[i] && b[i - 1] == b[i] * dims[i];
            if (!alike && dims[i] != 1 && dims[i - 1] != 1) continue;
            if (dims[i] == 1) {  // the outer strides are the ones that count
                a[i] = a[i - 1];
                b[i] = b[i - 1];
            }
            dims[i] *= dims[i - 1];
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i) - 1);
            a.erase(a.begin() + static_cast<std::ptrdiff_t>(i) - 1);
            b.erase(b.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
        if (dims.empty()) {
            dims = {1};
            a = b = {0};
        }
    }

    // body(offset into a, offset into b) once for each iteration of all loops but the innermost.
    template <class Body>
    void walk(Body body) const {
        if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
        dims_t at(dims.size(), 0);
        index oa = 0, ob = 0;
        for (;;) {
            body(oa, ob);
            std::size_t i = dims.size() - 1;
            for (;; --i) {
                if (i == 0) return;
                const std::size_t d = i - 1;
                oa += a[d];
                ob += b[d];
                if (++at[d] < dims[d]) break;
                oa -= a[d] * dims[d];
                ob -= b[d] * dims[d];
                at[d] = 0;
            }
        }
    }
};

dims_t dense_strides(const dims_t& dims) {
    dims_t s(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) s[i - 1] = s[i] * dims[i];
    return s;
}

// Strides of an operand that is repeated to fill `out`.
dims_t broadcast_strides(const dims_t& dims, const dims_t& out) {
    const dims_t own = dense_strides(dims);
    dims_t s(out.size(), 0);
    for (std::size_t i = 0; i < dims.size(); ++i) s[out.size() - dims.size() + i] = dims[i] == 1 ? 0 : own[i];
    return s;
}

template <class F>
kernel unary(index count, F f) {
    return {[count, f](const float* const* in, float* out, std::byte*) {
                const float* x = in[0];
                for (index i = 0; i < count; ++i) out[i] = f(x[i]);
            },
            "loop",
            {},
            static_cast<double>(count),
            0};
}

template <class F>
kernel binary(const graph& g, const node& n, F f) {
    const dims_t& dims = g.at(n.out).dims;
    nest loops{dims, broadcast_strides(g.input(n, 0).dims, dims), broadcast_strides(g.input(n, 1).dims, dims)};
    loops.merge();
    const double count = static_cast<double>(element_count(dims, n.name));
    return {[loops, f](const float* const* in, float* out, std::byte*) {
                const index inner = loops.dims.back(), sa = loops.a.back(), sb = loops.b.back();
                loops.walk([&](index oa, index ob) {
                    const float* a = in[0] + oa;
                    const float* b = in[1] + ob;
                    if (sa == 1 && sb == 1) {
                        for (index i = 0; i < inner; ++i) out[i] = f(a[i], b[i]);
                    } else if (sa == 1 && sb == 0) {
                        const float y = *b;
                        for (index i = 0; i < inner; ++i) out[i] = f(a[i], y);
                    } else if (sa == 0 && sb == 1) {
                        const float x = *a;
                        for (index i = 0; i < inner; ++i) out[i] = f(x, b[i]);
                    } else {
                        for (index i = 0; i < inner; ++i) out[i] = f(a[i * sa], b[i * sb]);
                    }
                    out += inner;
                });
            },
            "loop",
            {},
            count,
            0};
}

kernel copy(index count) {
    return {
        [count](const float* const* in, float* out, std::byte*) { std::copy_n(in[0], count, out); }, "copy", {}, 0, 0};
}

// out, dense, = elements of in[0] at `offset` + the given strides.
kernel gather(const dims_t& dims, const dims_t& strides, index offset) {
    nest loops{dims, strides, dims_t(dims.size(), 0)};
    loops.b = loops.a;
    loops.merge();
    return {[loops, offset](const float* const* in, float* out, std::byte*) {
                const index inner = loops.dims.back(), s = loops.a.back();
                loops.walk([&](index o, index) {
                    const float* x = in[0] + offset + o;
                    if (s == 1)
                        std::copy_n(x, inner, out);
                    else
                        for (index i = 0; i < inner; ++i) out[i] = x[i * s];
                    out += inner;
                });
            },
            "copy",
            {},
            0,
            0};
}

kernel make_transpose(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    dims_t reversed(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) reversed[i] = static_cast<index>(x.size() - 1 - i);
    const dims_t own = dense_strides(x);
    dims_t strides;
    for (const auto p : n.integers("perm", reversed)) strides.push_back(own[static_cast<std::size_t>(p)]);
    return gather(g.at(n.out).dims, strides, 0);
}

kernel make_slice(const graph& g, const node& n) {
    const slice_range r = slice_of(g, n);
    dims_t strides = dense_strides(g.input(n, 0).dims);
    index offset = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) {
        offset += r.start[i] * strides[i];
        strides[i] *= r.step[i];
    }
    return gather(r.count, strides, offset);
}

kernel make_concat(const graph& g, const node& n) {
    const dims_t& dims = g.at(n.out).dims;
    const auto axis = static_cast<std::size_t>(resolve_axis(n, n.integer("axis", 0), dims.size()));
    index outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= dims[i];
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    dims_t runs;
    for (std::size_t i = 0; i < n.in.size(); ++i) runs.push_back(g.input(n, i).dims[axis] * inner);
    return {[runs, outer](const float* const* in, float* out, std::byte*) {
                for (index o = 0; o < outer; ++o)
                    for (std::size_t i = 0; i < runs.size(); ++i) {
                        std::copy_n(in[i] + o * runs[i], runs[i], out);
                        out += runs[i];
                    }
            },
            "copy",
            {},
            0,
            0};
}

kernel make_reduce_mean(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    const dims_t axes = axes_of(g, n, x.size());
    dims_t kept = x;
    double divisor = 1;
    for (const auto a : axes) {
        divisor *= static_cast<double>(x[static_cast<std::size_t>(a)]);
        kept[static_cast<std::size_t>(a)] = 1;
    }
    nest loops{x, dense_strides(x), broadcast_strides(kept, x)};
    loops.merge();
    const index count = element_count(kept, n.name);
    const float factor = static_cast<float>(1 / divisor);
    return {[loops, count, factor](const float* const* in, float* out, std::byte*) {
                std::fill_n(out, count, 0.0F);
                const index inner = loops.dims.back(), s = loops.b.back();
                loops.walk([&](index oa, index ob) {
                    const float* x_row = in[0] + oa;
                    float* to = out + ob;
                    if (s == 0) {
                        double sum = 0;
                        for (index i = 0; i < inner; ++i) sum += static_cast<double>(x_row[i]);
                        *to += static_cast<float>(sum);
                    } else {
                        for (index i = 0; i < inner; ++i) to[i * s] += x_row[i];
                    }
                });
                for (index i = 0; i < count; ++i) out[i] *= factor;
            },
            "loop",
            {},
            static_cast<double>(element_count(x, n.name)),
            0};
}

// Along the last axis only: then rows lie one after another. Before operator set 13 everything from the axis on is one
// row.
kernel make_softmax(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    const auto axis = static_cast<std::size_t>(resolve_axis(n, n.integer("axis", g.opset >= 13 ? -1 : 1), x.size()));
    if (g.opset >= 13 && axis + 1 != x.size())
        n.fail("axis " + std::to_string(axis) + " is not the last, which alone is supported");
    index rows = 1, cols = 1;
    for (std::size_t i = 0; i < x.size(); ++i) (i < axis ? rows : cols) *= x[i];
    return {[rows, cols](const float* const* in, float* out, std::byte*) {
                const float* a = in[0];
                for (index r = 0; r < rows; ++r, a += cols, out += cols) {
                    const float highest = cols > 0 ? *std::max_element(a, a + cols) : 0.0F;
                    const float factor = static_cast<float>(1 / exponentials(a, highest, out, cols));
                    for (index c = 0; c < cols; ++c) out[c] *= factor;
                }
            },
            "loop",
            {},
            4 * static_cast<double>(rows * cols),
            0};
}

// Bounds are attributes up to operator set 10, inputs from then on.
kernel make_clip(const graph& g, const node& n, index count) {
    float low = n.number("min", std::numeric_limits<float>::lowest());
    float high = n.number("max", std::numeric_limits<float>::max());
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
        if (!n.has_input(i)) continue;
        const value& v = g.input(n, i);
        if (v.data == nullptr || v.data->f.size() != 1) n.fail("bounds must be single constants");
        (i == 1 ? low : high) = v.data->f[0];
    }
    return unary(count, [low, high](float x) { return std::min(std::max(x, low), high); });
}

}  // namespace

kernel make_operator(const graph& g, const node& n) {
    for (const int id : n.in)
        if (id >= 0 && g.at(id).type != dtype::f32 && g.at(id).data == nullptr)
            n.fail("integers that depend on data are not supported");
    if (g.at(n.out).type != dtype::f32) n.fail("integers that depend on data are not supported");
    const index count = element_count(g.at(n.out).dims, n.name);
    switch (n.kind) {
        case op::add:
            return binary(g, n, [](float a, float b) { return a + b; });
        case op::sub:
            return binary(g, n, [](float a, float b) { return a - b; });
        case op::mul:
            return binary(g, n, [](float a, float b) { return a * b; });
        case op::div:
            return binary(g, n, [](float a, float b) { return a / b; });
        case op::pow:
            if (g.is_constant(n.in[1]) && g.input(n, 1).data->f == std::vector<float>{2.0F})
                return unary(count, [](float x) { return x * x; });
            return binary(g, n, [](float a, float b) { return std::pow(a, b); });
        case op::sqrt:
            return unary(count, [](float x) { return std::sqrt(x); });
        case op::relu:
            return unary(count, [](float x) { return std::max(x, 0.0F); });
        case op::sigmoid:
            return unary(count, [](float x) { return 1 / (1 + std::exp(-x)); });
        case op::tanh:
            return unary(count, [](float x) { return std::tanh(x); });
        case op::silu:
            return unary(count, [](float x) { return x / (1 + std::exp(-x)); });
        case op::hard_swish:
            return unary(count, [](float x) { return x * std::min(std::max(x + 3, 0.0F), 6.0F) / 6; });
        case op::hard_sigmoid: {
            const float alpha = n.number("alpha", 0.2F), beta = n.number("beta", 0.5F);
            return unary(count, [alpha, beta](float x) { return std::min(std::max(alpha * x + beta, 0.0F), 1.0F); });
        }
        case op::clip:
            return make_clip(g, n, count);
        case op::softmax:
            return make_softmax(g, n);
        case op::reduce_mean:
            return make_reduce_mean(g, n);
        case op::concat:
            return make_concat(g, n);
        case op::transpose:
            return make_transpose(g, n);
        case op::slice:
            return make_slice(g, n);
        default:
            break;
    }
    if (is_any(n.kind, {op::identity, op::reshape, op::flatten, op::squeeze, op::unsqueeze, op::cast}))
        return copy(count);
    return make_image_operator(g, n);
}

}  // namespace ocr
