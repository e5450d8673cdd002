// SPDX-License-Identifier: BSL-1.0
#include "verify.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace ocr {

namespace {

namespace fs = std::filesystem;

constexpr double least_page = 0.90, least_total = 0.95;

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) throw error(path.string() + ": cannot be read");
    return text;
}

bool is_picture(const fs::path& path) {
    const auto extension = path.extension();
    return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

double percent(std::size_t part, std::size_t whole) {
    return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::u32string visible_characters(const std::string& utf8) {
    std::u32string out;
    for (std::size_t i = 0; i < utf8.size();) {
        const auto lead = static_cast<unsigned char>(utf8[i++]);
        const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
        char32_t c = more == 0 ? lead : lead & (0x3FU >> more);
        for (int k = 0; k < more && i < utf8.size(); ++k)
            c = (c << 6) | (static_cast<unsigned char>(utf8[i++]) & 0x3FU);
        const bool blank = c <= 0x20 || c == 0xA0 || c == 0x3000 || c == 0xFEFF;
        if (!blank) out.push_back(c);
    }
    return out;
}

std::size_t edit_distance(const std::u32string& a, const std::u32string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row[b.size()];
}

bool verify(reader& r, const std::string& directory, const detection_options& options,
            const std::function<void(std::size_t, std::size_t, const std::string&)>& progress) {
    std::vector<fs::path> pages;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed))
        if (is_picture(entry.path()) && fs::exists(fs::path(entry.path()).replace_extension(".txt")))
            pages.push_back(entry.path());
    if (failed) throw error(directory + ": " + failed.message());
    if (pages.empty()) throw error(directory + ": holds no picture with a text of the same name beside it");
    std::sort(pages.begin(), pages.end());
    std::size_t right = 0, total = 0, bad_pages = 0;
    for (std::size_t k = 0; k < pages.size(); ++k) {
        const std::string name = pages[k].filename().string();
        progress(k, pages.size(), name);
        const auto start = std::chrono::steady_clock::now();
        std::string text;
        for (const auto& line : r.read(read_image(pages[k].string()), options)) text += line.text.text + "\n";
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const auto wanted = visible_characters(read_text(fs::path(pages[k]).replace_extension(".txt")));
        if (wanted.empty()) throw error(pages[k].string() + ": the text beside it is empty");
        const std::size_t page_right =
            wanted.size() - std::min(wanted.size(), edit_distance(wanted, visible_characters(text)));
        const bool good = static_cast<double>(page_right) >= least_page * static_cast<double>(wanted.size());
        progress(k + 1, pages.size(), {});
        std::printf("%-24s %5zu of %5zu characters right  %6.2f %%  %s  (%.2f s)\n", name.c_str(), page_right,
                    wanted.size(), percent(page_right, wanted.size()), good ? "good" : "BAD: below 90 %", seconds);
        std::fflush(stdout);
        right += page_right;
        total += wanted.size();
        bad_pages += good ? 0 : 1;
    }
    const bool good = bad_pages == 0 && static_cast<double>(right) >= least_total * static_cast<double>(total);
    std::printf("%-24s %5zu of %5zu characters right  %6.2f %%  %s\n", "all pages", right, total, percent(right, total),
                good            ? "passed"
                : bad_pages > 0 ? "FAILED: a page is below 90 %"
                                : "FAILED: below 95 %");
    return good;
}

}  // namespace ocr
