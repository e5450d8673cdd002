// SPDX-License-Identifier: BSL-1.0
// What a node's attributes mean for its extents.
#pragma once

#include "graph.hpp"

namespace ocr {

// The window of a convolution or pool over an image of h x w pixels, ONNX attributes resolved (auto_pad, defaults).
struct window {
    std::int64_t kernel_h = 1, kernel_w = 1;
    std::int64_t stride_h = 1, stride_w = 1;
    std::int64_t dilation_h = 1, dilation_w = 1;
    std::int64_t top = 0, left = 0, bottom = 0, right = 0;  // padding
    std::int64_t extra_h = 0, extra_w = 0;                  // output_padding of ConvTranspose
    std::int64_t groups = 1;
    std::int64_t out_h = 0, out_w = 0;
};

// n is conv, conv_transpose, average_pool or max_pool. Throws, naming the node, where the window does not fit.
window window_of(const graph& g, const node& n, std::int64_t h, std::int64_t w);

// A slice made explicit: one entry for each dimension of the input.
struct slice_range {
    dims_t start, step, count;
};
slice_range slice_of(const graph& g, const node& n);

// Axis counted from the front; throws, naming the node, where it is out of range.
std::int64_t resolve_axis(const node& n, std::int64_t axis, std::size_t rank);
// Axes of squeeze, unsqueeze and reduce_mean (attribute, or input 1 where the operator set has it so), resolved and
// sorted.
dims_t axes_of(const graph& g, const node& n, std::size_t rank);
dims_t broadcast(const node& n, const dims_t& a, const dims_t& b);

// Sets the extents and type of n's output from those of its inputs. Throws, naming the node.
void infer_shape(graph& g, const node& n);

}  // namespace ocr
