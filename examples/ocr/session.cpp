// SPDX-License-Identifier: BSL-1.0
#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "onnx_import.hpp"

namespace ocr {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t most_bytes = std::size_t{4} << 30;
constexpr std::size_t most_plans = 64;  // widths of text lines are rounded up, so that few documents need more

graph load(const std::string& path) {
    graph g = import_onnx(path);
    try {
        simplify(g);
    } catch (const error& e) {
        throw error(path + ": " + e.what());
    }
    return g;
}

}  // namespace

void session::release::operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{alignment}); }

session::session(const std::string& path, image_order order) : model_(load(path)), order_(order) {}

execution_plan& session::prepare(const dims_t& dims) {
    if (const auto it = plans_.find(dims); it != plans_.end()) return *it->second;
    auto plan = std::make_unique<execution_plan>();
    try {
        plan->g = specialise(model_, dims, order_);
        plan->memory = plan_memory(plan->g);
        for (std::size_t k = 0; k < plan->g.nodes.size(); ++k) {
            if (plan->memory.skipped[k]) continue;
            const node& n = plan->g.nodes[k];
            step s;
            s.k = is_kernel(n.kind) ? make_hone_operator(plan->g, n, weights_) : make_operator(plan->g, n);
            s.node = static_cast<int>(k);
            plan->scratch_bytes = std::max(plan->scratch_bytes, s.k.scratch_bytes);
            plan->steps.push_back(std::move(s));
        }
    } catch (const error& e) {
        const std::string what = e.what();
        throw error(what.starts_with(model_.file) ? what : model_.file + ": " + what);
    }
    const std::size_t needed = plan->memory.bytes + plan->scratch_bytes;
    if (needed > most_bytes)
        throw error(model_.file + ": input " + to_string(dims) + " needs " + std::to_string(needed) +
                    " bytes of working memory, at most " + std::to_string(most_bytes) + " are allowed");
    if (needed > arena_bytes_) {
        arena_.reset();
        arena_bytes_ = 0;
        arena_.reset(static_cast<std::byte*>(::operator new (needed, std::align_val_t{alignment}, std::nothrow)));
        if (arena_ == nullptr)
            throw error(model_.file + ": " + std::to_string(needed) +
                        " bytes of working memory could not be allocated");
        arena_bytes_ = needed;
    }
    if (plans_.size() >= most_plans) plans_.erase(plans_.begin());
    return *(plans_[dims] = std::move(plan));
}

std::vector<tensor_view> session::run(const float* input, const dims_t& dims) {
    execution_plan& plan = prepare(dims);
    float* const arena = reinterpret_cast<float*>(arena_.get());
    std::byte* const scratch = arena_.get() + plan.memory.bytes;
    const auto read = [&](int id) -> const float* {
        if (id < 0) return nullptr;
        const location& l = plan.memory.places[static_cast<std::size_t>(id)];
        switch (l.in) {
            case location::where::constant:
                return plan.g.at(l.holder).data->f.data() + l.offset;
            case location::where::input:
                return input + l.offset;
            case location::where::arena:
                break;
        }
        return arena + l.offset;
    };
    std::vector<const float*> in;
    for (auto& s : plan.steps) {
        const node& n = plan.g.nodes[static_cast<std::size_t>(s.node)];
        in.clear();
        for (const int id : n.in) in.push_back(read(id));
        const auto start = std::chrono::steady_clock::now();
        s.k.run(in.data(), arena + plan.memory.places[static_cast<std::size_t>(n.out)].offset, scratch);
        s.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    ++plan.runs;
    std::vector<tensor_view> out;
    for (std::size_t i = 0; i < plan.g.outputs.size(); ++i) {
        const int id = plan.g.outputs[i];
        out.push_back({read(id), plan.g.at(id).dims, model_.at(model_.outputs[i]).name});
    }
    return out;
}

}  // namespace ocr
