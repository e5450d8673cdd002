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
#include "split.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Where B comes from. In place: its rows are contiguous, and only a part panel at the end is packed.
enum class b_source : unsigned char { packed_beforehand, packed_each_call, in_place };

// How the sums are formed.
enum class gemm_way : unsigned char {
    tiles,          // register tiles over blocks
    rank_updates,   // one or two rows of A, B in place by rows
    few_steps,      // the same kernels over any rows of A, k of at most rank_steps
    few_columns,    // at most four, A's rows contiguous
    few_rows,       // at most four, B's columns contiguous: the product of the transposed operands
    dots_of_rows,   // relaxed, few columns of C: A's rows are read in place, each once
    dots_of_columns,  // relaxed, few rows of C: B's columns are read in place, each once
    split_sums      // relaxed, few rows and columns, B by rows
};
HONE_INLINE constexpr bool is_rank(gemm_way w) { return w == gemm_way::rank_updates || w == gemm_way::few_steps; }
HONE_INLINE constexpr bool is_narrow(gemm_way w) { return w == gemm_way::few_columns || w == gemm_way::few_rows; }
HONE_INLINE constexpr bool is_relaxed(gemm_way w) { return w >= gemm_way::dots_of_rows; }

template <class T>
struct gemm_job;
template <class T>
using gemm_task_fn = void (*)(const gemm_job<T>&, range rows, range cols, std::byte* scratch);

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
    index_t l1 = 0;                                            // elements of B that may stay in L1 beside A and C
    bool far = false;                                          // B is beyond L2: its tiles are asked for ahead of time
    bool pack_a = false;
    b_source source = b_source::packed_each_call;
    gemm_way way = gemm_way::tiles;
    const relaxed_kernels<T>* relaxed = nullptr;               // for relaxed ways: the kernels, and who runs them
    gemm_task_fn<T> relaxed_task = nullptr;
    bool sums_in_c = false;                                    // partial sums live in C between k blocks
    bool plain = false;                                        // the last k block stores C itself: no alpha, beta, stages
    finish_fn<T> finish = nullptr;
    const void* epilogue = nullptr;
    index_t first_row = 0, image_h = 0, image_w = 0;           // what a stage sees of row 0; rows are pixels of such images, or 0
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

// Tiles that a column walk leaves in the tile buffer for one epilogue pass after the other: enough to enter the kernel rarely.
inline constexpr index_t tile_group = 4;

// Rows of C that dots can be of, at most max_mr, and columns; dots of each that wait for one epilogue pass: of columns of
// 16 KiB these are four streams of half a MiB.
inline constexpr index_t dot_rows = 16, dot_columns = 8, dots_at_once = 128;

// Bytes of each part of one task's scratch, in the order they lie there; each part begins on a 64-byte line.
struct gemm_scratch {
    index_t a = 0, b = 0, sums = 0, tile = 0;
    constexpr index_t bytes() const { return a + b + sums + tile; }
};

