// SPDX-License-Identifier: BSL-1.0
// output = epilogue(convolution of the input with the filter): 2D, any stride, dilation, four-sided padding, groups, and
// transposed. Of one row of pixels it is a 1D convolution.
//
//   hone::conv(input, filter, output, {.pad = {1, 1, 1, 1}}, hone::bias(b) | hone::relu);
//   auto plan = hone::plan(hone::conv_desc{.n = 1, .h = 56, .w = 56, .ic = 64, .oc = 64, .kh = 3, .kw = 3,
//                                          .window = {.pad = {1, 1, 1, 1}}}, hone::policy{}, hone::bias(b) | hone::relu);
//   plan->pack(filter, memory);                           // weights, once
//   plan->run(input, packed, output, hone::bias(b) | hone::relu);
//
// Shapes: input (n, h, w, ic), filter per group (oc / groups, ic / groups, kh, kw), output (n, oh, ow, oc) with
//   oh = (h + pad.top + pad.bottom - dilation_h * (kh - 1) - 1) / stride_h + 1, rounded down; transposed:
//   oh = (h - 1) * stride_h + dilation_h * (kh - 1) + 1 + output_padding_h - pad.top - pad.bottom; likewise ow.
//   Any strides in elements: NHWC, NCHW, slices of either; in and out need not be alike. Channels that are contiguous are
//   read in place, others are copied to scratch image by image. This is cross-correlation, as everywhere in inference.
// Numbers (numerics strict): one chain of fused multiply-adds per output from +0 over taps (kh, kw) and input channels in
//   ascending order, then the stages. Taps in the padding are not part of the chain: padding never meets an infinite or NaN
//   weight. Bitwise equal on every ISA with FMA and for every block and number of workers, -0 counting as +0.
// Numbers (Winograd: 3 x 3, stride 1, one group; only where policy.algorithm names it, or numerics are relaxed and there are 32
//   input and output channels at least): transforms before and after the products (nest/winograd.hpp). Of inputs of at most 1 in
//   magnitude and with |w| for the largest sum of one filter's magnitudes the errors of tests/winograd_test.cpp stay below
//   1.25 * 2^-24 * |w| for 2x2 and 30 * 2^-24 * |w| for 4x4 (fewer than 32 channels: 2.5 and 60). An infinity or NaN spreads over
//   the outputs of its tile. The same bits for every number of workers, not for every ISA.
// Algorithms: explain().kernel says which one runs. `dynamic` takes depthwise, pointwise, first_layer (a filter's
//   width times input channels at most 128, dense pixels, one group), Winograd 4x4 under relaxed numerics, implicit_gemm, the first that can.
// Epilogue: at.row counts output pixels, at.n, at.h, at.w is the pixel, at.col the output channel.
// Memory, threads, errors: as in gemm.hpp. Output strides under which elements coincide are refused.
#pragma once

#include "gemm.hpp"
#include "nest/conv.hpp"
#include "nest/depthwise.hpp"
#include "nest/pointwise.hpp"
#include "nest/winograd.hpp"

