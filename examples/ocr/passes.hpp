// SPDX-License-Identifier: BSL-1.0
// Rewriting of graphs. simplify() runs once for a model, specialise() once for each size of input.
#pragma once

#include "graph.hpp"

namespace ocr {

// Folds constants; recognises hard_swish and silu; moves affine operators (batch norms, scalings, shifts) into the
// weights and bias of the convolution or matrix product before them; turns activations after those into stages; drops
// dead nodes.
void simplify(graph& g);

// How the caller hands over images: as the ONNX file says (n, c, h, w), or channels-last (n, h, w, c).
enum class image_order : std::uint8_t { nchw, nhwc };

// A copy for one size of input (ONNX order): every extent known, shape arithmetic folded, sums of two branches turned
// into add stages, images channels-last throughout, transposes that cancel removed. Throws where the size does not fit
// the model.
graph specialise(const graph& g, const dims_t& input, image_order order);

// The pieces of the two, in the files named after them.
void fold_constants(graph& g, bool shapes_known);  // also infers every shape if shapes_known
void remove_dead(graph& g);
void replace_value(graph& g, int from, int to);  // every reader of `from` reads `to`
void find_patterns(graph& g);
void absorb_into_kernels(graph& g);
void absorb_sums(graph& g);
graph channels_last(const graph& g, image_order order);
void cancel_transposes(graph& g);

inline bool is_kernel(op kind) { return is_any(kind, {op::conv, op::conv_transpose, op::matmul}); }

}  // namespace ocr
