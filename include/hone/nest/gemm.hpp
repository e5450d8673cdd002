// SPDX-License-Identifier: BSL-1.0
// The five loops around the register tile. Nothing here depends on the ISA: kernels come as pointers in a record.
//
//   loop   over                    step   owner                          what stays where
//   jc     columns of C            nc     gemm_task                      packed B (kc, nc) in the last-level cache
//   pc     k                       kc     gemm_task                      partial sums in C, or in scratch (mc, nc)
//   ic     rows of C               mc     gemm_task                      A (mc, kc) in L2, packed if its rows are not contiguous
//   jr     columns of the block    nr     gemm_block                     a sliver of B (kc, nr) in L1
//   ir     rows of the block       mr     gemm_block                     the register tile (mr, nr)
//   -      k of the block          1      gemm_micro (kernel/*.inl)      MR * NV registers of sums
//
// Where partial sums cannot live in C, ic goes outside pc, so that one (mc, nc) buffer of sums serves all k blocks.
#pragma once

#include <cstring>

#include "../core/arithmetic.hpp"
#include "../core/view.hpp"
#include "../kernel/kernel.hpp"
#include "pack.hpp"
#include "source.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Splits `extent` into equal blocks of at most `block`, a multiple of `unit`: no runt is left at the end.
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

// Where B comes from. In place: its rows are contiguous, and only a part panel at the end is packed.
enum class b_source : unsigned char { packed_beforehand, packed_each_call, in_place };

// What the nest is asked to do, checked and decided beforehand. All strides in elements.
template <class T>
struct gemm_job {
    const gemm_kernel<T>* kernel = nullptr;
    index_t m = 0, n = 0, k = 0;                               // n: columns of packed B, where the epilogue halves them
    index_t half = 0;                                          // not 0: the epilogue halves the columns of B to this many
    index_t mc = 0, kc = 0, nc = 0;
    const T* a = nullptr;
    index_t a_row_stride = 0, a_col_stride = 0;
    const T* b = nullptr;                                      // null where `packed` is given
    index_t b_row_stride = 0, b_col_stride = 0;
    const T* packed = nullptr;                                 // panels of all k rows
    unsigned char* c = nullptr;
    index_t c_row_stride = 0, c_col_stride = 0, c_size = 0;    // c_size: bytes of an element of C
    T alpha = 1, beta = 0;
    bool pack_a = false;
    b_source source = b_source::packed_each_call;
    bool sums_in_c = false;                                    // partial sums live in C between k blocks
    bool plain = false;                                        // the last k block stores C itself: no alpha, beta, stages
    finish_fn<T> finish = nullptr;
    const void* epilogue = nullptr;
};

// Where an epilogue halves the columns, panels of both halves of B alternate, so that what it combines meets in one tile:
// columns of packed B, and which columns of B panel `q` of packed B holds.
HONE_INLINE constexpr index_t halved_columns(index_t half, index_t panel) { return 2 * round_up(half, panel); }
struct panel_columns {
    index_t first = 0, count = 0;
};
HONE_INLINE constexpr panel_columns columns_of_panel(index_t q, index_t panel, index_t n, index_t half) {
    if (half == 0) return {q * panel, least(panel, n - q * panel)};
    return {q / 2 * panel + q % 2 * half, least(panel, half - q / 2 * panel)};
}

// Columns an epilogue pass takes at once: a register tile, or tiles enough for a pair of panels.
template <class T>
HONE_INLINE constexpr index_t finish_width(const gemm_kernel<T>& k, bool halves) {
    return halves ? most(k.nr, 2 * k.panel) : k.nr;
}
// What a block or part of the columns must be a multiple of.
template <class T>
HONE_INLINE constexpr index_t column_unit(const gemm_kernel<T>& k, bool halves) {
    return most(finish_width(k, halves), k.panel);
}
template <class T>
HONE_INLINE constexpr bool can_halve(const gemm_kernel<T>& k) {
    return k.nr % (2 * k.panel) == 0 || 2 * k.panel % k.nr == 0;
}

// Packs panels [q, q + count) of B, rows [k0, k0 + k), one behind the other; columns that do not exist are zeros.
template <class T>
inline void pack_panels(const gemm_kernel<T>& kn, const T* b, index_t row_stride, index_t col_stride, index_t k, index_t n,
                        index_t half, index_t q, index_t count, T* out) {
    if (k == 0) return;  // the strides of an extent of zero may be anything
    const index_t end = q + count;
    if (half == 0 && col_stride == 1) {
        const index_t whole = least(end, n / kn.panel) - q;
        if (whole > 0) {
            kn.pack_lines(b + q * kn.panel, row_stride, k, whole, out, kn.panel * k);
            q += whole;
            out += whole * kn.panel * k;
        }
    }
    for (; q < end; ++q, out += kn.panel * k) {
        const panel_columns c = columns_of_panel(q, kn.panel, n, half);
        if (c.count < kn.panel) std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(kn.panel * k) * sizeof(T));
        if (c.count > 0) pack_rows(b + c.first * col_stride, row_stride, col_stride, k, c.count, out, kn.panel);
    }
}

