// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::conv: the output must have the element type of the input, or that of the epilogue's
// store_as<T>().
#include <hone/conv.hpp>

#ifdef HONE_COMPILES
constexpr auto epilogue = hone::relu | hone::store_as<hone::bf16>();
#else
constexpr auto epilogue = hone::relu;
#endif

hone::status convolution(const float* in, const float* filter, hone::bf16* out) {
    return hone::conv(hone::nhwc(in, 1, 4, 4, 2), hone::oihw(filter, 2, 2, 1, 1), hone::nhwc(out, 1, 4, 4, 2), {},
                      epilogue);
}
