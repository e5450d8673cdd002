// SPDX-License-Identifier: BSL-1.0
// Which instruction set is chosen, as a pure function of feature records, and what HONE_ISA does to a fresh process.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"

namespace {

using hone::argument;
using hone::code;
using hone::isa;
using hone::detail::choose_isa;
using hone::machine::cpu_features;

cpu_features sse42() {
    cpu_features f;
    f.sse2 = f.sse42 = true;
    return f;
}
cpu_features haswell() {
    cpu_features f = sse42();
    f.avx = f.avx2 = f.fma = f.f16c = true;
    return f;
}
cpu_features skylake_server() {
    cpu_features f = haswell();
    f.avx512f = f.avx512dq = f.avx512bw = f.avx512vl = true;
    return f;
}
cpu_features arm(int sve_bits, bool sve2) {
    cpu_features f;
    f.neon = true;
    f.sve = sve_bits != 0;
    f.sve2 = sve2;
    f.sve_bits = sve_bits;
    return f;
}

// The records that mean something to this build's architecture.
const cpu_features weak = HONE_X86 ? sse42() : cpu_features{};
const cpu_features usual = HONE_X86 ? haswell() : arm(0, false);
const cpu_features strong = HONE_X86 ? skylake_server() : arm(256, true);
const isa usual_isa = HONE_X86 ? isa::avx2 : HONE_ARM64 ? isa::neon : isa::native;
const isa strong_isa = HONE_X86 ? isa::avx512 : HONE_SVE ? isa::sve2 : HONE_ARM64 ? isa::neon : isa::native;

std::string message(const hone::status& s) { return std::string(s.message().view()); }

}  // namespace

TEST_CASE("B106 the best ISA follows the features, not the model") {
    using hone::detail::best_isa;
    CHECK(best_isa(cpu_features{}) == isa::native);
    CHECK(best_isa(weak) == isa::native);
    CHECK(best_isa(usual) == usual_isa);
    CHECK(best_isa(strong) == strong_isa);
#if HONE_X86
    // Each feature a region is compiled for is needed: one missing bit, the next ISA.
    for (bool cpu_features::*bit : {&cpu_features::avx2, &cpu_features::fma, &cpu_features::f16c}) {
        cpu_features f = haswell();
        f.*bit = false;
        CHECK(best_isa(f) == isa::native);
        f = skylake_server();
        f.*bit = false;
        CHECK(best_isa(f) == isa::native);
    }
    for (bool cpu_features::*bit :
         {&cpu_features::avx512f, &cpu_features::avx512bw, &cpu_features::avx512dq, &cpu_features::avx512vl}) {
        cpu_features f = skylake_server();
        f.*bit = false;
        CHECK(best_isa(f) == isa::avx2);
    }
#endif
#if HONE_ARM64
    // At 128 bits SVE has NEON's width and pays for predicates.
    CHECK(best_isa(arm(128, false)) == isa::neon);
    CHECK(best_isa(arm(128, true)) == isa::neon);
    for (int bits : {256, 384, 512, 1024, 2048}) {
        CHECK(best_isa(arm(bits, false)) == (HONE_SVE ? isa::sve : isa::neon));
        CHECK(best_isa(arm(bits, true)) == (HONE_SVE ? isa::sve2 : isa::neon));
    }
    // A sandbox that hides the vector length: SVE is set, its size is not known.
    cpu_features hidden = arm(0, false);
    hidden.sve = hidden.sve2 = true;
    CHECK(best_isa(hidden) == isa::neon);
    CHECK_FALSE(hone::detail::isa_available(isa::sve, hidden));
    // SVE at 128 bits runs where it is asked for.
    CHECK(hone::detail::isa_available(isa::sve, arm(128, false)) == (HONE_SVE != 0));
    CHECK_FALSE(hone::detail::isa_available(isa::sve2, arm(128, false)));
#endif
    for (const cpu_features& f : {weak, usual, strong}) {
        CHECK(hone::detail::isa_available(isa::scalar, f));
        CHECK(hone::detail::isa_available(isa::native, f));
        CHECK_FALSE(hone::detail::isa_available(isa::dynamic, f));
        CHECK_FALSE(hone::detail::isa_available(static_cast<isa>(hone::isa_count), f));
        CHECK(hone::detail::isa_available(best_isa(f), f));
    }
}

