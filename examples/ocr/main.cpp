// SPDX-License-Identifier: BSL-1.0
// hone_ocr: reads text from pictures with PP-OCRv4, every convolution and matrix product computed by hone.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "dump.hpp"
#include "reader.hpp"
#include "report.hpp"
#include "verify.hpp"

namespace {

struct arguments {
    std::vector<std::string> pictures;
    std::string models, draw, verify, dims;
    std::vector<std::string> dump;
    bool profile = false, json = false, progress = false;
    int repeat = 1;
    ocr::detection_options detection;
};

// One line on stderr that is rewritten; nothing where nobody looks.
class progress_line {
public:
    progress_line(bool asked, std::size_t pictures) : on_(asked || (pictures >= 4 && isatty(STDERR_FILENO) != 0)) {}
    void show(std::size_t done, std::size_t all, const std::string& name) const {
        if (!on_) return;
        std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", done + 1, all, name.c_str());
        std::fflush(stderr);
    }
    void clear() const {
        if (on_) std::fprintf(stderr, "\r\033[K");
    }

private:
    bool on_;
};

nlohmann::json to_json(const std::string& path, const std::vector<ocr::read_line>& lines) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& l : lines) {
        nlohmann::json box = nlohmann::json::array();
        for (const auto p : l.box) box.push_back({p.x, p.y});
        list.push_back({{"text", l.text.text}, {"confidence", l.text.confidence}, {"box", box}});
    }
    return {{"picture", path}, {"lines", list}};
}

void print_lines(const std::vector<ocr::read_line>& lines) {
    for (const auto& l : lines) {
        std::printf("%.3f ", l.text.confidence);
        for (const auto p : l.box) std::printf(" (%.0f,%.0f)", p.x, p.y);
        std::printf("  %s\n", l.text.text.c_str());
    }
}

int read_pictures(ocr::reader& r, const arguments& a) {
    const progress_line progress(a.progress, a.pictures.size());
    nlohmann::json all = nlohmann::json::array();
    int failures = 0;
    for (std::size_t k = 0; k < a.pictures.size(); ++k) {
        const std::string& path = a.pictures[k];
        progress.show(k, a.pictures.size(), path);
        try {
            ocr::image picture = ocr::read_image(path);
            std::vector<ocr::read_line> lines;
            for (int i = 0; i < a.repeat; ++i) lines = r.read(picture, a.detection);
            progress.clear();
            if (a.json) {
                all.push_back(to_json(path, lines));
            } else {
                if (a.pictures.size() > 1) std::printf("%s: %zu lines\n", path.c_str(), lines.size());
                print_lines(lines);
                std::fflush(stdout);
            }
            if (!a.draw.empty()) {
                for (const auto& l : lines) ocr::draw_box(picture, l.box);
                ocr::write_png(a.draw, picture);
            }
        } catch (const ocr::error& e) {  // one unreadable picture does not keep the others from being read
            progress.clear();
            std::fprintf(stderr, "hone_ocr: %s\n", e.what());
            ++failures;
        }
    }
    if (a.json) std::cout << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return failures == 0 ? 0 : 1;
}

int run(const arguments& a) {
    if (!a.dump.empty()) {
        ocr::dump_output(a.dump[0], a.dims, a.dump[1], a.dump[2]);
        return 0;
    }
    ocr::reader r(a.models);
    int code = 0;
    if (!a.verify.empty()) {
        const progress_line progress(a.progress, SIZE_MAX);
        const auto show = [&](std::size_t done, std::size_t all, const std::string& name) {
            if (name.empty()) progress.clear();
            else progress.show(done, all, name);
        };
        const bool good = ocr::verify(r, a.verify, a.detection, show);
        ocr::print_kernels(r.sessions());
        code = good ? 0 : 1;
    } else {
        code = read_pictures(r, a);
    }
    if (a.profile) ocr::print_profile(r.sessions());
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    arguments a;
    CLI::App app{"Reads text from pictures with PP-OCRv4; convolutions and matrix products are hone's.", "hone_ocr"};
    app.footer(
        "Each line printed: confidence, corners of the box, text. Exit code 0: done; 1: a picture, model or verdict "
        "failed.");
    auto* pictures = app.add_option("picture", a.pictures, "PNG or JPEG files");
    app.add_option("--models", a.models, "directory with the three ONNX files and ppocr_keys_v1.txt")
        ->envname("HONE_OCR_MODELS");
    auto* draw =
        app.add_option("--draw", a.draw, "write the picture with boxes drawn to this PNG file (one picture only)");
    app.add_flag("--profile", a.profile, "print a table of all nodes: operator, shapes, kernel chosen, time, GFLOP/s");
    app.add_option("--repeat", a.repeat,
                   "read each picture this often, for --profile: the first time also touches new memory")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    auto* json = app.add_flag("--json", a.json, "print JSON");
    app.add_flag("--progress", a.progress,
                 "show progress on stderr (on a terminal it is shown for four pictures or more)");
    app.add_option("--side", a.detection.side, "longer side, in pixels, of what the detection network sees")
        ->check(CLI::Range(32, 4096))
        ->capture_default_str();
    auto* verify = app.add_option("--verify", a.verify,
                                  "read all pictures of this directory and compare with the .txt files beside them")
                       ->excludes(pictures)
                       ->excludes(draw)
                       ->excludes(json);
    auto* dump = app.add_option("--dump-output", a.dump,
                                "MODEL INPUT OUTPUT: run one ONNX file on raw f32 data and write its outputs")
                     ->expected(3)
                     ->excludes(pictures)
                     ->excludes(verify);
    app.add_option("--dims", a.dims, "extents of INPUT, as in 1x3x48x320")->needs(dump);
    try {
        app.parse(argc, argv);
        if (a.dump.empty() && a.verify.empty() && a.pictures.empty())
            throw CLI::RequiredError("picture, --verify or --dump-output");
        if (!a.dump.empty() && a.dims.empty()) throw CLI::RequiredError("--dims");
        if (a.dump.empty() && a.models.empty()) throw CLI::RequiredError("--models (or HONE_OCR_MODELS)");
        if (!a.draw.empty() && a.pictures.size() != 1)
            throw CLI::ValidationError("--draw", "takes exactly one picture");
        if (a.json && a.profile) throw CLI::ValidationError("--json", "cannot be joined with --profile");
    } catch (const CLI::ParseError& e) {
        return app.exit(e);
    }
    try {
        return run(a);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "hone_ocr: %s\n", e.what());
        return 1;
    }
}
