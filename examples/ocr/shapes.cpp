// SPDX-License-Identifier: BSL-1.0
#include "shapes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ocr {

namespace {

// Of a window's side, stride, dilation or padding: far above any real model, far below overflow.
constexpr std::int64_t longest = 4096;

std::int64_t pair_at(const node& n, const dims_t& v, std::size_t i, const char* what, std::int64_t least) {
    if (v.size() != 2)
        n.fail(std::string(what) + " has " + std::to_string(v.size()) +
               " entries, only two-dimensional windows are supported");
    if (v[i] < least || v[i] > longest) n.fail(std::string(what) + " = " + std::to_string(v[i]) + " is out of range");
    return v[i];
}

dims_t kernel_shape(const graph& g, const node& n) {
    if (n.kind == op::average_pool || n.kind == op::max_pool) return n.integers("kernel_shape", {});
    if (!n.has_input(1) || !g.is_constant(n.in[1])) n.fail("weights must be constant");
    const dims_t& w = g.input(n, 1).dims;
    if (w.size() != 4)
        n.fail("weights have extents " + to_string(w) + ", only two-dimensional convolutions are supported");
    return {w[2], w[3]};
}

// Output extent and padding along one side.
std::int64_t place(const node& n, std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                   std::int64_t& before, std::int64_t& after, const std::string& auto_pad) {
    const std::int64_t reach = (kernel - 1) * dilation + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
        const std::int64_t out = (size + stride - 1) / stride;
        const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * stride + reach - size);
        before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        after = total - before;
    } else if (auto_pad == "VALID") {
        before = after = 0;
    } else if (auto_pad != "NOTSET") {
        n.fail("auto_pad = " + auto_pad + " is unknown");
    }
    const std::int64_t span = size + before + after - reach;
    if (span < 0)
        n.fail("window of " + std::to_string(reach) + " pixels does not fit an image side of " + std::to_string(size) +
               " pixels");
    return (n.integer("ceil_mode", 0) != 0 ? span + stride - 1 : span) / stride + 1;
}

std::int64_t place_transposed(const node& n, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                              std::int64_t dilation, std::int64_t before, std::int64_t after, std::int64_t extra) {
    const std::int64_t out = (size - 1) * stride + (kernel - 1) * dilation + 1 + extra - before - after;
    if (out < 1) n.fail("output would have " + std::to_string(out) + " pixels on one side");
    return out;
}

const dims_t& image(const graph& g, const node& n) {
    const dims_t& d = g.input(n, 0).dims;
    if (d.size() != 4) n.fail("input has extents " + to_string(d) + ", an image batch (n, c, h, w) is needed");
    return d;
}

dims_t infer_conv(const graph& g, const node& n) {
    const dims_t& x = image(g, n);
    const window win = window_of(g, n, x[2], x[3]);
    const dims_t& w = g.input(n, 1).dims;
    const bool transposed = n.kind == op::conv_transpose;
    const std::int64_t channels = transposed ? w[0] : w[1] * win.groups;
    if (x[1] != channels)
        n.fail("input has " + std::to_string(x[1]) + " channels, the weights need " + std::to_string(channels));
    if (w[0] % win.groups != 0) n.fail("channels are not a multiple of group = " + std::to_string(win.groups));
    const std::int64_t out_c = transposed ? w[1] * win.groups : w[0];
    if (n.has_input(2) && (!g.is_constant(n.in[2]) || g.input(n, 2).dims != dims_t{out_c}))
        n.fail("bias must be constant with " + std::to_string(out_c) + " elements");
    return {x[0], out_c, win.out_h, win.out_w};
}

// transA and transB (of Gemm, or set by a pass) exchange the last two dimensions of an operand.
dims_t infer_matmul(const graph& g, const node& n) {
    dims_t a = g.input(n, 0).dims, b = g.input(n, 1).dims;
    if (a.size() < 2 || b.size() < 2)
        n.fail("operands need at least two dimensions, they are " + to_string(a) + " and " + to_string(b));
    if (n.integer("transA", 0) != 0) std::swap(a[a.size() - 1], a[a.size() - 2]);
    if (n.integer("transB", 0) != 0) std::swap(b[b.size() - 1], b[b.size() - 2]);
    if (a[a.size() - 1] != b[b.size() - 2]) n.fail("inner extents differ: " + to_string(a) + " times " + to_string(b));
    dims_t out = broadcast(n, dims_t(a.begin(), a.end() - 2), dims_t(b.begin(), b.end() - 2));
    out.push_back(a[a.size() - 2]);
    out.push_back(b[b.size() - 1]);
    return out;
}

