// SPDX-License-Identifier: BSL-1.0
// Convolution as a matrix product that is never written down: rows are output pixels, columns output channels, k counts
// taps (kh, kw) and input channels. A register tile reads its input pixels where they lie, through one pointer a pixel and
// tap; no im2col buffer exists.
//
//   loop   over                     step   owner              what stays where
//   g      groups                   1      conv_task
//   jc     output channels          nc     conv_task          weights (kc, nc) in L2
//   ic     output pixels            mc     conv_task          partial sums (mc, nc), where k has several blocks
//   pc     taps and channels        kc     conv_task
//   ir     pixels of the block      mr     conv_block         pointers (runs, mr), input pixels in L1
//   jr     channels of the block    nr     conv_block         the register tile (mr, nr)
//   -      taps, channels           1      gemm_micro (kernel/*.inl)
//
// Transposed convolution gathers: output pixels whose coordinates agree modulo the stride see the same taps (a phase), so
// each phase is an ordinary convolution over some of the taps and no zero is ever inserted.
//
// A tap in the padding is not part of the chain. Pointing it at a row of zeros leaves every finite chain as it was, so
// that is done where all weights are finite; else pixels at the edge are computed one by one over the taps they have.
#pragma once

#include "conv_job.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// The longest run of a row of taps, in elements: 7 taps of 18 channels. Where a channel alone is a run as long, less is gained
// than copying the windows at the edges takes.
inline constexpr index_t longest_row_of_taps = 128;

// Bytes of each part of one task's scratch, each on 64-byte lines.
struct conv_scratch {
    index_t rows = 0, start = 0, taps = 0, edges = 0, sums = 0, tile = 0;
    constexpr index_t bytes() const { return rows + start + taps + edges + sums + tile; }
};

// A run of a window: where it begins, seen from the first tap of the same window.
struct conv_tap {
    index_t y = 0, x = 0;  // input coordinates
    index_t in = 0;        // elements of the input
    index_t k = 0;         // row of the packed weights
};

// tap_rows, runs: rows of taps and taps of a window; row: elements of a row of taps where it may be a run, else 0.
template <class T>
HONE_INLINE constexpr conv_scratch conv_scratch_of(const gemm_kernel<T>& kernel, index_t tap_rows, index_t runs, index_t row, index_t mc,
                                                   index_t nc, bool sums) {
    conv_scratch s;
    const index_t size = static_cast<index_t>(sizeof(T)), pointer = static_cast<index_t>(sizeof(void*));
    s.rows = round_up(runs * (max_mr + 1) * pointer, 64);
    s.start = round_up(runs * 2 * static_cast<index_t>(sizeof(index_t)), 64);
    s.taps = round_up(runs * static_cast<index_t>(sizeof(conv_tap)), 64);
    if (row > 0) s.edges = round_up(max_mr * tap_rows * row * size, 64);
    if (sums) s.sums = round_up(mc * nc * size, 64);
    s.tile = round_up((kernel.mr * kernel.nr + panel_floor) * size, 64);
    return s;
}

// One pixel of a phase, counted in its outputs.
struct pixel {
    index_t n = 0, y = 0, x = 0;
};

// The pixels of one phase: number q of images * y.outputs * x.outputs.
struct phase_pixels {
    axis_phase y, x;
    HONE_INLINE pixel at(index_t q) const {
        const index_t row = q / x.outputs;
        return {row / y.outputs, row % y.outputs, q % x.outputs};
    }
    HONE_INLINE void advance(pixel& p) const {
        if (++p.x < x.outputs) return;
        p.x = 0;
        if (++p.y < y.outputs) return;
        p.y = 0;
        ++p.n;
    }
};

// One k block: `runs` runs from `first_run`, `length` elements from `offset` of each.
struct conv_k_block {
    index_t first_run = 0, runs = 0, offset = 0, length = 0;
    bool first = false, last = false;
};

template <class T>
struct conv_memory {
    const T** rows;      // (runs, mr)
    index_t* start;      // (runs)
    conv_tap* taps;      // (runs of the phase)
    T* edges;            // (mr, runs, row of taps) or null
    T* sums;             // (mc, nc) or null
    T* tile;             // (mr, nr)
};

// Where each run of each pixel of a tile begins in the input. Runs in the padding point to zeros; a row of taps part of which
// is in the padding is copied, with zeros there.
template <class T>
struct window_source {
    const conv_job<T>& job;
    const phase_pixels& phase;
    const conv_k_block& block;
    const conv_tap* taps;        // (runs)
    index_t channel;             // first input channel of the group
    T* edges;                    // (mr, runs, length) where a run is a row of taps
    range whole_y, whole_x;      // outputs whose windows lie inside

