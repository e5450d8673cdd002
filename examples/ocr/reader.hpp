// SPDX-License-Identifier: BSL-1.0
// From a picture to lines of text.
#pragma once

#include <string>
#include <vector>

#include "detect.hpp"
#include "recognise.hpp"

namespace ocr {

struct read_line {
    text_line text;
    quad box;
};

class reader {
public:
    // Loads the three models and the dictionary of PP-OCRv4 from `directory`. Throws, naming the file.
    explicit reader(const std::string& directory);

    std::vector<read_line> read(const image& picture, const detection_options& options);

    // For reports: detection, direction, recognition.
    std::vector<const session*> sessions() const { return {&detection_, &direction_, &recognition_}; }

private:
    session detection_, direction_, recognition_;
    dictionary words_;
};

}  // namespace ocr