dims_t infer_reshape(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    dims_t out = g.constant_integers(n, 1);
    const std::int64_t total = element_count(x, n.name);
    std::int64_t known = 1;
    int open = -1;
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] == 0 && n.integer("allowzero", 0) == 0) {
            if (i >= x.size()) n.fail("dimension " + std::to_string(i) + " of " + to_string(x) + " cannot be copied");
            out[i] = x[i];
        }
        if (out[i] == -1) {
            if (open >= 0) n.fail("two dimensions are left open");
            open = static_cast<int>(i);
            continue;
        }
        if (out[i] < 0 || (out[i] != 0 && known > INT32_MAX / out[i])) n.fail("shape " + to_string(out) + " is absurd");
        known *= out[i];
    }
    if (open >= 0) {
        if (known == 0 || total % known != 0) n.fail(to_string(x) + " cannot take the shape " + to_string(out));
        out[static_cast<std::size_t>(open)] = total / known;
    }
    if (element_count(out, n.name) != total) n.fail(to_string(x) + " cannot take the shape " + to_string(out));
    return out;
}

dims_t infer_resize(const graph& g, const node& n) {
    const dims_t& x = image(g, n);
    if (n.text("mode", "nearest") != "nearest")
        n.fail("mode " + n.text("mode", "") + " is not supported, only nearest");
    if (g.opset >= 11 && (n.text("coordinate_transformation_mode", "half_pixel") != "asymmetric" ||
                          n.text("nearest_mode", "round_prefer_floor") != "floor"))
        n.fail("only asymmetric coordinates rounded down are supported");
    const std::size_t scales_at = g.opset >= 11 ? 2 : 1;
    dims_t out = x;
    if (n.has_input(3)) {
        out = g.constant_integers(n, 3);
        if (out.size() != 4) n.fail("sizes must have four entries");
    } else {
        if (!n.has_input(scales_at) || !g.is_constant(n.in[scales_at]) || g.input(n, scales_at).data->f.size() != 4)
            n.fail("scales must be four constants");
        const auto& s = g.input(n, scales_at).data->f;
        for (std::size_t i = 0; i < 4; ++i) {
            if (!(s[i] > 0 && s[i] <= 1024)) n.fail("scale " + std::to_string(s[i]) + " is out of range");
            out[i] = static_cast<std::int64_t>(std::floor(static_cast<double>(x[i]) * static_cast<double>(s[i])));
        }
    }
    if (out[0] != x[0] || out[1] != x[1]) n.fail("only height and width can be resized");
    for (const std::size_t i : {std::size_t{2}, std::size_t{3}})
        if (x[i] == 0 || out[i] < 1 || out[i] % x[i] != 0)
            n.fail("only whole factors are supported, not " + to_string(x) + " to " + to_string(out));
    return out;
}

dims_t infer_concat(const graph& g, const node& n) {
    dims_t out = g.input(n, 0).dims;
    const auto axis = static_cast<std::size_t>(resolve_axis(n, n.integer("axis", 0), out.size()));
    for (std::size_t i = 1; i < n.in.size(); ++i) {
        dims_t d = g.input(n, i).dims;
        if (d.size() != out.size()) n.fail("ranks differ: " + to_string(out) + " and " + to_string(d));
        const std::int64_t along = d[axis];
        d[axis] = out[axis];
        if (d != out) n.fail("extents differ: " + to_string(out) + " and " + to_string(g.input(n, i).dims));
        out[axis] += along;
    }
    return out;
}

dims_t infer_axes(const graph& g, const node& n, const dims_t& x) {
    dims_t out;
    if (n.kind == op::unsqueeze) {
        const dims_t axes = axes_of(
            g, n, x.size() + (n.has_input(1) ? g.constant_integers(n, 1).size() : n.integers("axes", {}).size()));
        std::size_t from = 0;
        for (std::size_t i = 0; i < x.size() + axes.size(); ++i)
            out.push_back(std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end() ? 1
                                                                                                          : x[from++]);
        return out;
    }
    const dims_t axes = axes_of(g, n, x.size());
    const bool keep = n.kind == op::reduce_mean && n.integer("keepdims", 1) != 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool listed = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
        if (listed && n.kind == op::squeeze && x[i] != 1)
            n.fail("dimension " + std::to_string(i) + " of " + to_string(x) + " is not 1");
        if (!listed)
            out.push_back(x[i]);
        else if (keep)
            out.push_back(1);
    }
    return out;
}

