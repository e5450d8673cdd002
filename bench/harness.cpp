// SPDX-License-Identifier: BSL-1.0
#include "harness.hpp"

#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "ceiling.hpp"

namespace bench {
namespace {

constexpr double tolerated_excess = 1.01;  // over a ceiling, before a case is void
constexpr double one_thread = 1.3;         // CPU time over wall time; above it a contender used a second thread
constexpr double undisturbed = 0.98;       // CPU time over wall time; below it the thread was paused
constexpr int attempts = 3;                // at a case that came out void, at a turn that was disturbed

struct timing {
    std::string name, group;
    std::vector<double> seconds;                // of one run, by round
    std::vector<double> of_fma, of_reads;       // the turn's rate by the ceiling that was measured beside it, by round
    double gflops = 0;                          // median
    double of_ceiling = 0, of_bandwidth = 0;    // medians; operations that are needed, weights that are read
    double gbytes = 0;                          // weights read, 10^9 bytes/s, median; 0 where it does not count
    std::string wrong;                          // why it has no figure
};

struct measurement {
    std::vector<timing> contenders;
    double ceiling = 0;   // GFLOP/s, the largest of those beside every turn
    std::string invalid;  // why no figure of the case counts
};

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds for `times` runs, wall time. A turn in which this thread was paused says nothing about the contender and is
// taken again; where the machine is never quiet, the time that the thread ran has to do.
double timed_turn(const contender& c, long times) {
    double ran = 0;
    for (int again = 0; again < attempts; ++again) {
        const double cpu_begin = cpu_seconds(), begin = detail::seconds();
        c.run(times);
        const double took = detail::seconds() - begin, cpu = cpu_seconds() - cpu_begin;
        if (cpu >= undisturbed * took) return took;
        ran = again == 0 ? cpu : (std::min)(ran, cpu);
    }
    return ran;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    const std::size_t half = v.size() / 2;
    return v.size() % 2 == 1 ? v[half] : 0.5 * (v[half - 1] + v[half]);
}

double geomean(const std::vector<double>& v) {
    double logs = 0;
    for (double x : v) logs += std::log(x);
    return std::exp(logs / static_cast<double>(v.size()));
}

bool is_hone(const timing& t) { return t.name == "hone"; }

std::string format(const char* f, double value) {
    char text[64];
    std::snprintf(text, sizeof text, f, value);
    return text;
}

measurement measure_once(const bench_case& c, const options& how) {
    measurement result;
    std::vector<contender> field = c.prepare();
    std::vector<long> times(field.size(), 1);
    for (std::size_t i = 0; i < field.size(); ++i) {
        timing t;
        t.name = field[i].name;
        t.group = field[i].group;
        t.wrong = field[i].check();
        if (t.wrong.empty()) {
            // Doubled until it is long enough, so that the second thread of a library shows in the CPU time.
            double took = 0, cpu = 0;
            for (;;) {
                const double cpu_begin = cpu_seconds(), begin = detail::seconds();
                field[i].run(times[i]);
                took = detail::seconds() - begin;
                cpu = cpu_seconds() - cpu_begin;
                if (took >= how.seconds_per_turn / 4) break;
                times[i] *= 2;
            }
            if (cpu > one_thread * took) t.wrong = "ran on " + format("%.1f", cpu / took) + " threads instead of 1";
            times[i] = (std::max)(1L, std::lround(static_cast<double>(times[i]) * how.seconds_per_turn / took));
        }
        result.contenders.push_back(t);
    }
    const std::size_t n = field.size();
    for (std::size_t round = 0; round < static_cast<std::size_t>(how.rounds); ++round) {
        for (std::size_t turn = 0; turn < n; ++turn) {
            const std::size_t i = (round + turn) % n;  // nobody always follows the same opponent
            timing& t = result.contenders[i];
            if (!t.wrong.empty()) continue;
            // A shared machine's clock and memory bandwidth change from one second to the next: a turn is held against what
            // was there just before it and just after it. The largest of a whole run would grow with the number of rounds.
            const bool reads = c.memory_bound && field[i].weights != nullptr;
            const auto read = [&] { return reads ? read_ceiling(field[i].weights, field[i].weight_bytes) : 0; };
            double fma = fma_ceiling(), bandwidth = read();
            const double seconds = timed_turn(field[i], times[i]) / static_cast<double>(times[i]);
            bandwidth = (std::max)(bandwidth, read());
            fma = (std::max)(fma, fma_ceiling());
            result.ceiling = (std::max)(result.ceiling, fma);
            t.seconds.push_back(seconds);
            t.of_fma.push_back(c.needed_flops / seconds * 1e-9 / fma);
            if (reads) t.of_reads.push_back(static_cast<double>(field[i].weight_bytes) / seconds * 1e-9 / bandwidth);
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        timing& t = result.contenders[i];
        if (t.seconds.empty()) continue;
        const double seconds = median(t.seconds);
        t.gflops = c.flops / seconds * 1e-9;
        t.of_ceiling = median(t.of_fma);
        // Relaxed sums may take fewer multiply-adds than the definition.
        if (t.of_ceiling > tolerated_excess && t.group != "relaxed")
            result.invalid = t.name + " is at " + format("%.3f", t.of_ceiling) + " of the multiply-adds' ceiling";
        if (t.of_reads.empty()) continue;
        t.gbytes = static_cast<double>(field[i].weight_bytes) / seconds * 1e-9;
        t.of_bandwidth = median(t.of_reads);
        if (t.of_bandwidth > tolerated_excess)
            result.invalid = t.name + " is at " + format("%.3f", t.of_bandwidth) + " of the reads' ceiling";
    }
    return result;
}

measurement measure(const bench_case& c, const options& how) {
    measurement m = measure_once(c, how);
    for (int again = 1; again < attempts && !m.invalid.empty(); ++again) m = measure_once(c, how);
    return m;
}

// The group that hone's figures of `group` are compared with: relaxed sums with what peers do in the same case.
std::string opposite(const measurement& m, const std::string& group) {
    const bool alone = std::none_of(m.contenders.begin(), m.contenders.end(), [&](const timing& t) { return t.group == group && !is_hone(t); });
    return group == "relaxed" && alone ? "" : group;
}

// The peer to compare with: the best of the group, a null pointer where there is none.
const timing* best_peer(const measurement& m, const std::string& group) {
    const std::string theirs = opposite(m, group);
    const timing* best = nullptr;
    for (const timing& t : m.contenders)
        if (t.group == theirs && !is_hone(t) && t.wrong.empty() && (best == nullptr || t.gflops > best->gflops))
            best = &t;
    return best;
}

const timing* hone_of(const measurement& m, const std::string& group) {
    for (const timing& t : m.contenders)
        if (t.group == group && is_hone(t)) return &t;
    return nullptr;
}

std::string peers_of(const measurement& m, const std::string& group) {
    const std::string theirs = opposite(m, group);
    std::string list;
    for (const timing& t : m.contenders)
        if (t.group == theirs && !is_hone(t) && t.wrong.empty()) list += (list.empty() ? "" : ",") + t.name;
    return list;
}

// The needed peers that this case was not timed with. Which of them pack is the peers' own affair: the plain names
// count.
std::string missing_peers(const std::vector<std::string>& needed, const measurement& m) {
    std::string list;
    for (const std::string& name : needed) {
        const bool seen = std::any_of(m.contenders.begin(), m.contenders.end(),
                                      [&](const timing& t) { return t.name == name && t.wrong.empty(); });
        if (!seen) list += (list.empty() ? "" : ",") + name;
    }
    return list;
}

std::string prefix(const suite& s, const std::string& group) {
    return s.id + (group.empty() ? "." : "." + group + ".");
}

// One case in the run: measured when the first of its contenders is asked for.
struct scheduled {
    const suite* of;
    const bench_case* c;
    std::optional<measurement> result;
};

class session {
public:
    session(std::vector<suite> all, const options& how) : suites_(std::move(all)), how_(how) {
        for (const suite& s : suites_)
            for (const bench_case& c : s.cases)
                if (!how_.quick || c.in_quick) cases_.push_back({&s, &c, std::nullopt});
    }

    void register_all() {
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            // The names of the contenders are known only once the peers have seen the shape: some decline some shapes.
            for (const auto& contender : contender_names(*cases_[i].c)) {
                const std::string &name = contender.first, &group = contender.second;
                const std::string full =
                    cases_[i].of->id + "/" + (group.empty() ? "" : group + "/") + cases_[i].c->label + "/" + name;
                places_[full] = {i, name, group};
                auto counter = std::make_shared<std::size_t>(0);
                benchmark::RegisterBenchmark(full.c_str(),
                                             [this, i, name, group, counter](benchmark::State& state) {
                                                 repetition(state, i, name, group, (*counter)++);
                                             })
                    ->Iterations(1)
                    ->UseManualTime()
                    ->Repetitions(how_.rounds)
                    ->Unit(benchmark::kMicrosecond);
            }
        }
    }

    // A line for one contender, in the table on stdout.
    void print_row(const std::string& full) {
        const auto place = places_.find(full);
        if (place == places_.end()) return;
        const scheduled& s = cases_[place->second.index];
        if (!s.result) return;
        const timing* t = find(*s.result, place->second.name, place->second.group);
        if (t == nullptr) return;
        if (!t->wrong.empty()) {
            std::printf("%-58s %s\n", full.c_str(), t->wrong.c_str());
            return;
        }
        std::printf("%-58s %8.2f GFLOP/s %6.3f of ceiling", full.c_str(), t->gflops, t->of_ceiling);
        if (t->gbytes > 0) std::printf(" %6.1f GB/s %6.3f of reads", t->gbytes, t->of_bandwidth);
        const timing* best = best_peer(*s.result, t->group);
        if (is_hone(*t) && best != nullptr) std::printf(" %6.3f of %s", t->gflops / best->gflops, best->name.c_str());
        if (!s.result->invalid.empty()) std::printf("  void: %s", s.result->invalid.c_str());
        std::printf("\n");
        std::fflush(stdout);
    }

    // The last lines. Returns whether hone's own results were right in all cases.
    bool print_figures() const {
        bool right = true;
        for (const scheduled& s : cases_) {
            if (!s.result) continue;
            for (const timing& t : s.result->contenders) {
                if (t.wrong.empty()) continue;
                std::fprintf(stderr, "%s %s/%s: %s\n", is_hone(t) ? "WRONG" : "left out", s.c->label.c_str(),
                             t.name.c_str(), t.wrong.c_str());
                right = right && !is_hone(t);
            }
        }
        for (const scheduled& s : cases_) {
            if (!s.result) continue;
            for (const timing& t : s.result->contenders) {
                if (!is_hone(t) || !t.wrong.empty()) continue;
                const std::string name = prefix(*s.of, t.group) + s.c->label;
                figure(name + ".of_ceiling", t.of_ceiling, s.result->invalid, "");
                if (t.gbytes > 0) figure(name + ".of_bandwidth", t.of_bandwidth, s.result->invalid, "");
                const timing* best = best_peer(*s.result, t.group);
                if (best != nullptr && missing_peers(s.of->needed_peers, *s.result).empty())
                    figure(name + ".vs_best_peer", t.gflops / best->gflops, s.result->invalid,
                           " best=" + best->name + " peers=" + peers_of(*s.result, t.group));
            }
        }
        for (const suite& s : suites_)
            for (const summary& f : s.summaries) print_summary(s, f);
        return right;
    }

private:
    struct location {
        std::size_t index;
        std::string name, group;
    };

    static std::vector<std::pair<std::string, std::string>> contender_names(const bench_case& c) {
        std::vector<std::pair<std::string, std::string>> names;
        for (const contender& x : c.prepare()) names.emplace_back(x.name, x.group);
        return names;
    }

    static const timing* find(const measurement& m, const std::string& name, const std::string& group) {
        for (const timing& t : m.contenders)
            if (t.name == name && t.group == group) return &t;
        return nullptr;
    }

    void repetition(benchmark::State& state, std::size_t i, const std::string& name, const std::string& group,
                    std::size_t round) {
        scheduled& s = cases_[i];
        if (!s.result) {
            if (isatty(STDERR_FILENO) != 0)
                std::fprintf(stderr, "\r[%zu/%zu] %s %-40s\r", i + 1, cases_.size(), s.of->id.c_str(),
                             s.c->label.c_str());
            s.result = measure(*s.c, how_);
        }
        const timing* t = find(*s.result, name, group);
        if (t == nullptr || !t->wrong.empty()) {
            state.SkipWithError(t == nullptr ? "not timed" : t->wrong.c_str());
            return;
        }
        for (auto _ : state) state.SetIterationTime(t->seconds[round % t->seconds.size()]);
        // Names that are no keys of the JSON format: counters stand beside those.
        for (const auto& [key, value] : s.c->extents) state.counters[key] = value;
        state.counters["gflops"] = t->gflops;
        if (s.result->invalid.empty()) {
            state.counters["ceiling_gflops"] = s.result->ceiling;
            state.counters["of_ceiling"] = t->of_ceiling;
        }
        const timing* best = best_peer(*s.result, group);
        if (is_hone(*t) && best != nullptr) state.counters["vs_best_peer"] = t->gflops / best->gflops;
    }

    static void figure(const std::string& name, double value, const std::string& invalid, const std::string& note) {
        if (!invalid.empty())
            std::printf("void %s %s\n", name.c_str(), invalid.c_str());
        else
            std::printf("figure %s %.3f%s\n", name.c_str(), value, note.c_str());
    }

    // Only over complete sets: a mean over some of the cases must not stand under the name of all.
    void print_summary(const suite& s, const summary& f) const {
        std::vector<double> values;
        std::string invalid, peers, at;
        for (const bench_case& c : s.cases) {
            const bool counts = std::any_of(c.sets.begin(), c.sets.end(), [&](const std::string& set) {
                return std::find(f.sets.begin(), f.sets.end(), set) != f.sets.end();
            });
            if (!counts || (f.only && !f.only(c))) continue;
            const auto it = std::find_if(cases_.begin(), cases_.end(), [&](const scheduled& x) { return x.c == &c; });
            if (it == cases_.end() || !it->result) return;
            const measurement& m = *it->result;
            const timing* hone = hone_of(m, f.group);
            if (hone == nullptr || !hone->wrong.empty()) return;
            if (!m.invalid.empty()) invalid = c.label + ": " + m.invalid;
            double value = 0;
            if (f.what == summary::least_of_ceiling) {
                value = hone->of_ceiling;
            } else if (f.what == summary::least_of_bandwidth) {
                value = hone->of_bandwidth;
            } else {
                const timing* best = best_peer(m, f.group);
                const auto& needed = f.needed_peers.empty() ? s.needed_peers : f.needed_peers;
                if (best == nullptr || !missing_peers(needed, m).empty()) return;
                const std::string seen = peers_of(m, f.group);
                if (peers.empty() || seen.size() < peers.size()) peers = seen;
                value = hone->gflops / best->gflops;
            }
            if (f.what != summary::geomean_of_ratios &&
                (values.empty() || value < *std::min_element(values.begin(), values.end())))
                at = " at=" + c.label;
            values.push_back(value);
        }
        if (values.empty()) return;
        const double value =
            f.what == summary::geomean_of_ratios ? geomean(values) : *std::min_element(values.begin(), values.end());
        figure(f.name, value, invalid, at + (peers.empty() ? "" : " peers=" + peers));
    }

    std::vector<suite> suites_;
    options how_;
    std::vector<scheduled> cases_;
    std::map<std::string, location> places_;
};

// A row for each contender instead of Google Benchmark's table of repetitions; the JSON file has those.
class rows : public benchmark::BenchmarkReporter {
public:
    explicit rows(session& s) : session_(s) {}
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs)
            if (run.run_type == Run::RT_Iteration && run.run_name.function_name != last_)
                session_.print_row(last_ = run.run_name.function_name);
    }

private:
    session& session_;
    std::string last_;
};

}  // namespace

double f32_tolerance(double terms, double magnitude) {
    constexpr double half_ulp = 5.9604644775390625e-08;  // 2^-24
    return 8 * half_ulp * std::sqrt(terms + 1) * magnitude + 1e-37;
}

double f64_tolerance(double terms, double magnitude) {
    constexpr double half_ulp = 1.1102230246251565e-16;  // 2^-53
    return 8 * half_ulp * std::sqrt(terms + 1) * magnitude + 1e-300;
}

int run_suites(std::vector<suite> suites, const options& how, int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    session run(std::move(suites), how);
    run.register_all();
    rows reporter(run);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    return run.print_figures() ? 0 : 1;
}

}  // namespace bench