namespace hone::inline HONE_ABI {

// Rows and columns of zeros around the input.
struct padding {
    index_t top = 0, left = 0, bottom = 0, right = 0;
    friend constexpr bool operator==(const padding&, const padding&) = default;
};

// How the filter moves over the input.
struct conv_window {
    index_t stride_h = 1, stride_w = 1;
    index_t dilation_h = 1, dilation_w = 1;
    padding pad{};
    bool transposed = false;
    index_t output_padding_h = 0, output_padding_w = 0;  // transposed only; less than the stride or the dilation
};

// Distances in elements. Left out: dense NHWC.
struct image_strides {
    index_t n = strides::unset, h = strides::unset, w = strides::unset, c = strides::unset;
    friend constexpr bool operator==(const image_strides&, const image_strides&) = default;
};

// What a convolution plan is made for.
struct conv_desc {
    index_t n = 1, h = 0, w = 0, ic = 0;       // input
    index_t oc = 0, kh = 1, kw = 1;            // filter; ic and oc are of all groups together
    index_t groups = 1;
    conv_window window{};
    image_strides input{}, output{};
};

// Extent of the output along one axis; below 1 where the window does not fit.
HONE_INLINE constexpr index_t output_extent(index_t in, index_t k, index_t stride, index_t dilation, index_t before, index_t after,
                                            bool transposed, index_t output_padding) {
    const index_t span = dilation * (k - 1) + 1;
    if (transposed) return (in - 1) * stride + span + output_padding - before - after;
    const index_t room = in + before + after - span;
    return room < 0 ? 0 : room / stride + 1;
}
HONE_INLINE constexpr index_t output_h(const conv_desc& d) {
    const conv_window& w = d.window;
    return output_extent(d.h, d.kh, w.stride_h, w.dilation_h, w.pad.top, w.pad.bottom, w.transposed, w.output_padding_h);
}
HONE_INLINE constexpr index_t output_w(const conv_desc& d) {
    const conv_window& w = d.window;
    return output_extent(d.w, d.kw, w.stride_w, w.dilation_w, w.pad.left, w.pad.right, w.transposed, w.output_padding_w);
}

// The description of a convolution of these views.
template <class TI, class TF, class TO>
HONE_INLINE constexpr conv_desc describe(const image_view<TI>& in, const filter_view<TF>& f, const image_view<TO>& out,
                                         const conv_window& window = {}) {
    return {.n = in.n, .h = in.h, .w = in.w, .ic = in.c, .oc = f.oc * f.groups, .kh = f.kh, .kw = f.kw, .groups = f.groups,
            .window = window, .input = {in.n_stride, in.h_stride, in.w_stride, in.c_stride},
            .output = {out.n_stride, out.h_stride, out.w_stride, out.c_stride}};
}

namespace detail::inline HONE_UNIT {

// Everything decided about one convolution, without pointers.
template <class T>
struct conv_decision {
    conv_desc desc;
    gemm_kernel<T> kernel;
    depthwise_fn<T> depthwise = nullptr;
    hone::algorithm algorithm = hone::algorithm::implicit_gemm;
    conv_axis y, x;
    index_t mc = 0, kc = 0, nc = 0;
    index_t l1 = 0;                    // pointwise and Winograd: as in gemm_decision
    bool far = false;
    int together = 1;                  // groups that share a register
    bool one_by_one = false;           // images are computed one after the other
    index_t out_size = 0;
    int workers = 1;
    bool whole_rows = false;           // the output is split along pixels only
    bool copy_input = false;           // channels are not contiguous: copied to NHWC, one image at a time
    bool sums_in_output = false, plain_stages = false;
    bool isa_from_policy = false, tile_from_policy = false, block_from_policy = false;
    finish_fn<T> finish = nullptr;
    bias_and_relu_fn simple = nullptr; // where kernels apply all stages by themselves
};

inline constexpr index_t conv_limit = index_t{1} << 40;  // of one extent: products of two still fit 64 bits with room

// Dense NHWC where no strides were given; false where they do not fit 64 bits.
inline bool make_dense(image_strides& s, index_t h, index_t w, index_t c) {
    if (s != image_strides{}) return true;
    s = {0, 0, c, 1};
    return !__builtin_mul_overflow(w, c, &s.h) && !__builtin_mul_overflow(h, s.h, &s.n);
}

inline status check_image(index_t n, index_t h, index_t w, index_t c, const image_strides& s, index_t size, argument which) {
    index_t sum = 0;
    const index_t extent[4] = {n, h, w, c}, stride[4] = {s.n, s.h, s.w, s.c};
    for (int i = 0; i < 4; ++i) {
        index_t far = 0;
        if (extent[i] > 1 && __builtin_mul_overflow(extent[i] - 1, magnitude(stride[i]), &far)) {
            return {code::too_large, which, stride[i], INT64_MAX / 4};
        }
        if (__builtin_add_overflow(sum, far, &sum)) return {code::too_large, which, stride[i], INT64_MAX / 4};
    }
    if (__builtin_mul_overflow(sum, size, &sum) || sum > INT64_MAX / 4) {
        return {code::too_large, which, sum, INT64_MAX / 4};
    }
    return {};
}

// The axes of an image that have more than one element, longest stride first; the rest are empty.
struct image_axes {
    index_t extent[4] = {1, 1, 1, 1}, stride[4] = {1, 1, 1, 1};  // strides without sign
    HONE_INLINE constexpr image_axes(const index_t (&extents)[4], const index_t (&strides)[4]) {
        int count = 0;
        for (int i = 0; i < 4; ++i) {
            if (extents[i] <= 1) continue;
            int at = count++;
            for (; at > 0 && stride[at - 1] < magnitude(strides[i]); --at) {
                extent[at] = extent[at - 1];
                stride[at] = stride[at - 1];
            }
            extent[at] = extents[i];
            stride[at] = magnitude(strides[i]);
        }
    }
    // How far the axes from `axis` on reach.
    HONE_INLINE constexpr index_t reach(int axis) const {
        index_t sum = 0;
        for (; axis < 4; ++axis) sum += (extent[axis] - 1) * stride[axis];
        return sum;
    }
};

// Whether two elements lie on one address: differences of their positions, not all 0, whose distances add up to 0. An axis
// longer than what those behind it reach leaves one difference to try, so that a dense image takes four steps; strides that
// interleave take a few more. After `steps` the search is given up: strides of no image ask for millions.
inline bool coincides(const image_axes& v, int& steps, int axis = 0, index_t distance = 0, bool differs = false) {
    if (axis == 4) return differs && distance == 0;
    const index_t s = v.stride[axis], most_of_axis = v.extent[axis] - 1, reach = v.reach(axis + 1);
    const auto floor_div = [](index_t a, index_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); };
    const index_t high = least(floor_div(reach - distance, s), most_of_axis);
    index_t d = most(-floor_div(reach + distance, s), differs ? -most_of_axis : 0);  // the first that differs: either sign
    for (; d <= high; ++d) {
        if (--steps < 0) return false;
        if (coincides(v, steps, axis + 1, distance + d * s, differs || d != 0)) return true;
    }
    return false;
}

inline status check_conv_desc(const conv_desc& d) {
    const conv_window& w = d.window;
    const struct {
        index_t value, least;
        argument what;
    } rules[] = {
        {d.n, 0, argument::input_n}, {d.h, 0, argument::input_h}, {d.w, 0, argument::input_w}, {d.ic, 0, argument::input_c},
        {d.oc, 0, argument::filter_oc}, {d.kh, 1, argument::filter_kh}, {d.kw, 1, argument::filter_kw}, {d.groups, 1, argument::conv_groups},
        {w.stride_h, 1, argument::conv_stride}, {w.stride_w, 1, argument::conv_stride},
        {w.dilation_h, 1, argument::conv_dilation}, {w.dilation_w, 1, argument::conv_dilation},
        {w.pad.top, 0, argument::conv_padding}, {w.pad.left, 0, argument::conv_padding},
        {w.pad.bottom, 0, argument::conv_padding}, {w.pad.right, 0, argument::conv_padding},
        {w.output_padding_h, 0, argument::conv_output_padding}, {w.output_padding_w, 0, argument::conv_output_padding},
    };
    for (const auto& r : rules) {
        if (r.value < r.least) return {code::negative, r.what, r.value, r.least};
        if (r.value > conv_limit) return {code::too_large, r.what, r.value, conv_limit};
    }
    index_t unused = 0;
    if (__builtin_mul_overflow(w.dilation_h, d.kh, &unused) || unused > conv_limit) {
        return {code::too_large, argument::conv_dilation, w.dilation_h, conv_limit / d.kh};
    }
    if (__builtin_mul_overflow(w.dilation_w, d.kw, &unused) || unused > conv_limit) {
        return {code::too_large, argument::conv_dilation, w.dilation_w, conv_limit / d.kw};
    }
    if (__builtin_mul_overflow(w.stride_h, most(d.h, 1), &unused) || unused > conv_limit) {
        return {code::too_large, argument::conv_stride, w.stride_h, conv_limit / most(d.h, 1)};
    }
    if (__builtin_mul_overflow(w.stride_w, most(d.w, 1), &unused) || unused > conv_limit) {
        return {code::too_large, argument::conv_stride, w.stride_w, conv_limit / most(d.w, 1)};
    }
    if (d.ic % d.groups != 0) return {code::unsupported, argument::input_c, d.ic, d.ic - d.ic % d.groups};
    if (d.oc % d.groups != 0) return {code::unsupported, argument::output_c, d.oc, d.oc - d.oc % d.groups};
    const index_t room_h = most(w.transposed ? w.stride_h : 1, w.transposed ? w.dilation_h : 1);
    const index_t room_w = most(w.transposed ? w.stride_w : 1, w.transposed ? w.dilation_w : 1);
    if (w.output_padding_h >= room_h) {
        return {code::too_large, argument::conv_output_padding, w.output_padding_h, room_h - 1};
    }
    if (w.output_padding_w >= room_w) {
        return {code::too_large, argument::conv_output_padding, w.output_padding_w, room_w - 1};
    }
    const index_t weights = d.kh > conv_limit / d.kw ? conv_limit : d.kh * d.kw;
    if (weights >= conv_limit || weights > conv_limit / most(d.ic, 1) || weights * d.ic > conv_limit / most(d.oc + 64, 1)) {
        return {code::too_large, argument::filter_kh, d.kh, conv_limit};
    }
    return {};
}

HONE_INLINE constexpr bool is_winograd(algorithm a) { return a >= algorithm::winograd_2x2; }
HONE_INLINE constexpr index_t winograd_tile(algorithm a) { return a == algorithm::winograd_2x2 ? 2 : 4; }

// Whether an axis begins anew where `extent` steps of the one within it end. Of an image without elements strides may be anything.
HONE_INLINE constexpr bool follows(index_t stride, index_t extent, index_t step) {
    index_t reach = 0;
    return !__builtin_mul_overflow(extent, step, &reach) && stride == reach;
}
// Whether strides say that the pixels of an image are as far apart at the end of a row as within it.
HONE_INLINE constexpr bool flat_image(const image_strides& s, index_t h, index_t w) { return h <= 1 || follows(s.h, w, s.w); }
// Whether the images of a batch follow one another as their pixels do.
HONE_INLINE constexpr bool flat_batch(const image_strides& s, index_t n, index_t h, index_t w) { return n <= 1 || follows(s.n, h * w, s.w); }

// Whether an algorithm can compute this; the output has oh x ow pixels. Input whose channels are not contiguous is copied to
// dense pixels beforehand.
HONE_INLINE constexpr bool can_run(algorithm a, const conv_desc& d, index_t oh, index_t ow, const policy& p) {
    const conv_window& w = d.window;
    const bool copied = d.input.c != 1;
    const index_t icg = d.ic / d.groups;
    if (a == algorithm::depthwise) return icg == 1 && d.oc == d.groups && d.groups <= INT32_MAX;
    if (a == algorithm::pointwise) {
        return d.groups == 1 && d.kh == 1 && d.kw == 1 && w.stride_h == 1 && w.stride_w == 1 && w.pad == padding{} && oh == d.h && ow == d.w &&
               (copied || flat_image(d.input, d.h, d.w)) && flat_image(d.output, oh, ow);
    }
    if (a == algorithm::first_layer) {
        const index_t row = d.kw * d.ic;
        return d.groups == 1 && d.ic > 0 && d.kw > 1 && row <= longest_row_of_taps && !w.transposed && w.dilation_w == 1 &&
               (copied || d.input.w == d.ic) && (p.block.kc == 0 || p.block.kc >= row);
    }
    if (is_winograd(a)) {
        return d.groups == 1 && d.kh == 3 && d.kw == 3 && w.stride_h == 1 && w.stride_w == 1 && w.dilation_h == 1 && w.dilation_w == 1 && !w.transposed;
    }
    return true;
}

// Winograd's transforms take a pass over the input and one over the output: with fewer channels on either side they cost more
// than they save. That the extents of an image do not count lets plans for several share one packed filter.
inline constexpr index_t winograd_channels = 32;

inline algorithm pick_algorithm(const conv_desc& d, index_t oh, index_t ow, const policy& p) {
    for (algorithm a : {algorithm::depthwise, algorithm::pointwise, algorithm::first_layer}) {
        if (can_run(a, d, oh, ow, p)) return a;
    }
    if (p.numerics == numerics::relaxed && d.ic >= winograd_channels && d.oc >= winograd_channels &&
        can_run(algorithm::winograd_4x4, d, oh, ow, p)) {
        return algorithm::winograd_4x4;
    }
    return algorithm::implicit_gemm;
}

template <class T>
inline status decide_conv(conv_decision<T>& d, conv_desc desc, const policy& p, const gemm_kernel<T>* fixed, finish_fn<T> finish,
                          const epilogue_traits& e, int concurrency) {
    if (status s = check_conv_desc(desc); !s.ok()) return s;
    const index_t oh = most(output_h(desc), 0), ow = most(output_w(desc), 0);
    if (oh > conv_limit || ow > conv_limit) return {code::too_large, argument::output_h, most(oh, ow), conv_limit};
    if (oh != 0 && ow > conv_limit / oh) return {code::too_large, argument::output_w, ow, conv_limit / oh};
    if (oh * ow != 0 && desc.n > conv_limit / (oh * ow)) {
        return {code::too_large, argument::output_n, desc.n, conv_limit / (oh * ow)};
    }
    if (!make_dense(desc.input, desc.h, desc.w, desc.ic)) {
        return {code::too_large, argument::input_h, desc.h, conv_limit};
    }
    if (!make_dense(desc.output, oh, ow, desc.oc)) return {code::too_large, argument::output_h, oh, conv_limit};
    if (desc.ic <= 1) desc.input.c = 1;
    if (desc.oc <= 1) desc.output.c = 1;
    constexpr auto size = static_cast<index_t>(sizeof(T));
    if (status s = check_image(desc.n, desc.h, desc.w, desc.ic, desc.input, size, argument::input_stride); !s.ok()) {
        return s;
    }
    if (status s = check_image(desc.n, oh, ow, desc.oc, desc.output, e.c_size, argument::output_stride); !s.ok()) {
        return s;
    }
    const index_t extent[4] = {desc.n, oh, ow, desc.oc}, stride[4] = {desc.output.n, desc.output.h, desc.output.w, desc.output.c};
    const bool empty = desc.n == 0 || oh == 0 || ow == 0 || desc.oc == 0;
    for (int i = 0; i < 4 && !empty; ++i) {
        if (extent[i] > 1 && stride[i] == 0) return {code::bad_stride, argument::output_stride, 0, 1};
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = i + 1; j < 4 && !empty; ++j) {
            if (coincides(extent[i], extent[j], stride[i], stride[j])) {
                const bool longer = magnitude(stride[i]) >= magnitude(stride[j]);
                const int at_fault = longer ? i : j, other = longer ? j : i;
                return {code::bad_stride, argument::output_stride, stride[at_fault], extent[other] * magnitude(stride[other])};
            }
        }
    }
    const image_axes axes(extent, stride);
    int steps = 10000;
    if (!empty && coincides(axes, steps)) {  // elements that differ in three axes or more
        int axis = 0;
        while (axes.stride[axis] > axes.reach(axis + 1)) ++axis;
        return {code::bad_stride, argument::output_stride, axes.stride[axis], axes.reach(axis + 1) + 1};
    }
    if (status s = check_policy(p, dtype_of<T>); !s.ok()) return s;
    if (status s = check_result_type(p, e); !s.ok()) return s;
    if (status s = check_isa(p.isa); !s.ok()) return s;
    const hone::isa id = resolve_isa(p.isa);
    const index_t icg = desc.ic / desc.groups, ocg = desc.oc / desc.groups;
    if (p.algorithm > algorithm::winograd_4x4) {
        return {code::bad_policy, argument::policy_algorithm, static_cast<index_t>(p.algorithm), static_cast<index_t>(algorithm::winograd_4x4)};
    }
    d.algorithm = p.algorithm;
    if (p.algorithm == algorithm::dynamic) {
        d.algorithm = pick_algorithm(desc, oh, ow, p);
    } else if (!can_run(p.algorithm, desc, oh, ow, p)) {
        return {code::unsupported, argument::policy_algorithm, static_cast<index_t>(p.algorithm), static_cast<index_t>(algorithm::implicit_gemm)};
    }
    d.depthwise = d.algorithm == algorithm::depthwise ? depthwise_kernel<T>(id) : nullptr;

