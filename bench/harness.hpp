// SPDX-License-Identifier: BSL-1.0
// How a case is timed: all its contenders in turn, round after round, with the machine's ceilings measured in every
// round. Google Benchmark drives the cases and writes the JSON; the figures are medians over the rounds.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// One way to compute a case. Contenders are compared within their group: "plain" operands, weights "packed" beforehand,
// kernels "fixed" to the shape.
struct contender {
    std::string name;  // "hone", "openblas", "onednn"
    std::string group;
    std::function<void(long times)> run;
    // Empty when the result of the last run is right, else what is wrong with it.
    std::function<std::string()> check;
    // Weights that every run reads once: the buffer whose bandwidth is the ceiling of memory-bound cases.
    const void* weights = nullptr;
    std::size_t weight_bytes = 0;
};

// `times` calls of f in a row; the compiler may not merge or move them.
template <class F>
std::function<void(long)> repeated(F f) {
    return [f = std::move(f)](long times) mutable {
        for (long i = 0; i < times; ++i) {
            f();
            asm volatile("" : : : "memory");
        }
    };
}

// One problem, timed for every contender.
struct bench_case {
    std::string suite;              // "gemm_f32"
    std::string label;              // "1024x1024x1024"
    std::vector<std::string> sets;  // a case may count in several
    double flops = 0;               // of one run as it is quoted everywhere; a multiply-add counts two
    double needed_flops = 0;        // of them those that no contender can leave out: what the ceiling is compared with
    bool memory_bound = false;      // compared with the bandwidth of the weights, too
    bool in_quick = false;
    std::vector<std::pair<std::string, double>> extents;  // for the JSON; none is 0
    std::function<std::vector<contender>()> prepare;      // the first of each group is hone
};

// A figure over the cases of some sets in one group.
struct summary {
    enum kind { geomean_of_ratios, least_ratio, least_of_ceiling, least_of_bandwidth };
    std::string name;  // "gemm_f32.plain.square.vs_best_peer.geomean"
    std::string suite, group;
    std::vector<std::string> sets;  // a case in any of them counts
    kind what = geomean_of_ratios;
    std::function<bool(const bench_case&)> only;  // empty: all
    std::vector<std::string> needed_peers{};       // empty: the suite's
};

struct suite {
    std::string name;  // as on the command line: "gemm"
    std::string id;    // as in figures: "gemm_f32"
    std::vector<bench_case> cases;
    std::vector<summary> summaries;
    std::vector<std::string> needed_peers;  // a comparison without one of them is not printed
};

// Largest accepted error of a sum of `terms` products whose absolute values add up to `magnitude`, in f32 or f64: rounding
// errors add up like a random walk; 8 standard deviations.
double f32_tolerance(double terms, double magnitude);
double f64_tolerance(double terms, double magnitude);

struct options {
    bool quick = false;
    int rounds = 9;
    double seconds_per_turn = 20e-3;  // of one contender in one round
};

// Registers, runs, prints; the figures are the last lines on stdout. Returns the exit code.
int run_suites(std::vector<suite> suites, const options& how, int argc, char** argv);

// The suites.
suite gemm_suite();
suite gemm_f64_suite();
suite conv_suite();

}  // namespace bench
