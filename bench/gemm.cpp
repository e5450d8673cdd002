// SPDX-License-Identifier: BSL-1.0
// f32 matrix products, row-major, one thread: "plain" operands, and "packed" with the weights b packed beforehand.
#include "problem.hpp"

namespace bench {
namespace {

struct shape {
    const char* set;
    long m, n, k;
    bool quick = false;
};

constexpr shape shapes[] = {
    {"square", 64, 64, 64},
    {"square", 128, 128, 128},
    {"square", 256, 256, 256, true},
    {"square", 512, 512, 512},
    {"square", 1024, 1024, 1024, true},
    {"square", 2048, 2048, 2048},
    {"bert", 128, 768, 768},
    {"bert", 128, 3072, 768, true},
    {"bert", 128, 768, 3072},
    {"bert", 384, 384, 64},
    {"resnet", 3136, 64, 64, true},
    {"resnet", 3136, 256, 64},
    {"resnet", 784, 512, 128},
    {"resnet", 196, 1024, 256},
    {"resnet", 49, 2048, 512},
    {"decode", 1, 4096, 4096},
    {"decode", 4, 4096, 4096, true},
    {"decode", 16, 4096, 4096},
    {"decode", 1, 11008, 4096},
    {"small", 4, 4, 4},
    {"small", 8, 8, 8},
    {"small", 16, 16, 16, true},
    {"small", 32, 32, 32},
    {"small", 7, 13, 17},
    {"small", 23, 23, 23},
    {"ragged", 127, 129, 131, true},
    {"ragged", 1000, 1000, 3},
    {"ragged", 3, 1000, 1000},
    {"ragged", 1000, 3, 1000},
    {"ragged", 513, 511, 257},
};

struct operands {
    explicit operands(const shape& s) : a(s.m * s.k), b(s.k * s.n), c(s.m * s.n) {
        a.fill_random(1);
        b.fill_random(2);
    }
    floats a, b, c;
};

std::vector<expectation> expect(const shape& s, operands& o) {
    std::vector<expectation> result;
    for (std::size_t at : sampled(o.c.size())) {
        const long i = static_cast<long>(at) / s.n, j = static_cast<long>(at) % s.n;
        double sum = 0, magnitude = 0;
        for (long p = 0; p < s.k; ++p) {
            const double term =
                static_cast<double>(o.a.data()[i * s.k + p]) * static_cast<double>(o.b.data()[p * s.n + j]);
            sum += term;
            magnitude += std::abs(term);
        }
        result.push_back({at, sum, f32_tolerance(static_cast<double>(s.k), magnitude)});
    }
    return result;
}

bench_case make_case(const shape& s) {
    bench_case c;
    c.suite = "gemm_f32";
    c.label = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
    c.sets = {s.set};
    if (std::string(s.set) == "square" && s.m >= 256) c.sets.push_back("cubes");
    c.flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    c.needed_flops = c.flops;
    c.memory_bound = std::string(s.set) == "decode";
    c.in_quick = s.quick;
    c.extents = {{"m", static_cast<double>(s.m)}, {"n", static_cast<double>(s.n)}, {"k", static_cast<double>(s.k)}};
    c.prepare = [s] {
        auto o = std::make_shared<operands>(s);
        const gemm_problem p{s.m, s.n, s.k, o->a.data(), o->b.data(), o->c.data()};
        return contenders(&peer::gemm, p, o, o->c.data(), o->c.size(),
                          std::make_shared<const std::vector<expectation>>(expect(s, *o)));
    };
    return c;
}

}  // namespace

suite gemm_suite() {
    suite s;
    s.name = "gemm";
    s.id = "gemm_f32";
    s.needed_peers = {"openblas", "blis", "onednn", "eigen"};
    for (const shape& one : shapes) s.cases.push_back(make_case(one));
    const auto add = [&s](const std::string& name, const std::string& group, std::vector<std::string> sets,
                          summary::kind what) {
        s.summaries.push_back({s.id + "." + name, s.id, group, std::move(sets), what, {}});
    };
    for (const std::string group : {"plain", "packed"}) {
        for (const std::string set : {"square", "bert", "resnet", "ragged"})
            add(group + "." + set + ".vs_best_peer.geomean", group, {set}, summary::geomean_of_ratios);
        add(group + ".vs_best_peer.min", group, {"square", "bert", "resnet", "ragged"}, summary::least_ratio);
        add(group + ".cubes.of_ceiling", group, {"cubes"}, summary::least_of_ceiling);
        add(group + ".decode.vs_best_peer.min", group, {"decode"}, summary::least_ratio);
        // m = 1 is a product with a vector: what it is held against is of_bandwidth.
        s.summaries.back().only = [](const bench_case& c) { return c.label.substr(0, 2) != "1x"; };
    }
    add("small.vs_best_peer.geomean", "plain", {"small"}, summary::geomean_of_ratios);
    // Products of one row: B (k, n) by rows, packed, and by columns.
    for (const auto& [group, name] : {std::pair{"plain", "plain"}, {"packed", "packed"}, {"transposed", "transposed.strict"}}) {
        add("", group, {"decode"}, summary::least_of_bandwidth);
        s.summaries.back().name = std::string("gemv_f32.") + name + ".of_read_bandwidth";
        s.summaries.back().only = [](const bench_case& c) { return c.label.substr(0, 2) == "1x"; };
    }
    return s;
}

}  // namespace bench
