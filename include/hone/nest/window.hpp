// SPDX-License-Identifier: BSL-1.0
// Where a window lies: which input element a tap of an output element reads, along one axis. Numbers only, no memory.
#pragma once

#include "../core/arithmetic.hpp"
#include "../core/view.hpp"
#include "split.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// One axis of a convolution. Outputs o whose coordinates agree modulo step() see the same taps: a phase. Only a transposed
// convolution has several.
struct conv_axis {
    index_t in = 0, out = 0, taps = 0, stride = 1, dilation = 1, pad = 0;  // pad: before the first element
    bool transposed = false;

    HONE_INLINE constexpr index_t phases() const { return transposed ? least(stride, out) : 1; }
    HONE_INLINE constexpr index_t step() const { return transposed ? stride : 1; }
    HONE_INLINE constexpr index_t outputs(index_t phase) const { return ceil_div(out - phase, step()); }
};

// One phase of an axis: tap j of output i reads input element begin + i * by_output + j * by_tap, where there is one.
struct axis_phase {
    index_t outputs = 0, first_output = 0, output_step = 1;  // coordinates of the outputs
    index_t taps = 0, first_tap = 0, tap_step = 1;           // coordinates of the taps that this phase has
    index_t in = 0, begin = 0, by_output = 1, by_tap = 1;

    HONE_INLINE constexpr axis_phase() = default;
    HONE_INLINE constexpr axis_phase(const conv_axis& a, index_t phase)
        : outputs(a.outputs(phase)), first_output(phase), output_step(a.step()), taps(a.taps), in(a.in), begin(-a.pad),
          by_output(a.stride), by_tap(a.dilation) {
        if (!a.transposed) return;
        index_t divisor = a.stride, rest = a.dilation;
        while (rest != 0) {
            const index_t next = divisor % rest;
            divisor = rest;
            rest = next;
        }
        tap_step = a.stride / divisor;
        const index_t different = least(a.taps, tap_step);  // taps further on repeat these
        while (first_tap < different && (phase + a.pad - first_tap * a.dilation) % a.stride != 0) ++first_tap;
        taps = first_tap < different ? ceil_div(a.taps - first_tap, tap_step) : 0;
        begin = (phase + a.pad - first_tap * a.dilation) / a.stride;
        by_output = 1;
        by_tap = -(tap_step * a.dilation / a.stride);
    }
    // The taps of output i that lie inside the input.
    HONE_INLINE constexpr range inside(index_t i) const {
        const index_t at = begin + i * by_output;
        range r;
        if (by_tap > 0) {
            r.begin = at >= 0 ? 0 : ceil_div(-at, by_tap);
            r.end = at >= in ? 0 : ceil_div(in - at, by_tap);
        } else {
            r.begin = at < in ? 0 : ceil_div(at - in + 1, -by_tap);
            r.end = at < 0 ? 0 : at / -by_tap + 1;
        }
        r.end = least(r.end, taps);
        if (r.begin >= r.end) return {};
        return r;
    }
    // The outputs all of whose taps lie inside.
    HONE_INLINE constexpr range whole() const {
        const index_t across = (taps - 1) * by_tap, low = begin + least(across, 0), high = begin + most(across, 0);
        if (taps <= 0) return {0, outputs};
        const range r{low >= 0 ? 0 : ceil_div(-low, by_output), high >= in ? 0 : least(ceil_div(in - high, by_output), outputs)};
        return r.begin < r.end ? r : range{};
    }
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