    // Whether any tap of these pixels is in the padding.
    HONE_INLINE bool fill(pixel p, int height, const T** rows) const {
        bool edge = false;
        for (int i = 0; i < height; ++i, phase.advance(p)) {
            const index_t h = phase.y.begin + p.y * phase.y.by_output, w = phase.x.begin + p.x * phase.x.by_output;
            const index_t origin = p.n * job.in_n + h * job.in_h + w * job.in_w + channel + block.offset;
            if (p.y >= whole_y.begin && p.y < whole_y.end && p.x >= whole_x.begin && p.x < whole_x.end) {
                for (index_t r = 0; r < block.runs; ++r) rows[r * height + i] = job.input + origin + taps[r].in;
                continue;
            }
            edge = true;
            if (edges) {
                const range x = phase.x.inside(p.x);
                for (index_t r = 0; r < block.runs; ++r) rows[r * height + i] = row_of_taps(i, r, h + taps[r].y, x, origin + taps[r].in);
                continue;
            }
            for (index_t r = 0; r < block.runs; ++r) {
                const bool inside = in_range(h + taps[r].y, job.y.in) && in_range(w + taps[r].x, job.x.in);
                rows[r * height + i] = inside ? job.input + origin + taps[r].in : job.zeros;
            }
        }
        return edge;
    }

private:
    static HONE_INLINE bool in_range(index_t at, index_t extent) { return static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(extent); }
    HONE_INLINE const T* row_of_taps(int i, index_t r, index_t h, range x, index_t at) const {
        if (!in_range(h, job.y.in) || x.begin >= x.end) return job.zeros;
        if (x.end - x.begin == phase.x.taps) return job.input + at;
        T* copy = edges + (i * block.runs + r) * block.length;
        const index_t first = x.begin * job.ic, end = x.end * job.ic;
        for (index_t c = 0; c < block.length; ++c) copy[c] = c >= first && c < end ? job.input[at + c] : T(0);
        return copy;
    }
};

// Pixels [q0, q1) of a phase against one k block and columns [j0, j0 + cols) of group g: loops ir and jr.
template <class T>
inline void conv_block(const conv_job<T>& job, const phase_pixels& phase, index_t q0, index_t q1, index_t g, index_t j0, index_t cols,
                       const conv_k_block& kb, const conv_memory<T>& mem, index_t sums_stride) {
    const gemm_kernel<T>& kn = *job.kernel;
    const index_t k = job.y.taps * job.x.taps * job.ic, b_panel = k * kn.panel;
    const T* weights = job.weights + g * job.group_weights + j0 * k;                    // (cols / panel, k, panel)
    const conv_tap* taps = mem.taps + kb.first_run;                                     // (runs)
    const window_source<T> source{job, phase, kb, taps, g * job.group_ic, mem.edges, phase.y.whole(), phase.x.whole()};
    for (index_t r = 0; r < kb.runs; ++r) mem.start[r] = taps[r].k + kb.offset;
    pixel p = phase.at(q0);
    for (index_t q = q0; q < q1;) {
        const tile_run run = next_run(kn, q1 - q, cols % kn.nr == 0 ? kn.nr / kn.lanes : 1);
        const int height = run.height;
        const bool to_tile = kb.last && !job.plain && !job.simple;
        unsigned char* out_rows[max_mr];                                                // (mr) column j0
        index_t row_numbers[max_mr];                                                    // (mr)
        const bool edge = source.fill(p, height, mem.rows);
        for (int i = 0; i < height; ++i, phase.advance(p)) {
            const index_t h = phase.y.first_output + p.y * phase.y.output_step, w = phase.x.first_output + p.x * phase.x.output_step;
            out_rows[i] = job.out_at(p.n, h, w, g * job.group_oc + j0);
            row_numbers[i] = job.row_number(p.n, h, w);
        }
        const bool by_pixel = edge && !job.finite;
        for (index_t jr = 0; jr < cols; jr += kn.nr) {
            const int width = static_cast<int>(least(kn.nr, cols - jr));
            const int regs = static_cast<int>(ceil_div(width, kn.lanes));
            T* kept = mem.sums ? mem.sums + (q - q0) * sums_stride + jr : nullptr;
            T* pixels[max_mr];                                                          // (mr) of the output
            if (!kept) {
                for (int i = 0; i < height; ++i) pixels[i] = reinterpret_cast<T*>(out_rows[i]) + jr;
            }
            micro_tile<T> mt;
            mt.rows = mem.rows;
            mt.height = height;
            mt.start = mem.start;
            mt.runs = kb.runs;
            mt.length = kb.length;
            mt.b = weights + jr / kn.panel * b_panel + jr % kn.panel;
            mt.b_panel = b_panel;
            mt.b_step = kn.panel;
            mt.cols = width - (regs - 1) * kn.lanes;
            mt.in_row = sums_stride;
            mt.out_row = to_tile ? kn.nr : sums_stride;
            if (to_tile) mt.out = mem.tile;
            else if (kept) mt.out = kept;
            else mt.out_rows = pixels;
            if (kb.last && job.simple) {
                mt.bias = job.stages.bias ? static_cast<const T*>(job.stages.bias) + g * job.group_oc + j0 + jr : nullptr;
                mt.relu = job.stages.relu;
            }
            if (!kb.first && kept) mt.in = kept;
            if (!kb.first && !kept) mt.in_rows = pixels;
            if (!by_pixel) {
                kn.micro[run.index][regs - 1](mt);
            } else {
                for (int i = 0; i < height; ++i) {
                    // The taps this pixel has, gathered behind the tile's own pointers: at most `runs` of each.
                    const T** one = mem.rows + kb.runs * height;
                    index_t* one_start = mem.start + kb.runs;
                    index_t count = 0;
                    for (index_t r = 0; r < kb.runs; ++r) {
                        if (mem.rows[r * height + i] == job.zeros) continue;
                        one[count] = mem.rows[r * height + i];
                        one_start[count++] = mem.start[r];
                    }
                    micro_tile<T> single = mt;
                    single.rows = one;
                    single.height = 1;
                    single.start = one_start;
                    single.runs = count;
                    if (single.in) single.in += i * mt.in_row;
                    if (single.in_rows) single.in_rows += i;
                    if (single.out) single.out += i * mt.out_row;
                    if (single.out_rows) single.out_rows += i;
                    kn.micro[0][regs - 1](single);
                }
            }
            if (!to_tile) continue;
            void* c_rows[max_mr];
            for (int i = 0; i < height; ++i) c_rows[i] = out_rows[i] + jr * job.out_c * job.out_size;
            job.apply_stages(mem.tile, kn.nr, height, c_rows, row_numbers, g * job.group_oc + j0 + jr, width);
        }
        q += height;
    }
}