dims_t infer_transpose(const node& n, const dims_t& x) {
    dims_t reversed(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) reversed[i] = static_cast<std::int64_t>(x.size() - 1 - i);
    const dims_t perm = n.integers("perm", reversed);
    dims_t sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size() || i < x.size(); ++i)
        if (sorted.size() != x.size() || sorted[i] != static_cast<std::int64_t>(i))
            n.fail("perm is not a permutation of " + std::to_string(x.size()) + " dimensions");
    dims_t out;
    for (const auto p : perm) out.push_back(x[static_cast<std::size_t>(p)]);
    return out;
}

// Data and weights are f32, and operands that meet have one type.
void check_types(const graph& g, const node& n) {
    const bool kernel = is_any(n.kind, {op::conv, op::conv_transpose, op::matmul, op::gemm});
    if (!kernel && !is_any(n.kind, {op::add, op::sub, op::mul, op::div, op::pow, op::concat})) return;
    for (std::size_t i = 0; i < n.in.size(); ++i) {
        if (!n.has_input(i)) continue;
        const dtype type = g.input(n, i).type;
        if (type != (kernel ? dtype::f32 : g.input(n, 0).type))
            n.fail("input " + std::to_string(i) + " has the wrong element type");
    }
}

// Element types by their numbers in onnx::TensorProto::DataType.
dtype cast_target(const node& n) {
    const std::int64_t to = n.integer("to", 0);
    if (to == 1) return dtype::f32;
    if (to != 6 && to != 7) n.fail("element type " + std::to_string(to) + " is not supported");
    return dtype::i64;
}

// Extents of the output; also sets its type where that is not the input's.
dims_t infer_dims(const graph& g, const node& n, dtype& type) {
    const dims_t& x = g.input(n, 0).dims;
    if (is_any(n.kind, {op::add, op::sub, op::mul, op::div, op::pow})) {
        if (!n.has_input(1)) n.fail("needs two inputs");
        return broadcast(n, x, g.input(n, 1).dims);
    }
    if (is_any(n.kind, {op::conv, op::conv_transpose})) return infer_conv(g, n);
    if (is_any(n.kind, {op::matmul, op::gemm})) return infer_matmul(g, n);
    if (is_any(n.kind, {op::reduce_mean, op::squeeze, op::unsqueeze})) return infer_axes(g, n, x);
    if (is_any(n.kind, {op::average_pool, op::max_pool})) {
        const dims_t& i = image(g, n);
        const window win = window_of(g, n, i[2], i[3]);
        return {i[0], i[1], win.out_h, win.out_w};
    }
    switch (n.kind) {
        case op::concat:
            return infer_concat(g, n);
        case op::global_average_pool:
            return {image(g, n)[0], x[1], 1, 1};
        case op::reshape:
            return infer_reshape(g, n);
        case op::resize:
            return infer_resize(g, n);
        case op::slice:
            return slice_of(g, n).count;
        case op::transpose:
            return infer_transpose(n, x);
        case op::cast:
            type = cast_target(n);
            return x;
        case op::shape:
            type = dtype::i64;
            return {static_cast<std::int64_t>(x.size())};
        case op::softmax:
            resolve_axis(n, n.integer("axis", g.opset >= 13 ? -1 : 1), x.size());
            return x;
        case op::flatten: {
            const std::int64_t axis = n.integer("axis", 1), rank = static_cast<std::int64_t>(x.size());
            const std::ptrdiff_t at = axis == rank ? rank : resolve_axis(n, axis, x.size());
            return {element_count(dims_t(x.begin(), x.begin() + at), n.name),
                    element_count(dims_t(x.begin() + at, x.end()), n.name)};
        }
        default:
            return x;  // one element in, one out
    }
}

}  // namespace

