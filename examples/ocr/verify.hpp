// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reader.hpp"

namespace ocr {

// Reads every picture of `directory` that has a text of the same name beside it (page.png, page.txt) and prints a
// verdict for each: characters right of total, white space aside. Right are as many as the edit distance between the
// two texts leaves. True where every page reaches 90 % and all together 95 %. Throws where there are no pages.
// `progress` is called before each page with its name, and with an empty name before its verdict is printed.
bool verify(reader& r, const std::string& directory, const detection_options& options,
            const std::function<void(std::size_t done, std::size_t all, const std::string& name)>& progress);

// Code points of UTF-8 text without white space.
std::u32string visible_characters(const std::string& utf8);

// Least number of insertions, deletions and replacements (Wagner, Fischer 1974).
std::size_t edit_distance(const std::u32string& a, const std::u32string& b);

}  // namespace ocr
