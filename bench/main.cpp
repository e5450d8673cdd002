// SPDX-License-Identifier: BSL-1.0
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ceiling.hpp"
#include "harness.hpp"
#include "peers/peer.hpp"

#include <hone/version.hpp>

namespace {

constexpr const char* usage =
    "hone_bench [SUITE...] [--quick] [--json FILE] [--benchmark_...]\n"
    "  SUITE            gemm, conv; all when none is given\n"
    "  --quick          few shapes\n"
    "  --json FILE      Google Benchmark's JSON with the machine and the peers in its context\n"
    "  --benchmark_...  options of Google Benchmark, for example --benchmark_filter=1024\n"
    "The last lines are figures: \"figure NAME VALUE\", or \"void NAME REASON\".\n";

// Libraries read these when they are loaded, before main: set, and begin again.
void insist_on_one_thread(char** argv) {
    bool changed = false;
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && std::strcmp(value, "1") == 0) continue;
        setenv(name, "1", 1);
        changed = true;
    }
    if (changed) execv("/proc/self/exe", argv);
}

std::string cpu_model() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.rfind("model name", 0) == 0 || line.rfind("CPU part", 0) == 0) {
            const auto colon = line.find(':');
            if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
        }
    return "unknown";
}

std::string compiler() {
#if defined(__clang__)
    return std::string("Clang ") + __clang_version__;
#else
    return std::string("GCC ") + __VERSION__;
#endif
}

}  // namespace

int main(int argc, char** argv) {
    insist_on_one_thread(argv);
    bench::options how;
    std::vector<bench::suite> all, chosen;
    all.push_back(bench::gemm_suite());
    all.push_back(bench::gemm_f64_suite());
    all.push_back(bench::conv_suite());
    std::vector<std::string> rest{argv[0]};
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--help" || arg == "-h") {
            std::fputs(usage, stdout);
            return 0;
        } else if (arg == "--quick") {
            how.quick = true;
            how.seconds_per_turn = 10e-3;
        } else if (arg == "--json") {
            if (++i == argc) {
                std::fputs("hone_bench: --json needs a file name\n", stderr);
                return 2;
            }
            rest.push_back(std::string("--benchmark_out=") + argv[i]);
            rest.push_back("--benchmark_out_format=json");
        } else if (arg.rfind("--benchmark_", 0) == 0) {
            rest.push_back(arg);
        } else {
            bool known = false;
            for (const bench::suite& s : all)
                if (s.name == arg) chosen.push_back(s), known = true;
            if (!known) {
                std::fprintf(stderr, "hone_bench: no suite is called '%s'\n%s", arg.c_str(), usage);
                return 2;
            }
        }
    }
    if (chosen.empty()) chosen = all;

    std::string peers, isa;
    for (const bench::peer& p : bench::peers()) {
        if (p.name == "hone")
            isa = p.what;
        else
            peers += (peers.empty() ? "" : "; ") + p.what;
    }
    const std::pair<const char*, std::string> context[] = {
        {"hone.version", std::to_string(HONE_VERSION_MAJOR) + "." + std::to_string(HONE_VERSION_MINOR) + "." +
                             std::to_string(HONE_VERSION_PATCH)},
        {"hone.isa", isa},
        {"hone.compiler", compiler()},
        {"hone.flags", HONE_BENCH_FLAGS},
        {"hone.cpu_model", cpu_model()},
        {"hone.ceiling_isa", bench::ceiling_isa()},
        {"hone.peers", peers},
        {"hone.threads", "1"},
    };
    for (const auto& [key, value] : context) {
        benchmark::AddCustomContext(key, value);
        std::printf("%-17s %s\n", key, value.c_str());
    }
    std::vector<char*> args;
    for (std::string& arg : rest) args.push_back(arg.data());
    args.push_back(nullptr);
    return bench::run_suites(chosen, how, static_cast<int>(rest.size()), args.data());
}