#if HONE_X86
TEST_CASE("B61 CPUs from their registers: unknown vendors, hypervisors that hide state") {
    using namespace hone::machine;
    // A CPU of no known vendor, family or model, with every bit that AVX-512 needs.
    register_dump r;
    const auto entry = [&r](std::uint32_t leaf, cpuid_registers out) { r.cpuid[r.cpuid_count++] = {leaf, 0, out}; };
    const auto letters = [](const char* four) {
        std::uint32_t v = 0;
        std::memcpy(&v, four, 4);
        return v;
    };
    entry(0, {7, letters("Nobo"), letters("CPUs"), letters("dys ")});
    const std::uint32_t ecx =
        1u << 0 | 1u << 9 | 1u << 12 | 1u << 19 | 1u << 20 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
    entry(1, {0x0FFF0FFF, 0, ecx, 1u << 25 | 1u << 26});
    entry(7, {0, 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0, 0});
    const struct {
        std::uint64_t xcr0;
        isa best;
    } rows[] = {{0xE7, isa::avx512}, {0xE6, isa::avx512}, {0x7, isa::avx2},   {0x67, isa::avx2},
                {0x27, isa::avx2},   {0x3, isa::native},  {0x1, isa::native}, {0, isa::native}};
    for (const auto& row : rows) {
        r.xcr0 = row.xcr0;
        CAPTURE(row.xcr0);
        CHECK(choose_isa(detect(r), nullptr).chosen == row.best);
        CHECK(choose_isa(detect(r), "avx512").chosen == row.best);
    }
    r.xcr0 = 0xE7;
    r.cpuid[1].out.ecx &= ~(1u << 27);  // no OSXSAVE: the system saves nothing, whatever XCR0 is said to be
    CHECK(choose_isa(detect(r), nullptr).chosen == isa::native);
    r.cpuid[1].out.ecx = ecx;
    r.cpuid[0].out.eax = 1;  // leaf 7 lies above the largest leaf: what was recorded there is another leaf's data
    CHECK(choose_isa(detect(r), nullptr).chosen == isa::native);
}
#endif

TEST_CASE("B71 HONE_ISA caps the choice") {
    // Unset, empty and blank are alike.
    for (const char* wanted : {static_cast<const char*>(nullptr), "", " ", "\t  "}) {
        const auto c = choose_isa(strong, wanted);
        CHECK(c.chosen == strong_isa);
        CHECK(c.best == strong_isa);
        CHECK_FALSE(c.capped);
        CHECK(c.status.ok());
    }
    for (const char* wanted : {"scalar", "SCALAR", " scalar", "scalar ", "\tScalar \t"}) {
        const auto c = choose_isa(strong, wanted);
        CAPTURE(wanted);
        CHECK(c.chosen == isa::scalar);
        CHECK(c.best == strong_isa);
        CHECK(c.capped);
        CHECK(c.status.ok());
    }
    for (int i = 1; i < hone::isa_count; ++i) {
        const isa id = static_cast<isa>(i);
        const auto c = choose_isa(strong, hone::isa_name(id));
        CAPTURE(hone::isa_name(id));
        if (hone::detail::isa_available(id, strong)) {
            CHECK(c.chosen == id);
            CHECK(c.capped);
            CHECK(c.status.ok());
        } else {
            CHECK(c.chosen == strong_isa);
            CHECK_FALSE(c.capped);
            CHECK(c.status ==
                  hone::status{code::isa_unavailable, argument::environment, i, static_cast<int>(strong_isa)});
        }
    }
#if HONE_X86
    CHECK(choose_isa(strong, "avx2 ").chosen == isa::avx2);
    CHECK(choose_isa(strong, "aVx2").chosen == isa::avx2);
    const auto c = choose_isa(usual, "AVX512");
    CHECK(c.chosen == isa::avx2);
    CHECK_FALSE(c.capped);
    CHECK(message(c.status) == "HONE_ISA = avx512 cannot run here; the best that can is isa avx2");
#endif
}

