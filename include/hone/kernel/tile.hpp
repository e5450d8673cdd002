// SPDX-License-Identifier: BSL-1.0
// What a micro-kernel and an epilogue pass are told: pointers and counts, nothing else. Defined outside every region, so
// that all ISAs and the loop nests around them agree on one layout.
#pragma once

#include "../core/view.hpp"
#include "../policy.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Packed B, the layout that packers and kernels share: panels of `width` columns, each holding all k rows one after
// another, `width` consecutive elements a row (n padded with zeros):
//
//        panel 0          panel 1                     memory, width = 4, k = 3, n = 8:
//     +---------+      +---------+
//   k | 0 1 2 3 |      | c d e f |                    0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n
//     | 4 5 6 7 |      | g h i j |                    |- row 0 -|                |
//     | 8 9 a b |      | k l m n |                    |---- panel 0: k * width --|
//     +---------+      +---------+
//
// A kernel whose register tile is wider than a panel reads several panels side by side, so tile widths that differ share
// one layout: a panel of one 64-byte line serves AVX-512 (one register), AVX2 (two) and NEON (four), and a block of kc
// rows is the same run of memory in every panel whatever kc is. Only registers wider than a line widen the panel.

// One call of a micro-kernel: out(i, j) = in(i, j) + sum over runs r and p < length of rows[r][i][p] * B(start[r] + p, j),
// as one chain of fused multiply-adds in the order r, p. GEMM has one run; convolution one run per tap.
template <class T>
struct micro_tile {
    const T* const* rows = nullptr;     // (runs, MR) where each row of each run of A begins; rows are contiguous
    const index_t* start = nullptr;     // (runs) first k of each run inside the panels of B
    index_t runs = 0, length = 0;
    const T* b = nullptr;               // first panel
    index_t b_panel = 0;                // elements from one panel to the next
    index_t b_step = 0;                 // elements from one k to the next: the panel's width, or B's row stride in place
    const T* const* in = nullptr;       // (MR) or null: the chain begins at +0
    T* const* out = nullptr;            // (MR) may be equal to in
    int cols = 0;                       // valid columns of the last register of each row, 1 .. lanes
};

template <class T>
using micro_fn = void (*)(const micro_tile<T>&);

// One call of a depthwise micro-kernel: all channels of one output pixel.
template <class T>
struct depthwise_pixel {
    const T* const* rows = nullptr;     // (taps) the input pixel under each tap: `channels` consecutive elements
    const index_t* start = nullptr;     // (taps) which row of b each tap has
    index_t taps = 0, channels = 0;
    const T* b = nullptr;               // (all taps, channels)
    T* out = nullptr;                   // (channels)
};

template <class T>
using depthwise_fn = void (*)(const depthwise_pixel<T>&);

// One call of an epilogue pass: the tile of sums goes through alpha, beta and the stages to C.
template <class T>
struct finish_tile {
    const T* t = nullptr;               // (rows, cols) sums, row i at t + i * t_stride, whole registers readable
    index_t t_stride = 0;
    void* const* out = nullptr;         // (rows) the first element of each row of C that belongs to this tile
    index_t out_stride = 1;             // elements from one column of C to the next
    const index_t* row = nullptr;       // (rows) what a stage sees as at.row
    index_t col = 0;                    // what a stage sees as at.col in the first column
    index_t half = 0;                   // epilogues that halve the columns: n / 2, and `cols` counts columns of C
    int panel = 0;                      // and the tile holds panels of both halves in turn
    int rows = 0, cols = 0;
    T alpha = 1, beta = 0;
    index_t image_h = 0, image_w = 0;   // convolution: extents of the output that a row number counts through; else 0
};

template <class T>
using finish_fn = void (*)(const finish_tile<T>&, const void* epilogue);

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
