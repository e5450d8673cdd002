// SPDX-License-Identifier: BSL-1.0
// Pictures: reading PNG and JPEG, sampling into network inputs, drawing boxes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "geometry.hpp"

namespace ocr {

struct image {
    int w = 0, h = 0;
    std::vector<std::uint8_t> rgb;  // h x w x 3
};

// PNG, JPEG, BMP and what else stb_image reads; transparent parts become white. Throws, naming the file.
image read_image(const std::string& path);
void write_png(const std::string& path, const image& picture);

// (value / 255 - mean) / deviation, per channel in the order blue, green, red (the order PP-OCR was trained on).
struct normalisation {
    float mean[3], deviation[3];
};

// Writes w x h pixels of 3 floats, rows row_pixels apart, from the picture at map(x, y): bilinear, edges repeated,
// averaged over a grid where the map shrinks.
void sample(const image& picture, const affine_map& map, int w, int h, const normalisation& norm, float* out,
            int row_pixels);

void draw_box(image& picture, const quad& box);

}  // namespace ocr
