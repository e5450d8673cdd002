// SPDX-License-Identifier: BSL-1.0
// A convolution that writes its channels where they will be joined with others: concatenation without a copy.
#include <hone/hone.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    const float untouched = 1234.5f;
    std::vector<float> pixels(56 * 48 * 12), weights(24 * 12 * 3 * 3), joined(28 * 24 * 40, untouched), v(24);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = (static_cast<float>(i % 31) - 15) / 16.0f;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = (static_cast<float>(i % 37) - 18) / 50.0f;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 5) - 2;

    const auto image = hone::nhwc(pixels.data(), 1, 56, 48, 12);
    const auto filter = hone::oihw(weights.data(), 24, 12, 3, 3);  // the order of ONNX
    auto output = hone::nhwc(joined.data(), 1, 28, 24, 40);
    output.data += 16;                                             // of these 40 channels the last 24,
    output.c = 24;                                                 // where they will be joined with others

    hone::conv_window window{.stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}};
    hone::status s = hone::conv(image, filter, output, window, hone::bias(v) | hone::hard_swish);

    if (!s.ok()) {
        std::puts(s.message().c_str());
        return 1;
    }
    double worst = 0, largest = 0;
    for (hone::index_t y = 0; y < 28; ++y) {
        for (hone::index_t x = 0; x < 24; ++x) {
            for (hone::index_t o = 0; o < 24; ++o) {
                double sum = v[static_cast<std::size_t>(o)];
                for (hone::index_t dy = 0; dy < 3; ++dy) {
                    for (hone::index_t dx = 0; dx < 3; ++dx) {
                        const hone::index_t h = 2 * y + dy - 1, w = 2 * x + dx - 1;
                        if (h < 0 || h >= 56 || w < 0 || w >= 48) continue;
                        for (hone::index_t i = 0; i < 12; ++i) {
                            sum += static_cast<double>(*image.at(0, h, w, i)) * *filter.at(0, o, i, dy, dx);
                        }
                    }
                }
                const double expected = sum * std::fmin(std::fmax(sum / 6 + 0.5, 0.0), 1.0);
                largest = std::fmax(largest, std::fabs(expected));
                const double off = std::fabs(*output.at(0, y, x, o) - expected);
                if (!(off <= worst)) worst = off;
            }
        }
    }
    int changed = 0;
    for (std::size_t i = 0; i < joined.size(); ++i) changed += i % 40 < 16 && joined[i] != untouched;
    std::printf("largest |output| %.3f, largest difference from double precision %.1e, %d others changed\n", largest,
                worst, changed);
    return worst < 1e-5 * largest && changed == 0 ? 0 : 1;
}
