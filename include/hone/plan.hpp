// SPDX-License-Identifier: BSL-1.0
// What a plan decided, and the checks that plans share. A plan is made once and run many times: everything that needs no
// pointer is checked and decided when it is made; running it takes no lock, looks nothing up and allocates nothing.
#pragma once

#include <utility>

#include "core/arithmetic.hpp"
#include "core/status.hpp"
#include "core/view.hpp"
#include "dispatch.hpp"
#include "policy.hpp"

namespace hone::inline HONE_ABI {

// Which kernel, tile, blocks and workers, and why; text() is one line.
struct explanation {
    hone::isa isa = hone::isa::scalar;
    const char* kernel = "";              // what computes: "gemm", "implicit_gemm", "depthwise"
    const char* element = "f32";
    hone::tile tile{};
    hone::blocking block{};
    int workers = 1;                      // parts C is split into
    int row_parts = 1, col_parts = 1;     // of which along rows and columns
    bool packs_a = false, packs_b = false;  // each call: A or the input, B or the filter
    const char* b = "";                     // "packed beforehand", "packed each call", "in place"
    const char* why_isa = "";
    const char* why_tile = "";
    const char* why_block = "";
    const char* sums = "";                // where partial sums live between k blocks
    index_t scratch_bytes = 0;

    HONE_INLINE text_line text() const {
        text_line t;
        t.append(kernel).append(" ").append(element).append(" ").append(isa_name(isa)).append(" (").append(why_isa).append("), ");
        if (tile.mr == 0) {
            t.append(why_tile);
        } else {
            t.append("tile ").append(tile.mr).append("x").append(tile.nr).append(" (").append(why_tile).append("), block mc ")
                .append(block.mc).append(" kc ").append(block.kc).append(" nc ").append(block.nc).append(" (").append(why_block).append(")");
        }
        t.append(", A ").append(packs_a ? "packed" : "in place").append(", B ").append(b).append(", sums in ").append(sums)
            .append(", workers ").append(workers).append(" = ").append(row_parts).append(" x ").append(col_parts)
            .append(", scratch ").append(scratch_bytes).append(" B");
        return t;
    }
};

namespace detail::inline HONE_UNIT {

// Address arithmetic of a view, and of any part of it, fits 64 bits: strides of opposite signs do not shorten its reach.
// `bytes` is the size of an element.
inline status check_extent(index_t rows, index_t cols, index_t row_stride, index_t col_stride, index_t bytes, argument of_rows,
                           argument of_cols) {
    if (rows < 0) return {code::negative, of_rows, rows, 0};
    if (cols < 0) return {code::negative, of_cols, cols, 0};
    index_t x = 0, y = 0, sum = 0, whole = 0;
    constexpr index_t limit = INT64_MAX / 2;
    if (rows > limit) return {code::too_large, of_rows, rows, limit};  // strides of 0 reach nowhere
    if (cols > limit) return {code::too_large, of_cols, cols, limit};
    if (rows > 1 && __builtin_mul_overflow(rows - 1, magnitude(row_stride), &x)) return {code::too_large, of_rows, rows, limit};
    if (cols > 1 && __builtin_mul_overflow(cols - 1, magnitude(col_stride), &y)) return {code::too_large, of_cols, cols, limit};
    if (__builtin_add_overflow(x, y, &sum) || __builtin_mul_overflow(sum, bytes, &whole) || whole > limit) {
        return {code::too_large, of_rows, rows, limit};
    }
    return {};
}

inline constexpr index_t common_divisor(index_t a, index_t b) {
    a = magnitude(a);
    b = magnitude(b);
    while (b != 0) {
        const index_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Whether two elements of a (rows, cols) view lie on one address: i * row_stride == j * col_stride for some i < rows and
// j < cols not both 0; the least such pair is the strides divided by their common divisor, crosswise.
inline constexpr bool coincides(index_t rows, index_t cols, index_t row_stride, index_t col_stride) {
    if (rows <= 0 || cols <= 0) return false;
    if (rows > 1 && row_stride == 0) return true;
    if (cols > 1 && col_stride == 0) return true;
    if (rows <= 1 || cols <= 1) return false;
    const index_t g = common_divisor(row_stride, col_stride);
    return magnitude(col_stride / g) < rows && magnitude(row_stride / g) < cols;
}

// Where two views share memory for certain: views of equal strides and element size are compared exactly, others only by
// their corners. Interleaved views (channels of one tensor) do not coincide. All counts in elements of `size` bytes.
struct flat_view {
    std::intptr_t at = 0;
    index_t rows = 0, cols = 0, row_stride = 0, col_stride = 0, size = 0;
};

template <class T>
inline flat_view flat(const matrix_view<T>& v) {
    return {reinterpret_cast<std::intptr_t>(v.data), v.rows, v.cols, v.row_stride, v.col_stride, static_cast<index_t>(sizeof(T))};
}

// Whether the element at byte address p is one of v's.
inline bool holds(const flat_view& v, std::intptr_t p) {
    const std::intptr_t distance = p - v.at;
    if (distance % v.size != 0) return false;
    index_t d = distance / v.size;
    index_t big = v.row_stride, small = v.col_stride, big_n = v.rows, small_n = v.cols;
    if (magnitude(big) < magnitude(small)) {
        std::swap(big, small);
        std::swap(big_n, small_n);
    }
    if (big_n == 1 || big == 0) {
        return small == 0 || small_n == 1 ? d == 0 : d % small == 0 && d / small >= 0 && d / small < small_n;
    }
    // Only rows whose span (small_n, small) can reach d: one or two, more where rows interleave.
    const index_t span = (small_n - 1) * small, low = d - most(span, 0), high = d - least(span, 0);
    const index_t first = most((big > 0 ? low : high) / big - 1, 0), last = least((big > 0 ? high : low) / big + 1, big_n - 1);
    for (index_t i = first; i <= last; ++i) {
        const index_t rest = d - i * big;
        if (small == 0 || small_n == 1) {
            if (rest == 0) return true;
        } else if (rest % small == 0 && rest / small >= 0 && rest / small < small_n) {
            return true;
        }
    }
    return false;
}

// Addresses from the first byte of a view that has elements to the one behind its last.
struct byte_range {
    std::intptr_t begin = 0, end = 0;
};
inline byte_range bytes_of(const flat_view& v) {
    const index_t rows = (v.rows - 1) * v.row_stride, cols = (v.cols - 1) * v.col_stride;
    return {v.at + (least(0, rows) + least(0, cols)) * v.size, v.at + (most(0, rows) + most(0, cols) + 1) * v.size};
}
inline bool meet(const byte_range& x, const byte_range& y) { return x.begin < y.end && y.begin < x.end; }

inline bool overlaps(const flat_view& x, const flat_view& y) {
    if (x.rows <= 0 || x.cols <= 0 || y.rows <= 0 || y.cols <= 0) return false;
    if (!meet(bytes_of(x), bytes_of(y))) return false;
    if (x.size == y.size && x.row_stride == y.row_stride && x.col_stride == y.col_stride) {
        // The differences of two such grids form one grid of the same strides, twice as large, centred on the distance.
        flat_view both = x;
        both.rows = x.rows + y.rows - 1;
        both.cols = x.cols + y.cols - 1;
        both.at = x.at - ((y.rows - 1) * y.row_stride + (y.cols - 1) * y.col_stride) * y.size;
        return holds(both, y.at);
    }
    for (int corner = 0; corner < 4; ++corner) {
        const auto of = [corner](const flat_view& v) {
            return v.at + ((corner & 1 ? (v.rows - 1) * v.row_stride : 0) + (corner & 2 ? (v.cols - 1) * v.col_stride : 0)) * v.size;
        };
        if (holds(x, of(y)) || holds(y, of(x))) return true;
    }
    return false;
}

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