template <class T>
HONE_INLINE constexpr gemm_scratch gemm_scratch_of(const gemm_kernel<T>& kernel, index_t m, index_t n, index_t k, index_t mc,
                                                   index_t kc, index_t nc, index_t l1, bool pack_a, b_source b, bool sums, bool halves,
                                                   gemm_way way) {
    const index_t size = static_cast<index_t>(sizeof(T));
    if (is_narrow(way)) {
        return {.b = round_up(4 * k * size, 64), .tile = round_up((2 * narrow_rows_at_once * 4 + panel_floor) * size, 64)};
    }
    if (is_relaxed(way)) {
        const bool few_columns = way == gemm_way::dots_of_rows, copied = few_columns ? b != b_source::in_place : pack_a;
        return {.a = copied ? round_up((few_columns ? n : m) * k * size, 64) : 0,
                .tile = sums ? round_up((dot_rows * dots_at_once + panel_floor) * size, 64) : 0};
    }
    if (is_rank(way)) {
        const index_t row = round_up(n, panel_floor) * size;
        const bool copied = way == gemm_way::few_steps && b != b_source::packed_beforehand;
        return {.b = copied ? round_up(k * row, 64) : 0, .sums = sums ? round_up(least(m, rank_rows) * row, 64) : 0};
    }
    const index_t mb = round_up(least(m, mc), kernel.mr), kb = least(k, kc), nb = round_up(least(n, nc), kernel.panel);
    gemm_scratch s;
    if (pack_a) s.a = round_up(mb * kb * size, 64);
    // Where one block of rows sees each column, B is packed a tile of columns at a time into the same few KiB.
    const bool once = sums || m <= mc;
    // A block that L1 holds is packed whole all the same, as its tiles are taken row by row.
    const index_t sliver = kb * round_up(finish_width(kernel, halves), kernel.panel), block = kb * nb;
    const index_t packed = once ? least(block, most(sliver, l1 + kb * kernel.panel)) : block;
    if (b == b_source::packed_each_call) s.b = round_up(packed * size, 64);
    if (b == b_source::in_place && !kernel.masked) s.b = round_up(kb * kernel.panel * size, 64);          // the part panel at the end
    if (sums) s.sums = round_up(mb * round_up(nb, column_unit(kernel, halves)) * size, 64);
    // The epilogue reads whole registers of its own, also behind the last row.
    s.tile = round_up((tile_group * kernel.mr * finish_width(kernel, halves) + panel_floor) * size, 64);
    return s;
}

// The columns of one (kb, nb) block of B in panels: packed beforehand, where they lie, or packed when a tile first asks for
// them, so that the tile finds them in L1 or L2 and not where a whole block would have ended up.
template <class T>
struct panels_of_b {
    const gemm_job<T>& job;
    const T* data = nullptr;
    index_t panel = 0;           // elements from one panel to the next
    index_t step = 0;            // elements from one k to the next
    T* to = nullptr;             // where to pack; null: nothing is packed
    const T* from = nullptr;     // B at the block's first k
    index_t kb = 0, first = 0;   // the block's rows, its first panel of all of B
    bool once = false;           // each tile of columns is asked for by one block of rows: their memory is reused
    bool far = false;            // B is beyond L2: what comes next is asked for
    index_t origin = 0, end = 0; // the panels of the block that are packed now

    // Whether column j of the block is in panels, and where it is now.
    HONE_INLINE bool in_panels(index_t j) const { return !to || (!once && j / job.kernel->panel < end); }
    HONE_INLINE const T* now(index_t j) const {
        return in_panels(j) ? data + j / job.kernel->panel * panel : from + (first * job.kernel->panel + j);
    }
    // Where a kernel is to pack columns [j, j + count), whole panels of contiguous rows; null where that is not for it to do.
    HONE_INLINE T* claim(index_t j, index_t count) {
        const index_t width = job.kernel->panel, p0 = j / width, p1 = ceil_div(j + count, width);
        if (!to || job.b_col_stride != 1 || job.half != 0 || p0 < end) return nullptr;
        if (once) origin = p0;
        else if (p0 != end) return nullptr;
        end = p1;
        return to + (p0 - origin) * panel;
    }
    HONE_INLINE const T* columns(index_t j, index_t count) {
        const index_t width = job.kernel->panel, p0 = j / width, p1 = ceil_div(j + count, width);
        if (to) {
            if (once && p0 >= end) origin = end = p0;
            if (p1 > end) {
                pack_panels(*job.kernel, from, job.b_row_stride, job.b_col_stride, kb, job.n, job.half, first + end, p1 - end,
                            to + (end - origin) * panel);
                end = p1;
            }
        }
        return data + (p0 - origin) * panel + j % width;
    }
};

