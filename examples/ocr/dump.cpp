// SPDX-License-Identifier: BSL-1.0
#include "dump.hpp"

#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "session.hpp"

namespace ocr {

namespace {

dims_t parse_dims(const std::string& text) {
    dims_t dims;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        std::int64_t d = 0;
        const auto [next, failed] = std::from_chars(at, end, d);
        if (failed != std::errc{} || d < 1 || (next != end && *next != 'x') || next + 1 == end)
            throw error("extents \"" + text + "\": positive numbers separated by x are needed, as in 1x3x48x320");
        dims.push_back(d);
        at = next == end ? end : next + 1;
    }
    element_count(dims, "extents " + text);
    return dims;
}

}  // namespace

void dump_output(const std::string& model, const std::string& dims_text, const std::string& input,
                 const std::string& output) {
    const dims_t dims = parse_dims(dims_text);
    const std::int64_t count = element_count(dims, input);
    const auto bytes = static_cast<std::streamsize>(count) * std::streamsize{sizeof(float)};
    std::ifstream in(input, std::ios::binary | std::ios::ate);
    if (!in) throw error(input + ": cannot be opened");
    if (in.tellg() != std::streampos(bytes))
        throw error(input + ": must hold exactly " + std::to_string(bytes) + " bytes for extents " + to_string(dims));
    std::vector<float> x(static_cast<std::size_t>(count));
    in.seekg(0);
    if (!in.read(reinterpret_cast<char*>(x.data()), bytes)) throw error(input + ": cannot be read");
    session s(model, image_order::nchw);
    const auto results = s.run(x.data(), dims);
    std::ofstream out(output, std::ios::binary);
    for (const auto& r : results) {
        out.write(reinterpret_cast<const char*>(r.data),
                  static_cast<std::streamsize>(element_count(r.dims, output)) * std::streamsize{sizeof(float)});
        std::cout << nlohmann::json{{"name", r.name}, {"dims", r.dims}} << "\n";
    }
    if (!out.flush()) throw error(output + ": cannot be written");
}

}  // namespace ocr
