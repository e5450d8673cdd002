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

#include "gemm.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// One axis of the window: which input coordinate lies under a tap of an output coordinate.
struct conv_axis {
    index_t in = 0, out = 0, taps = 0, stride = 1, dilation = 1, pad = 0;  // pad: before the first element
    bool transposed = false;

    // The input coordinate of tap t of output o. Below 0 or not below `in`: in the padding.
    HONE_INLINE constexpr index_t source(index_t o, index_t t) const {
        return transposed ? (o + pad - t * dilation) / stride : o * stride + t * dilation - pad;
    }
    // Whether outputs of this phase (o modulo the stride) have tap t at all.
    HONE_INLINE constexpr bool has(index_t phase, index_t t) const {
        return !transposed || (phase + pad - t * dilation) % stride == 0;
    }
    HONE_INLINE constexpr index_t phases() const { return transposed ? least(stride, out) : 1; }
    HONE_INLINE constexpr index_t step() const { return transposed ? stride : 1; }
    HONE_INLINE constexpr index_t outputs(index_t phase) const { return ceil_div(out - phase, step()); }
};

template <class T>
struct conv_job {
    const gemm_kernel<T>* kernel = nullptr;
    depthwise_fn<T> depthwise = nullptr;   // set: the depthwise nest runs
    conv_axis y, x;
    index_t images = 0, groups = 1, ic = 0, oc = 0;                        // channels per group
    index_t mc = 0, kc = 0, nc = 0;
    const T* input = nullptr;                                              // channels are contiguous
    index_t in_n = 0, in_h = 0, in_w = 0;                                  // strides, elements
    const T* weights = nullptr;                                            // packed: (groups, panels, kh * kw * ic, panel)
    index_t group_weights = 0;                                             // elements from one group to the next
    bool finite = true;
    const T* zeros = nullptr;                                              // as many as the longest run
    unsigned char* output = nullptr;
    index_t out_n = 0, out_h = 0, out_w = 0, out_c = 0, out_size = 0;      // strides, elements; bytes of an element
    index_t first_image = 0;                                               // what image 0 of this job is to a stage
    bool plain = false;                                                    // the last block stores the output itself
    finish_fn<T> finish = nullptr;
    const void* epilogue = nullptr;

    HONE_INLINE unsigned char* out_at(index_t n, index_t h, index_t w, index_t c) const {
        return output + (n * out_n + h * out_h + w * out_w + c * out_c) * out_size;
    }
};

// Bytes of each part of one task's scratch, each on 64-byte lines.
struct conv_scratch {
    index_t rows = 0, start = 0, taps = 0, sums = 0, tile = 0;
    constexpr index_t bytes() const { return rows + start + taps + sums + tile; }
};

// How many pixels of `channels` sums wait in the tile buffer for one epilogue pass: what stays in L1 (8 KiB of floats).
HONE_INLINE constexpr index_t depthwise_batch(index_t channels) { return least(most(2048 / most(channels, 1), 1), max_mr); }

template <class T>
HONE_INLINE constexpr conv_scratch conv_scratch_of(const gemm_kernel<T>& kernel, bool depthwise, index_t taps, index_t channels,
                                                   index_t mc, index_t nc, bool sums) {
    conv_scratch s;
    const index_t size = static_cast<index_t>(sizeof(T)), pointer = static_cast<index_t>(sizeof(void*));
    s.rows = round_up(taps * (max_mr + 1) * pointer, 64);
    s.start = round_up(taps * 2 * static_cast<index_t>(sizeof(index_t)), 64);
    s.taps = round_up(taps * 2 * static_cast<index_t>(sizeof(index_t)), 64);
    if (sums) s.sums = round_up(mc * nc * size, 64);
    s.tile = depthwise ? depthwise_batch(channels) * round_up(channels, panel_floor) * size : round_up((kernel.mr * kernel.nr + panel_floor) * size, 64);
    return s;
}

// One pixel of a phase.
struct pixel {
    index_t n = 0, h = 0, w = 0;
};

// Counts through the pixels of one phase: pixel q of n * hs * ws.
struct phase_pixels {
    index_t ph = 0, pw = 0, hs = 0, ws = 0, step_h = 1, step_w = 1;
    HONE_INLINE pixel at(index_t q) const {
        const index_t row = q / ws;
        return {row / hs, ph + row % hs * step_h, pw + q % ws * step_w};
    }
    HONE_INLINE void advance(pixel& p) const {
        p.w += step_w;
        if (p.w < pw + ws * step_w) return;
        p.w = pw;
        p.h += step_h;
        if (p.h < ph + hs * step_h) return;
        p.h = ph;
        ++p.n;
    }
};