// The tile of sums of rows [i, i + rows) and columns [j, j + cols) of packed B through the epilogue to C.
template <class T>
inline void gemm_finish(const gemm_job<T>& g, index_t i, int rows, index_t j, index_t cols, const T* tile, index_t tile_row) {
    const gemm_kernel<T>& kn = *g.kernel;
    if (g.half != 0) {
        j /= 2;
        cols = least(cols / 2, g.half - j);
    }
    void* c_rows[max_mr];                                                               // (mr)
    index_t row_numbers[max_mr];                                                        // (mr)
    for (int r = 0; r < rows; ++r) {
        c_rows[r] = g.c + ((i + r) * g.c_row_stride + j * g.c_col_stride) * g.c_size;
        row_numbers[r] = g.first_row + i + r;
    }
    finish_tile<T> ft;
    ft.t = tile;
    ft.t_stride = tile_row;
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
    ft.image_h = g.image_h;
    ft.image_w = g.image_w;
    g.finish(ft, g.epilogue);
}

// Rows [i0, i0 + rows) of A and columns [j0, j0 + cols) of C against one k block: loops jr and ir, in either order. A column of
// tiles shares a sliver of B (kb, nr), a row of tiles shares rows of A (mr, kb): what is shared stays in L1. Rows of tiles are
// for a block of B that stays in L1 as a whole, and for a single row: C is then written from left to right.
template <class T>
class gemm_block {
public:
    //   a             (rows, kb) at the block's first k, its rows a_row apart
    //   sums          partial sums (rows, cols) with sums_stride, or null where none are kept
    HONE_INLINE gemm_block(const gemm_job<T>& job, index_t first_row, index_t row_count, index_t first_col, index_t col_count, index_t kb,
                           const T* rows_of_a, index_t a_row, panels_of_b<T>& panels, T* kept, index_t sums_stride, bool first,
                           bool last, T* tile_buffer)
        : g(job), kn(*job.kernel), i0(first_row), rows(row_count), j0(first_col), cols(col_count), k(kb), a(rows_of_a), b(panels),
          sums(kept), chained(!first), to_tile(last && !job.plain), tile(tile_buffer) {
        mt.a_row = a_row;
        mt.length = kb;
        mt.b_panel = b.panel;
        mt.b_step = b.step;
        mt.in_row = mt.out_row = sums_row = sums_stride;
    }

    void run() {
        const bool pairs = to_tile && g.half != 0;                                      // pairs of panels in one tile
        const index_t unit = pairs ? finish_width(kn, true) : least(kn.nr, kn.panel);
        const even_tiles across(ceil_div(cols, unit), pairs ? 1 : kn.nr / unit);
        const bool long_rows = 4 * across.tiles > ceil_div(rows, kn.mr);               // else walks would be short
        if (!to_tile && (one_tile() || (long_rows && k * cols <= g.l1))) by_rows(across, unit);
        else by_columns(across, unit);
    }

private:
    HONE_INLINE bool one_tile() const { return next_run(kn, rows, 1).height == rows; }
    HONE_INLINE int registers(index_t width) const { return static_cast<int>(ceil_div(width, kn.lanes)); }
    HONE_INLINE void call(const tile_run& run, index_t width) {
        mt.cols = static_cast<int>(width - (registers(width) - 1) * kn.lanes);
        (mt.pack ? kn.packing : kn.micro[run.index][registers(width) - 1])(mt);
    }

