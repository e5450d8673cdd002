// SPDX-License-Identifier: BSL-1.0
// f32 and f64 matrix products, row-major, one thread: "plain" operands, and "packed" with the weights b packed beforehand.
#include <array>

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

// A small shape has 64 sets of operands, each a line of 64 bytes behind another: their addresses differ, and of 32 x 32 x 32
// they are 24 KiB together, which stay in L1.
constexpr long sets_of_small = 64, line = 16;

template <class T>
struct operands {
    explicit operands(const shape& s)
        : small(std::string(s.set) == "small"),
          a(s.m * s.k + (small ? sets_of_small * line : 0)),
          b(s.k * s.n + (small ? sets_of_small * line : 0)),
          c(s.m * s.n + (small ? sets_of_small * line : 0)) {
        a.fill_random(1);
        b.fill_random(2);
    }
    std::vector<operand_set_of<T>> sets() {
        std::vector<operand_set_of<T>> list;
        // Odd steps: a, b and c come in three orders.
        for (long i = 0; small && i < sets_of_small; ++i)
            list.push_back({a.data() + i * line, b.data() + i * 29 % sets_of_small * line,
                            c.data() + i * 37 % sets_of_small * line});
        return list;
    }
    bool small;
    numbers<T> a, b, c;
};

// The sums of doubles are as long as what they check, and err as much: their tolerance is for both.
template <class T>
std::vector<expectation> expect(const shape& s, operands<T>& o) {
    std::vector<expectation> result;
    for (std::size_t at : sampled(static_cast<std::size_t>(s.m * s.n))) {
        const long i = static_cast<long>(at) / s.n, j = static_cast<long>(at) % s.n;
        double sum = 0, magnitude = 0;
        for (long p = 0; p < s.k; ++p) {
            const double term =
                static_cast<double>(o.a.data()[i * s.k + p]) * static_cast<double>(o.b.data()[p * s.n + j]);
            sum += term;
            magnitude += std::abs(term);
        }
        const auto terms = static_cast<double>(s.k);
        const double tolerance = sizeof(T) == 4 ? f32_tolerance(terms, magnitude) : 2 * f64_tolerance(terms, magnitude);
        result.push_back({at, sum, tolerance});
    }
    return result;
}

template <class T>
bench_case make_case(const shape& s, std::vector<entry> (*peer::*how)(const gemm_problem_of<T>&)) {
    bench_case c;
    c.suite = sizeof(T) == 4 ? "gemm_f32" : "gemm_f64";
    c.label = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
    c.sets = {s.set};
    if (std::string(s.set) == "square" && s.m >= 256) c.sets.push_back("cubes");
    c.flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    // The ceiling is that of f32: a double takes the room of two.
    c.needed_flops = sizeof(T) == 4 ? c.flops : 2 * c.flops;
    c.memory_bound = std::string(s.set) == "decode";
    c.in_quick = s.quick;
    c.extents = {{"m", static_cast<double>(s.m)}, {"n", static_cast<double>(s.n)}, {"k", static_cast<double>(s.k)}};
    c.prepare = [s, how] {
        auto o = std::make_shared<operands<T>>(s);
        const gemm_problem_of<T> p{s.m, s.n, s.k, o->a.data(), o->b.data(), o->c.data(), o->sets()};
        return contenders(how, p, o, o->c.data(), static_cast<std::size_t>(s.m * s.n),
                          std::make_shared<const std::vector<expectation>>(expect(s, *o)));
    };
    return c;
}

// Products for one call, f32: a batch of 1,000, and 8 experts whose numbers of tokens differ.
struct list_shape {
    const char* set;
    std::vector<long> m;
    long n, k;
};
const list_shape lists[] = {
    {"batched", std::vector<long>(1000, 64), 64, 64},
    {"grouped", {3, 120, 17, 200, 8, 96, 31, 50}, 768, 768},
};