    const kernel_list<T>& list = gemm_kernels<T>(id);
    const index_t pixels = desc.n * (oh * ow);
    const gemm_kernel<T>* best = fixed ? fixed : pick_gemm_kernel(list, p.tile, pixels, ocg, desc.kh * desc.kw * (desc.ic / desc.groups), false);
    if (best == nullptr) return {code::unsupported, argument::policy_tile, p.tile.nr, list.row[0].nr};
    d.kernel = *best;
    if (d.algorithm == algorithm::implicit_gemm && !fixed && p.tile.mr == 0 && icg == ocg && desc.groups > 1 &&
        (p.block.kc == 0 || p.block.kc >= icg) && grouped_kernel(id, icg, d.kernel)) {
        d.together = static_cast<int>(d.kernel.nr / icg);
    }
    d.isa_from_policy = p.isa != isa::dynamic;
    d.tile_from_policy = p.tile.mr != 0;
    d.block_from_policy = p.block.mc != 0 || p.block.kc != 0 || p.block.nc != 0;
    d.desc = desc;
    d.out_size = e.c_size;
    d.whole_rows = e.whole_rows;
    d.finish = finish;
    d.y = {desc.h, oh, desc.kh, desc.window.stride_h, desc.window.dilation_h, desc.window.pad.top, desc.window.transposed};
    d.x = {desc.w, ow, desc.kw, desc.window.stride_w, desc.window.dilation_w, desc.window.pad.left, desc.window.transposed};
    d.copy_input = desc.input.c != 1;