// Bytes of each part of one task's scratch, in the order they lie there; each part begins on a 64-byte line.
struct gemm_scratch {
    index_t a = 0, b = 0, sums = 0, tile = 0;
    constexpr index_t bytes() const { return a + b + sums + tile; }
};

template <class T>
HONE_INLINE constexpr gemm_scratch gemm_scratch_of(const gemm_kernel<T>& kernel, index_t m, index_t n, index_t k, index_t mc,
                                                   index_t kc, index_t nc, bool pack_a, b_source b, bool sums, bool halves) {
    const index_t size = static_cast<index_t>(sizeof(T));
    const index_t mb = round_up(least(m, mc), kernel.mr), kb = least(k, kc), nb = round_up(least(n, nc), kernel.panel);
    gemm_scratch s;
    if (pack_a) s.a = round_up(mb * kb * size, 64);
    if (b == b_source::packed_each_call) s.b = round_up(kb * nb * size, 64);
    if (b == b_source::in_place) s.b = round_up(kb * kernel.panel * size, 64);          // the part panel at the end
    if (sums) s.sums = round_up(mb * round_up(nb, column_unit(kernel, halves)) * size, 64);
    s.tile = round_up(kernel.mr * finish_width(kernel, halves) * size, 64);
    return s;
}

// Columns of B in panels, packed or where they lie: whole panels of a B whose rows are contiguous need no copy.
template <class T>
struct panels_of_b {
    const T* data = nullptr;
    index_t panel = 0;  // elements from one panel to the next
    index_t step = 0;   // elements from one k to the next
};

// The tile of sums of rows [i, i + rows) and columns [j, j + cols) of packed B through the epilogue to C.
template <class T>
inline void gemm_finish(const gemm_job<T>& g, index_t i, int rows, index_t j, index_t cols, const T* tile) {
    const gemm_kernel<T>& kn = *g.kernel;
    if (g.half != 0) {
        j /= 2;
        cols = least(cols / 2, g.half - j);
    }
    void* c_rows[max_mr];                                                               // (mr)
    index_t row_numbers[max_mr];                                                        // (mr)
    for (int r = 0; r < rows; ++r) {
        c_rows[r] = g.c + ((i + r) * g.c_row_stride + j * g.c_col_stride) * g.c_size;
        row_numbers[r] = i + r;
    }
    finish_tile<T> ft;
    ft.t = tile;
    ft.t_stride = finish_width(kn, g.half != 0);
    ft.out = c_rows;
    ft.out_stride = g.c_col_stride;
    ft.row = row_numbers;
    ft.col = j;
    ft.half = g.half;
    ft.panel = kn.panel;
    ft.rows = rows;
    ft.cols = static_cast<int>(cols);
    ft.alpha = g.alpha;
    ft.beta = g.beta;
    g.finish(ft, g.epilogue);
}

// Rows [i0, i0 + rows) of A and [j0, j0 + cols) of C against one k block: loops jr and ir.
//   source        rows of the block at the block's first k
//   b             first panel of the block at the block's first k
//   sums          partial sums (rows, cols) with sums_stride, or null where none are kept
template <class T, row_source<T> S>
inline void gemm_block(const gemm_job<T>& g, index_t i0, index_t rows, index_t j0, index_t cols, index_t kb, const S& source,
                       const panels_of_b<T>& b, T* sums, index_t sums_stride, bool first, bool last,
                       T* tile) {
    const gemm_kernel<T>& kn = *g.kernel;
    const index_t start = 0, step = finish_width(kn, g.half != 0);
    const bool to_tile = last && !g.plain;
    for (index_t jr = 0; jr < cols; jr += step) {
        const index_t wide = least(step, cols - jr);
        for (index_t ir = 0; ir < rows; ir += kn.mr) {
            const int height = static_cast<int>(least(kn.mr, rows - ir));
            const int cls = row_class(height, kn.mr);
            const T* a_rows[max_mr];                                                    // (mr)
            source.fill(ir, height, row_classes[cls], a_rows);
            for (index_t j = 0; j < wide; j += kn.nr) {
                const int width = static_cast<int>(least(kn.nr, wide - j));
                const int regs = static_cast<int>(ceil_div(width, kn.lanes));
                const T* in[max_mr];                                                    // (mr)
                T* out[max_mr];                                                         // (mr)
                for (int i = 0; i < row_classes[cls]; ++i) {
                    const index_t r = i < height ? i : height - 1;
                    T* kept = sums ? sums + (ir + r) * sums_stride + jr + j : nullptr;
                    in[i] = kept;
                    out[i] = to_tile ? tile + r * step + j : kept;
                }
                micro_tile<T> mt;
                mt.rows = a_rows;
                mt.start = &start;
                mt.runs = 1;
                mt.length = kb;
                mt.b = b.data + (jr + j) / kn.panel * b.panel + (jr + j) % kn.panel;
                mt.b_panel = b.panel;
                mt.b_step = b.step;
                mt.in = first ? nullptr : in;
                mt.out = out;
                mt.cols = width - (regs - 1) * kn.lanes;
                kn.micro[cls][regs - 1](mt);
            }
            if (to_tile) gemm_finish(g, i0 + ir, height, j0 + jr, wide, tile);
        }
    }
}

