// SPDX-License-Identifier: BSL-1.0
// Where every value of a specialised graph lies: one arena, shared by values that are never alive together.
#pragma once

#include <cstddef>
#include <vector>

#include "graph.hpp"

namespace ocr {

struct location {
    enum class where : std::uint8_t { constant, input, arena };
    where in = where::arena;
    std::int64_t offset = 0;  // elements from the start of the constant, the input or the arena
    int holder = -1;          // constant, input: the value whose memory this is
};

struct memory_plan {
    std::vector<location> places;    // one per value
    std::vector<bool> skipped;       // one per node: its result already lies where its input does
    std::size_t bytes = 0;           // of the arena
    std::size_t bytes_unshared = 0;  // if every value that needs memory had its own
};

// Offsets are multiples of 64 bytes. A reshape or a contiguous slice is its input; an elementwise operator, and a
// kernel that adds a value to its result, write over an operand that nobody reads later.
memory_plan plan_memory(const graph& g);

}  // namespace ocr
