// SPDX-License-Identifier: BSL-1.0
#include "recognise.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace ocr {

namespace {

constexpr normalisation centred{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};
constexpr int line_height = 48;  // of both networks' input
constexpr int direction_width = 192;
constexpr int direction_windows = 3;  // of a long line: squeezed whole into 192 pixels it would lose its letters
constexpr int least_width = 320;      // shorter lines are padded: the network was trained on no narrower input
constexpr int width_step = 32;        // widths are rounded up, so that lines of like length share a plan
constexpr int most_width = 3200;      // longer lines are squeezed

int flat_width(const quad& box, int most) {
    const double w = distance(box[0], box[1]), h = distance(box[1], box[2]);
    return std::clamp(static_cast<int>(std::ceil(line_height * w / std::max(h, 1.0))), 1, most);
}

// The box flattened to line_height x used pixels, padded with zeros (mid grey) to `width`.
std::vector<float> line_input(const image& picture, const quad& box, int used, int width) {
    std::vector<float> input(static_cast<std::size_t>(line_height) * static_cast<std::size_t>(width) * 3, 0.0F);
    sample(picture, onto(box, used, line_height), used, line_height, centred, input.data(), width);
    return input;
}

}  // namespace

dictionary::dictionary(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw error(path + ": cannot be opened");
    words_.emplace_back();
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        words_.push_back(line);
    }
    words_.emplace_back(" ");
    if (words_.size() < 3) throw error(path + ": holds no characters");
}

quad laid_flat(const quad& box) {
    if (distance(box[1], box[2]) < 1.5 * distance(box[0], box[1])) return box;
    return {box[1], box[2], box[3], box[0]};
}

quad turned(const quad& box) { return {box[2], box[3], box[0], box[1]}; }

double upside_down(session& network, const image& picture, const quad& box) {
    const double ratio = distance(box[0], box[1]) / std::max(distance(box[1], box[2]), 1.0);
    constexpr double window_ratio = static_cast<double>(direction_width) / line_height;
    const int windows = std::clamp(static_cast<int>(std::lround(ratio / window_ratio)), 1, direction_windows);
    const double share = windows == 1 ? 1.0 : window_ratio / ratio;  // of the line that one window sees
    std::vector<float> input;
    for (int k = 0; k < windows; ++k) {
        const double from = windows == 1 ? 0.0 : (1 - share) * k / (windows - 1), to = from + share;
        const auto between = [&](std::size_t a, std::size_t b, double t) {
            return point{box[a].x + (box[b].x - box[a].x) * t, box[a].y + (box[b].y - box[a].y) * t};
        };
        const quad part{between(0, 1, from), between(0, 1, to), between(3, 2, to), between(3, 2, from)};
        const auto one = line_input(picture, part, flat_width(part, direction_width), direction_width);
        input.insert(input.end(), one.begin(), one.end());
    }
    const auto results = network.run(input.data(), {windows, 3, line_height, direction_width});
    if (results.empty() || results[0].dims != dims_t{windows, 2})
        throw error(network.file() + ": is not a direction model (its output must be " + std::to_string(windows) +
                    "x2)");
    double sum = 0;
    for (int k = 0; k < windows; ++k) sum += static_cast<double>(results[0].data[2 * k + 1]);
    return sum / windows;
}

text_line decode(const float* probabilities, std::int64_t steps, const dictionary& words) {
    text_line line;
    const auto classes = static_cast<std::ptrdiff_t>(words.classes());
    std::ptrdiff_t previous = 0;
    long count = 0;
    for (std::int64_t t = 0; t < steps; ++t, probabilities += classes) {
        const std::ptrdiff_t best = std::max_element(probabilities, probabilities + classes) - probabilities;
        if (best != 0 && best != previous) {
            line.text += words[static_cast<std::size_t>(best)];
            line.confidence += static_cast<double>(probabilities[best]);
            ++count;
        }
        previous = best;
    }
    if (count > 0) line.confidence /= static_cast<double>(count);
    return line;
}

text_line recognise(session& network, const dictionary& words, const image& picture, const quad& box) {
    const int used = flat_width(box, most_width);
    const int width = std::max(least_width, (used + width_step - 1) / width_step * width_step);
    const auto input = line_input(picture, box, used, width);
    const auto results = network.run(input.data(), {1, 3, line_height, width});
    if (results.empty() || results[0].dims.size() != 3 ||
        results[0].dims[2] != static_cast<std::int64_t>(words.classes()))
        throw error(network.file() + ": is not a recognition model for a dictionary of " +
                    std::to_string(words.classes() - 2) + " characters");
    return decode(results[0].data, results[0].dims[1], words);
}

}  // namespace ocr
