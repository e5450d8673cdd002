// SPDX-License-Identifier: BSL-1.0
// Constant folding, dead code, and the order of the passes.
#include <algorithm>
#include <utility>

#include "operators.hpp"
#include "passes.hpp"
#include "shapes.hpp"

namespace ocr {

namespace {

// Shape arithmetic works on lists of integers.
std::vector<std::int64_t> evaluate_integers(const graph& g, const node& n) {
    const auto list = [&](std::size_t i) -> const std::vector<std::int64_t>& {
        if (g.input(n, i).dims.size() > 1) n.fail("integers of more than one dimension are not supported");
        return g.constant_integers(n, i);
    };
    switch (n.kind) {
        case op::concat: {
            std::vector<std::int64_t> all;
            for (std::size_t i = 0; i < n.in.size(); ++i) all.insert(all.end(), list(i).begin(), list(i).end());
            return all;
        }
        case op::slice: {
            const slice_range r = slice_of(g, n);
            std::vector<std::int64_t> picked;
            for (std::int64_t k = 0; k < r.count.at(0); ++k)
                picked.push_back(list(0)[static_cast<std::size_t>(r.start[0] + k * r.step[0])]);
            return picked;
        }
        case op::add:
        case op::sub:
        case op::mul:
        case op::div: {
            const auto &a = list(0), &b = list(1);
            const std::size_t count = a.empty() || b.empty() ? 0 : std::max(a.size(), b.size());
            std::vector<std::int64_t> result(count);
            for (std::size_t k = 0; k < count; ++k) {
                const std::int64_t x = a[a.size() == 1 ? 0 : k], y = b[b.size() == 1 ? 0 : k];
                std::int64_t& r = result[k];
                const bool failed = n.kind == op::add   ? __builtin_add_overflow(x, y, &r)
                                    : n.kind == op::sub ? __builtin_sub_overflow(x, y, &r)
                                    : n.kind == op::mul ? __builtin_mul_overflow(x, y, &r)
                                                        : y == 0 || (x == INT64_MIN && y == -1);
                if (failed) n.fail("overflows or divides by zero");
                if (n.kind == op::div) r = x / y;
            }
            return result;
        }
        default:
            n.fail("is not supported on integers");
    }
}

bool moves_nothing(op kind) {
    return is_any(kind, {op::identity, op::reshape, op::flatten, op::squeeze, op::unsqueeze});
}

constant_ptr evaluate(const graph& g, const node& n) {
    const value& out = g.at(n.out);
    auto c = std::make_shared<constant>();
    c->type = out.type;
    c->dims = out.dims;
    const value& x = g.input(n, 0);
    if (n.kind == op::shape) {
        c->i = x.dims;
    } else if (moves_nothing(n.kind)) {
        c->f = x.data->f;
        c->i = x.data->i;
    } else if (n.kind == op::cast) {
        for (const auto v : x.data->i) {
            if (c->type == dtype::i64)
                c->i.push_back(v);
            else
                c->f.push_back(static_cast<float>(v));
        }
        for (const auto v : x.data->f) {
            if (c->type == dtype::f32)
                c->f.push_back(v);
            else if (v > -9.0e18F && v < 9.0e18F)
                c->i.push_back(static_cast<std::int64_t>(v));
            else
                n.fail("a value does not fit an integer");
        }
    } else if (c->type == dtype::i64) {
        c->i = evaluate_integers(g, n);
    } else {
        const kernel k = make_operator(g, n);
        std::vector<const float*> in;
        for (const int id : n.in)
            in.push_back(id >= 0 && g.at(id).type == dtype::f32 ? g.at(id).data->f.data() : nullptr);
        c->f.resize(static_cast<std::size_t>(element_count(c->dims, n.name)));
        std::vector<std::byte> scratch(k.scratch_bytes + 64);
        const auto misalignment = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
        k.run(in.data(), c->f.data(), scratch.data() + (64 - misalignment) % 64);
    }
    return c;
}

// Image operators expect channels-last data, which constants are not.
bool foldable(const graph& g, const node& n) {
    if (is_any(n.kind, {op::conv, op::conv_transpose, op::matmul, op::gemm, op::batch_normalization, op::average_pool,
                        op::max_pool, op::global_average_pool, op::resize}))
        return false;
    return std::all_of(n.in.begin(), n.in.end(), [&](int id) { return id < 0 || g.is_constant(id); });
}

}  // namespace

void fold_constants(graph& g, bool shapes_known) {
    std::vector<node> kept;
    kept.reserve(g.nodes.size());
    for (auto& n : g.nodes) {
        const bool fold = foldable(g, n) || (n.kind == op::shape && shapes_known);
        if (fold || shapes_known) infer_shape(g, n);
        if (fold)
            g.at(n.out).data = evaluate(g, n);
        else
            kept.push_back(std::move(n));
    }
    g.nodes = std::move(kept);
}

void remove_dead(graph& g) {
    std::vector<bool> needed(g.values.size(), false);
    for (const int id : g.outputs) needed[static_cast<std::size_t>(id)] = true;
    std::vector<node> kept;
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
        if (!needed[static_cast<std::size_t>(n->out)]) continue;
        for (const int id : n->in)
            if (id >= 0) needed[static_cast<std::size_t>(id)] = true;
        kept.push_back(std::move(*n));
    }
    std::reverse(kept.begin(), kept.end());
    g.nodes = std::move(kept);
    for (std::size_t id = 0; id < needed.size(); ++id)
        if (!needed[id]) g.values[id].data.reset();
}

void replace_value(graph& g, int from, int to) {
    for (auto& n : g.nodes) std::replace(n.in.begin(), n.in.end(), from, to);
    std::replace(g.outputs.begin(), g.outputs.end(), from, to);
}

void simplify(graph& g) {
    fold_constants(g, false);
    find_patterns(g);
    absorb_into_kernels(g);
    remove_dead(g);
}

graph specialise(const graph& source, const dims_t& input, image_order order) {
    graph g = source;
    if (g.inputs.size() != 1)
        throw error(g.file + ": has " + std::to_string(g.inputs.size()) + " inputs, one is supported");
    value& v = g.at(g.inputs[0]);
    bool fits = v.dims.size() == input.size();
    for (std::size_t i = 0; fits && i < input.size(); ++i)
        fits = input[i] >= 1 && (v.dims[i] == input[i] || v.dims[i] < 0);
    if (!fits) {
        std::string wanted;
        for (const auto d : v.dims)
            wanted += (wanted.empty() ? "" : "x") + (d < 0 ? std::string("?") : std::to_string(d));
        throw error(g.file + ": input " + v.name + " must have the extents " + wanted + ", not " + to_string(input));
    }
    element_count(input, g.file + ": input " + v.name);
    v.dims = input;
    fold_constants(g, true);
    remove_dead(g);
    absorb_sums(g);
    absorb_into_kernels(g);
    g = channels_last(g, order);
    cancel_transposes(g);
    remove_dead(g);
    return g;
}

}  // namespace ocr