TEST_CASE("B71 a HONE_ISA that names nothing is reported, and the best runs") {
    for (const char* wanted : {"avx9", "avx", "avx22", "avx2x", "av x2", "avx2,avx512", "avx-512", "0", "-", "\x01",
                               "dynamic", "invalid", "best", "\xC3\xA9", "avx2\n"}) {
        const auto c = choose_isa(strong, wanted);
        CAPTURE(wanted);
        CHECK(c.chosen == strong_isa);
        CHECK(c.best == strong_isa);
        CHECK_FALSE(c.capped);
        CHECK(c.status.code == code::isa_unknown);
        CHECK(c.status.argument == argument::environment);
        CHECK(c.status.limit == static_cast<int>(strong_isa));
    }
    const std::string best = hone::isa_name(strong_isa);
    CHECK(message(choose_isa(strong, "avx9").status) ==
          "HONE_ISA = avx9 names no instruction set; the choice made instead is isa " + best);
    CHECK(message(choose_isa(strong, " Quantum Leap 9000 ").status) ==
          "HONE_ISA = Quantum  names no instruction set; the choice made instead is isa " + best);
    const std::string longest(100000, 'x');
    CHECK(message(choose_isa(strong, longest.c_str()).status) ==
          "HONE_ISA = xxxxxxxx names no instruction set; the choice made instead is isa " + best);
}

TEST_CASE("every ISA of this architecture has kernels") {
    int gemm[hone::isa_count] = {}, gemm_f64[hone::isa_count] = {}, depthwise[hone::isa_count] = {}, winograd[hone::isa_count] = {};
#define HONE_GEMM(region, type, mr, registers) ++(std::is_same_v<type, double> ? gemm_f64 : gemm)[static_cast<int>(isa::region)];
#define HONE_DEPTHWISE(region, type) ++depthwise[static_cast<int>(isa::region)];
#define HONE_WINOGRAD(region, type) ++winograd[static_cast<int>(isa::region)];
#include <hone/kernels.def>
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto* row = hone::detail::isa_row_of(static_cast<isa>(i));
        CAPTURE(hone::isa_name(static_cast<isa>(i)));
        REQUIRE(row != nullptr);
        CHECK((gemm[i] > 0) == row->compiled);
        CHECK((depthwise[i] > 0) == row->compiled);
        CHECK((winograd[i] > 0) == row->compiled);
        CHECK((gemm_f64[i] > 0) == row->compiled);
        CHECK(gemm[i] <= 4);  // kernel_list holds as many
        CHECK(gemm_f64[i] <= 4);
    }
    CHECK(gemm[0] + depthwise[0] + winograd[0] == 0);
    CHECK(hone::detail::isa_row_of(isa::dynamic) == nullptr);
}

// A registered tile keeps the rules that a tile given by a policy must keep.
namespace {
template <class T>
constexpr hone::policy registered(isa id, int mr, int registers) {
    // 0: the length is not known here, and a policy cannot name the tile.
    const int lanes = hone::detail::policy_lanes(id, hone::dtype_of<T>);
    return lanes ? hone::policy{.isa = id, .tile = {mr, registers * lanes}} : hone::policy{.isa = id};
}
}  // namespace
#define HONE_GEMM(region, type, mr, registers) \
    static_assert(hone::validate<registered<type>(isa::region, mr, registers), type>());
#include <hone/kernels.def>

namespace {
template <class T>
void check_as_registered() {
    struct row {
        isa id;
        int mr, registers;
        bool of_type;
    };
    const row rows[] = {
#define HONE_GEMM(region, type, mr, registers) {isa::region, mr, registers, std::is_same_v<type, T>},
#include <hone/kernels.def>
    };
    for (int i = 1; i < hone::isa_count; ++i) {
        const isa id = static_cast<isa>(i);
        CAPTURE(hone::isa_name(id));
        const auto& list = hone::detail::gemm_kernels<T>(id);
        if (!hone::available(id)) {
            CHECK(list.count == 0);
            continue;
        }
        int at = 0;
        for (const row& r : rows) {
            if (r.id != id || !r.of_type) continue;
            REQUIRE(at < list.count);
            const auto& k = list.row[at++];
            CHECK(k.isa == id);
            CHECK(k.mr == r.mr);
            CHECK(k.lanes > 0);
            CHECK(k.nr == r.registers * k.lanes);
            const int fixed = hone::detail::policy_lanes(id, hone::dtype_of<T>);
            if (fixed != 0) CHECK(k.lanes == fixed);
            // Tile and panel are made for each other: a tile is whole panels or a whole part of one.
            CHECK((k.nr % k.panel == 0 || k.panel % k.nr == 0 || k.panel % k.lanes == 0));
            CHECK(k.pack_lines != nullptr);
            for (int h = 0; h < hone::detail::tile_height_count; ++h) {
                const int height = hone::detail::tile_heights[h];
                for (int v = 0; v < hone::detail::max_registers; ++v) {
                    if (v >= r.registers || height > r.mr) CHECK(k.micro[h][v] == nullptr);
                    else if (height == 1 || (height == r.mr && v == r.registers - 1)) CHECK(k.micro[h][v] != nullptr);
                }
            }
        }
        CHECK(at == list.count);
        if (!std::is_same_v<T, float>) continue;
        CHECK(hone::detail::depthwise_kernel<float>(id) != nullptr);
        CHECK(hone::detail::winograd_kernels_of<float>(id) != nullptr);
        for (hone::index_t channels = 1; channels <= 32; ++channels) {
            int registered_as = 0;
#define HONE_GROUPED(region, type, count) registered_as += isa::region == id && channels == count ? 1 : 0;
#include <hone/kernels.def>
            hone::detail::gemm_kernel<float> k;
            CHECK(hone::detail::grouped_kernel<float>(id, channels, k) == (registered_as == 1));
            if (registered_as == 1) CHECK(k.lanes % channels == 0);
        }
    }
}
}  // namespace

