// SPDX-License-Identifier: BSL-1.0
// Whole-number arithmetic of extents and blocks.
#pragma once

#include <cstdint>

#include "view.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

HONE_INLINE constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }
HONE_INLINE constexpr index_t round_up(index_t a, index_t b) { return ceil_div(a, b) * b; }
HONE_INLINE constexpr index_t least(index_t a, index_t b) { return a < b ? a : b; }
HONE_INLINE constexpr index_t most(index_t a, index_t b) { return a > b ? a : b; }
HONE_INLINE constexpr index_t magnitude(index_t a) { return a == INT64_MIN ? INT64_MAX : a < 0 ? -a : a; }

// The product of extents, or the largest number where it does not fit.
template <class... I>
HONE_INLINE constexpr index_t product_of(I... extents) {
    index_t p = 1;
    bool fits = true;
    ((fits = !__builtin_mul_overflow(p, extents, &p) && fits), ...);
    return fits ? p : INT64_MAX;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