    void by_rows(const even_tiles& across, index_t unit) {
        if (!one_tile()) b.once = false;
        const bool even = across.long_tiles == across.tiles && cols == across.tiles * across.size * unit;
        for (index_t ir = 0; ir < rows;) {
            const tile_run run = next_run(kn, rows - ir, even ? registers(across.size * unit) : 1);
            mt.height = run.height;
            mt.a = a + ir * mt.a_row;
            index_t jr = 0;
            for (index_t from = 0; from < across.tiles;) {
                const bool longer = from < across.long_tiles;
                const index_t width = (across.size - (longer ? 0 : 1)) * unit, left = cols - jr;
                // A walk is over tiles of one width at even steps through the panels, all of them there.
                index_t count = (longer ? across.long_tiles : across.tiles) - from;
                if (count * width > left) count = count > 1 ? count - 1 : 1;
                if ((width % kn.panel != 0 && b.panel != kn.panel) || (b.to && b.once)) count = 1;
                mt.b = b.columns(jr, least(count * width, left));
                mt.b_walk = width / kn.panel * b.panel + width % kn.panel;
                mt.out = sums + ir * sums_row + jr;
                mt.in = chained ? mt.out : nullptr;
                mt.in_walk = mt.out_walk = width;
                mt.tiles = count;
                if (b.far && !b.to) {
                    mt.ahead = mt.b + mt.b_walk;
                    mt.ahead_walk = mt.b_walk;
                    mt.ahead_count = k;
                    mt.ahead_step = b.step;
                    mt.ahead_panel = b.panel;
                    mt.ahead_strided = b.step != kn.panel;
                }
                call(run, least(width, left));
                from += count;
                jr += count * width;
            }
            ir += run.height;
        }
    }

    void by_columns(const even_tiles& across, index_t unit) {
        index_t jr = 0;
        for (index_t j = 0; j < across.tiles; ++j) {
            const index_t wide = least((across.size - (j < across.long_tiles ? 0 : 1)) * unit, cols - jr);
            // B that is not packed yet is read where it lies by the first tile, which packs it for the others.
            const bool full = kn.masked ? wide > kn.nr - kn.lanes && wide <= kn.nr : wide == kn.nr;
            const T* lies = b.now(jr);
            mt.pack = kn.packing && full && rows >= 2 * kn.mr ? b.claim(jr, wide) : nullptr;
            const T* sliver = b.columns(jr, wide);
            index_t ir = 0;
            if (mt.pack) {
                mt.b_step = g.b_row_stride;
                mt.pack_panel = b.panel;
                down_a_column(tile_run{kn.mr, 0, 1}, 0, jr, wide, lies);
                mt.b_step = b.step;
                mt.pack = nullptr;
                ir = kn.mr;
            }
            fetch_from(jr + wide, rows - ir);
            while (ir < rows) {
                tile_run run = next_run(kn, rows - ir, registers((wide - 1) % kn.nr + 1));
                if (to_tile) run.count = least(run.count, tile_group);
                down_a_column(run, ir, jr, wide, sliver);
                mt.ahead += run.count * mt.ahead_walk;
                ir += run.count * run.height;
            }
            jr += wide;
        }
    }

    // A run of tiles from row ir on, of the `wide` columns that begin with jr; their B begins at `from`.
    void down_a_column(const tile_run& run, index_t ir, index_t jr, index_t wide, const T* from) {
        mt.height = run.height;
        mt.a = a + ir * mt.a_row;
        mt.a_walk = run.height * mt.a_row;
        mt.in_walk = run.height * sums_row;
        mt.out_row = to_tile ? finish_width(kn, g.half != 0) : sums_row;
        mt.out_walk = run.height * mt.out_row;
        mt.tiles = run.count;
        for (index_t part = 0; part < wide; part += kn.nr) {                            // a pair of panels may be several tiles
            mt.b = from + part / kn.panel * b.panel + part % kn.panel;
            mt.in = chained ? sums + ir * sums_row + jr + part : nullptr;
            mt.out = to_tile ? tile + part : sums + ir * sums_row + jr + part;
            call(run, least(kn.nr, wide - part));
        }
        for (index_t t = 0; to_tile && t < run.count; ++t) {
            gemm_finish(g, i0 + ir + t * run.height, run.height, j0 + jr, wide, tile + t * mt.out_walk, mt.out_row);
        }
    }

