// SPDX-License-Identifier: BSL-1.0
// Even splits: an extent in blocks, tiles or parts that differ by one unit at most, so that no runt is left at the end.
#pragma once

#include "../core/arithmetic.hpp"
#include "../core/view.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Splits `extent` into equal blocks of at most `block`, a multiple of `unit`.
HONE_INLINE constexpr index_t equal_block(index_t extent, index_t block, index_t unit) {
    if (extent <= 0) return unit;
    return round_up(ceil_div(extent, ceil_div(extent, block)), unit);
}

struct range {
    index_t begin = 0, end = 0;
};

// Part `i` of `parts` of `extent`, in multiples of `unit`; parts differ by one unit at most, spare parts are empty.
HONE_INLINE constexpr range part_of(index_t extent, index_t unit, index_t parts, index_t i) {
    const index_t units = ceil_div(extent, unit), each = units / parts, more = units % parts;
    const index_t begin = i * each + least(i, more), count = each + (i < more ? 1 : 0);
    return {least(begin * unit, extent), least((begin + count) * unit, extent)};
}

// `units` as tiles of at most `most_units`: the first `long_tiles` hold `size` units, the others one less.
struct even_tiles {
    index_t tiles = 0, size = 0, long_tiles = 0;
    HONE_INLINE constexpr even_tiles(index_t units, index_t most_units) {
        if (units <= 0) return;
        tiles = ceil_div(units, most_units);
        size = ceil_div(units, tiles);
        long_tiles = units - tiles * (size - 1);
    }
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
