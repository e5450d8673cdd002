// SPDX-License-Identifier: BSL-1.0
// ONNX files, read with the protobuf classes of the ONNX project.
#pragma once

#include <string>

#include "graph.hpp"

namespace ocr {

// Reads the default operator domain, opsets 7 to 17: one output per node, f32 data, integers for shapes.
// Throws error, naming the file or the node, for anything else, and for broken or truncated files.
graph import_onnx(const std::string& path);

}  // namespace ocr
