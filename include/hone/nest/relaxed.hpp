// SPDX-License-Identifier: BSL-1.0
// Products whose sums may have any order: dots of contiguous rows with contiguous columns, and sums split into several chains.
// Compiled where a relaxed policy is named, or one that is known at run time only.
//
//   loop   over                       step          owner             what stays where
//   -      rows of A, or columns of B dots_at_once  gemm_dot_task     the other operand, up to 16 of them (few, k)
//   -      one of each stream         1             dot_micro         rows of k elements, read once
//   -      the few                    1 or 4        dot_micro         MX * NY registers of sums
//   -      k                          a register    dot_micro
#pragma once

#include "gemm.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

template <class T>
inline void gemm_dot_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    const bool by_columns = g.way == gemm_way::dots_of_columns;
    const index_t m = rows.end - rows.begin, n = cols.end - cols.begin, panel = g.kernel->panel;
    const index_t few = by_columns ? m : n, wide = by_columns ? n : m;
    const T* a = g.a + rows.begin * g.a_row_stride;                                     // (m, k)
    const T* b = g.packed ? g.packed + cols.begin * g.k : g.b + cols.begin * g.b_col_stride;  // (k, n), or its panel
    dot_tile<T> t;
    t.k = g.k;
    t.x = by_columns ? a : b;
    t.x_row = by_columns ? g.a_row_stride : g.b_col_stride;
    t.x_rows = few;
    const bool copied = by_columns ? g.pack_a : g.source != b_source::in_place;
    T* copy = reinterpret_cast<T*>(scratch);                                            // (few, k)
    if (copied) {
        if (by_columns) pack_rows(a, g.a_row_stride, g.a_col_stride, few, g.k, copy, g.k);
        else if (g.packed) pack_rows(b, 1, panel, few, g.k, copy, g.k);
        else pack_rows(b, g.b_col_stride, g.b_row_stride, few, g.k, copy, g.k);
        t.x = copy;
        t.x_row = g.k;
    }
    const index_t size = static_cast<index_t>(sizeof(T));
    T* tile = reinterpret_cast<T*>(scratch + (copied ? round_up(few * g.k * size, 64) : 0));  // (few, step) or (step, few)
    const dot_fn<T> dots = g.relaxed->dot[few > 1];
    t.y_row = by_columns ? g.b_col_stride : g.a_row_stride;
    // Columns that the epilogue halves come as pairs of panels.
    const index_t pair = 2 * panel, step = g.half != 0 ? dots_at_once / pair * pair : dots_at_once;
    for (index_t at = 0; at < wide; at += step) {
        const index_t count = least(step, wide - at);
        t.y = (by_columns ? b : a) + at * t.y_row;
        t.y_rows = count;
        t.out = tile;
        if (g.plain) {
            const index_t i = rows.begin + (by_columns ? 0 : at), j = cols.begin + (by_columns ? at : 0);
            t.out = reinterpret_cast<T*>(g.c) + i * g.c_row_stride + j;
            t.out_x = by_columns ? g.c_row_stride : 1;
            t.out_y = by_columns ? 1 : g.c_row_stride;
            dots(t);
        } else if (!by_columns) {
            t.out_x = 1;
            t.out_y = dot_columns;
            dots(t);
            for (index_t i = 0; i < count; i += max_mr) {
                const int height = static_cast<int>(least(max_mr, count - i));
                gemm_finish(g, rows.begin + at + i, height, cols.begin, few, tile + dot_columns * i, dot_columns);
            }
        } else {
            t.out_x = step;
            t.out_y = 1;
            if (g.half == 0) dots(t);
            for (index_t j = 0; g.half != 0 && j < count; j += panel) {
                const panel_columns c = columns_of_panel((cols.begin + at + j) / panel, panel, g.n, g.half);
                t.y = g.b + c.first * g.b_col_stride;
                t.y_rows = c.count;
                t.out = tile + j;
                dots(t);
            }
            gemm_finish(g, rows.begin, static_cast<int>(few), cols.begin + at, count, tile, step);
        }
    }
}

template <class T>
inline void gemm_split_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    const index_t m = rows.end - rows.begin, n = cols.end - cols.begin;
    const index_t lanes = g.kernel->lanes, panel = g.kernel->panel, regs = ceil_div(n, lanes);
    split_tile<T> t;
    t.rows = m;
    t.k = g.k;
    t.a = g.a + rows.begin * g.a_row_stride;
    t.a_row = g.a_row_stride;
    T* tile = reinterpret_cast<T*>(scratch);                                            // (m, regs * lanes)
    if (g.pack_a) {
        pack_rows(t.a, g.a_row_stride, g.a_col_stride, m, g.k, tile, g.k);
        t.a = tile;
        t.a_row = g.k;
        tile += round_up(m * g.k, 64 / static_cast<index_t>(sizeof(T)));
    }
    t.cols = static_cast<int>(n - (regs - 1) * lanes);
    t.b = g.packed ? g.packed + cols.begin * g.k : g.b + cols.begin;
    t.b_step = g.packed ? panel : g.b_row_stride;
    t.b_panel = g.packed ? panel * g.k : panel;
    t.b_cols = g.packed ? static_cast<int>(lanes) : t.cols;                             // panels are padded with zeros
    t.out = g.plain ? reinterpret_cast<T*>(g.c) + rows.begin * g.c_row_stride + cols.begin : tile;
    t.out_row = g.plain ? g.c_row_stride : regs * lanes;
    const split_fn<T> split = m > 1 ? g.relaxed->split_several : g.relaxed->split[regs - 1];
    split(t);
    if (!g.plain) gemm_finish(g, rows.begin, static_cast<int>(m), cols.begin, n, tile, t.out_row);
}

template <class T>
inline void gemm_relaxed_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    if (g.way == gemm_way::split_sums) gemm_split_task(g, rows, cols, scratch);
    else gemm_dot_task(g, rows, cols, scratch);
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
