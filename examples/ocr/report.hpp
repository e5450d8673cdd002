// SPDX-License-Identifier: BSL-1.0
// What ran, and how long it took.
#pragma once

#include <vector>

#include "session.hpp"

namespace ocr {

// One table for each model and size of input: operator, shapes, kernel chosen, time, GFLOP/s of every node.
void print_profile(const std::vector<const session*>& sessions);

// The instruction set in use, and each kernel that ran with the number of nodes it ran for.
void print_kernels(const std::vector<const session*>& sessions);

}  // namespace ocr