    const machine::cache_info& cache = this_machine().cache;
    const index_t unit = column_unit(d.kernel, false);
    conv_blocks blocks;
    index_t rows = pixels;                                                              // of the products
    if (d.depthwise) {
        blocks = model_depthwise_blocks(cache, d.y, d.x, desc.groups, size);
    } else if (d.algorithm == algorithm::pointwise) {
        const blocking b = model_blocks(cache, d.kernel.mr, d.kernel.nr, rows, static_cast<int>(size));
        blocks = {b.mc, b.kc, b.nc};
        d.far = fetches_ahead(cache, d.kernel, rows, ocg, icg, false);
    } else if (is_winograd(d.algorithm)) {
        const index_t m = winograd_tile(d.algorithm);
        rows = desc.n * winograd_tiles(d.y, d.x, m);
        const blocking b = model_blocks(cache, d.kernel.mr, d.kernel.nr, rows, static_cast<int>(size));
        blocks = model_winograd_blocks(cache, b.kc, d.kernel.mr, unit, m, icg, ocg, size);
        d.far = fetches_ahead(cache, d.kernel, blocks.mc, ocg, icg * winograd_elements(m), false);
    } else {
        blocks = model_conv_blocks(cache, d.kernel.mr, unit, desc.kh * desc.kw, icg, ocg * d.together, size);
    }
    d.l1 = cache.l1d.bytes / 2 / size;
    d.kc = p.block.kc ? p.block.kc : blocks.kc;
    if (d.algorithm == algorithm::first_layer) d.kc = most(d.kc, desc.kw * desc.ic);
    if (d.together > 1) d.kc = most(d.kc, icg);
    d.mc = p.block.mc ? p.block.mc : blocks.mc;
    d.nc = p.block.nc ? p.block.nc : blocks.nc;
    if (d.depthwise) {
        d.mc = least(d.mc, most(ow, 1));
        d.nc = round_up(least(d.nc, most(desc.groups, 1)), panel_floor);
    } else {
        d.mc = round_up(least(d.mc, most(rows, 1)), d.kernel.mr);
        d.nc = round_up(least(d.nc, most(ocg * d.together, 1)), unit);
    }
    d.one_by_one = d.copy_input || (d.algorithm == algorithm::pointwise && !(flat_batch(desc.input, desc.n, desc.h, desc.w) &&
                                                                             flat_batch(desc.output, desc.n, oh, ow)));
    const bool typed = e.c_size == size && desc.output.c == 1;
    d.plain_stages = e.plain && typed;
    d.simple = typed && (d.depthwise || d.together > 1) ? e.simple : nullptr;
    d.sums_in_output = typed && !e.views_c;
    d.workers = concurrency < 1 ? 1 : concurrency < max_workers ? concurrency : max_workers;
    if (p.threads > 0 && p.threads < d.workers) d.workers = p.threads;
    return {};
}

template <class T>
inline parts parts_of(const conv_decision<T>& d, int workers) {
    const int most_workers = static_cast<int>(most(least(workers, d.workers), 1));
    const index_t images = d.one_by_one ? 1 : d.desc.n;
    if (d.depthwise) {
        const index_t rows = images * ceil_div(d.y.out, most(d.y.phases(), 1));
        return split_parts(rows, d.whole_rows ? 1 : d.desc.groups, 1, panel_floor, most_workers, false);
    }
    index_t pixels = ceil_div(images * (d.y.out * d.x.out), most(d.y.phases() * d.x.phases(), 1));
    if (is_winograd(d.algorithm)) pixels = images * winograd_tiles(d.y, d.x, winograd_tile(d.algorithm));
    if (d.whole_rows) return split_parts(pixels, 1, d.kernel.mr, 1, most_workers, true);
    return split_parts(pixels, d.desc.oc / d.desc.groups * d.together, d.kernel.mr, column_unit(d.kernel, false), most_workers, true);
}

