// SPDX-License-Identifier: BSL-1.0
// What the pages' blocks take for granted: operands of products and of a convolution, a file of weights.
#pragma once

#include <hone/hone.hpp>

#include <cstdio>
#include <span>
#include <thread>
#include <vector>

extern hone::matrix_view<float> a, b, c, residual;   // (64, 128), (128, 256), (64, 256), (64, 256)
extern hone::matrix_view<float> x, w13, h, w2, y;    // of a gated layer: (64, 128), (128, 512), (64, 256), (256, 128), (64, 128)
extern std::vector<float> v;                         // one element per column of C
extern const float* temperature;                     // likewise
extern std::vector<float> pixels, weights, joined;   // of a convolution
extern std::vector<float> lefts, rights, products;   // of many small products
inline constexpr std::size_t count = 1000;

struct request {
    hone::matrix_view<const float> a;
    hone::matrix_view<float> c;
};
extern std::vector<request> requests;

extern hone::expected<hone::gemm_plan<>> plan;
extern std::FILE* file;                              // written by a converter, …
extern std::span<const std::byte> mapped;            // … mapped by an engine
