// SPDX-License-Identifier: BSL-1.0
// Images channels-last. ONNX counts dimensions as (n, c, h, w); from here on an image value's extents are (n, h, w, c),
// and a transpose stands wherever a value crosses between the two orders.
#include <algorithm>
#include <optional>
#include <utility>

#include "passes.hpp"

namespace ocr {

namespace {

const dims_t to_last{0, 2, 3, 1};
const dims_t to_first{0, 3, 1, 2};

dims_t permuted(const dims_t& dims, const dims_t& perm) {
    dims_t out;
    for (const auto p : perm) out.push_back(dims[static_cast<std::size_t>(p)]);
    return out;
}

bool is_image_operator(op kind) {
    return is_any(kind,
                  {op::conv, op::conv_transpose, op::average_pool, op::max_pool, op::global_average_pool, op::resize});
}

bool is_unary(op kind) {
    return is_any(kind, {op::clip, op::hard_sigmoid, op::hard_swish, op::identity, op::relu, op::sigmoid, op::silu,
                         op::sqrt, op::tanh});
}

bool is_binary(op kind) { return is_any(kind, {op::add, op::sub, op::mul, op::div, op::pow}); }

class converter {
public:
    converter(const graph& from, image_order order)
        : from_(from), first_(from.values.size(), -1), last_(from.values.size(), -1) {
        to_.file = from.file;
        to_.opset = from.opset;
        for (const int id : from.inputs) {
            const bool image = from.at(id).dims.size() == 4 && order == image_order::nhwc;
            to_.inputs.push_back(image ? define_last(id) : define_first(id));
        }
    }

    graph run() {
        for (const auto& n : from_.nodes) convert(n);
        for (const int id : from_.outputs) to_.outputs.push_back(first(id));
        return std::move(to_);
    }

private:
    int& slot(std::vector<int>& slots, int id) { return slots[static_cast<std::size_t>(id)]; }

    int define_first(int id) { return slot(first_, id) = to_.add_value(from_.at(id)); }
    int define_last(int id) {
        value v = from_.at(id);
        v.dims = permuted(v.dims, to_last);
        return slot(last_, id) = to_.add_value(std::move(v));
    }

    int emit_transpose(int source, const value& v, const dims_t& perm) {
        node t;
        t.kind = op::transpose;
        t.name = v.name + (perm == to_last ? " (channels last)" : " (channels first)");
        t.attributes["perm"] = perm;
        t.in = {source};
        value moved = v;
        moved.name = t.name;
        moved.dims = permuted(to_.at(source).dims, perm);
        t.out = to_.add_value(std::move(moved));
        to_.nodes.push_back(t);
        return t.out;
    }

    // The value in ONNX order.
    int first(int id) {
        if (id < 0) return -1;
        int& s = slot(first_, id);
        if (s < 0) {
            if (from_.is_constant(id))
                define_first(id);
            else
                s = emit_transpose(slot(last_, id), from_.at(id), to_first);
        }
        return s;
    }

    // The value channels-last. Constants of fewer dimensions are read as images of which the leading extents are 1.
    int last(int id) {
        int& s = slot(last_, id);
        if (s >= 0) return s;
        if (!from_.is_constant(id)) return s = emit_transpose(slot(first_, id), from_.at(id), to_last);
        const constant& c = *from_.at(id).data;
        dims_t d = c.dims;
        d.insert(d.begin(), 4 - d.size(), 1);
        auto moved = std::make_shared<constant>();
        moved->dims = permuted(d, to_last);
        for (std::int64_t i = 0; i < d[0]; ++i)
            for (std::int64_t p = 0; p < d[2] * d[3]; ++p)
                for (std::int64_t k = 0; k < d[1]; ++k)
                    moved->f.push_back(c.f[static_cast<std::size_t>((i * d[1] + k) * d[2] * d[3] + p)]);
        value v = from_.at(id);
        v.dims = moved->dims;
        v.data = std::move(moved);
        return s = to_.add_value(std::move(v));
    }

