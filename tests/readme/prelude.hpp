// SPDX-License-Identifier: BSL-1.0
// What the pages' blocks take for granted: operands of a product and of a convolution.
#pragma once

#include <hone/hone.hpp>

#include <cstdio>
#include <thread>
#include <vector>

extern hone::matrix_view<float> a, b, c, residual;   // (64, 128), (128, 256), (64, 256), (64, 256)
extern hone::image_view<float> image, output;        // NHWC
extern hone::filter_view<float> filter;
extern std::vector<float> v;                         // one element per column of C
extern const float* offsets;                         // likewise
