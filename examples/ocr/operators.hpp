// SPDX-License-Identifier: BSL-1.0
// Nodes made ready to run. Values are dense f32; images lie channels-last (n, h, w, c).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "graph.hpp"

namespace ocr {

struct kernel {
    // in: one pointer per input of the node (null where it is left out); scratch: scratch_bytes, 64-byte aligned.
    std::function<void(const float* const* in, float* out, std::byte* scratch)> run;
    std::string chosen;  // which code runs: hone's kernel, tile and blocks from explain(), or "loop" or "copy"
    std::string name;    // hone's kernel and tile alone; empty for loops
    double flops = 0;    // one multiply-add counts as two
    std::size_t scratch_bytes = 0;
};

// Every operator except the convolutions and matrix products, as loops that compilers vectorise.
kernel make_operator(const graph& g, const node& n);

// Pools and resizing (used by make_operator).
kernel make_image_operator(const graph& g, const node& n);

}  // namespace ocr