window window_of(const graph& g, const node& n, std::int64_t h, std::int64_t w) {
    window win;
    const dims_t k = kernel_shape(g, n), s = n.integers("strides", {1, 1}), d = n.integers("dilations", {1, 1});
    win.kernel_h = pair_at(n, k, 0, "kernel_shape", 1);
    win.kernel_w = pair_at(n, k, 1, "kernel_shape", 1);
    win.stride_h = pair_at(n, s, 0, "strides", 1);
    win.stride_w = pair_at(n, s, 1, "strides", 1);
    win.dilation_h = pair_at(n, d, 0, "dilations", 1);
    win.dilation_w = pair_at(n, d, 1, "dilations", 1);
    win.groups = n.integer("group", 1);
    if (win.groups < 1 || win.groups > INT32_MAX) n.fail("group = " + std::to_string(win.groups) + " is out of range");
    const dims_t pads = n.integers("pads", {0, 0, 0, 0});
    if (pads.size() != 4) n.fail("pads has " + std::to_string(pads.size()) + " entries, four are needed");
    for (const auto p : pads)
        if (p < 0 || p > longest) n.fail("pads = " + std::to_string(p) + " is out of range");
    win.top = pads[0];
    win.left = pads[1];
    win.bottom = pads[2];
    win.right = pads[3];
    const std::string auto_pad = n.text("auto_pad", "NOTSET");
    if (n.kind == op::conv_transpose) {
        if (auto_pad != "NOTSET" || n.has("output_shape")) n.fail("auto_pad and output_shape are not supported here");
        const dims_t extra = n.integers("output_padding", {0, 0});
        win.extra_h = pair_at(n, extra, 0, "output_padding", 0);
        win.extra_w = pair_at(n, extra, 1, "output_padding", 0);
        win.out_h =
            place_transposed(n, h, win.kernel_h, win.stride_h, win.dilation_h, win.top, win.bottom, win.extra_h);
        win.out_w =
            place_transposed(n, w, win.kernel_w, win.stride_w, win.dilation_w, win.left, win.right, win.extra_w);
    } else {
        win.out_h = place(n, h, win.kernel_h, win.stride_h, win.dilation_h, win.top, win.bottom, auto_pad);
        win.out_w = place(n, w, win.kernel_w, win.stride_w, win.dilation_w, win.left, win.right, auto_pad);
    }
    return win;
}

std::int64_t resolve_axis(const node& n, std::int64_t axis, std::size_t rank) {
    const auto r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r)
        n.fail("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " dimensions");
    return axis < 0 ? axis + r : axis;
}

dims_t axes_of(const graph& g, const node& n, std::size_t rank) {
    dims_t axes = n.has_input(1) ? g.constant_integers(n, 1) : n.integers("axes", {});
    if (axes.empty() && n.kind == op::reduce_mean)
        for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    if (axes.empty() && n.kind == op::squeeze) {
        const dims_t& x = g.input(n, 0).dims;
        for (std::size_t i = 0; i < rank; ++i)
            if (x[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
    }
    for (auto& a : axes) a = resolve_axis(n, a, rank);
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) n.fail("an axis is listed twice");
    return axes;
}

slice_range slice_of(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    const bool inputs = n.in.size() > 1;
    const dims_t starts = inputs ? g.constant_integers(n, 1) : n.integers("starts", {});
    const dims_t ends = inputs ? g.constant_integers(n, 2) : n.integers("ends", {});
    dims_t axes = n.has_input(3) ? g.constant_integers(n, 3) : n.integers("axes", {});
    if (axes.empty())
        for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    const dims_t steps = n.has_input(4) ? g.constant_integers(n, 4) : dims_t(starts.size(), 1);
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        n.fail("starts, ends, axes and steps have different lengths");
    slice_range r{dims_t(x.size(), 0), dims_t(x.size(), 1), x};
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto axis = static_cast<std::size_t>(resolve_axis(n, axes[i], x.size()));
        if (steps[i] < 1 || steps[i] > INT32_MAX)
            n.fail("step " + std::to_string(steps[i]) + " is not supported, only positive ones");
        const std::int64_t size = x[axis];
        const auto from_front = [size](std::int64_t at) {
            return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
        };
        r.start[axis] = from_front(starts[i]);
        r.step[axis] = steps[i];
        r.count[axis] = (std::max<std::int64_t>(0, from_front(ends[i]) - r.start[axis]) + steps[i] - 1) / steps[i];
    }
    return r;
}

dims_t broadcast(const node& n, const dims_t& a, const dims_t& b) {
    dims_t out(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            n.fail("extents " + to_string(a) + " and " + to_string(b) + " do not broadcast");
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

void infer_shape(graph& g, const node& n) {
    check_types(g, n);
    value& v = g.at(n.out);
    v.type = g.input(n, 0).type;
    v.dims = infer_dims(g, n, v.type);
    element_count(v.dims, "node " + n.name + " (" + op_name(n.kind) + ")");
}

}  // namespace ocr