    // While the tiles of a column are computed a part of the next column's B is asked for in each. With many tiles its first
    // lines are soon there anyway.
    HONE_INLINE void fetch_from(index_t jr, index_t rows_left) {
        const index_t down = ceil_div(rows_left, kn.mr);
        mt.ahead_count = 0;
        if (!b.far || jr >= cols || down > 32) return;
        const bool in_panels = b.in_panels(jr);
        if (!in_panels && (g.b_col_stride != 1 || g.half != 0)) return;
        mt.ahead = b.now(jr);
        mt.ahead_count = ceil_div(ceil_div(k, down), 4) * 4;
        mt.ahead_step = in_panels ? b.step : g.b_row_stride;
        mt.ahead_panel = in_panels ? b.panel : kn.panel;
        mt.ahead_strided = mt.ahead_step != kn.panel;
        mt.ahead_walk = mt.ahead_count * mt.ahead_step;
    }

    const gemm_job<T>& g;
    const gemm_kernel<T>& kn;
    const index_t i0, rows, j0, cols, k;
    const T* const a;
    panels_of_b<T>& b;
    T* const sums;
    index_t sums_row = 0;
    const bool chained, to_tile;
    T* const tile;
    micro_tile<T> mt;
};

// C where no product is formed (alpha == 0 or k == 0): sums of +0 through beta and the epilogue. Reads neither A nor B.
template <class T>
inline void gemm_without_product(const gemm_job<T>& g, range rows, range cols, T* tile) {
    const index_t mr = g.kernel->mr, step = finish_width(*g.kernel, g.half != 0);
    gemm_job<T> zero = g;
    zero.alpha = 1;
    std::memset(static_cast<void*>(tile), 0, static_cast<std::size_t>(mr * step) * sizeof(T));
    for (index_t i = rows.begin; i < rows.end; i += mr) {
        for (index_t j = cols.begin; j < cols.end; j += step) {
            gemm_finish(zero, i, static_cast<int>(least(mr, rows.end - i)), j, least(step, cols.end - j), tile, step);
        }
    }
}

// Rank updates over C. One or two rows of A over a B in place, any k: B is read once, rank_steps rows of it side by side. Or at
// most rank_steps steps and any rows: C is written once, two rows from left to right, without tiles to enter; B, packed or
// copied, stays in L1.
template <class T>
inline void gemm_rank_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    const gemm_kernel<T>& kn = *g.kernel;
    const index_t n = cols.end - cols.begin;
    const bool in_c = g.plain;  // the epilogue reads whole registers, which C does not have behind its last row
    rank_tile<T> t;
    t.cols = n;
    t.a_row = g.a_row_stride;
    t.b_row = g.b_row_stride;
    t.b_panel = kn.panel;
    const T* b = g.packed ? g.packed + cols.begin * g.k : g.b + cols.begin;
    if (g.packed) {
        t.b_row = kn.panel;
        t.b_panel = kn.panel * g.k;
    } else if (g.way == gemm_way::few_steps) {
        T* copy = reinterpret_cast<T*>(scratch);                                        // (k, n)
        t.b_row = round_up(n, panel_floor);
        pack_rows(g.b + cols.begin * g.b_col_stride, g.b_row_stride, g.b_col_stride, g.k, n, copy, t.b_row);
        b = copy;
        scratch += round_up(g.k * t.b_row * static_cast<index_t>(sizeof(T)), 64);
    }
    for (index_t i = rows.begin; i < rows.end; i += rank_rows) {
        const index_t m = least(rank_rows, rows.end - i);
        t.out = in_c ? reinterpret_cast<T*>(g.c) + i * g.c_row_stride + cols.begin : reinterpret_cast<T*>(scratch);  // (m, n)
        t.in = nullptr;
        t.in_row = t.out_row = in_c ? g.c_row_stride : round_up(n, panel_floor);
        for (index_t p = 0; p < g.k;) {
            index_t steps = least(g.k - p, rank_steps);
            if (!kn.rank[m - 1][steps - 1]) steps = 1;
            t.a = g.a + i * g.a_row_stride + p;
            t.b = b + p * t.b_row;
            kn.rank[m - 1][steps - 1](t);
            t.in = t.out;
            p += steps;
        }
        if (!in_c) gemm_finish(g, i, static_cast<int>(m), cols.begin, n, t.out, t.out_row);
    }
}

