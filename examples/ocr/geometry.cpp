// SPDX-License-Identifier: BSL-1.0
#include "geometry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <clipper.hpp>

namespace ocr {

namespace {

double cross(point o, point a, point b) { return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x); }

// Starts at the corner from which the text is read: of the two leftmost corners the upper, as PaddleOCR orders them.
quad ordered(quad q) {
    std::sort(q.begin(), q.end(), [](point a, point b) { return a.x < b.x; });
    if (q[0].y > q[1].y) std::swap(q[0], q[1]);
    if (q[2].y > q[3].y) std::swap(q[2], q[3]);
    return {q[0], q[2], q[3], q[1]};
}

}  // namespace

double distance(point a, point b) { return std::hypot(a.x - b.x, a.y - b.y); }

std::vector<point> convex_hull(std::vector<point> points) {
    std::sort(points.begin(), points.end(), [](point a, point b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
    std::vector<point> hull;
    const auto half = [&](auto first, auto last) {
        const std::size_t base = hull.size();
        for (auto p = first; p != last; ++p) {
            while (hull.size() >= base + 2 && cross(hull[hull.size() - 2], hull.back(), *p) <= 0) hull.pop_back();
            hull.push_back(*p);
        }
        if (!hull.empty()) hull.pop_back();  // the other half begins with it
    };
    half(points.begin(), points.end());
    half(points.rbegin(), points.rend());
    if (hull.empty() && !points.empty()) hull.push_back(points.front());
    return hull;
}

quad min_area_rectangle(const std::vector<point>& hull) {
    quad best{};
    if (hull.empty()) return best;
    best.fill(hull[0]);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < hull.size(); ++i) {
        const point a = hull[i], b = hull[(i + 1) % hull.size()];
        const double length = distance(a, b);
        if (length == 0) continue;
        const double ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;  // along the side; (-uy, ux) across
        double low_u = 0, high_u = 0, low_v = 0, high_v = 0;
        for (const point p : hull) {
            const double u = (p.x - a.x) * ux + (p.y - a.y) * uy, v = (p.y - a.y) * ux - (p.x - a.x) * uy;
            low_u = std::min(low_u, u);
            high_u = std::max(high_u, u);
            low_v = std::min(low_v, v);
            high_v = std::max(high_v, v);
        }
        const double area = (high_u - low_u) * (high_v - low_v);
        if (area >= least) continue;
        least = area;
        const auto corner = [&](double u, double v) { return point{a.x + u * ux - v * uy, a.y + u * uy + v * ux}; };
        best = {corner(low_u, low_v), corner(high_u, low_v), corner(high_u, high_v), corner(low_u, high_v)};
    }
    return ordered(best);
}

double shorter_side(const quad& q) { return std::min(distance(q[0], q[1]), distance(q[1], q[2])); }

double area_over_perimeter(const quad& q) {
    double area = 0, perimeter = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const point a = q[i], b = q[(i + 1) % 4];
        area += a.x * b.y - a.y * b.x;
        perimeter += distance(a, b);
    }
    return perimeter > 0 ? std::abs(area) / 2 / perimeter : 0;
}

std::vector<point> grown(const quad& q, double by) {
    constexpr double unit = 1024;  // clipper's coordinates are integers
    ClipperLib::Path path;
    for (const point p : q)
        path.emplace_back(static_cast<ClipperLib::cInt>(std::llround(p.x * unit)),
                          static_cast<ClipperLib::cInt>(std::llround(p.y * unit)));
    ClipperLib::ClipperOffset offset;
    offset.ArcTolerance = unit / 8;
    offset.AddPath(path, ClipperLib::jtRound, ClipperLib::etClosedPolygon);
    ClipperLib::Paths paths;
    offset.Execute(paths, by * unit);
    std::vector<point> points;
    if (paths.size() != 1) return points;
    for (const auto& p : paths[0]) points.push_back({static_cast<double>(p.X) / unit, static_cast<double>(p.Y) / unit});
    return points;
}

affine_map onto(const quad& q, int w, int h) {
    affine_map m;
    m.xx = (q[1].x - q[0].x) / w;
    m.yx = (q[1].y - q[0].y) / w;
    m.xy = (q[3].x - q[0].x) / h;
    m.yy = (q[3].y - q[0].y) / h;
    m.x0 = q[0].x + (m.xx + m.xy) / 2;
    m.y0 = q[0].y + (m.yx + m.yy) / 2;
    return m;
}

}  // namespace ocr
