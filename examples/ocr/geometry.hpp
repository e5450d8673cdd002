// SPDX-License-Identifier: BSL-1.0
// Points, rectangles at any angle, and the maps between them. Pixel (x, y) has its centre at (x, y); y grows downwards.
#pragma once

#include <array>
#include <vector>

namespace ocr {

struct point {
    double x = 0, y = 0;
};

using quad = std::array<point, 4>;  // top left, top right, bottom right, bottom left, as the text is read

// (x, y) -> (xx * x + xy * y + x0, yx * x + yy * y + y0)
struct affine_map {
    double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
    point operator()(double x, double y) const { return {xx * x + xy * y + x0, yx * x + yy * y + y0}; }
};

double distance(point a, point b);

// Counter-clockwise in a system with y upwards; collinear points dropped. Andrew's monotone chain.
std::vector<point> convex_hull(std::vector<point> points);

// The rectangle of least area around a convex polygon; one of its sides lies on a side of the polygon (Freeman, Shapira
// 1975).
quad min_area_rectangle(const std::vector<point>& hull);

double shorter_side(const quad& q);

// Everything within `distance` of the polygon. Empty if nothing is left.
std::vector<point> grown(const quad& q, double distance);

// q's area over its perimeter.
double area_over_perimeter(const quad& q);

// Maps pixel centres of a w x h image onto the parallelogram q, edges on edges.
affine_map onto(const quad& q, int w, int h);

}  // namespace ocr
