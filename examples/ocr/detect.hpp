// SPDX-License-Identifier: BSL-1.0
// Where text is: the detection network and differentiable binarisation's post-processing
// (Liao et al.: Real-time Scene Text Detection with Differentiable Binarization, arXiv 1911.08947).
#pragma once

#include <vector>

#include "image.hpp"
#include "session.hpp"

namespace ocr {

// Defaults of PaddleOCR for PP-OCRv4.
struct detection_options {
    int side = 960;                // longer side of the network's input is at most this many pixels
    float pixel_threshold = 0.3F;  // a pixel is text from this probability on
    double box_threshold = 0.6;    // a box is kept from this mean probability on
    double unclip_ratio = 1.5;     // the network finds shrunken boxes: grown by area * ratio / perimeter
};

// Boxes in the picture's pixels, in no particular order.
std::vector<quad> detect(session& network, const image& picture, const detection_options& options);

// Boxes on a probability map of h x w, in its own pixels, in no particular order.
std::vector<quad> boxes_from_map(const float* map, int w, int h, const detection_options& options);

// Line by line, left to right. Boxes whose vertical extents overlap by half belong to one line, measured along the
// median direction of all boxes: a page may be tilted or upside down, once its boxes are turned the way they are read.
void sort_for_reading(std::vector<quad>& boxes);

}  // namespace ocr