// Bytes that all tasks share: packed weights where they are packed each call, a row of zeros, one image in NHWC.
struct conv_shared {
    index_t weights = 0, zeros = 0, image = 0;
    constexpr index_t bytes() const { return weights + zeros + image; }
};

template <class T>
inline index_t conv_weight_count(const conv_decision<T>& d) {  // elements of one group; depthwise: of all
    const conv_desc& c = d.desc;
    const index_t taps = is_winograd(d.algorithm) ? winograd_elements(winograd_tile(d.algorithm)) : c.kh * c.kw;
    return d.depthwise ? taps * c.groups : round_up(c.oc / c.groups * d.together, d.kernel.panel) * taps * (c.ic / c.groups);
}

// Groups as they are packed: those that share a register are one.
template <class T>
inline index_t packed_groups(const conv_decision<T>& d) {
    return d.depthwise ? 1 : ceil_div(d.desc.groups, d.together);
}

template <class T>
inline conv_shared shared_of(const conv_decision<T>& d, bool packed) {
    constexpr auto size = static_cast<index_t>(sizeof(T));
    conv_shared s;
    if (!packed) s.weights = round_up(conv_weight_count(d) * packed_groups(d) * size, 64);
    const index_t run = d.algorithm == algorithm::first_layer ? d.desc.kw * d.desc.ic : d.desc.ic / d.desc.groups * d.together;
    s.zeros = round_up((is_winograd(d.algorithm) || d.together > 1 ? run : least(run, d.kc)) * size, 64);
    if (d.copy_input) s.image = round_up(d.desc.h * d.desc.w * d.desc.ic * size, 64);
    return s;
}

template <class T>
inline bool several_blocks(const conv_decision<T>& d) {
    if (is_winograd(d.algorithm)) return d.desc.ic > d.kc;
    return d.desc.kh * d.desc.kw * (d.desc.ic / d.desc.groups) > d.kc;
}

// Scratch of one task, in the parts that the nest of its algorithm takes.
template <class T>
inline conv_scratch task_scratch(const conv_decision<T>& d) {
    const index_t row = d.algorithm == algorithm::first_layer ? d.desc.kw * d.desc.ic : 0;
    return conv_scratch_of(d.kernel, d.desc.kh, d.desc.kh * d.desc.kw, row, d.mc, d.nc, several_blocks(d) && !d.sums_in_output);
}
template <class T>
inline depthwise_scratch depthwise_task_scratch(const conv_decision<T>& d) {
    return depthwise_scratch_of<T>(d.desc.kh, d.mc, d.nc);
}
template <class T>
inline winograd_scratch winograd_task_scratch(const conv_decision<T>& d) {
    return winograd_scratch_of(d.kernel, winograd_tile(d.algorithm), d.desc.ic, d.mc, d.kc, d.nc, d.l1);
}
template <class T>
inline index_t task_bytes(const conv_decision<T>& d) {
    if (d.depthwise) return depthwise_task_scratch(d).bytes();
    if (d.algorithm == algorithm::pointwise) {
        const index_t pixels = (d.one_by_one ? 1 : d.desc.n) * d.desc.h * d.desc.w;
        return gemm_scratch_of(d.kernel, pixels, d.desc.oc, d.desc.ic, d.mc, d.kc, d.nc, d.l1, false, b_source::packed_beforehand,
                               several_blocks(d) && !d.sums_in_output, false, gemm_way::tiles).bytes();
    }
    if (is_winograd(d.algorithm)) return winograd_task_scratch(d).bytes();
    return task_scratch(d).bytes();
}

template <class T>
inline index_t scratch_of(const conv_decision<T>& d, bool packed, int workers) {
    const parts p = parts_of(d, workers);
    return shared_of(d, packed).bytes() + task_bytes(d) * p.rows * p.cols;
}

template <class T>
inline explanation explain_conv(const conv_decision<T>& d, bool packed) {
    explanation e;
    const parts p = parts_of(d, d.workers);
    constexpr const char* names[] = {"dynamic", "implicit_gemm", "depthwise", "pointwise", "first_layer", "winograd_2x2", "winograd_4x4"};
    e.kernel = names[static_cast<int>(d.algorithm)];
    e.isa = d.kernel.isa;
    if (!d.depthwise) {
        e.tile = {d.kernel.mr, d.kernel.nr};
        e.block = {static_cast<int>(least(d.mc, INT32_MAX)), static_cast<int>(least(d.kc, INT32_MAX)), static_cast<int>(least(d.nc, INT32_MAX))};
    }
    e.workers = p.rows * p.cols;
    e.row_parts = p.rows;
    e.col_parts = p.cols;
    e.packs_a = d.copy_input;
    e.packs_b = !packed;
    e.b = packed ? "packed beforehand" : "packed each call";
    const machine_state& m = this_machine();
    e.why_isa = d.isa_from_policy ? "policy" : m.choice.capped ? "HONE_ISA" : "best here";
    e.why_tile = d.tile_from_policy ? "policy" : d.depthwise ? "channels across lanes" : d.together > 1 ? "groups share a register" : "covers the shape at least cost";
    e.why_block = d.block_from_policy ? "policy" : "weights in half of L2";
    e.sums = d.depthwise || !several_blocks(d) ? "registers" : d.sums_in_output ? "output" : "scratch";
    e.scratch_bytes = scratch_of(d, packed, d.workers);
    return e;
}

template <class T>
inline packed_header packed_header_of(const conv_decision<T>& d) {
    const conv_desc& c = d.desc;
    packed_header h;
    constexpr packed_kind of_winograd[] = {packed_kind::winograd_2x2, packed_kind::winograd_4x4};
    h.kind = d.depthwise ? packed_kind::depthwise : packed_kind::conv;
    if (is_winograd(d.algorithm)) h.kind = of_winograd[winograd_tile(d.algorithm) / 4];
    h.element = sizeof(T);
    h.panel = d.depthwise ? 0 : static_cast<std::uint32_t>(d.kernel.panel);
    h.groups = packed_groups(d);
    h.k = d.depthwise ? c.kh * c.kw : c.kh * c.kw * (c.ic / c.groups);
    h.n = d.depthwise ? c.groups : c.oc / c.groups * d.together;
    h.kh = c.kh;
    h.kw = c.kw;
    h.payload_bytes = static_cast<std::uint64_t>(conv_weight_count(d) * h.groups) * sizeof(T);
    return h;
}

