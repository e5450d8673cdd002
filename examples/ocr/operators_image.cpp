// SPDX-License-Identifier: BSL-1.0
// Images lie channels-last here: (n, h, w, c), so every inner loop runs over channels.
#include <algorithm>
#include <limits>

#include "operators.hpp"
#include "shapes.hpp"

namespace ocr {

namespace {

using index = std::int64_t;

struct images {
    index n, h, w, c;
    explicit images(const dims_t& d) : n(d[0]), h(d[1]), w(d[2]), c(d[3]) {}
    double size() const {
        return static_cast<double>(n) * static_cast<double>(h) * static_cast<double>(w) * static_cast<double>(c);
    }
};

kernel make_pool(const graph& g, const node& n) {
    const images x(g.input(n, 0).dims), y(g.at(n.out).dims);
    const window win = window_of(g, n, x.h, x.w);
    const bool average = n.kind == op::average_pool, count_padding = n.integer("count_include_pad", 0) != 0;
    return {[=](const float* const* in, float* out, std::byte*) {
                for (index i = 0; i < y.n; ++i)
                    for (index oy = 0; oy < y.h; ++oy)
                        for (index ox = 0; ox < y.w; ++ox, out += y.c) {
                            std::fill_n(out, y.c, average ? 0.0F : -std::numeric_limits<float>::infinity());
                            index taps = 0;
                            for (index ky = 0; ky < win.kernel_h; ++ky)
                                for (index kx = 0; kx < win.kernel_w; ++kx) {
                                    const index iy = oy * win.stride_h + ky * win.dilation_h - win.top;
                                    const index ix = ox * win.stride_w + kx * win.dilation_w - win.left;
                                    // A window that ceil_mode hangs over the edge counts the padding, not what lies
                                    // beyond it.
                                    if (iy < x.h + win.bottom && ix < x.w + win.right && count_padding) ++taps;
                                    if (iy < 0 || iy >= x.h || ix < 0 || ix >= x.w) continue;
                                    if (!count_padding) ++taps;
                                    const float* p = in[0] + ((i * x.h + iy) * x.w + ix) * x.c;
                                    if (average)
                                        for (index c = 0; c < y.c; ++c) out[c] += p[c];
                                    else
                                        for (index c = 0; c < y.c; ++c) out[c] = std::max(out[c], p[c]);
                                }
                            if (average) {
                                const float factor = 1.0F / static_cast<float>(std::max<index>(taps, 1));
                                for (index c = 0; c < y.c; ++c) out[c] *= factor;
                            }
                        }
            },
            "loop",
            {},
            y.size() * static_cast<double>(win.kernel_h * win.kernel_w),
            0};
}

// Each row of pixels has a sum of its own before it joins the total, so that no f32 sum has more than max(h, w) terms.
kernel make_global_pool(const graph& g, const node& n) {
    const images x(g.input(n, 0).dims);
    return {[x](const float* const* in, float* out, std::byte* scratch) {
                float* row = reinterpret_cast<float*>(scratch);
                const float factor = 1.0F / static_cast<float>(x.h * x.w);
                const float* p = in[0];
                for (index i = 0; i < x.n; ++i, out += x.c) {
                    std::fill_n(out, x.c, 0.0F);
                    for (index iy = 0; iy < x.h; ++iy) {
                        std::fill_n(row, x.c, 0.0F);
                        for (index ix = 0; ix < x.w; ++ix, p += x.c)
                            for (index c = 0; c < x.c; ++c) row[c] += p[c];
                        for (index c = 0; c < x.c; ++c) out[c] += row[c];
                    }
                    for (index c = 0; c < x.c; ++c) out[c] *= factor;
                }
            },
            "loop",
            {},
            x.size(),
            static_cast<std::size_t>(x.c) * sizeof(float)};
}

kernel make_resize(const graph& g, const node& n) {
    const images x(g.input(n, 0).dims), y(g.at(n.out).dims);
    // Source pixel of each output pixel: asymmetric coordinates, rounded down.
    const auto sources = [](index from, index to) {
        std::vector<index> s(static_cast<std::size_t>(to));
        for (index i = 0; i < to; ++i) s[static_cast<std::size_t>(i)] = std::min(from - 1, i * from / to);
        return s;
    };
    return {[x, y, rows = sources(x.h, y.h), cols = sources(x.w, y.w)](const float* const* in, float* out, std::byte*) {
                for (index i = 0; i < y.n; ++i)
                    for (const index iy : rows)
                        for (const index ix : cols) {
                            std::copy_n(in[0] + ((i * x.h + iy) * x.w + ix) * x.c, x.c, out);
                            out += x.c;
                        }
            },
            "copy",
            {},
            0,
            0};
}

}  // namespace

kernel make_image_operator(const graph& g, const node& n) {
    if (is_any(n.kind, {op::average_pool, op::max_pool})) return make_pool(g, n);
    if (n.kind == op::global_average_pool) return make_global_pool(g, n);
    if (n.kind == op::resize) return make_resize(g, n);
    n.fail("has no loop of its own");
}

}  // namespace ocr
