// SPDX-License-Identifier: BSL-1.0
// A model ready to run: one graph per file, one plan per size of input, one arena for all of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "memory.hpp"
#include "ops_hone.hpp"
#include "passes.hpp"

namespace ocr {

struct step {
    kernel k;
    int node = -1;       // index into the plan's graph
    double seconds = 0;  // over all runs
};

// The network for one size of input.
struct execution_plan {
    graph g;
    memory_plan memory;
    std::vector<step> steps;
    std::size_t scratch_bytes = 0;
    long runs = 0;
};

struct tensor_view {
    const float* data = nullptr;
    dims_t dims;
    std::string name;
};

class session {
public:
    // Reads and simplifies the model. `order` is that of image inputs; outputs are as in the file.
    session(const std::string& path, image_order order);

    // Runs on `input` of the given ONNX extents. The views stay valid until the next run.
    std::vector<tensor_view> run(const float* input, const dims_t& dims);

    const std::string& file() const { return model_.file; }
    const std::map<dims_t, std::unique_ptr<execution_plan>>& plans() const { return plans_; }
    std::size_t packed_bytes() const { return weights_.bytes(); }
    std::size_t arena_bytes() const { return arena_bytes_; }

private:
    execution_plan& prepare(const dims_t& dims);

    struct release {
        void operator()(std::byte* p) const;
    };
    using memory = std::unique_ptr<std::byte, release>;

    graph model_;
    image_order order_;
    weight_cache weights_;
    std::map<dims_t, std::unique_ptr<execution_plan>> plans_;
    memory arena_;
    std::size_t arena_bytes_ = 0;
};

}  // namespace ocr