template <class T>
inline status check_filter(const conv_decision<T>& d, const filter_view<const T>& f) {
    const conv_desc& c = d.desc;
    if (f.groups != c.groups) return {code::mismatch, argument::filter_groups, f.groups, c.groups};
    if (f.oc != c.oc / c.groups) return {code::mismatch, argument::filter_oc, f.oc, c.oc / c.groups};
    if (f.ic != c.ic / c.groups) return {code::mismatch, argument::filter_ic, f.ic, c.ic / c.groups};
    if (f.kh != c.kh) return {code::mismatch, argument::filter_kh, f.kh, c.kh};
    if (f.kw != c.kw) return {code::mismatch, argument::filter_kw, f.kw, c.kw};
    if (f.data == nullptr && f.oc > 0 && f.ic > 0) {
        return {code::null_pointer, argument::filter_data, 0, product_of(f.groups, f.oc, f.ic, f.kh, f.kw)};
    }
    return f.oc > 0 && f.ic > 0 ? check_aligned(f.data, argument::filter_data) : status{};
}

// Elements of a tile, each (panels of output channels, ic, panel).
template <class T>
inline void pack_winograd(const gemm_kernel<T>& kn, index_t m, const filter_view<const T>& f, T* out) {
    const index_t elements = winograd_elements(m), cols = round_up(f.oc, kn.panel);
    for (index_t o = 0; o < cols; ++o) {
        for (index_t i = 0; i < f.ic; ++i) {
            T weights[9];
            double u[36] = {};
            if (o < f.oc) {
                for (index_t t = 0; t < 9; ++t) weights[t] = *f.at(0, o, i, t / 3, t % 3);
                winograd_filter(m, weights, u);
            }
            T* to = out + o / kn.panel * kn.panel * f.ic + i * kn.panel + o % kn.panel;
            for (index_t e = 0; e < elements; ++e) to[e * cols * f.ic] = static_cast<T>(u[e]);
        }
    }
}

// (groups, panels of output channels, kh * kw * ic, panel); depthwise: (kh * kw, channels).
template <class T>
inline void pack_filter(const conv_decision<T>& d, const filter_view<const T>& f, T* out) {
    if (f.oc == 0 || f.ic == 0) return;
    const gemm_kernel<T>& kn = d.kernel;
    if (f.groups % d.together != 0) {  // lanes without a group
        T* rest = out + (packed_groups(d) - 1) * conv_weight_count(d);
        std::memset(static_cast<void*>(rest), 0, static_cast<std::size_t>(conv_weight_count(d)) * sizeof(T));
    }
    if (is_winograd(d.algorithm)) return pack_winograd(kn, winograd_tile(d.algorithm), f, out);
    for (index_t g = 0; g < f.groups; ++g) {
        for (index_t y = 0; y < f.kh; ++y) {
            for (index_t x = 0; x < f.kw; ++x) {
                const index_t tap = y * f.kw + x;
                if (d.depthwise) {
                    out[tap * f.groups + g] = *f.at(g, 0, 0, y, x);
                    continue;
                }
                if (d.together > 1) {
                    T* panel = out + g / d.together * conv_weight_count(d) + tap * f.ic * kn.panel + g % d.together * f.oc;
                    pack_rows(f.at(g, 0, 0, y, x), f.i_stride, f.o_stride, f.ic, f.oc, panel, kn.panel);
                    continue;
                }
                for (index_t o = 0; o < f.oc; o += kn.panel) {
                    const index_t w = least(kn.panel, f.oc - o), k = f.kh * f.kw * f.ic;
                    T* panel = out + g * conv_weight_count(d) + o * k + tap * f.ic * kn.panel;
                    if (w < kn.panel) std::memset(static_cast<void*>(panel), 0, static_cast<std::size_t>(f.ic * kn.panel) * sizeof(T));
                    pack_rows(f.at(g, o, 0, y, x), f.i_stride, f.o_stride, f.ic, w, panel, kn.panel);
                }
            }
        }
    }
}

// Not inlined: into a caller whose memory is known to be too small GCC 16 warns of what the check keeps from happening.
template <class T>
HONE_NOINLINE inline status pack_conv(const conv_decision<T>& d, const filter_view<const T>& f, std::span<std::byte> memory) {
    if (status s = check_filter(d, f); !s.ok()) return s;
    const packed_header h = packed_header_of(d);
    if (status s = check_pack_memory(memory, static_cast<index_t>(h.payload_bytes + sizeof h)); !s.ok()) return s;
    pack_filter(d, f, reinterpret_cast<T*>(memory.data() + sizeof h));
    seal<T>(memory.data(), h);
    return {};
}

// Images as matrices of pixels and channels, where their strides allow it: images follow one another as pixels do (NHWC),
// or as channels do (NCHW).
template <class T>
inline bool flat(const image_view<T>& v, flat_view& m) {
    const bool rows = v.h <= 1 || follows(v.h_stride, v.w, v.w_stride);
    const bool by_pixel = v.n <= 1 || follows(v.n_stride, v.h * v.w, v.w_stride);
    if (!rows || (!by_pixel && !follows(v.n_stride, v.c, v.c_stride))) return false;
    m = {reinterpret_cast<std::intptr_t>(v.data), v.h * v.w, v.c, v.w_stride, v.c_stride, static_cast<index_t>(sizeof(T))};
    (by_pixel ? m.rows : m.cols) *= v.n;
    return true;
}

template <class T>
inline status check_view(const image_view<T>& v, index_t n, index_t h, index_t w, index_t c, const image_strides& s, bool input) {
    const argument first = input ? argument::input_data : argument::output_data;
    const auto arg = [first](int i) { return static_cast<argument>(static_cast<int>(first) + i); };
    if (v.n != n) return {code::mismatch, arg(1), v.n, n};
    if (v.h != h) return {code::mismatch, arg(2), v.h, h};
    if (v.w != w) return {code::mismatch, arg(3), v.w, w};
    if (v.c != c) return {code::mismatch, arg(4), v.c, c};
    if (n == 0 || h == 0 || w == 0 || c == 0) return {};
    if (n > 1 && v.n_stride != s.n) return {code::mismatch, arg(5), v.n_stride, s.n};
    if (h > 1 && v.h_stride != s.h) return {code::mismatch, arg(5), v.h_stride, s.h};
    if (w > 1 && v.w_stride != s.w) return {code::mismatch, arg(5), v.w_stride, s.w};
    if (c > 1 && v.c_stride != s.c) return {code::mismatch, arg(5), v.c_stride, s.c};
    if (v.data == nullptr) return {code::null_pointer, arg(0), 0, product_of(n, h, w, c)};
    return check_aligned(v.data, arg(0));
}

