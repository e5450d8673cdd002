// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::conv: gated() is for GEMM.
#include <hone/conv.hpp>

hone::status convolution(const float* in, const float* filter, float* out) {
#ifdef HONE_COMPILES
    const auto stages = hone::silu;
#else
    const auto stages = hone::gated(hone::silu);
#endif
    return hone::conv(hone::nhwc(in, 1, 4, 4, 2), hone::oihw(filter, 2, 2, 1, 1), hone::nhwc(out, 1, 4, 4, 2), {}, stages);
}