// One task: part `row_part` of the pixels of every phase, part `col_part` of the channels of every group.
template <class T>
inline void conv_task(const conv_job<T>& job, index_t row_part, index_t row_parts, index_t col_part, index_t col_parts,
                      const conv_scratch& s, std::byte* scratch) {
    const gemm_kernel<T>& kn = *job.kernel;
    conv_memory<T> mem;
    mem.rows = reinterpret_cast<const T**>(scratch);
    mem.start = reinterpret_cast<index_t*>(scratch + s.rows);
    mem.taps = reinterpret_cast<conv_tap*>(scratch + s.rows + s.start);
    // Where a weight is not finite padding is not multiplied by it, and rows of taps that begin or end in the padding are shorter.
    const bool by_rows = job.rows_of_taps && job.finite;
    mem.edges = by_rows ? reinterpret_cast<T*>(scratch + s.rows + s.start + s.taps) : nullptr;
    T* kept = s.sums ? reinterpret_cast<T*>(scratch + s.rows + s.start + s.taps + s.edges) : nullptr;
    mem.tile = reinterpret_cast<T*>(scratch + s.rows + s.start + s.taps + s.edges + s.sums);
    const index_t unit = column_unit(kn, false);
    for (index_t phase = 0; phase < job.y.phases() * job.x.phases(); ++phase) {
        const phase_pixels pixels{axis_phase(job.y, phase / job.x.phases()), axis_phase(job.x, phase % job.x.phases())};
        const axis_phase &y = pixels.y, &x = pixels.x;
        const index_t each_row = by_rows ? least(x.taps, 1) : x.taps, all_runs = y.taps * each_row;
        for (index_t r = 0; r < all_runs; ++r) {
            const index_t ty = r / each_row, tx = r % each_row;
            mem.taps[r] = {ty * y.by_tap, tx * x.by_tap, ty * y.by_tap * job.in_h + tx * x.by_tap * job.in_w,
                           ((y.first_tap + ty * y.tap_step) * job.x.taps + x.first_tap + tx * x.tap_step) * job.ic};
        }
        const range rows = part_of(job.images * y.outputs * x.outputs, kn.mr, row_parts, row_part);
        const range cols = part_of(job.oc, unit, col_parts, col_part);
        if (rows.begin >= rows.end || cols.begin >= cols.end) continue;
        const index_t nc = equal_block(cols.end - cols.begin, job.nc, unit), mc = equal_block(rows.end - rows.begin, job.mc, kn.mr);
        const index_t run = by_rows ? x.taps * job.ic : job.ic;                         // elements
        const index_t length = equal_block(run, job.kc, 1);
        const index_t together = run > 0 ? most(job.kc / run, 1) : all_runs;            // no channels: nothing to cut
        const index_t runs = length < run ? 1 : most(equal_block(all_runs, together, 1), 1);
        for (index_t g = 0; g < job.groups; ++g) {
            // Of groups that share a register the last may be fewer.
            const index_t end_of_cols = least(cols.end, job.all_oc - g * job.group_oc);
            for (index_t jc = cols.begin; jc < end_of_cols; jc += nc) {
                const index_t nb = least(nc, end_of_cols - jc);
                for (index_t ic = rows.begin; ic < rows.end; ic += mc) {
                    const index_t end = least(ic + mc, rows.end);
                    mem.sums = kept;
                    for (index_t r = 0; r < most(all_runs, 1); r += runs) {
                        for (index_t c = 0; c < most(run, 1); c += length) {
                            conv_k_block kb;
                            kb.first_run = r;
                            kb.runs = least(runs, all_runs - r);
                            kb.offset = c;
                            kb.length = least(length, run - c);
                            kb.first = r == 0 && c == 0;
                            kb.last = r + runs >= all_runs && c + length >= run;
                            conv_block(job, pixels, ic, end, g, jc, nb, kb, mem, nc);
                        }
                    }
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
