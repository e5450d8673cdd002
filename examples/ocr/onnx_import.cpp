// SPDX-License-Identifier: BSL-1.0
#include "onnx_import.hpp"

#include <onnx/onnx_pb.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <unordered_map>
#include <utility>

namespace ocr {

namespace {

// raw_data is little-endian and may be unaligned: memcpy on the hosts this engine supports.
static_assert(std::endian::native == std::endian::little);

template <class From, class To>
void read_raw(const std::string& raw, std::vector<To>& to, std::int64_t count, const std::string& what) {
    if (raw.size() != static_cast<std::size_t>(count) * sizeof(From))
        throw error(what + ": holds " + std::to_string(raw.size()) + " bytes, its extents need " +
                    std::to_string(static_cast<std::size_t>(count) * sizeof(From)));
    to.resize(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < to.size(); ++k) {
        From x;
        std::memcpy(&x, raw.data() + k * sizeof(From), sizeof(From));
        to[k] = static_cast<To>(x);
    }
}

template <class Field, class To>
void read_field(const Field& field, std::vector<To>& to, std::int64_t count, const std::string& what) {
    if (static_cast<std::int64_t>(field.size()) != count)
        throw error(what + ": holds " + std::to_string(field.size()) + " elements, its extents need " +
                    std::to_string(count));
    to.assign(field.begin(), field.end());
}

constant_ptr import_tensor(const onnx::TensorProto& t, const std::string& what) {
    auto c = std::make_shared<constant>();
    c->dims.assign(t.dims().begin(), t.dims().end());
    const std::int64_t count = element_count(c->dims, what);
    if (t.data_location() == onnx::TensorProto::EXTERNAL)
        throw error(what + ": data outside the file is not supported");
    const bool raw = t.has_raw_data();
    switch (t.data_type()) {
        case onnx::TensorProto::FLOAT:
            raw ? read_raw<float>(t.raw_data(), c->f, count, what) : read_field(t.float_data(), c->f, count, what);
            break;
        case onnx::TensorProto::INT64:
            c->type = dtype::i64;
            raw ? read_raw<std::int64_t>(t.raw_data(), c->i, count, what)
                : read_field(t.int64_data(), c->i, count, what);
            break;
        case onnx::TensorProto::INT32:
            c->type = dtype::i64;
            raw ? read_raw<std::int32_t>(t.raw_data(), c->i, count, what)
                : read_field(t.int32_data(), c->i, count, what);
            break;
        default:
            throw error(what + ": element type " + std::to_string(t.data_type()) + " (" +
                        onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(t.data_type())) +
                        ") is not supported");
    }
    return c;
}

attribute import_attribute(const onnx::AttributeProto& a, const std::string& what) {
    switch (a.type()) {
        case onnx::AttributeProto::INT:
            return a.i();
        case onnx::AttributeProto::FLOAT:
            return a.f();
        case onnx::AttributeProto::STRING:
            return a.s();
        case onnx::AttributeProto::INTS:
            return dims_t(a.ints().begin(), a.ints().end());
        case onnx::AttributeProto::FLOATS:
            return std::vector<float>(a.floats().begin(), a.floats().end());
        case onnx::AttributeProto::TENSOR:
            return import_tensor(a.t(), what);
        default:
            throw error(what + ": attribute " + a.name() + " has a type that is not supported");
    }
}

std::size_t required_inputs(op kind) {
    if (kind == op::batch_normalization) return 5;
    return is_any(kind, {op::add, op::sub, op::mul, op::div, op::pow, op::matmul, op::gemm, op::conv,
                         op::conv_transpose, op::reshape})
               ? 2
               : 1;
}

class importer {
public:
    importer(const onnx::ModelProto& model, const std::string& path) : proto_(model.graph()) {
        g_.file = path;
        for (const auto& o : model.opset_import())
            if (o.domain().empty() || o.domain() == "ai.onnx") g_.opset = o.version();
        if (g_.opset < 7 || g_.opset > 17)
            throw error(path + ": operator set " + std::to_string(g_.opset) + " is not one of 7 to 17");
    }

