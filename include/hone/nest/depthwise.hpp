// SPDX-License-Identifier: BSL-1.0
// Depthwise convolution: as many groups as channels, each with one channel in and one out.
//
//   loop   over                      step   owner              what stays where
//   -      phases                    1      depthwise_task     (transposed convolution only)
//   jc     channels                  nc     depthwise_task     weights (taps, nc)
//   ic     pixels of an output row   mc     depthwise_task     the tile of sums (mc, nc) in L1
//   -      output rows               1      depthwise_task     input rows (taps, nc) in L1: all but one serve the next output row
//   -      channels, pixels, taps    -      depthwise_micro (kernel/*.inl)
//
// Pixels at the edges have fewer taps: they are spans of their own, and padding is never read.
#pragma once

#include "conv_job.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Bytes of each part of one task's scratch, in the order they lie there, each on 64-byte lines.
struct depthwise_scratch {
    index_t rows = 0, weights = 0, spans = 0, tile = 0;
    constexpr index_t bytes() const { return rows + weights + spans + tile; }
};

template <class T>
HONE_INLINE constexpr depthwise_scratch depthwise_scratch_of(index_t tap_rows, index_t pixels, index_t channels) {
    depthwise_scratch s;
    s.rows = s.weights = round_up(tap_rows * static_cast<index_t>(sizeof(void*)), 64);
    s.spans = round_up(pixels * static_cast<index_t>(sizeof(depthwise_span)), 64);
    s.tile = round_up((pixels * round_up(channels, panel_floor) + panel_floor) * static_cast<index_t>(sizeof(T)), 64);
    return s;
}

// Pixels [first, first + count) of an output row as spans of those that have the same taps; returns how many there are.
HONE_INLINE index_t make_spans(const axis_phase& x, index_t first, index_t count, index_t pixel, index_t b_tap, depthwise_span* spans) {
    index_t made = 0;
    range of_last;
    for (index_t i = 0; i < count; ++i) {
        const range taps = x.inside(first + i);
        if (i > 0 && taps.begin == of_last.begin && taps.end == of_last.end) {
            ++spans[made - 1].pixels;
            continue;
        }
        of_last = taps;
        depthwise_span& s = spans[made++] = {};
        s.out = i;
        s.pixels = 1;
        s.taps = taps.end - taps.begin;
        if (s.taps == 0) continue;
        s.in = (x.begin + (first + i) * x.by_output + taps.begin * x.by_tap) * pixel;
        s.b = (x.first_tap + taps.begin * x.tap_step) * b_tap;
    }
    return made;
}

// One task: part `row_part` of the output rows of every phase, part `col_part` of the channels.
template <class T>
inline void depthwise_task(const conv_job<T>& job, index_t row_part, index_t row_parts, index_t col_part, index_t col_parts,
                           const depthwise_scratch& s, std::byte* scratch) {
    const T** rows = reinterpret_cast<const T**>(scratch);                              // (kh)
    const T** weights = reinterpret_cast<const T**>(scratch + s.rows);                  // (kh)
    depthwise_span* spans = reinterpret_cast<depthwise_span*>(scratch + s.rows + s.weights);
    T* tile = reinterpret_cast<T*>(scratch + s.rows + s.weights + s.spans);             // (mc, nc)
    const range channels = part_of(job.groups, panel_floor, col_parts, col_part);
    if (channels.begin >= channels.end) return;
    const index_t nc = equal_block(channels.end - channels.begin, job.nc, panel_floor);
    const bool direct = job.plain || job.simple;                                        // the kernel stores the output
    for (index_t phase = 0; phase < job.y.phases() * job.x.phases(); ++phase) {
        const axis_phase y(job.y, phase / job.x.phases()), x(job.x, phase % job.x.phases());
        const range part = part_of(job.images * y.outputs, 1, row_parts, row_part);
        const index_t mc = equal_block(x.outputs, job.mc, 1);
        depthwise_tile<T> d;
        d.rows = rows;
        d.b = weights;
        d.tap_step = x.by_tap * job.in_w;
        d.pixel_step = x.by_output * job.in_w;
        d.b_step = x.tap_step * job.groups;
        d.span = spans;
        d.relu = job.stages.relu;
        for (index_t jc = channels.begin; jc < channels.end; jc += nc) {
            d.channels = least(nc, channels.end - jc);
            d.bias = job.stages.bias ? static_cast<const T*>(job.stages.bias) + jc : nullptr;
            for (index_t ic = 0; ic < x.outputs; ic += mc) {
                const index_t pixels = least(mc, x.outputs - ic);
                d.spans = make_spans(x, ic, pixels, job.in_w, job.groups, spans);
                for (index_t q = part.begin; q < part.end; ++q) {
                    const index_t n = q / y.outputs, i = q - n * y.outputs, h = y.first_output + i * y.output_step;
                    const range taps = y.inside(i);
                    d.tap_rows = taps.end - taps.begin;
                    for (index_t r = 0; r < d.tap_rows; ++r) {
                        const index_t tap = taps.begin + r;
                        rows[r] = job.input + n * job.in_n + (y.begin + i * y.by_output + tap * y.by_tap) * job.in_h + jc;
                        weights[r] = job.weights + (y.first_tap + tap * y.tap_step) * job.x.taps * job.groups + jc;
                    }
                    const index_t w = x.first_output + ic * x.output_step;
                    unsigned char* pixel = job.out_at(n, h, w, jc);
                    d.out = direct ? reinterpret_cast<T*>(pixel) : tile;
                    d.out_step = direct ? x.output_step * job.out_w : round_up(d.channels, panel_floor);
                    job.depthwise(d);
                    if (direct) continue;
                    const index_t first_row = job.row_number(n, h, w);
                    for (index_t p = 0; p < pixels; p += max_mr) {
                        void* out_rows[max_mr];                                         // (count)
                        index_t row_numbers[max_mr];                                    // (count)
                        const index_t count = least(max_mr, pixels - p);
                        for (index_t t = 0; t < count; ++t) {
                            out_rows[t] = pixel + (p + t) * x.output_step * job.out_w * job.out_size;
                            row_numbers[t] = first_row + (p + t) * x.output_step;
                        }
                        job.apply_stages(tile + p * d.out_step, d.out_step, count, out_rows, row_numbers, jc, d.channels);
                    }
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