// At most four columns, or rows of the transposed product: the wide operand is read in place, the narrow one as (k, 4).
template <class T>
inline void gemm_narrow_task(const gemm_job<T>& g, range rows, range cols, std::byte* scratch) {
    const bool swap = g.way == gemm_way::few_rows;
    const index_t m = rows.end - rows.begin, n = cols.end - cols.begin, wide = swap ? n : m, few = swap ? m : n;
    const index_t bytes = round_up(4 * g.k * static_cast<index_t>(sizeof(T)), 64);
    T* quads = reinterpret_cast<T*>(scratch);                                           // (k, 4)
    T* sums = reinterpret_cast<T*>(scratch + bytes);                                    // (4, narrow_rows_at_once)
    T* turned = sums + narrow_rows_at_once * 4;                                         // (narrow_rows_at_once, 4)
    narrow_tile<T> t;
    t.k = g.k;
    t.b = quads;
    t.b_step = 4;
    t.cols = static_cast<int>(few);
    t.out = sums;
    const T* a = g.a + rows.begin * g.a_row_stride;
    if (!swap && g.packed) {
        t.b = g.packed;
        t.b_step = g.kernel->panel;
    } else {
        std::memset(static_cast<void*>(quads), 0, static_cast<std::size_t>(4 * g.k) * sizeof(T));
        if (swap) pack_rows(a, g.a_col_stride, g.a_row_stride, g.k, few, quads, 4);
        else pack_rows(g.b + cols.begin * g.b_col_stride, g.b_row_stride, g.b_col_stride, g.k, few, quads, 4);
    }
    t.a_row = swap ? g.b_col_stride : g.a_row_stride;
    const T* first = swap ? g.b + cols.begin * g.b_col_stride : a;
    for (index_t at = 0; at < wide; at += narrow_rows_at_once) {
        t.rows = least(narrow_rows_at_once, wide - at);
        t.a = first + at * t.a_row;
        g.kernel->narrow(t);
        if (swap) {
            gemm_finish(g, rows.begin, static_cast<int>(few), cols.begin + at, t.rows, sums, narrow_rows_at_once);
            continue;
        }
        T* c = g.plain ? reinterpret_cast<T*>(g.c) + (rows.begin + at) * g.c_row_stride + cols.begin : turned;
        const index_t c_row = g.plain ? g.c_row_stride : 4;
        for (index_t i = 0; i < t.rows; ++i, c += c_row) {
            for (index_t j = 0; j < few; ++j) c[j] = sums[j * narrow_rows_at_once + i];
        }
        if (g.plain) continue;
        for (index_t i = 0; i < t.rows; i += max_mr) {
            gemm_finish(g, rows.begin + at + i, static_cast<int>(least(max_mr, t.rows - i)), cols.begin, few, turned + 4 * i, 4);
        }
    }
}

