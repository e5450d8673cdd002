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

// One call of a micro-kernel: `tiles` tiles one after the other, a walk along a column of tiles or along a row of them. Each is
// out(i, j) = in(i, j) + sum over runs r and p < length of A(r, i, p) * B(start[r] + p, j), as one chain of fused multiply-adds
// in the order r, p. GEMM has one run of equidistant rows; convolution one run per tap, its rows wherever the pixels are.
// The walk is inside the kernel because entering one costs 30 to 50 cycles, as much as a tile of 8 x 48 with a k of 4.
template <class T>
struct micro_tile {
    const T* const* rows = nullptr;     // (runs, height) where each row of each run of A begins; null: one run, as follows
    const T* a = nullptr;               // the first row
    index_t a_row = 0;                  // elements from one row to the next
    const index_t* start = nullptr;     // (runs) first k of each run inside the panels of B, with rows
    index_t runs = 1, length = 0;       // a row of a run is contiguous
    const T* b = nullptr;               // first panel
    index_t b_panel = 0;                // elements from one panel to the next
    index_t b_step = 0;                 // elements from one k to the next: the panel's width, or B's row stride in place
    const T* in = nullptr;              // or null: the chain begins at +0
    index_t in_row = 0;
    T* out = nullptr;                   // may be equal to in
    index_t out_row = 0;
    const T* const* in_rows = nullptr;  // (height) instead of in and out, where rows are not equidistant
    T* const* out_rows = nullptr;
    int height = 1;                     // rows, 1 .. MR
    int cols = 0;                       // valid columns of the last register of each row, 1 .. lanes
    index_t tiles = 1;
    const T* ahead = nullptr;           // what will be read of B next: ahead_count rows, ahead_step apart, of one line a panel
    index_t ahead_count = 0, ahead_step = 0, ahead_panel = 0, ahead_walk = 0;
    bool ahead_strided = false;         // these rows may share few sets of L1: L2 takes them
    T* pack = nullptr;                  // packing_micro: the first panel that B is packed into
    index_t pack_panel = 0;             // elements from one of these panels to the next
    index_t a_walk = 0, b_walk = 0, in_walk = 0, out_walk = 0;  // elements from one tile to the next
    const T* bias = nullptr;            // grouped_micro: or null, added to every row of sums before they are stored
    bool relu = false;                  // grouped_micro: stored is max(sum, 0), a NaN as it is
};

// The row that row i of a tile of mr rows reads and writes. Only tiles of four rows have more rows than they are told: in all
// of them this would be a tenth of what a unit takes to compile.
HONE_INLINE constexpr int row_of(int i, int mr, int height) { return mr == 4 && i >= height ? height - 1 : i; }

template <class T>
using micro_fn = void (*)(const micro_tile<T>&);

// One call of a rank update: M rows by `cols` columns, R steps of k. M and R are the kernel's.
template <class T>
struct rank_tile {
    const T* a = nullptr;               // (M, R)
    index_t a_row = 0;
    const T* b = nullptr;               // (R, cols) in rows or in panels, of which two registers hold whole ones
    index_t b_row = 0;
    index_t b_panel = 0;                // elements from one panel to the next; in rows the width of a panel
    const T* in = nullptr;              // (M, cols) or null: the chains begin at +0
    index_t in_row = 0;
    T* out = nullptr;                   // (M, cols), may be equal to in
    index_t out_row = 0;
    index_t cols = 0;
};

template <class T>
using rank_fn = void (*)(const rank_tile<T>&);

// One call of the kernel for few columns: out (rows, 4) = A (rows, k) * B (k, 4); rows are rounded up to 4 in out.
template <class T>
struct narrow_tile {
    const T* a = nullptr;
    index_t a_row = 0;                  // elements from one row to the next; a row is contiguous
    const T* b = nullptr;               // 4 elements a step, zeros where there are fewer columns
    index_t b_step = 0;
    T* out = nullptr;                   // (4, narrow_rows_at_once): a row for each column
    index_t rows = 0, k = 0;            // rows at most narrow_rows_at_once
    int cols = 4;                       // of B: 1 to 4
};
inline constexpr index_t narrow_rows_at_once = 128;

