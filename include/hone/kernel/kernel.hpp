// SPDX-License-Identifier: BSL-1.0
// The record that one line of kernels.def makes: everything a loop nest needs to know of a kernel.
#pragma once

#include "../core/arithmetic.hpp"
#include "tile.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

template <class T>
using tiny_fn = void (*)(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row, index_t m, index_t k, int cols);

template <class T>
using pack_lines_fn = void (*)(const T* src, index_t row_stride, index_t k, index_t panels, T* out, index_t out_panel);

// The heights of the register tiles of a kernel: those that are not higher than its mr; one that is no power of two comes at
// full width only. Edges are sums of them, and three rows run as four, of which two are one: more heights would be half more
// code, which every unit compiles, for one percent of a matrix of 127 rows.
inline constexpr int tile_heights[] = {1, 2, 4, 6, 8, 12, 14, 16};
inline constexpr int tile_height_count = 8;
inline constexpr int max_registers = 4;  // widest tile, in registers
inline constexpr int max_mr = 16;
inline constexpr int rank_rows = 2, rank_steps = 4;
inline constexpr index_t panel_floor = 16;  // elements: the least multiple of a panel, and of every epilogue width

template <class T>
struct gemm_kernel {
    hone::isa isa = hone::isa::dynamic;
    int mr = 1, nr = 1;                                                     // the full tile
    int lanes = 1;                                                          // elements of a register
    int panel = 1;                                                          // columns of a panel of packed B
    bool masked = false;                                                    // no column of B beyond the last is read
    micro_fn<T> micro[tile_height_count][max_registers] = {};               // (height, registers of columns - 1) or null
    micro_fn<T> packing = nullptr;                                          // the full tile that packs B on the way, or null
    rank_fn<T> rank[rank_rows][rank_steps] = {};                            // (rows - 1, steps - 1) or null
    tiny_fn<T> tiny[2] = {};                                                // (registers of columns - 1) or null
    narrow_fn<T> narrow = nullptr;                                          // few columns, or null
    pack_lines_fn<T> pack_lines = nullptr;                                  // whole panels of contiguous rows
};

// What an ISA has for sums in any order. Apart from gemm_kernel: who names no relaxed policy compiles none of it.
template <class T>
struct relaxed_kernels {
    index_t dot_rows = 0;                                                   // rows of C up to which dots win over packing B's columns
    index_t split_rows = 0;                                                 // rows of C that split_several takes
    dot_fn<T> dot[2] = {};                                                  // (one row of x, four)
    split_fn<T> split[max_registers] = {};                                  // one row: (registers of columns - 1) or null
    split_fn<T> split_several = nullptr;                                    // one register
};

// A run of equal tiles at the top of `left` rows, of a height that comes with `narrowest` registers of columns and more.
struct tile_run {
    int height = 1, index = 0;  // rows of each; which of tile_heights
    index_t count = 1;
};
template <class T>
HONE_INLINE constexpr tile_run next_run(const gemm_kernel<T>& kn, index_t left, int narrowest) {
    if (left == 3 && kn.micro[2][narrowest - 1]) return {3, 2, 1};
    int i = tile_height_count - 1;
    while (tile_heights[i] > left || !kn.micro[i][narrowest - 1]) --i;
    const int height = tile_heights[i];
    return {height, i, left < 2 * height ? 1 : left / height};
}

// The kernels of one ISA for element type T, in the order of kernels.def.
template <class T>
struct kernel_list {
    gemm_kernel<T> row[4];
    int count = 0;
    void add(const gemm_kernel<T>& k) { row[count++] = k; }

    // The one for products of n columns so few that nothing else is weighed: that with fewest passes over A, else the first.
    HONE_INLINE const gemm_kernel<T>& small(index_t n) const {
        return count > 1 && n > row[0].nr && ceil_div(n, row[1].nr) < ceil_div(n, row[0].nr) ? row[1] : row[0];
    }
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