// One call has no plan that says what the output must be: its extents are looked at before its strides, so that an output
// of another size is called that.
template <class C>
inline status check_output(const conv_desc& d, const image_view<C>& out) {
    if (status s = check_conv_desc(d); !s.ok()) return s;
    const index_t oh = most(output_h(d), 0), ow = most(output_w(d), 0);
    if (out.n != d.n) return {code::mismatch, argument::output_n, out.n, d.n};
    if (out.h != oh) return {code::mismatch, argument::output_h, out.h, oh};
    if (out.w != ow) return {code::mismatch, argument::output_w, out.w, ow};
    if (out.c != d.oc) return {code::mismatch, argument::output_c, out.c, d.oc};
    return {};
}

// Checks everything that needs the pointers, then runs. filter is null where packed is given.
template <bool MayThrow, class T, class C>
inline status run_conv(const conv_decision<T>& d, const image_view<const T>& in, const filter_view<const T>* filter,
                       const packed_view* packed, const image_view<C>& out, const void* epilogue, const context& ctx) {
    const conv_desc& c = d.desc;
    if (status s = check_view(out, c.n, d.y.out, d.x.out, c.oc, c.output, false); !s.ok()) return s;
    if (status s = check_view(in, c.n, c.h, c.w, c.ic, c.input, true); !s.ok()) return s;
    if (filter) {
        if (status s = check_filter(d, *filter); !s.ok()) return s;
    } else if (status s = check_packed(*packed, packed_header_of(d)); !s.ok()) {
        return s;
    }
    if (c.n == 0 || d.y.out == 0 || d.x.out == 0 || c.oc == 0) return {};
    flat_view fi, fo;
    const bool reads = c.h > 0 && c.w > 0 && c.ic > 0, flat_out = flat(out, fo);
    const void* const first_out = out.data;
    if (reads && (in.data == first_out || (flat_out && flat(in, fi) && overlaps(fi, fo)))) {
        return {code::overlap, argument::input_data, 1, 0};
    }
    if (filter && c.ic > 0) {
        const T* ends[] = {filter->data, filter->at(filter->groups - 1, filter->oc - 1, filter->ic - 1, c.kh - 1, c.kw - 1)};
        for (const T* p : ends) {
            if (p == first_out || (flat_out && holds(fo, reinterpret_cast<std::intptr_t>(p)))) {
                return {code::overlap, argument::filter_data, 1, 0};
            }
        }
    }

    const parts p = parts_of(d, ctx.executor.concurrency());
    const conv_shared shared = shared_of(d, filter == nullptr);
    const index_t each = task_bytes(d);
    const borrowed_scratch memory(ctx, shared.bytes() + each * p.rows * p.cols);
    if (!memory) return memory.status();

    conv_job<T> job;
    job.kernel = &d.kernel;
    job.depthwise = d.depthwise;
    job.y = d.y;
    job.x = d.x;
    if (!reads) job.y.in = 0;  // every tap lies outside: an input without elements may be null, with any strides
    job.groups = d.depthwise ? c.groups : packed_groups(d);
    job.ic = c.ic / c.groups;
    job.oc = c.oc / c.groups * d.together;
    job.group_ic = job.ic * d.together;
    job.group_oc = job.oc;
    job.all_oc = c.oc;
    job.mc = d.mc;
    job.kc = d.kc;
    job.nc = d.nc;
    job.group_weights = conv_weight_count(d);
    if (is_winograd(d.algorithm)) {
        job.transforms = winograd_kernels_of<T>(d.kernel.isa);
        job.winograd = winograd_tile(d.algorithm);
        job.group_weights /= winograd_elements(job.winograd);  // of one element
    }
    job.l1 = d.l1;
    job.far = d.far;
    if (filter) {
        T* weights = reinterpret_cast<T*>(*memory);
        pack_filter(d, *filter, weights);
        const index_t count = conv_weight_count(d) * packed_groups(d);
        for (index_t i = 0; i < count; ++i) job.finite = job.finite && (weights[i] - weights[i] == T(0));
        job.weights = weights;
    } else {
        job.weights = reinterpret_cast<const T*>(packed->payload());
        job.finite = packed->header().finite != 0;
    }
    T* zeros = reinterpret_cast<T*>(*memory + shared.weights);
    std::memset(static_cast<void*>(zeros), 0, static_cast<std::size_t>(shared.zeros));
    job.zeros = zeros;
    job.out_n = c.output.n;
    job.out_h = c.output.h;
    job.out_w = c.output.w;
    job.out_c = c.output.c;
    job.out_size = d.out_size;
    job.sums_in_output = d.sums_in_output;
    job.plain = d.plain_stages;
    job.simple = d.simple != nullptr;
    if (d.simple) job.stages = d.simple(epilogue);
    job.finish = d.finish;
    job.epilogue = epilogue;
    std::byte* own = *memory + shared.bytes();
    job.rows_of_taps = d.algorithm == algorithm::first_layer;
    auto compute = [&](index_t i) {
        const index_t row = i / p.cols, col = i % p.cols;
        std::byte* mine = own + i * each;
        if (d.depthwise) depthwise_task(job, row, p.rows, col, p.cols, depthwise_task_scratch(d), mine);
        else if (d.algorithm == algorithm::pointwise) pointwise_task(job, row, p.rows, col, p.cols, mine);
        else if (is_winograd(d.algorithm)) winograd_task(job, row, p.rows, col, p.cols, winograd_task_scratch(d), mine);
        else conv_task(job, row, p.rows, col, p.cols, task_scratch(d), mine);
    };
    if (!d.one_by_one) {
        job.images = c.n;
        job.input = reads ? in.data : zeros;
        job.in_n = reads ? c.input.n : 0;
        job.in_h = c.input.h;
        job.in_w = c.input.w;
        job.output = reinterpret_cast<unsigned char*>(out.data);
        run_tasks<MayThrow>(ctx.executor, index_t{p.rows} * p.cols, compute);
        return {};
    }
    T* image = reinterpret_cast<T*>(*memory + shared.weights + shared.zeros);           // (h, w, ic)
    job.images = 1;
    if (d.copy_input) {
        job.input = image;
        job.in_h = c.w * c.ic;
        job.in_w = c.ic;
    } else {
        job.in_h = c.input.h;
        job.in_w = c.input.w;
    }
    for (index_t n = 0; n < c.n; ++n) {
        auto copy = [&](index_t i) {
            const range rows = part_of(reads ? c.h : 0, 1, p.rows * p.cols, i);
            for (index_t h = rows.begin; h < rows.end; ++h) {
                pack_rows(in.data + n * c.input.n + h * c.input.h, c.input.w, c.input.c, c.w, c.ic, image + h * c.w * c.ic, c.ic);
            }
        };
        if (d.copy_input) run_tasks<false>(ctx.executor, index_t{p.rows} * p.cols, copy);
        else job.input = reads ? in.data + n * c.input.n : zeros;
        job.first_image = n;
        job.output = reinterpret_cast<unsigned char*>(out.data) + n * c.output.n * d.out_size;
        run_tasks<MayThrow>(ctx.executor, index_t{p.rows} * p.cols, compute);
    }
    return {};
}

}  // namespace detail::inline HONE_UNIT

