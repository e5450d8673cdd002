// SPDX-License-Identifier: BSL-1.0
#include "graph.hpp"

#include <array>
#include <utility>

namespace ocr {

namespace {

constexpr std::array<std::pair<const char*, op>, 34> names{{
    {"Add", op::add},
    {"AveragePool", op::average_pool},
    {"BatchNormalization", op::batch_normalization},
    {"Cast", op::cast},
    {"Clip", op::clip},
    {"Concat", op::concat},
    {"Conv", op::conv},
    {"ConvTranspose", op::conv_transpose},
    {"Div", op::div},
    {"Flatten", op::flatten},
    {"Gemm", op::gemm},
    {"GlobalAveragePool", op::global_average_pool},
    {"HardSigmoid", op::hard_sigmoid},
    {"HardSwish", op::hard_swish},
    {"Identity", op::identity},
    {"MatMul", op::matmul},
    {"MaxPool", op::max_pool},
    {"Mul", op::mul},
    {"Pow", op::pow},
    {"ReduceMean", op::reduce_mean},
    {"Relu", op::relu},
    {"Reshape", op::reshape},
    {"Resize", op::resize},
    {"Shape", op::shape},
    {"Sigmoid", op::sigmoid},
    {"Slice", op::slice},
    {"Softmax", op::softmax},
    {"Sqrt", op::sqrt},
    {"Squeeze", op::squeeze},
    {"Sub", op::sub},
    {"Tanh", op::tanh},
    {"Transpose", op::transpose},
    {"Unsqueeze", op::unsqueeze},
    {"Silu", op::silu},
}};

template <class T>
const T* find(const node& n, std::string_view key) {
    const auto it = n.attributes.find(key);
    if (it == n.attributes.end()) return nullptr;
    const T* p = std::get_if<T>(&it->second);
    if (p == nullptr) n.fail("attribute " + std::string(key) + " has an unexpected type");
    return p;
}

}  // namespace

std::string to_string(const dims_t& dims) {
    std::string s;
    for (const auto d : dims) s += (s.empty() ? "" : "x") + std::to_string(d);
    return s.empty() ? "scalar" : s;
}

std::int64_t element_count(const dims_t& dims, std::string_view what) {
    constexpr std::int64_t most = INT32_MAX;
    std::int64_t n = 1;
    for (const auto d : dims) {
        if (d < 0 || d > most || (d != 0 && n > most / d))
            throw error(std::string(what) + ": extents " + to_string(dims) +
                        " are negative or hold more than 2147483647 elements");
        n *= d;
    }
    return n;
}

const char* op_name(op kind) {
    for (const auto& [name, k] : names)
        if (k == kind) return name;
    return "?";
}

bool op_from_onnx(std::string_view onnx_name, op& kind) {
    for (const auto& [name, k] : names)
        if (k != op::silu && onnx_name == name) {
            kind = k;
            return true;
        }
    return false;
}

const char* stage_name(stage::kind what) {
    switch (what) {
        case stage::kind::affine:
            return "affine";
        case stage::kind::relu:
            return "relu";
        case stage::kind::clip:
            return "clip";
        case stage::kind::hard_sigmoid:
            return "hard_sigmoid";
        case stage::kind::hard_swish:
            return "hard_swish";
        case stage::kind::sigmoid:
            return "sigmoid";
        case stage::kind::silu:
            return "silu";
        case stage::kind::tanh:
            return "tanh";
        case stage::kind::add:
            return "add";
    }
    return "?";
}

std::int64_t node::integer(std::string_view key, std::int64_t otherwise) const {
    const auto* p = find<std::int64_t>(*this, key);
    return p != nullptr ? *p : otherwise;
}
float node::number(std::string_view key, float otherwise) const {
    const auto* p = find<float>(*this, key);
    return p != nullptr ? *p : otherwise;
}
std::string node::text(std::string_view key, std::string_view otherwise) const {
    const auto* p = find<std::string>(*this, key);
    return p != nullptr ? *p : std::string(otherwise);
}
dims_t node::integers(std::string_view key, const dims_t& otherwise) const {
    const auto* p = find<dims_t>(*this, key);
    return p != nullptr ? *p : otherwise;
}

void node::fail(const std::string& why) const { throw error("node " + name + " (" + op_name(kind) + "): " + why); }

int graph::add_value(value v) {
    values.push_back(std::move(v));
    return static_cast<int>(values.size()) - 1;
}

const dims_t& graph::constant_integers(const node& n, std::size_t i) const {
    if (!n.has_input(i)) n.fail("input " + std::to_string(i) + " is missing");
    const value& v = input(n, i);
    if (v.data == nullptr || v.type != dtype::i64)
        n.fail("input " + std::to_string(i) + " (" + v.name + ") must be integers known before the run");
    return v.data->i;
}

usage::usage(const graph& g) : producer(g.values.size(), -1), readers(g.values.size(), 0) {
    for (std::size_t k = 0; k < g.nodes.size(); ++k) {
        producer[static_cast<std::size_t>(g.nodes[k].out)] = static_cast<int>(k);
        for (const int id : g.nodes[k].in)
            if (id >= 0) ++readers[static_cast<std::size_t>(id)];
    }
    for (const int id : g.outputs) ++readers[static_cast<std::size_t>(id)];
}

}  // namespace ocr
