// SPDX-License-Identifier: BSL-1.0
#include "detect.hpp"

#include <algorithm>
#include <cmath>

namespace ocr {

namespace {

constexpr normalisation imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
constexpr double least_side = 3;  // pixels of the map; thinner boxes are noise

// Nearest multiple of 32, which the network's five halvings need.
int network_side(int pixels, double ratio) {
    return std::max(32, static_cast<int>(std::lround(pixels * ratio / 32)) * 32);
}

// The 8-connected region around (x, y): its outermost pixels in each row, which are enough for its hull. Marks it as
// seen.
std::vector<point> region_outline(const float* map, int w, int h, int x, int y, float threshold,
                                  std::vector<bool>& seen) {
    std::vector<std::pair<int, int>> open{{x, y}};
    std::vector<std::pair<int, int>> span(static_cast<std::size_t>(h), {w, -1});
    int top = y, bottom = y;
    seen[static_cast<std::size_t>(y) * static_cast<std::size_t>(w) + static_cast<std::size_t>(x)] = true;
    while (!open.empty()) {
        const auto [px, py] = open.back();
        open.pop_back();
        auto& [low, high] = span[static_cast<std::size_t>(py)];
        low = std::min(low, px);
        high = std::max(high, px);
        top = std::min(top, py);
        bottom = std::max(bottom, py);
        for (int ny = std::max(0, py - 1); ny <= std::min(h - 1, py + 1); ++ny)
            for (int nx = std::max(0, px - 1); nx <= std::min(w - 1, px + 1); ++nx) {
                const std::size_t at =
                    static_cast<std::size_t>(ny) * static_cast<std::size_t>(w) + static_cast<std::size_t>(nx);
                if (seen[at] || !(map[at] > threshold)) continue;
                seen[at] = true;
                open.emplace_back(nx, ny);
            }
    }
    std::vector<point> outline;
    for (int row = top; row <= bottom; ++row) {
        const auto [low, high] = span[static_cast<std::size_t>(row)];
        outline.push_back({static_cast<double>(low), static_cast<double>(row)});
        if (high != low) outline.push_back({static_cast<double>(high), static_cast<double>(row)});
    }
    return outline;
}

// Mean probability of the pixels whose centres lie in the box.
double mean_inside(const float* map, int w, int h, const quad& box) {
    double low_x = w, high_x = 0, low_y = h, high_y = 0;
    for (const point p : box) {
        low_x = std::min(low_x, p.x);
        high_x = std::max(high_x, p.x);
        low_y = std::min(low_y, p.y);
        high_y = std::max(high_y, p.y);
    }
    const double ux = box[1].x - box[0].x, uy = box[1].y - box[0].y, vx = box[3].x - box[0].x, vy = box[3].y - box[0].y;
    const double uu = ux * ux + uy * uy, vv = vx * vx + vy * vy, margin = 1e-9;
    double sum = 0;
    long count = 0;
    for (int y = std::max(0, static_cast<int>(std::floor(low_y)));
         y <= std::min(h - 1, static_cast<int>(std::ceil(high_y))); ++y)
        for (int x = std::max(0, static_cast<int>(std::floor(low_x)));
             x <= std::min(w - 1, static_cast<int>(std::ceil(high_x))); ++x) {
            const double dx = x - box[0].x, dy = y - box[0].y, u = dx * ux + dy * uy, v = dx * vx + dy * vy;
            if (u < -margin || u > uu + margin || v < -margin || v > vv + margin) continue;
            sum += static_cast<double>(map[static_cast<std::ptrdiff_t>(y) * w + x]);
            ++count;
        }
    return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace

std::vector<quad> boxes_from_map(const float* map, int w, int h, const detection_options& options) {
    std::vector<quad> boxes;
    std::vector<bool> seen(static_cast<std::size_t>(w) * static_cast<std::size_t>(h), false);
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
            const std::size_t at =
                static_cast<std::size_t>(y) * static_cast<std::size_t>(w) + static_cast<std::size_t>(x);
            if (seen[at] || !(map[at] > options.pixel_threshold)) continue;
            const quad shrunken =
                min_area_rectangle(convex_hull(region_outline(map, w, h, x, y, options.pixel_threshold, seen)));
            if (shorter_side(shrunken) < least_side || mean_inside(map, w, h, shrunken) < options.box_threshold)
                continue;
            const auto outline = grown(shrunken, area_over_perimeter(shrunken) * options.unclip_ratio);
            const quad box = min_area_rectangle(convex_hull(outline));
            if (!outline.empty() && shorter_side(box) >= least_side + 2) boxes.push_back(box);
        }
    return boxes;
}

void sort_for_reading(std::vector<quad>& boxes) {
    if (boxes.empty()) return;
    std::vector<double> angles;
    for (const quad& b : boxes) angles.push_back(std::atan2(b[1].y - b[0].y, b[1].x - b[0].x));
    std::nth_element(angles.begin(), angles.begin() + static_cast<std::ptrdiff_t>(angles.size() / 2), angles.end());
    const double c = std::cos(angles[angles.size() / 2]), s = std::sin(angles[angles.size() / 2]);
    struct placed {
        double left, top, bottom;
        quad box;
    };
    std::vector<placed> all;
    for (const quad& b : boxes) {
        const auto level = [&](point p) { return p.y * c - p.x * s; };
        all.push_back({b[0].x * c + b[0].y * s, (level(b[0]) + level(b[1])) / 2, (level(b[2]) + level(b[3])) / 2, b});
    }
    std::sort(all.begin(), all.end(),
              [](const placed& a, const placed& b) { return a.top + a.bottom < b.top + b.bottom; });
    boxes.clear();
    for (std::size_t first = 0, last; first < all.size(); first = last) {
        const placed& head = all[first];
        for (last = first + 1; last < all.size(); ++last) {
            const double shared = std::min(head.bottom, all[last].bottom) - std::max(head.top, all[last].top);
            if (shared < 0.5 * std::min(head.bottom - head.top, all[last].bottom - all[last].top)) break;
        }
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(first),
                   to = all.begin() + static_cast<std::ptrdiff_t>(last);
        std::sort(from, to, [](const placed& a, const placed& b) { return a.left < b.left; });
        for (auto p = from; p != to; ++p) boxes.push_back(p->box);
    }
}

std::vector<quad> detect(session& network, const image& picture, const detection_options& options) {
    const double ratio = std::min(1.0, static_cast<double>(options.side) / std::max(picture.w, picture.h));
    const int w = network_side(picture.w, ratio), h = network_side(picture.h, ratio);
    const double right = picture.w - 0.5, bottom = picture.h - 0.5;
    std::vector<float> input(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3);
    sample(picture, onto({{{-0.5, -0.5}, {right, -0.5}, {right, bottom}, {-0.5, bottom}}}, w, h), w, h, imagenet,
           input.data(), w);
    const auto results = network.run(input.data(), {1, 3, h, w});
    if (results.empty() || results[0].dims != dims_t{1, 1, h, w})
        throw error(network.file() + ": is not a detection model (its output must be 1x1x" + std::to_string(h) + "x" +
                    std::to_string(w) + ")");
    auto boxes = boxes_from_map(results[0].data, w, h, options);
    const double scale_x = static_cast<double>(picture.w) / w, scale_y = static_cast<double>(picture.h) / h;
    for (quad& b : boxes)
        for (point& p : b) p = {(p.x + 0.5) * scale_x - 0.5, (p.y + 0.5) * scale_y - 0.5};
    return boxes;
}

}  // namespace ocr