// One k block: `runs` taps from `first_tap`, `length` channels from `channel` of each.
struct conv_k_block {
    index_t first_tap = 0, runs = 0, channel = 0, length = 0;
    bool first = false, last = false;
};

template <class T>
struct conv_memory {
    const T** rows;      // (runs, mr)
    index_t* start;      // (runs)
    index_t* taps;       // (taps of the phase, 2) their kh, kw
    T* sums;             // (mc, nc) or null
    T* tile;             // (mr, nr), or one pixel of all channels
};

// The pixels under each tap of a k block, for tiles of output pixels of one phase and one group: one run per tap.
template <class T>
struct window_source {
    const conv_job<T>& job;
    const phase_pixels& phase;
    const conv_k_block& block;
    const index_t* taps;         // (runs, 2) kh, kw
    index_t channel;             // first input channel

    HONE_INLINE bool fill(index_t first, int height, const T** rows) const {
        bool edge = false;
        pixel p = phase.at(first);
        for (int i = 0; i < height; ++i, phase.advance(p)) {
            const T* image = job.input + p.n * job.in_n + channel;
            for (index_t r = 0; r < block.runs; ++r) {
                const index_t h = job.y.source(p.h, taps[2 * r]), w = job.x.source(p.w, taps[2 * r + 1]);
                const bool inside = static_cast<std::uint64_t>(h) < static_cast<std::uint64_t>(job.y.in) &&
                                    static_cast<std::uint64_t>(w) < static_cast<std::uint64_t>(job.x.in);
                rows[r * height + i] = inside ? image + h * job.in_h + w * job.in_w : job.zeros;
                edge = edge || !inside;
            }
        }
        return edge;
    }
};

// Pixels [q0, q1) of a phase against one k block and columns [j0, j0 + cols) of group g: loops ir and jr.
template <class T>
inline void conv_block(const conv_job<T>& job, const phase_pixels& phase, index_t q0, index_t q1, index_t g, index_t j0, index_t cols,
                       const conv_k_block& kb, const conv_memory<T>& mem, index_t sums_stride) {
    const gemm_kernel<T>& kn = *job.kernel;
    const index_t k = job.y.taps * job.x.taps * job.ic, b_panel = k * kn.panel;
    const T* weights = job.weights + g * job.group_weights + j0 * k;                    // (cols / panel, k, panel)
    const index_t* taps = mem.taps + 2 * kb.first_tap;                                  // (runs, 2)
    const window_source<T> source{job, phase, kb, taps, g * job.ic + kb.channel};
    for (index_t r = 0; r < kb.runs; ++r) mem.start[r] = (taps[2 * r] * job.x.taps + taps[2 * r + 1]) * job.ic + kb.channel;
    pixel p = phase.at(q0);
    for (index_t q = q0; q < q1;) {
        const tile_run run = next_run(kn, q1 - q, cols % kn.nr == 0 ? kn.nr / kn.lanes : 1);
        const int height = run.height;
        const bool to_tile = kb.last && !job.plain;
        unsigned char* out_rows[max_mr];                                                // (mr) column j0
        index_t row_numbers[max_mr];                                                    // (mr)
        for (int i = 0; i < height; ++i, phase.advance(p)) {
            out_rows[i] = job.out_at(p.n, p.h, p.w, g * job.oc + j0);
            row_numbers[i] = ((job.first_image + p.n) * job.y.out + p.h) * job.x.out + p.w;
        }
        const bool edge = source.fill(q, height, mem.rows);
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
            finish_tile<T> ft;
            ft.t = mem.tile;
            ft.t_stride = kn.nr;
            ft.out = c_rows;
            ft.out_stride = job.out_c;
            ft.row = row_numbers;
            ft.col = g * job.oc + j0 + jr;
            ft.rows = height;
            ft.cols = width;
            ft.image_h = job.y.out;
            ft.image_w = job.x.out;
            job.finish(ft, job.epilogue);
        }
        q += height;
    }
}