    graph run() {
        for (const auto& t : proto_.initializer())
            define_constant(t.name(), import_tensor(t, where("initializer " + t.name())));
        for (const auto& i : proto_.input())
            if (!ids_.contains(i.name())) import_input(i);
        for (const auto& n : proto_.node()) import_node(n);
        for (const auto& o : proto_.output()) g_.outputs.push_back(lookup(o.name(), where("graph output")));
        if (g_.inputs.empty() || g_.outputs.empty()) throw error(g_.file + ": the graph has no input or no output");
        return std::move(g_);
    }

private:
    std::string where(const std::string& what) const { return g_.file + ": " + what; }

    int define(const std::string& name, value v) {
        v.name = name;
        const int id = g_.add_value(std::move(v));
        if (!ids_.emplace(name, id).second) throw error(where("value " + name + " is defined twice"));
        return id;
    }
    void define_constant(const std::string& name, constant_ptr data) {
        value v;
        v.type = data->type;
        v.dims = data->dims;
        v.data = std::move(data);
        define(name, std::move(v));
    }
    int lookup(const std::string& name, const std::string& what) const {
        const auto it = ids_.find(name);
        if (it == ids_.end()) throw error(what + " reads " + name + ", which nothing before it defines");
        return it->second;
    }

    void import_input(const onnx::ValueInfoProto& i) {
        const auto& t = i.type().tensor_type();
        if (t.elem_type() != onnx::TensorProto::FLOAT) throw error(where("input " + i.name() + " is not f32"));
        value v;
        for (const auto& d : t.shape().dim())
            v.dims.push_back(d.has_dim_value() ? d.dim_value() : -1);  // -1: chosen by the caller
        g_.inputs.push_back(define(i.name(), std::move(v)));
    }

    void import_node(const onnx::NodeProto& p) {
        const std::string label = !p.name().empty() ? p.name() : p.output_size() > 0 ? p.output(0) : std::string("?");
        const std::string what = where("node " + label + " (" + p.op_type() + ")");
        if (!p.domain().empty() && p.domain() != "ai.onnx")
            throw error(what + ": operator domain " + p.domain() + " is unknown");
        if (p.op_type() == "Constant") return import_constant(p, what);
        node n;
        n.name = label;
        if (!op_from_onnx(p.op_type(), n.kind)) throw error(what + ": unknown operator");
        int outputs = 0;
        for (const auto& o : p.output()) outputs += o.empty() ? 0 : 1;
        if (outputs != 1 || p.output(0).empty())
            throw error(what + ": exactly one output is supported, it has " + std::to_string(outputs));
        if (p.input_size() == 0 || p.input(0).empty()) throw error(what + ": has no input");
        for (const auto& a : p.attribute()) n.attributes.emplace(a.name(), import_attribute(a, what));
        for (const auto& i : p.input()) n.in.push_back(i.empty() ? -1 : lookup(i, what));
        const std::size_t required = n.kind == op::concat ? n.in.size() : required_inputs(n.kind);
        for (std::size_t i = 0; i < required; ++i)
            if (!n.has_input(i)) throw error(what + ": input " + std::to_string(i) + " is missing");
        n.out = define(p.output(0), {});
        g_.nodes.push_back(std::move(n));
    }

    void import_constant(const onnx::NodeProto& p, const std::string& what) {
        if (p.output_size() != 1) throw error(what + ": exactly one output is expected");
        for (const auto& a : p.attribute())
            if (a.name() == "value") return define_constant(p.output(0), import_tensor(a.t(), what));
        throw error(what + ": only a tensor `value` is supported");
    }

    const onnx::GraphProto& proto_;
    graph g_;
    std::unordered_map<std::string, int> ids_;
};

}  // namespace

graph import_onnx(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw error(path + ": cannot be opened");
    onnx::ModelProto model;
    // A prefix of a model can still be a valid, emptier message: the graph must be there as well.
    if (!model.ParseFromIstream(&file) || !model.has_graph() || model.graph().node_size() == 0)
        throw error(path + ": is not an ONNX model, or is broken or truncated");
    return importer(model, path).run();
}

}  // namespace ocr
