// SPDX-License-Identifier: BSL-1.0
#include "image.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "graph.hpp"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace ocr {

namespace {

constexpr std::int64_t most_pixels = 1 << 26;  // 64 Mpixel: 256 MB while a picture with transparency is decoded

struct sampler {
    const image& picture;

    // Adds the interpolated pixel at (x, y) to sum.
    void add(point p, float (&sum)[3]) const {
        const double x = std::clamp(p.x, 0.0, static_cast<double>(picture.w - 1)),
                     y = std::clamp(p.y, 0.0, static_cast<double>(picture.h - 1));
        const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
        const int dx = x0 + 1 < picture.w ? 3 : 0;
        const std::ptrdiff_t dy = y0 + 1 < picture.h ? std::ptrdiff_t{3} * picture.w : 0;
        const float fx = static_cast<float>(x - x0), fy = static_cast<float>(y - y0);
        const std::uint8_t* at = picture.rgb.data() + (static_cast<std::ptrdiff_t>(y0) * picture.w + x0) * 3;
        for (int c = 0; c < 3; ++c) {
            const float top = static_cast<float>(at[c]) * (1 - fx) + static_cast<float>(at[c + dx]) * fx;
            const float bottom = static_cast<float>(at[dy + c]) * (1 - fx) + static_cast<float>(at[dy + c + dx]) * fx;
            sum[2 - c] += top * (1 - fy) + bottom * fy;
        }
    }
};

void check_extents(const std::string& path, std::int64_t w, std::int64_t h) {
    if (w < 1 || h < 1 || w > most_pixels || h > most_pixels || w * h > most_pixels)
        throw error(path + ": has " + std::to_string(w) + " x " + std::to_string(h) + " pixels; 1 to " +
                    std::to_string(most_pixels) + " in all are supported");
}

// stb_image calls a file it cannot open, or a PNG of absurd extents, an unknown image type: say what it is first.
void check_header(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw error(path + ": cannot be opened");
    std::uint8_t head[24] = {};
    file.read(reinterpret_cast<char*>(head), sizeof head);
    constexpr std::uint8_t png[] = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A};
    if (!std::equal(std::begin(png), std::end(png), head)) return;
    if (!file) throw error(path + ": is broken or truncated (no PNG header)");
    const auto number = [&](int at) {
        return std::int64_t{head[at]} << 24 | std::int64_t{head[at + 1]} << 16 | std::int64_t{head[at + 2]} << 8 |
               head[at + 3];
    };
    check_extents(path, number(16), number(20));
}

}  // namespace

image read_image(const std::string& path) {
    check_header(path);
    int w = 0, h = 0, channels = 0;
    if (stbi_info(path.c_str(), &w, &h, &channels) == 0)
        throw error(path + ": is not a readable picture (" + stbi_failure_reason() + ")");
    check_extents(path, w, h);
    const std::unique_ptr<stbi_uc, void (*)(void*)> rgba(stbi_load(path.c_str(), &w, &h, &channels, 4),
                                                         stbi_image_free);
    if (rgba == nullptr) throw error(path + ": is broken or truncated (" + stbi_failure_reason() + ")");
    image picture{w, h, {}};
    picture.rgb.resize(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3);
    const stbi_uc* from = rgba.get();
    for (std::size_t i = 0; i < picture.rgb.size(); i += 3, from += 4)
        for (std::size_t c = 0; c < 3; ++c)
            picture.rgb[i + c] = static_cast<std::uint8_t>((from[c] * from[3] + 255 * (255 - from[3]) + 127) / 255);
    return picture;
}

void write_png(const std::string& path, const image& picture) {
    if (stbi_write_png(path.c_str(), picture.w, picture.h, 3, picture.rgb.data(), picture.w * 3) == 0)
        throw error(path + ": cannot be written");
}

void sample(const image& picture, const affine_map& map, int w, int h, const normalisation& norm, float* out,
            int row_pixels) {
    const sampler from{picture};
    // Source pixels per output pixel along each axis.
    const auto grid = [](double dx, double dy) {
        return std::clamp(static_cast<int>(std::lround(std::hypot(dx, dy))), 1, 16);
    };
    const int nx = grid(map.xx, map.yx), ny = grid(map.xy, map.yy);
    const float share = 1.0F / static_cast<float>(255 * nx * ny);
    float factor[3], shift[3];
    for (int c = 0; c < 3; ++c) {
        factor[c] = share / norm.deviation[c];
        shift[c] = norm.mean[c] / norm.deviation[c];
    }
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
            float sum[3] = {0, 0, 0};
            for (int j = 0; j < ny; ++j)
                for (int i = 0; i < nx; ++i) from.add(map(x + (i + 0.5) / nx - 0.5, y + (j + 0.5) / ny - 0.5), sum);
            float* to = out + (static_cast<std::ptrdiff_t>(y) * row_pixels + x) * 3;
            for (int c = 0; c < 3; ++c) to[c] = sum[c] * factor[c] - shift[c];
        }
}

void draw_box(image& picture, const quad& box) {
    constexpr std::uint8_t colour[3] = {230, 30, 60};
    const auto dot = [&](int x, int y) {
        if (x < 0 || y < 0 || x >= picture.w || y >= picture.h) return;
        std::copy_n(colour, 3, picture.rgb.begin() + (static_cast<std::ptrdiff_t>(y) * picture.w + x) * 3);
    };
    for (std::size_t i = 0; i < 4; ++i) {
        const point a = box[i], b = box[(i + 1) % 4];
        const int steps = std::max(1, static_cast<int>(std::ceil(distance(a, b))));
        for (int s = 0; s <= steps; ++s) {
            const double t = static_cast<double>(s) / steps;
            const int x = static_cast<int>(std::lround(a.x + (b.x - a.x) * t)),
                      y = static_cast<int>(std::lround(a.y + (b.y - a.y) * t));
            dot(x, y);
            dot(x + 1, y);
            dot(x, y + 1);
        }
    }
}

}  // namespace ocr