// Whether rows this many elements apart lie whole pages of 4 KiB apart: they all fall into one set of L1, which holds 8 or 12
// lines, and each takes an address translation of its own.
template <class T>
HONE_INLINE constexpr bool rows_alias(index_t stride) {
    return stride % static_cast<index_t>(4096 / sizeof(T)) == 0;
}

template <class T>
using narrow_fn = void (*)(const narrow_tile<T>&);

// One call of the dot kernel: out(i, j) = row i of x times row j of y. Rows are contiguous.
template <class T>
struct dot_tile {
    const T* x = nullptr;               // few rows, which stay in cache
    index_t x_row = 0, x_rows = 0;
    const T* y = nullptr;               // any number of rows, each read once
    index_t y_row = 0, y_rows = 0;
    T* out = nullptr;
    index_t out_x = 0, out_y = 0;       // elements from one row of x, or of y, to the next
    index_t k = 0;                      // more than a register holds
};

template <class T>
using dot_fn = void (*)(const dot_tile<T>&);

// One call of the kernel of split sums: out (rows, n) = A (rows, k) * B (k, n), n being the kernel's registers or less.
template <class T>
struct split_tile {
    const T* a = nullptr;               // rows are contiguous
    index_t a_row = 0;
    const T* b = nullptr;
    index_t b_step = 0, b_panel = 0;    // elements from one k to the next, from one panel to the next
    int b_cols = 0;                     // columns of the last register that may be read, 1 .. lanes
    T* out = nullptr;
    index_t out_row = 0;
    int cols = 0;                       // columns of the last register that are C's, 1 .. lanes
    index_t rows = 0, k = 0;
};

template <class T>
using split_fn = void (*)(const split_tile<T>&);

// Output pixels side by side, each a step of the input from the one before, over the same taps: of a row of an image those whose
// windows lie inside, and one or several at either end.
struct depthwise_span {
    index_t in = 0, b = 0;              // the first tap of the first pixel: elements behind rows[r], and behind b[r]
    index_t taps = 0;                   // of each row of taps
    index_t out = 0, pixels = 0;        // the first pixel, and how many
};

// One call of a depthwise micro-kernel: out (pixels, channels), a part of a row of output pixels.
template <class T>
struct depthwise_tile {
    const T* const* rows = nullptr;     // (tap_rows) rows of the input that lie under a row of taps
    const T* const* b = nullptr;        // (tap_rows) weights of each: (taps, channels)
    index_t tap_rows = 0;
    index_t tap_step = 0, pixel_step = 0, b_step = 0;  // elements from a tap to the next, of a pixel to the next; of b
    const depthwise_span* span = nullptr;
    index_t spans = 0, channels = 0;
    T* out = nullptr;
    index_t out_step = 0;               // elements from a pixel to the next
    const T* bias = nullptr;            // (channels) or null: as in micro_tile
    bool relu = false;
};

template <class T>
using depthwise_fn = void (*)(const depthwise_tile<T>&);

// One tile of a Winograd convolution of m x m outputs, a = m + 2: (a, a) pixels of `channels` elements become element (i, j) of
// a x a matrices: `channels` elements, rounded up to whole registers, at out + (i * a + j) * out_step.
template <class T>
struct winograd_input_tile {
    const T* const* pixels = nullptr;   // (a, a)
    index_t channels = 0;
    T* out = nullptr;
    index_t out_step = 0;
};
// And back: sums of m x m pixels, pixel (i, j) at out + (i * m + j) * out_step. Channels are whole registers.
template <class T>
struct winograd_output_tile {
    const T* in = nullptr;
    index_t in_step = 0, channels = 0;
    T* out = nullptr;
    index_t out_step = 0;
};
template <class T>
struct winograd_kernels {
    void (*input[2])(const winograd_input_tile<T>&);    // m of 2 and 4
    void (*output[2])(const winograd_output_tile<T>&);
};

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

// The stages that some kernels apply to their sums themselves: a bias for each column, then max(x, 0).
struct bias_and_relu {
    const void* bias = nullptr;         // or null
    bool relu = false;
};
using bias_and_relu_fn = bias_and_relu (*)(const void* epilogue);

template <class T>
using finish_fn = void (*)(const finish_tile<T>&, const void* epilogue);

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