// A whole product of a few tiles, operands in place: C (m, n) = A (m, k) * B (k, n), rows contiguous. next_a and next_b: the
// operands of the product behind this one, or null where they are not to be asked for.
template <class T>
inline void gemm_small_task(const gemm_kernel<T>& kn, index_t m, index_t n, index_t k, const T* a, index_t a_row, const T* b, index_t b_row,
                            T* c, index_t c_row, const T* next_a = nullptr, const T* next_b = nullptr) {
    const int lanes = kn.lanes, cols = static_cast<int>(n);
    micro_tile<T> mt;
    mt.a_row = a_row;
    mt.length = k;
    mt.b_panel = kn.panel;
    mt.b_step = b_row;
    mt.out_row = c_row;
    const even_tiles across(ceil_div(n, lanes), kn.nr / lanes);
    const int step = static_cast<int>(across.size) * lanes;                             // 64 columns are 32 and 32, not 48 and 16
    for (int j = 0; j < cols; j += step) {
        const int width = cols - j < step ? cols - j : step, regs = (width + lanes - 1) / lanes;
        mt.b = b + j;
        mt.cols = width - (regs - 1) * lanes;
        mt.a = a;
        mt.out = c + j;
        mt.ahead = j == 0 ? next_b : j + step >= cols ? next_a : nullptr;
        mt.ahead_count = mt.ahead_walk = 0;
        if (mt.ahead) {
            const index_t lines = ceil_div(j == 0 ? (k - 1) * b_row + n : (m - 1) * a_row + k, kn.panel);
            mt.ahead_count = round_up(ceil_div(lines, ceil_div(m, kn.mr) * regs), 4);
            mt.ahead_panel = kn.panel;
            mt.ahead_step = regs * kn.panel;
            mt.ahead_walk = mt.ahead_count * mt.ahead_step;
        }
        for (index_t i = 0; i < m;) {
            const tile_run run = next_run(kn, m - i, regs);
            const index_t height = run.height, count = run.count;
            mt.height = run.height;
            mt.a_walk = height * a_row;
            mt.out_walk = height * c_row;
            mt.tiles = count;
            kn.micro[run.index][regs - 1](mt);
            mt.a += count * mt.a_walk;
            mt.out += count * mt.out_walk;
            mt.ahead += count * mt.ahead_walk;
            i += count * height;
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
    if (is_rank(g.way)) return gemm_rank_task(g, rows, cols, scratch);
    if (is_narrow(g.way)) return gemm_narrow_task(g, rows, cols, scratch);
    if (is_relaxed(g.way)) return g.relaxed_task(g, rows, cols, scratch);
    const bool several = g.k > g.kc;                                                    // more than one k block
    const bool keep = several && !g.sums_in_c;
    const gemm_scratch s =
        gemm_scratch_of(kn, m, n, g.k, g.mc, g.kc, g.nc, g.l1, g.pack_a, g.source, keep, g.half != 0, gemm_way::tiles);
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
                // Columns that need no copy: in place, all but a part panel at the end.
                const index_t whole = g.source != b_source::in_place ? 0 : kn.masked ? nb : nb / kn.panel * kn.panel;
                const T* from = g.packed ? nullptr : g.b + pc * g.b_row_stride;
                panels_of_b<T> placed{g, g.packed ? nullptr : from + jc, kn.panel, g.b_row_stride};
                panels_of_b<T> packed{g, b_pack, kb * kn.panel, kn.panel, b_pack, from, kb, (jc + whole) / kn.panel,
                                      ie - io <= g.mc};                                 // (nb / panel, kb, panel)
                placed.far = packed.far = g.far;
                if (g.source == b_source::packed_beforehand) {
                    packed.data = g.packed + jc * g.k + pc * kn.panel;
                    packed.panel = g.k * kn.panel;
                    packed.to = nullptr;
                }
                const index_t mc = equal_block(ie - io, g.mc, kn.mr);
                for (index_t ic = io; ic < ie; ic += mc) {
                    const index_t mb = least(mc, ie - ic);
                    const T* a = g.a + ic * g.a_row_stride + pc * g.a_col_stride;       // (mb, kb)
                    index_t a_row = g.a_row_stride;
                    if (g.pack_a) {
                        pack_rows(a, g.a_row_stride, g.a_col_stride, mb, kb, a_pack, kb);
                        a = a_pack;
                        a_row = kb;
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
                        gemm_block<T>(g, ic, mb, jc, whole, kb, a, a_row, placed, sums, sums_stride, first, last, tile).run();
                    }
                    if (whole < nb) {
                        gemm_block<T>(g, ic, mb, jc + whole, nb - whole, kb, a, a_row, packed, sums ? sums + whole : nullptr,
                                      sums_stride, first, last, tile).run();
                    }
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
