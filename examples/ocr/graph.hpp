// SPDX-License-Identifier: BSL-1.0
// A network as data: values (tensors), nodes (operators) and what a kernel does to its result while it is still in
// registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ocr {

// Everything that can go wrong with a model or a picture; the text names the file or the node.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using dims_t = std::vector<std::int64_t>;

std::string to_string(const dims_t& dims);  // "1x3x48x320"
// Number of elements. Throws, naming `what`, where an extent is negative or the product passes 2^31 - 1.
std::int64_t element_count(const dims_t& dims, std::string_view what);

// The engine computes in f32. Integers occur only as shapes and are constants once the input's extents are known; int32
// and bool are widened on import.
enum class dtype : std::uint8_t { f32, i64 };

struct constant {
    dtype type = dtype::f32;
    dims_t dims;
    std::vector<float> f;         // type f32
    std::vector<std::int64_t> i;  // type i64

    std::int64_t size() const { return static_cast<std::int64_t>(type == dtype::f32 ? f.size() : i.size()); }
};
using constant_ptr = std::shared_ptr<const constant>;

struct value {
    std::string name;
    dtype type = dtype::f32;
    dims_t dims;        // valid once shapes are inferred; always for constants
    constant_ptr data;  // null: computed at run time
};

enum class op : std::uint8_t {
    // as in ONNX
    add, average_pool, batch_normalization, cast, clip, concat, conv, conv_transpose, div, flatten, gemm,
    global_average_pool, hard_sigmoid, hard_swish, identity, matmul, max_pool, mul, pow, reduce_mean, relu, reshape,
    resize, shape, sigmoid, slice, softmax, sqrt, squeeze, sub, tanh, transpose, unsqueeze,
    // made by passes
    silu,
};

const char* op_name(op kind);
inline bool is_any(op kind, std::initializer_list<op> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}
// True and sets `kind` where the engine knows the ONNX operator.
bool op_from_onnx(std::string_view onnx_name, op& kind);

// One step that a convolution or matrix product applies to its result before it is stored.
struct stage {
    enum class kind : std::uint8_t { affine, relu, clip, hard_sigmoid, hard_swish, sigmoid, silu, tanh, add };
    kind what = kind::relu;
    float a = 0, b = 0;        // clip: low, high; hard_sigmoid: alpha, beta
    std::vector<float> scale;  // affine: one element, or one per channel
    std::vector<float> shift;
    std::size_t operand = 0;  // add: index into the node's inputs
};

const char* stage_name(stage::kind what);

using attribute = std::variant<std::int64_t, float, std::string, dims_t, std::vector<float>, constant_ptr>;

struct node {
    op kind = op::identity;
    std::string name;
    std::vector<int> in;  // value ids; -1: optional input left out
    int out = -1;
    std::map<std::string, attribute, std::less<>> attributes;
    std::vector<stage> stages;

    bool has(std::string_view key) const { return attributes.find(key) != attributes.end(); }
    std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
    float number(std::string_view key, float otherwise) const;
    std::string text(std::string_view key, std::string_view otherwise) const;
    dims_t integers(std::string_view key, const dims_t& otherwise) const;
    bool has_input(std::size_t i) const { return i < in.size() && in[i] >= 0; }

    // Throws with this node's operator and name in front.
    [[noreturn]] void fail(const std::string& why) const;
};

struct graph {
    std::string file;
    std::int64_t opset = 0;
    std::vector<value> values;
    std::vector<node> nodes;  // in an order in which they can run
    std::vector<int> inputs, outputs;

    int add_value(value v);
    const value& at(int id) const { return values[static_cast<std::size_t>(id)]; }
    value& at(int id) { return values[static_cast<std::size_t>(id)]; }
    bool is_constant(int id) const { return id >= 0 && at(id).data != nullptr; }
    const value& input(const node& n, std::size_t i) const { return at(n.in[i]); }
    // The integers of a constant input; throws, naming the node, where it depends on data.
    const dims_t& constant_integers(const node& n, std::size_t i) const;
};

// Who makes and who reads each value; a graph output counts as one more reader.
struct usage {
    explicit usage(const graph& g);
    std::vector<int> producer;  // node index, or -1
    std::vector<int> readers;   // count

    int producer_of(int id) const { return id < 0 ? -1 : producer[static_cast<std::size_t>(id)]; }
    int readers_of(int id) const { return readers[static_cast<std::size_t>(id)]; }
};

}  // namespace ocr