    bool lies_last(int id) const { return id >= 0 && last_[static_cast<std::size_t>(id)] >= 0; }

    bool runs_on_images(const node& n) const {
        if (is_image_operator(n.kind)) return true;
        if (from_.at(n.out).dims.size() != 4) return false;
        if (is_unary(n.kind)) return lies_last(n.in[0]);
        if (n.kind == op::concat) return std::all_of(n.in.begin(), n.in.end(), [&](int id) { return lies_last(id); });
        if (!is_binary(n.kind)) return false;
        // An operand of fewer dimensions that is computed would have to be expanded first.
        return std::any_of(n.in.begin(), n.in.end(), [&](int id) { return lies_last(id); }) &&
               std::all_of(n.in.begin(), n.in.end(),
                           [&](int id) { return from_.is_constant(id) || from_.at(id).dims.size() == 4; });
    }

    void convert(const node& n) {
        node m = n;
        const bool images = runs_on_images(n);
        for (std::size_t i = 0; i < n.in.size(); ++i) {
            const bool is_sum = std::any_of(n.stages.begin(), n.stages.end(), [i](const stage& s) {
                return s.what == stage::kind::add && s.operand == i;
            });
            const bool image = images && (i == 0 || is_sum || is_binary(n.kind) || n.kind == op::concat);
            m.in[i] = n.in[i] >= 0 && image ? last(n.in[i]) : first(n.in[i]);
        }
        if (images && n.kind == op::concat) {
            const std::int64_t axis = n.integer("axis", 0);
            m.attributes["axis"] =
                std::find(to_last.begin(), to_last.end(), axis < 0 ? axis + 4 : axis) - to_last.begin();
        }
        m.out = images ? define_last(n.out) : define_first(n.out);
        to_.nodes.push_back(std::move(m));
    }

    const graph& from_;
    graph to_;
    std::vector<int> first_, last_;  // ids in to_, or -1 where the value does not exist in that order
};

// The order of the dimensions that are not 1: entry i says which of them output dimension i was.
dims_t bare_permutation(const dims_t& source, const dims_t& perm) {
    dims_t rank(source.size(), 0), bare;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < source.size(); ++i)
        if (source[i] != 1) rank[i] = count++;
    for (const auto p : perm)
        if (source[static_cast<std::size_t>(p)] != 1) bare.push_back(rank[static_cast<std::size_t>(p)]);
    return bare;
}

dims_t without_ones(dims_t d) {
    std::erase(d, 1);
    return d;
}

}  // namespace

graph channels_last(const graph& g, image_order order) { return converter(g, order).run(); }

// A transpose, together with transposes before it and reshapes between them that only add or drop extents of 1, may
// leave every element where it was: then it is a reshape, which costs nothing.
void cancel_transposes(graph& g) {
    for (auto& n : g.nodes) {
        if (n.kind != op::transpose || !n.has("perm")) continue;
        const usage u(g);
        dims_t order = bare_permutation(g.input(n, 0).dims, n.integers("perm", {}));
        int source = n.in[0];
        for (;;) {
            if (std::is_sorted(order.begin(), order.end())) {
                n.kind = op::reshape;
                n.in = {source};
                n.attributes.clear();
                break;
            }
            const int p = u.producer_of(source);
            if (p < 0) break;
            const node& before = g.nodes[static_cast<std::size_t>(p)];
            const dims_t &from = g.input(before, 0).dims, &to = g.at(before.out).dims;
            const bool reshapes =
                before.kind == op::reshape || before.kind == op::squeeze || before.kind == op::unsqueeze;
            if (reshapes && without_ones(from) == without_ones(to)) {
                source = before.in[0];
            } else if (before.kind == op::transpose && before.has("perm")) {
                const dims_t earlier = bare_permutation(from, before.integers("perm", {}));
                for (auto& o : order) o = earlier[static_cast<std::size_t>(o)];
                source = before.in[0];
            } else {
                break;
            }
        }
    }
}

}  // namespace ocr
