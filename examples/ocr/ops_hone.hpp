// SPDX-License-Identifier: BSL-1.0
// Convolutions and matrix products: the nodes that hone runs. The only header of the engine behind which hone stands.
#pragma once

#include <memory>
#include <string>

#include "operators.hpp"

namespace ocr {

// Weights packed once, shared by the plans for all sizes of input.
class weight_cache {
public:
    weight_cache();
    ~weight_cache();
    weight_cache(const weight_cache&) = delete;
    weight_cache& operator=(const weight_cache&) = delete;
    std::size_t bytes() const;

    struct storage;
    storage& data() { return *storage_; }

private:
    std::unique_ptr<storage> storage_;
};

// n is conv or conv_transpose on images (n, h, w, c) with weights in ONNX order, or matmul with any number of leading
// dimensions; input 2 is the bias. Throws, naming the node, where hone refuses.
kernel make_hone_operator(const graph& g, const node& n, weight_cache& weights);

// to[i] = exp(from[i] - shift) in hone's vectors, for i < count. Returns the sum.
double exponentials(const float* from, float shift, float* to, std::int64_t count);

// "avx512 (...)": the instruction set in use, and why if it is not the best there is.
std::string describe_isa();

}  // namespace ocr