// A convolution decided once. Immutable, trivially copyable, safe to run on many threads at once.
template <class E = identity_stage, class T = float>
class conv_plan {
public:
    using element = T;
    using stored = typename E::template stored<T>;  // what the output holds
    static constexpr bool nothrow = E::nothrow || !HONE_EXCEPTIONS;

    // Bytes run() needs from context.scratch where its executor's concurrency() is `workers`; weights packed beforehand or
    // not.
    HONE_INLINE index_t scratch_bytes(int workers = 1, bool packed = false) const { return detail::scratch_of(d_, packed, workers); }

    // Bytes pack() needs: a header and the weights.
    HONE_INLINE index_t packed_bytes() const {
        return static_cast<index_t>(detail::packed_header_of(d_).payload_bytes + sizeof(packed_header));
    }

    // Packs a filter of any strides into memory of at least packed_bytes(), 64-byte aligned. Input size does not matter:
    // plans for other images of the same filter share it.
    HONE_INLINE status pack(const filter_view<const T>& filter, std::span<std::byte> memory) const {
        return detail::pack_conv(d_, filter, memory);
    }

    // Extents of the output.
    HONE_INLINE index_t output_h() const { return d_.y.out; }
    HONE_INLINE index_t output_w() const { return d_.x.out; }

    // Extents and strides must be those of the plan.
    HONE_INLINE status run(const image_view<const T>& input, const filter_view<const T>& filter, const image_view<stored>& output,
                           const E& epilogue = E{}, const context& ctx = {}) const noexcept(nothrow) {
        if (status s = epilogue.check(extent()); !s.ok()) return s;
        return detail::run_conv<!nothrow, T, stored>(d_, input, &filter, nullptr, output, &epilogue, ctx);
    }
    // The same with weights packed by pack() of a plan for the same filter.
    HONE_INLINE status run(const image_view<const T>& input, const packed_view& filter, const image_view<stored>& output,
                           const E& epilogue = E{}, const context& ctx = {}) const noexcept(nothrow) {
        if (status s = epilogue.check(extent()); !s.ok()) return s;
        return detail::run_conv<!nothrow, T, stored>(d_, input, nullptr, &filter, output, &epilogue, ctx);
    }

    HONE_INLINE hone::explanation explain(bool packed = false) const { return detail::explain_conv(d_, packed); }

    detail::conv_decision<T> d_;  // for hone's own use

private:
    HONE_INLINE epilogue_extent extent() const {
        const index_t n = d_.desc.n, h = d_.y.out, w = d_.x.out;
        return {.rows = n * h * w, .cols = d_.desc.oc, .n = n, .h = h, .w = w, .image = true};
    }
};

namespace detail {

template <class T, policy P, class E>
HONE_INLINE status make_conv_plan(conv_plan<E, T>& plan, const conv_desc& desc, const policy& p, const context& ctx) {
    static_assert(std::is_same_v<T, float>, "hone::plan: the element type must be float");
    static_assert(!E::halves, "hone::conv: gated() is for GEMM");
    static_assert(validate<P>());
    const fixed_choice<P, T, E> choice(p);
    return decide_conv<T>(plan.d_, desc, p, choice.kernel(), choice.finish, traits_of<E, T>(), ctx.executor.concurrency());
}

}  // namespace detail

// A plan for a convolution, or the status that says why there is none.
template <class T = float, class E = identity_stage>
HONE_INLINE expected<conv_plan<E, T>> plan(const conv_desc& desc, const policy& p = {}, const E& = identity, const context& ctx = {}) {
    conv_plan<E, T> result;
    if (status s = detail::make_conv_plan<T, policy{}>(result, desc, p, ctx); !s.ok()) return s;
    return result;
}
template <policy P, class T = float, class E = identity_stage>
HONE_INLINE expected<conv_plan<E, T>> plan(const conv_desc& desc, const E& = identity, const context& ctx = {}) {
    conv_plan<E, T> result;
    if (status s = detail::make_conv_plan<T, P>(result, desc, P, ctx); !s.ok()) return s;
    return result;
}

// Plan and run in one call. The filter is packed each time: where it is used again, a plan's pack() saves that.
template <policy P = policy{}, class TI, class TF, class TO, is_stage E = identity_stage>
HONE_INLINE status conv(const image_view<TI>& input, const filter_view<TF>& filter, const image_view<TO>& output,
                        const conv_window& window = {}, const E& epilogue = identity, const context& ctx = {})
    noexcept(E::nothrow || !HONE_EXCEPTIONS) {
    using T = std::remove_const_t<TI>;
    static_assert(std::is_same_v<T, float>, "hone::conv: the input must be an image_view of float");
    static_assert(std::is_same_v<T, std::remove_const_t<TF>>, "hone::conv: input and filter must have one element type");
    static_assert(std::is_same_v<TO, typename E::template stored<T>>,
                  "hone::conv: the output must have the element type of the input, or that of the epilogue's store_as<T>()");
    const conv_desc desc = describe(input, filter, output, window);
    if (status s = detail::check_output(desc, output); !s.ok()) return s;
    conv_plan<E, T> plan;
    if (status s = detail::make_conv_plan<T, P>(plan, desc, P, ctx); !s.ok()) return s;
    return plan.run(input, filter, output, epilogue, ctx);
}

}  // namespace hone::inline HONE_ABI