TEST_CASE("the kernels of every ISA that runs here, as registered") {
    check_as_registered<float>();
    check_as_registered<double>();
}

TEST_CASE("a plan for an ISA says which, and why") {
    for (int i = 1; i < hone::isa_count; ++i) {
        const isa id = static_cast<isa>(i);
        CAPTURE(hone::isa_name(id));
        const auto g = hone::plan(hone::gemm_desc{.m = 5, .n = 7, .k = 3}, hone::policy{.isa = id});
        const auto c = hone::plan(hone::conv_desc{.h = 5, .w = 5, .ic = 3, .oc = 4}, hone::policy{.isa = id});
        REQUIRE(g.has_value() == hone::available(id));
        REQUIRE(c.has_value() == hone::available(id));
        if (hone::available(id)) {
            CHECK(g->explain().isa == id);
            CHECK(c->explain().isa == id);
            CHECK(std::string_view(g->explain().why_isa) == "policy");
            const std::string start = std::string("pointwise f32 ") + hone::isa_name(id) + " (policy), tile ";
            CHECK(std::string(c->explain().text().view()).substr(0, start.size()) == start);
        } else {
            const hone::status expected{code::isa_unavailable, argument::policy_isa, i,
                                        static_cast<int>(hone::explain().best)};
            CHECK(g.status() == expected);
            CHECK(c.status() == expected);
            CHECK(message(g.status()) == std::string("policy.isa = ") + hone::isa_name(id) +
                                             " cannot run here; the best that can is isa " +
                                             hone::isa_name(hone::explain().best));
        }
    }
    const auto wild = hone::plan(hone::gemm_desc{.m = 1, .n = 1, .k = 1}, hone::policy{.isa = static_cast<isa>(77)});
    CHECK(wild.status() == hone::status{code::bad_policy, argument::policy_isa, 77, hone::isa_count - 1});
}

// config.hpp knows which compilers cannot compile which region: what they lack is left out, something else runs, and
// explain() says so.
TEST_CASE("B115 a region this compiler cannot compile is left out, and explain() says so") {
#if HONE_ARM64 && HONE_CLANG && __clang_major__ < 16
    const bool no_sve = true;
#else
    const bool no_sve = false;
#endif
    const std::string text(hone::explain().text().view());
    CAPTURE(text);
    CHECK((text.find("no SVE regions") != std::string::npos) == no_sve);
    for (isa id : {isa::sve, isa::sve2}) {
        CHECK(hone::detail::isa_row_of(id)->compiled == (HONE_ARM64 && !no_sve));
        CHECK(hone::detail::isa_available(id, arm(512, true)) == (HONE_ARM64 && !no_sve));
        if (!HONE_ARM64 || no_sve) {
            CHECK_FALSE(hone::available(id));
            CHECK(hone::plan(hone::gemm_desc{.m = 1, .n = 1, .k = 1}, hone::policy{.isa = id}).status().code ==
                  code::isa_unavailable);
        }
    }
    if (no_sve) CHECK(hone::detail::best_isa(arm(512, true)) == isa::neon);
}