struct list_operands {
    list_operands(const list_shape& s, long rows)
        : a(rows * s.k), b(static_cast<long>(s.m.size()) * s.k * s.n), c(rows * s.n) {
        a.fill_random(1);
        b.fill_random(2);
        list.equal = std::string(s.set) == "batched";
        long first = 0, i = 0;
        for (long m : s.m) {
            list.all.push_back({m, s.n, s.k, a.data() + first * s.k, b.data() + i++ * s.k * s.n, c.data() + first * s.n});
            first += m;
        }
    }
    // Of the product that element `at` of all C belongs to.
    expectation expect(std::size_t at) const {
        long i = static_cast<long>(at);
        const gemm_problem* p = list.all.data();
        for (; i >= p->m * p->n; ++p) i -= p->m * p->n;
        double sum = 0, magnitude = 0;
        for (long q = 0; q < p->k; ++q) {
            const double term = static_cast<double>(p->a[i / p->n * p->k + q]) * static_cast<double>(p->b[q * p->n + i % p->n]);
            sum += term;
            magnitude += std::abs(term);
        }
        return {at, sum, f32_tolerance(static_cast<double>(p->k), magnitude)};
    }
    floats a, b, c;
    gemm_list list;
};

bench_case make_list_case(const list_shape& s) {
    long rows = 0;
    for (long m : s.m) rows += m;
    const bool equal = std::string(s.set) == "batched";
    bench_case c;
    c.suite = "gemm_f32";
    c.label = std::to_string(s.m.size()) + "x" + (equal ? std::to_string(s.m[0]) + "x" : "") + std::to_string(s.n) + "x" + std::to_string(s.k);
    c.sets = {s.set};
    c.flops = c.needed_flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.n) * static_cast<double>(s.k);
    c.in_quick = true;
    c.extents = {{"products", static_cast<double>(s.m.size())}, {"rows", static_cast<double>(rows)}, {"n", static_cast<double>(s.n)}, {"k", static_cast<double>(s.k)}};
    c.prepare = [s, rows] {
        auto o = std::make_shared<list_operands>(s, rows);
        auto expected = std::make_shared<std::vector<expectation>>();
        for (std::size_t at : sampled(static_cast<std::size_t>(rows * s.n))) expected->push_back(o->expect(at));
        return contenders(&peer::gemms, o->list, o, o->c.data(), static_cast<std::size_t>(rows * s.n),
                          std::shared_ptr<const std::vector<expectation>>(expected));
    };
    return c;
}

}  // namespace

suite gemm_suite() {
    suite s;
    s.name = "gemm";
    s.id = "gemm_f32";
    s.needed_peers = {"openblas", "blis", "onednn", "eigen"};
    for (const shape& one : shapes) s.cases.push_back(make_case<float>(one, &peer::gemm));
    for (const list_shape& one : lists) s.cases.push_back(make_list_case(one));
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
    add("fixed.vs_libxsmm.min", "fixed", {"small"}, summary::least_ratio);
    s.summaries.back().needed_peers = {"libxsmm"};
    add("small.vs_best_peer.geomean", "plain", {"small"}, summary::geomean_of_ratios);
    // One call for many products over a call for each, and over one of them whose operands stay in L1.
    for (const auto& [name, group, set, other] : {std::array{"batched.of_single", "batched", "batched", "single"},
                                                  {"grouped.of_single", "grouped", "grouped", "single"},
                                                  {"batched.of_one_warm", "warm", "batched", "one"}}) {
        add(name, group, {set}, summary::least_ratio);
        s.summaries.back().needed_peers = {other};
    }
    // Products of one row: B (k, n) by rows, packed, and by columns, with strict sums and with relaxed ones.
    for (const auto& [group, name] : {std::pair{"plain", "plain"}, {"packed", "packed"}, {"transposed", "transposed.strict"},
                                      {"transposed.relaxed", "transposed.relaxed"}}) {
        add("", group, {"decode"}, summary::least_of_bandwidth);
        s.summaries.back().name = std::string("gemv_f32.") + name + ".of_read_bandwidth";
        s.summaries.back().only = [](const bench_case& c) { return c.label.substr(0, 2) == "1x"; };
    }
    return s;
}

suite gemm_f64_suite() {
    suite s;
    s.name = "gemm";
    s.id = "gemm_f64";
    s.needed_peers = {"openblas", "blis", "eigen"};  // oneDNN has no f64 on CPUs
    const std::vector<std::string> sets = {"square", "bert", "resnet"};
    for (const shape& one : shapes) {
        for (const std::string& set : sets) {
            if (set == one.set) s.cases.push_back(make_case<double>(one, &peer::gemm_f64));
        }
    }
    s.summaries.push_back({s.id + ".plain.vs_best_peer.geomean", s.id, "plain", sets, summary::geomean_of_ratios, {}});
    return s;
}

}  // namespace bench
