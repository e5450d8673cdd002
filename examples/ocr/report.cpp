// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace ocr {

namespace {

std::string operator_text(const node& n) {
    std::string text = op_name(n.kind);
    if (is_kernel(n.kind) && n.has_input(2)) text += "|bias";
    for (const stage& s : n.stages) text += std::string("|") + stage_name(s.what);
    return text;
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_plan(const session& s, const dims_t& dims, const execution_plan& plan) {
    double seconds = 0, flops = 0;
    for (const step& st : plan.steps) {
        seconds += st.seconds;
        flops += st.k.flops;
    }
    const double runs = static_cast<double>(std::max(plan.runs, 1L));
    std::printf("\n%s, input %s: %ld run%s, %.3f ms each, %.2f GFLOP/s\n", s.file().c_str(), to_string(dims).c_str(),
                plan.runs, plan.runs == 1 ? "" : "s", seconds / runs * 1e3,
                seconds > 0 ? flops * runs / seconds * 1e-9 : 0.0);
    std::printf("memory: arena %.2f MiB (%.2f MiB unshared), scratch %.2f MiB, packed weights of the model %.2f MiB\n",
                mebibytes(plan.memory.bytes), mebibytes(plan.memory.bytes_unshared), mebibytes(plan.scratch_bytes),
                mebibytes(s.packed_bytes()));
    std::printf("%-34s %-16s %-16s %9s %6s %9s  %s\n", "operator", "input", "output", "ms", "share", "GFLOP/s",
                "kernel");
    for (const step& st : plan.steps) {
        const node& n = plan.g.nodes[static_cast<std::size_t>(st.node)];
        std::printf("%-34s %-16s %-16s %9.3f %5.1f%% %9.2f  %s\n", operator_text(n).c_str(),
                    to_string(plan.g.input(n, 0).dims).c_str(), to_string(plan.g.at(n.out).dims).c_str(),
                    st.seconds / runs * 1e3, seconds > 0 ? 100 * st.seconds / seconds : 0.0,
                    st.seconds > 0 ? st.k.flops * runs / st.seconds * 1e-9 : 0.0, st.k.chosen.c_str());
    }
}

}  // namespace

void print_profile(const std::vector<const session*>& sessions) {
    for (const session* s : sessions)
        for (const auto& [dims, plan] : s->plans()) print_plan(*s, dims, *plan);
}

void print_kernels(const std::vector<const session*>& sessions) {
    std::map<std::string, int> kernels;
    for (const session* s : sessions)
        for (const auto& [dims, plan] : s->plans())
            for (const step& st : plan->steps)
                if (is_kernel(plan->g.nodes[static_cast<std::size_t>(st.node)].kind)) ++kernels[st.k.name];
    std::printf("instruction set: %s\n", describe_isa().c_str());
    for (const auto& [name, nodes] : kernels) std::printf("kernel %s: %d nodes\n", name.c_str(), nodes);
}

}  // namespace ocr
