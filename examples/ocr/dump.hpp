// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace ocr {

// Runs one ONNX model on raw little-endian f32 (extents as in "1x3x48x320", order as in the file) and writes its
// outputs, one after the other, in the same form. Prints one line of JSON per output: name, dims.
void dump_output(const std::string& model, const std::string& dims, const std::string& input,
                 const std::string& output);

}  // namespace ocr
