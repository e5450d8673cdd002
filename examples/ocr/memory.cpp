// SPDX-License-Identifier: BSL-1.0
#include "memory.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "shapes.hpp"

namespace ocr {

namespace {

constexpr std::int64_t line = 64 / sizeof(float);  // elements per cache line
constexpr std::size_t always = std::numeric_limits<std::size_t>::max();

// What several values share: alive from the step that first writes it to the last that reads any of them.
struct buffer {
    std::int64_t size = 0, offset = 0;  // elements
    std::size_t first = 0, last = 0;    // steps
};

bool is_view(op kind) { return is_any(kind, {op::reshape, op::squeeze, op::unsqueeze, op::flatten, op::identity}); }

bool is_elementwise(op kind) {
    return is_any(kind, {op::add, op::sub, op::mul, op::div, op::pow, op::sqrt, op::relu, op::clip, op::sigmoid,
                         op::hard_sigmoid, op::hard_swish, op::silu, op::tanh});
}

// First element of a slice whose elements follow one another in memory; -1 for any other.
std::int64_t contiguous_slice(const graph& g, const node& n) {
    const dims_t& x = g.input(n, 0).dims;
    const slice_range r = slice_of(g, n);
    std::int64_t offset = 0, stride = 1;
    bool whole = true;  // every dimension further in is taken whole, or only one further out has more than one entry
    for (std::size_t i = x.size(); i-- > 0; stride *= x[i]) {
        if (r.step[i] != 1 || (!whole && r.count[i] != 1)) return -1;
        whole = whole && r.count[i] == x[i];
        offset += r.start[i] * stride;
    }
    return offset;
}

class planner {
public:
    explicit planner(const graph& g) : g_(g), buffer_of_(g.values.size(), -1), last_read_(g.values.size(), 0) {
        plan_.places.resize(g.values.size());
        plan_.skipped.resize(g.nodes.size(), false);
        for (std::size_t k = 0; k < g.nodes.size(); ++k)
            for (const int id : g.nodes[k].in)
                if (id >= 0) last_read_[static_cast<std::size_t>(id)] = k;
        for (const int id : g.outputs) last_read_[static_cast<std::size_t>(id)] = always;
        // A view is read as long as the values seen through it: readers come later, so go backwards.
        for (std::size_t k = g.nodes.size(); k-- > 0;) {
            const node& n = g.nodes[k];
            if (!is_view(n.kind) && n.kind != op::slice) continue;
            auto& last = last_read_[static_cast<std::size_t>(n.in[0])];
            last = std::max(last, last_read_[static_cast<std::size_t>(n.out)]);
        }
    }

    memory_plan run() {
        for (std::size_t id = 0; id < g_.values.size(); ++id)
            if (g_.values[id].data != nullptr) plan_.places[id] = {location::where::constant, 0, static_cast<int>(id)};
        for (const int id : g_.inputs) place(id) = {location::where::input, 0, id};
        for (std::size_t k = 0; k < g_.nodes.size(); ++k) assign(k);
        pack();
        for (std::size_t id = 0; id < g_.values.size(); ++id)
            if (buffer_of_[id] >= 0)
                plan_.places[id].offset += buffers_[static_cast<std::size_t>(buffer_of_[id])].offset;
        return std::move(plan_);
    }

private:
    location& place(int id) { return plan_.places[static_cast<std::size_t>(id)]; }
    int& buffer_id(int id) { return buffer_of_[static_cast<std::size_t>(id)]; }
    std::size_t last_read(int id) const { return last_read_[static_cast<std::size_t>(id)]; }

    void share(int out, int in, std::int64_t offset) {
        place(out) = place(in);
        place(out).offset += offset;
        const int b = buffer_id(out) = buffer_id(in);
        if (b >= 0) {
            auto& last = buffers_[static_cast<std::size_t>(b)].last;
            last = std::max(last, last_read(out));
        }
    }

    // Can step k write its result over this operand?
    bool replaceable(const node& n, std::size_t k, std::size_t i) {
        const int id = n.in[i], b = id < 0 ? -1 : buffer_id(id);
        if (b < 0 || buffers_[static_cast<std::size_t>(b)].last > k || g_.at(id).dims != g_.at(n.out).dims)
            return false;
        for (std::size_t j = 0; j < n.in.size(); ++j)
            if (j != i && n.in[j] >= 0 && n.in[j] != id && buffer_id(n.in[j]) == b) return false;
        return true;
    }

    void assign(std::size_t k) {
        const node& n = g_.nodes[k];
        const std::int64_t from = is_view(n.kind) ? 0 : n.kind == op::slice ? contiguous_slice(g_, n) : -1;
        if (from >= 0) {
            share(n.out, n.in[0], from);
            plan_.skipped[k] = true;
            return;
        }
        if (is_elementwise(n.kind))
            for (std::size_t i = 0; i < std::min<std::size_t>(n.in.size(), 2); ++i)
                if (replaceable(n, k, i)) return share(n.out, n.in[i], 0);
        for (const stage& s : n.stages)
            if (s.what == stage::kind::add && n.in[s.operand] != n.in[0] && replaceable(n, k, s.operand))
                return share(n.out, n.in[s.operand], 0);
        const std::int64_t size = element_count(g_.at(n.out).dims, n.name);
        buffer_id(n.out) = static_cast<int>(buffers_.size());
        buffers_.push_back({(size + line - 1) / line * line, 0, k, std::max(k, last_read(n.out))});
    }

    // Largest first, each at the lowest place that no buffer alive at the same time covers (the greedy-by-size strategy
    // of Pisarchyk, Lee: Efficient Memory Management for Deep Neural Net Inference, arXiv 2001.03288).
    void pack() {
        std::vector<std::size_t> order(buffers_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](auto a, auto b) { return buffers_[a].size > buffers_[b].size; });
        std::vector<const buffer*> placed;  // by offset
        std::int64_t end = 0, total = 0;
        for (const auto i : order) {
            buffer& b = buffers_[i];
            for (const buffer* p : placed) {
                if (p->last < b.first || b.last < p->first) continue;
                if (b.offset + b.size <= p->offset) break;
                b.offset = std::max(b.offset, p->offset + p->size);
            }
            placed.insert(std::upper_bound(placed.begin(), placed.end(), &b,
                                           [](auto x, auto y) { return x->offset < y->offset; }),
                          &b);
            end = std::max(end, b.offset + b.size);
            total += b.size;
        }
        plan_.bytes = static_cast<std::size_t>(end) * sizeof(float);
        plan_.bytes_unshared = static_cast<std::size_t>(total) * sizeof(float);
    }

    const graph& g_;
    memory_plan plan_;
    std::vector<int> buffer_of_;          // per value, or -1
    std::vector<std::size_t> last_read_;  // per value: the last step that reads it, itself or through a view
    std::vector<buffer> buffers_;
};

}  // namespace

memory_plan plan_memory(const graph& g) { return planner(g).run(); }

}  // namespace ocr
