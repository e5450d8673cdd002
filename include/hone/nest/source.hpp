// SPDX-License-Identifier: BSL-1.0
// A source is where a nest finds rows of A. For a tile of rows it says where each row of each run of k begins; the register
// tile reads them there. GEMM, convolution and whatever converts or gathers rows differ in their source, not in their kernel.
#pragma once

#include <concepts>

#include "../core/view.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// fill(first, height, padded, rows) writes rows[r * padded + i], the first element of run r of row first + i, for i below
// height, and repeats the last row up to padded. It answers whether some run is missing from some row (and reads zeros).
template <class S, class T>
concept row_source = requires(const S& s, index_t first, int height, int padded, const T** rows) {
    { s.fill(first, height, padded, rows) } -> std::same_as<bool>;
};

// Rows a fixed distance apart, in place or packed: one run.
template <class T>
struct strided_source {
    const T* data = nullptr;
    index_t stride = 0;  // elements from one row to the next

    HONE_INLINE bool fill(index_t first, int height, int padded, const T** rows) const {
        for (int i = 0; i < padded; ++i) rows[i] = data + (first + (i < height ? i : height - 1)) * stride;
        return false;
    }
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
