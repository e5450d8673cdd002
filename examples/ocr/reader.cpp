// SPDX-License-Identifier: BSL-1.0
#include "reader.hpp"

namespace ocr {

namespace {

constexpr double surely_upside_down = 0.9;
constexpr double least_confidence = 0.5;  // what is read with less is no text

}  // namespace

reader::reader(const std::string& directory)
    : detection_(directory + "/ch_PP-OCRv4_det_infer.onnx", image_order::nhwc),
      direction_(directory + "/ch_ppocr_mobile_v2.0_cls_infer.onnx", image_order::nhwc),
      recognition_(directory + "/ch_PP-OCRv4_rec_infer.onnx", image_order::nhwc),
      words_(directory + "/ppocr_keys_v1.txt") {}

std::vector<read_line> reader::read(const image& picture, const detection_options& options) {
    std::vector<quad> boxes = detect(detection_, picture, options);
    for (quad& box : boxes) {
        box = laid_flat(box);
        if (upside_down(direction_, picture, box) > surely_upside_down) box = turned(box);
    }
    sort_for_reading(boxes);
    std::vector<read_line> lines;
    for (const quad& box : boxes) {
        text_line text = recognise(recognition_, words_, picture, box);
        if (!text.text.empty() && text.confidence >= least_confidence) lines.push_back({std::move(text), box});
    }
    return lines;
}

}  // namespace ocr
