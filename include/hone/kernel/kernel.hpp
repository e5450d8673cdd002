// SPDX-License-Identifier: BSL-1.0
// The record that one line of kernels.def makes: everything a loop nest needs to know of a kernel.
#pragma once

#include "tile.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

template <class T>
using pack_lines_fn = void (*)(const T* src, index_t row_stride, index_t k, index_t panels, T* out, index_t out_panel);

// Row classes: an edge of the matrix runs the smallest register tile that holds it, rows beyond the edge alias the last
// one (they read and write what it does). A tile of every height would double the code for a few percent of an edge.
inline constexpr int row_classes[] = {1, 2, 4, 6, 8, 12, 14, 16};
inline constexpr int row_class_count = 8;
inline constexpr int max_registers = 4;  // widest tile, in registers
inline constexpr int max_mr = 16;
inline constexpr index_t panel_floor = 16;  // elements: the least multiple of a panel, and of every epilogue width

template <class T>
struct gemm_kernel {
    hone::isa isa = hone::isa::dynamic;
    int mr = 1, nr = 1;                                                     // the full tile
    int lanes = 1;                                                          // elements of a register
    int panel = 1;                                                          // columns of a panel of packed B
    micro_fn<T> micro[row_class_count][max_registers] = {};                 // (row class, registers of columns - 1)
    pack_lines_fn<T> pack_lines = nullptr;                                  // whole panels of contiguous rows
};

// The kernels of one ISA for element type T, in the order of kernels.def.
template <class T>
struct kernel_list {
    gemm_kernel<T> row[4];
    int count = 0;
    void add(const gemm_kernel<T>& k) { row[count++] = k; }
};

// The class of a tile of `rows` rows under a kernel of mr rows: the smallest that holds them and is no taller than mr.
HONE_INLINE constexpr int row_class(int rows, int mr) {
    int c = 0;
    while (row_classes[c] < rows) ++c;
    return row_classes[c] <= mr ? c : c - 1;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