// C where no product is formed (alpha == 0 or k == 0): sums of +0 through beta and the epilogue. Reads neither A nor B.
template <class T>
inline void gemm_without_product(const gemm_job<T>& g, range rows, range cols, T* tile) {
    const index_t mr = g.kernel->mr, step = finish_width(*g.kernel, g.half != 0);
    gemm_job<T> zero = g;
    zero.alpha = 1;
    std::memset(static_cast<void*>(tile), 0, static_cast<std::size_t>(mr * step) * sizeof(T));
    for (index_t i = rows.begin; i < rows.end; i += mr) {
        for (index_t j = cols.begin; j < cols.end; j += step) {
            gemm_finish(zero, i, static_cast<int>(least(mr, rows.end - i)), j, least(step, cols.end - j), tile);
        }
    }
}

// One task: the part [rows) x [cols) of C, start to end, with scratch of its own (64-byte aligned).
template <class T>
inline void gemm_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    const gemm_kernel<T>& kn = *g.kernel;
    const index_t m = rows.end - rows.begin, n = cols.end - cols.begin;
    if (m <= 0 || n <= 0) return;
    if (g.alpha == T(0) || g.k == 0) return gemm_without_product(g, rows, cols, reinterpret_cast<T*>(scratch));
    const bool several = g.k > g.kc;                                                    // more than one k block
    const bool keep = several && !g.sums_in_c;
    const gemm_scratch s = gemm_scratch_of(kn, m, n, g.k, g.mc, g.kc, g.nc, g.pack_a, g.source, keep, g.half != 0);
    T* a_pack = reinterpret_cast<T*>(scratch);                                          // (mc, kc)
    T* b_pack = reinterpret_cast<T*>(scratch + s.a);                                    // (nc / panel, kc, panel)
    T* kept = reinterpret_cast<T*>(scratch + s.a + s.b);                                // (mc, nc)
    T* tile = reinterpret_cast<T*>(scratch + s.a + s.b + s.sums);                       // (mr, nr)

    const index_t nc = equal_block(n, g.nc, column_unit(kn, g.half != 0)), kc = equal_block(g.k, g.kc, 1);
    const index_t outer_mc = keep ? equal_block(m, g.mc, kn.mr) : m;
    for (index_t jc = cols.begin; jc < cols.end; jc += nc) {
        const index_t nb = least(nc, cols.end - jc);
        for (index_t io = rows.begin; io < rows.end; io += outer_mc) {
            const index_t ie = least(io + outer_mc, rows.end);
            for (index_t pc = 0; pc < g.k; pc += kc) {
                const index_t kb = least(kc, g.k - pc);
                const bool first = pc == 0, last = pc + kb == g.k;
                const index_t whole = g.source == b_source::in_place ? nb / kn.panel * kn.panel : 0;  // columns that need no copy
                panels_of_b<T> b{b_pack, kb * kn.panel, kn.panel};                      // (nb / panel, kb, panel)
                if (g.source == b_source::packed_beforehand) {
                    b = {g.packed + jc * g.k + pc * kn.panel, g.k * kn.panel, kn.panel};
                } else if (whole < nb) {
                    pack_panels(kn, g.b + pc * g.b_row_stride, g.b_row_stride, g.b_col_stride, kb, g.n, g.half,
                                (jc + whole) / kn.panel, ceil_div(nb - whole, kn.panel), b_pack);
                }
                const index_t mc = equal_block(ie - io, g.mc, kn.mr);
                for (index_t ic = io; ic < ie; ic += mc) {
                    const index_t mb = least(mc, ie - ic);
                    strided_source<T> a{g.a + ic * g.a_row_stride + pc * g.a_col_stride, g.a_row_stride};  // (mb, kb)
                    if (g.pack_a) {
                        pack_rows(a.data, g.a_row_stride, g.a_col_stride, mb, kb, a_pack, kb);
                        a = {a_pack, kb};
                    }
                    T* sums = nullptr;
                    index_t sums_stride = 0;
                    if (keep) {
                        sums = kept;
                        sums_stride = round_up(nb, column_unit(kn, g.half != 0));
                    } else if (g.sums_in_c || g.plain) {
                        sums = reinterpret_cast<T*>(g.c) + ic * g.c_row_stride + jc;
                        sums_stride = g.c_row_stride;
                    }
                    if (whole > 0) {
                        const panels_of_b<T> placed{g.b + pc * g.b_row_stride + jc, kn.panel, g.b_row_stride};
                        gemm_block(g, ic, mb, jc, whole, kb, a, placed, sums, sums_stride, first, last, tile);
                    }
                    if (whole < nb) {
                        gemm_block(g, ic, mb, jc + whole, nb - whole, kb, a, b, sums ? sums + whole : nullptr, sums_stride, first,
                                   last, tile);
                    }
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
