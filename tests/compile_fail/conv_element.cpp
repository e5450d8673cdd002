// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::conv: the input must be an image_view of float.
#include <hone/conv.hpp>

#ifdef HONE_COMPILES
using element = float;
#else
using element = double;
#endif

hone::status convolution(const element* in, const element* filter, element* out) {
    return hone::conv(hone::nhwc(in, 1, 4, 4, 2), hone::oihw(filter, 2, 2, 1, 1), hone::nhwc(out, 1, 4, 4, 2));
}