// Pixels [q0, q1) of a phase of a depthwise convolution: one pixel of all channels at a time, over the taps it has.
template <class T>
inline void depthwise_block(const conv_job<T>& job, const phase_pixels& phase, index_t q0, index_t q1, index_t taps,
                            const conv_memory<T>& mem) {
    const index_t batch = depthwise_batch(job.groups), tile_stride = round_up(job.groups, panel_floor);
    pixel p = phase.at(q0);
    for (index_t q = q0; q < q1; q += batch) {
        const int count = static_cast<int>(least(batch, q1 - q));
        void* c_rows[max_mr];                                                           // (count)
        index_t row_numbers[max_mr];                                                    // (count)
        for (int i = 0; i < count; ++i, phase.advance(p)) {
            const T* image = job.input + p.n * job.in_n;
            unsigned char* pixel_out = job.out_at(p.n, p.h, p.w, 0);
            depthwise_pixel<T> d;
            for (index_t r = 0; r < taps; ++r) {
                const index_t* tap = mem.taps + 2 * r;
                const index_t h = job.y.source(p.h, tap[0]), w = job.x.source(p.w, tap[1]);
                if (h < 0 || h >= job.y.in || w < 0 || w >= job.x.in) continue;
                mem.rows[d.taps] = image + h * job.in_h + w * job.in_w;
                mem.start[d.taps++] = tap[0] * job.x.taps + tap[1];
            }
            d.rows = mem.rows;
            d.start = mem.start;
            d.channels = job.groups;
            d.b = job.weights;
            d.out = job.plain ? reinterpret_cast<T*>(pixel_out) : mem.tile + i * tile_stride;
            job.depthwise(d);
            c_rows[i] = pixel_out;
            row_numbers[i] = ((job.first_image + p.n) * job.y.out + p.h) * job.x.out + p.w;
        }
        if (job.plain) continue;
        finish_tile<T> ft;
        ft.t = mem.tile;                                                                // (count, channels)
        ft.t_stride = tile_stride;
        ft.out = c_rows;
        ft.out_stride = job.out_c;
        ft.row = row_numbers;
        ft.rows = count;
        ft.cols = static_cast<int>(job.groups);
        ft.image_h = job.y.out;
        ft.image_w = job.x.out;
        job.finish(ft, job.epilogue);
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
    mem.taps = reinterpret_cast<index_t*>(scratch + s.rows + s.start);
    T* kept = s.sums ? reinterpret_cast<T*>(scratch + s.rows + s.start + s.taps) : nullptr;
    mem.tile = reinterpret_cast<T*>(scratch + s.rows + s.start + s.taps + s.sums);
    const index_t unit = most(kn.nr, kn.panel);
    for (index_t phase = 0; phase < job.y.phases() * job.x.phases(); ++phase) {
        phase_pixels pixels;
        pixels.ph = phase / job.x.phases();
        pixels.pw = phase % job.x.phases();
        pixels.hs = job.y.outputs(pixels.ph);
        pixels.ws = job.x.outputs(pixels.pw);
        pixels.step_h = job.y.step();
        pixels.step_w = job.x.step();
        index_t taps = 0;
        for (index_t y = 0; y < job.y.taps; ++y) {
            for (index_t x = 0; x < job.x.taps; ++x) {
                if (!job.y.has(pixels.ph, y) || !job.x.has(pixels.pw, x)) continue;
                mem.taps[2 * taps] = y;
                mem.taps[2 * taps++ + 1] = x;
            }
        }
        const index_t all = job.images * pixels.hs * pixels.ws;
        const range rows = part_of(all, job.depthwise ? 1 : kn.mr, row_parts, row_part);
        if (rows.begin >= rows.end) continue;
        if (job.depthwise) {
            depthwise_block(job, pixels, rows.begin, rows.end, taps, mem);
            continue;
        }
        const range cols = part_of(job.oc, unit, col_parts, col_part);
        if (cols.begin >= cols.end) continue;
        const index_t nc = equal_block(cols.end - cols.begin, job.nc, unit), mc = equal_block(rows.end - rows.begin, job.mc, kn.mr);
        const index_t channels = equal_block(job.ic, job.kc, 1);                        // of one run
        const index_t together = job.ic > 0 ? most(job.kc / job.ic, 1) : taps;           // no channels: nothing to cut
        const index_t runs = channels < job.ic ? 1 : most(equal_block(taps, together, 1), 1);
        for (index_t g = 0; g < job.groups; ++g) {
            for (index_t jc = cols.begin; jc < cols.end; jc += nc) {
                const index_t nb = least(nc, cols.end - jc);
                for (index_t ic = rows.begin; ic < rows.end; ic += mc) {
                    const index_t end = least(ic + mc, rows.end);
                    mem.sums = kept;
                    for (index_t tap = 0; tap < most(taps, 1); tap += runs) {
                        for (index_t c = 0; c < most(job.ic, 1); c += channels) {
                            conv_k_block kb;
                            kb.first_tap = tap;
                            kb.runs = least(runs, taps - tap);
                            kb.channel = c;
                            kb.length = least(channels, job.ic - c);
                            kb.first = tap == 0 && c == 0;
                            kb.last = tap + runs >= taps && c + channels >= job.ic;
                            conv_block(job, pixels, ic, end, g, jc, nb, kb, mem, nc);
                        }
                    }
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