TEST_CASE("explain() of the machine") {
    const hone::machine_explanation e = hone::explain();
    CHECK(e.best == hone::detail::best_isa(e.cpu));
    CHECK(e.isa == hone::active_isa());
    CHECK(hone::available(e.isa));
    CHECK(hone::available(e.best));
    CHECK(e.cache.l1d.bytes > 0);
    const std::string text(e.text().view());
    CAPTURE(text);
    CHECK(text.rfind(std::string("isa ") + hone::isa_name(e.isa), 0) == 0);
    CHECK(text.find("; cpu ") != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);

    // What text() says of records that this machine may not show.
    hone::machine_explanation f;
    f.isa = isa::scalar;
    f.best = usual_isa;
    f.from_environment = true;
    f.cpu = usual;
    CHECK(std::string(f.text().view())
              .rfind(std::string("isa scalar (HONE_ISA; best here ") + hone::isa_name(usual_isa) + ")", 0) == 0);
    f.from_environment = false;
    f.isa = usual_isa;
    f.environment = choose_isa(usual, "avx9").status;
    CHECK(std::string(f.text().view())
              .rfind(std::string("isa ") + hone::isa_name(usual_isa) + " (HONE_ISA = avx9 names no instruction set; " +
                         "the choice made instead is isa " + hone::isa_name(usual_isa) + ")",
                     0) == 0);
    f.environment = {};
    f.precise_math = false;
    CHECK(std::string(f.text().view()).find("-ffast-math") != std::string::npos);
    f.isa = isa::native;
    CHECK((std::string(f.text().view()).find("no FMA in this unit's flags") != std::string::npos) ==
          (HONE_NATIVE_FMA == 0));
}

TEST_CASE("B71 HONE_ISA is read once") {
    const isa before = hone::active_isa();
    const char* old = std::getenv("HONE_ISA");
    const std::string kept = old ? old : "";
    setenv("HONE_ISA", before == isa::scalar ? "native" : "scalar", 1);
    CHECK(hone::active_isa() == before);
    CHECK(hone::explain().isa == before);
    if (old) {
        setenv("HONE_ISA", kept.c_str(), 1);
    } else {
        unsetenv("HONE_ISA");
    }
}

// Run by the next case in fresh processes, and by CTest with HONE_ISA set: what that process does is what choose_isa
// says.
TEST_CASE("a process under HONE_ISA", "[.environment]") {
    const char* wanted = std::getenv("HONE_ISA");
    const hone::machine_explanation e = hone::explain();
    const auto c = choose_isa(e.cpu, wanted);
    CHECK(e.isa == c.chosen);
    CHECK(e.best == c.best);
    CHECK(e.from_environment == c.capped);
    CHECK(e.environment == c.status);
    const auto plan = hone::plan(hone::gemm_desc{.m = 2, .n = 2, .k = 2});
    REQUIRE(plan);
    CHECK(plan->explain().isa == c.chosen);
    CHECK(std::string_view(plan->explain().why_isa) == (c.capped ? "HONE_ISA" : "best here"));
    const float a[] = {1, 2, 3, 4}, b[] = {5, 7, 6, 8};
    float out[4] = {};
    CHECK(plan->run(hone::row_major(a, 2, 2), hone::row_major(b, 2, 2), hone::row_major(out, 2, 2)).ok());
    CHECK(out[0] == 17);
    CHECK(out[1] == 23);
    CHECK(out[2] == 39);
    CHECK(out[3] == 53);
    std::printf("HONE_ISA=%s: %s\n", wanted ? wanted : "(unset)", e.text().c_str());
}

TEST_CASE("B71 HONE_ISA in fresh processes") {
    for (const char* wanted : {"", "avx9", "AVX512", "avx2 ", "scalar", "native", "NEON", "sve", "sve2", "dynamic"}) {
        CAPTURE(wanted);
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            setenv("HONE_ISA", wanted, 1);
            if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(98);  // what it says is said under CTest
            execl("/proc/self/exe", "dispatch_test", "[.environment]", static_cast<char*>(nullptr));
            _exit(99);
        }
        int state = 0;
        REQUIRE(waitpid(child, &state, 0) == child);
        REQUIRE(WIFEXITED(state));
        if (WEXITSTATUS(state) == 99) {
            WARN("an emulated process cannot start another: CTest runs the case above with HONE_ISA set");
            return;
        }
        CHECK(WEXITSTATUS(state) == 0);
    }
}
