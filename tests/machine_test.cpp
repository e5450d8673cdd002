// SPDX-License-Identifier: BSL-1.0
// CPU features and caches, from recorded and composed machines (machines/*.txt) and from the running one.
//
// A machine is a text file of lines:
//     # comment
//     cpuid LEAF SUBLEAF EAX EBX ECX EDX     hexadecimal
//     xcr0 | hwcap | hwcap2 VALUE            hexadecimal
//     amx 0 | 1                              whether the system permits tile data
//     sve_bytes | allowed | cpu NUMBER       decimal: vector length, allowed CPUs, the first of them
//     dir PATH                               the following files are in this directory
//     file NAME TEXT                         a file, whose text ends in a newline
//
// To record the running machine:  machine_test "record this machine"
#include "catch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <hone/machine/cache.hpp>
#include <hone/machine/cpu.hpp>

#if HONE_LINUX
#include <sched.h>
#endif

namespace {

namespace machine = hone::machine;
using machine::cache_info;
using machine::cache_level;
using machine::cache_origin;
using machine::cpu_features;
using machine::cpuid_registers;
using machine::register_dump;

struct recording {
    register_dump registers;
    std::map<std::string, std::string> files;
    int allowed = 1;
    int cpu = 0;
};

recording parse(std::istream& in) {
    recording r;
    std::string line, dir;
    while (std::getline(in, line)) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string key;
        words >> key;
        if (key == "cpuid") {
            std::uint32_t leaf = 0, subleaf = 0;
            cpuid_registers out;
            words >> std::hex >> leaf >> subleaf >> out.eax >> out.ebx >> out.ecx >> out.edx;
            REQUIRE(r.registers.cpuid_count < register_dump::capacity);
            machine::record(r.registers, leaf, subleaf, out);
        } else if (key == "xcr0") {
            words >> std::hex >> r.registers.xcr0;
        } else if (key == "hwcap") {
            words >> std::hex >> r.registers.hwcap;
        } else if (key == "hwcap2") {
            words >> std::hex >> r.registers.hwcap2;
        } else if (key == "amx") {
            words >> r.registers.amx_permitted;
        } else if (key == "sve_bytes") {
            words >> r.registers.sve_bytes;
        } else if (key == "allowed") {
            words >> r.allowed;
        } else if (key == "cpu") {
            words >> r.cpu;
        } else if (key == "dir") {
            words >> dir;
        } else if (key == "file") {
            std::string name, text;
            words >> name;
            std::getline(words >> std::ws, text);
            r.files[dir + "/" + name] = text + "\n";
        } else {
            FAIL("unknown key: " << line);
        }
        INFO(line);
        REQUIRE_FALSE(words.fail());
    }
    return r;
}

recording load(const std::string& name) {
    const std::string path = std::string(HONE_TEST_DATA) + "/machines/" + name + ".txt";
    std::ifstream in(path);
    INFO(path);
    REQUIRE(in);
    return parse(in);
}

// Everything but what names one machine: the brand string (leaves 0x80000002 to 4) and the APIC id (1.EBX[31:24]).
void write(std::ostream& out, const recording& r) {
    const register_dump& d = r.registers;
    out << std::hex << std::setfill('0');
    for (int i = 0; i < d.cpuid_count; ++i) {
        cpuid_registers v = d.cpuid[i].out;
        if (d.cpuid[i].leaf >= 0x80000002u && d.cpuid[i].leaf <= 0x80000004u) continue;
        if (d.cpuid[i].leaf == 1) v.ebx &= 0x00FFFFFFu;
        out << "cpuid " << std::setw(8) << d.cpuid[i].leaf << ' ' << d.cpuid[i].subleaf;
        for (const std::uint32_t x : {v.eax, v.ebx, v.ecx, v.edx}) out << ' ' << std::setw(8) << x;
        out << '\n';
    }
    out << "xcr0 " << d.xcr0 << "\namx " << d.amx_permitted << "\nhwcap " << d.hwcap << "\nhwcap2 " << d.hwcap2
        << std::dec << "\nsve_bytes " << d.sve_bytes << "\nallowed " << r.allowed << "\ncpu " << r.cpu << '\n';
    std::string dir;
    for (const auto& [path, text] : r.files) {
        const std::size_t slash = path.rfind('/');
        if (path.substr(0, slash) != dir) out << "dir " << (dir = path.substr(0, slash)) << '\n';
        out << "file " << path.substr(slash + 1) << ' ' << text;
    }
}

bool read_recorded(void* context, const char* path, char* buffer, std::size_t size) {
    const auto& files = static_cast<const recording*>(context)->files;
    const auto found = files.find(path);
    if (found == files.end()) return false;
    const std::size_t n = std::min(found->second.size(), size - 1);
    std::memcpy(buffer, found->second.data(), n);
    buffer[n] = '\0';
    return true;
}

machine::source source_of(recording& r) { return {read_recorded, &r, &r.registers, r.allowed, r.cpu}; }

cache_info caches_of(recording r) { return machine::read_caches(source_of(r)); }

bool read_and_keep(void* context, const char* path, char* buffer, std::size_t size) {
    if (!machine::read_system_file(nullptr, path, buffer, size)) return false;
    static_cast<recording*>(context)->files[path] = buffer;
    return true;
}

recording record_this_machine() {
    recording r;
    r.registers = machine::read_registers();
    const machine::affinity a = machine::read_affinity();
    r.allowed = a.count;
    r.cpu = a.first;
    (void)machine::read_caches({read_and_keep, &r, &r.registers, a.count, a.first});
    return r;
}

// Field by field, and apart from features_text(), which it checks as well.
std::string features(const cpu_features& f) {
    std::string s;
#define HONE_FEATURE(name) \
    if (f.name) s += s.empty() ? #name : " " #name
    HONE_FEATURE(sse2);
    HONE_FEATURE(sse42);
    HONE_FEATURE(avx);
    HONE_FEATURE(avx2);
    HONE_FEATURE(fma);
    HONE_FEATURE(f16c);
    HONE_FEATURE(avx_vnni);
    HONE_FEATURE(avx512f);
    HONE_FEATURE(avx512dq);
    HONE_FEATURE(avx512bw);
    HONE_FEATURE(avx512vl);
    HONE_FEATURE(avx512_vnni);
    HONE_FEATURE(avx512_bf16);
    HONE_FEATURE(avx512_fp16);
    HONE_FEATURE(amx_tile);
    HONE_FEATURE(amx_int8);
    HONE_FEATURE(amx_bf16);
    HONE_FEATURE(neon);
    HONE_FEATURE(fp16);
    HONE_FEATURE(dotprod);
    HONE_FEATURE(i8mm);
    HONE_FEATURE(bf16);
    HONE_FEATURE(sve);
    HONE_FEATURE(sve2);
    HONE_FEATURE(sve_i8mm);
    HONE_FEATURE(sve_bf16);
#undef HONE_FEATURE
    CHECK((f.sve_bits != 0) == f.sve);

    std::string text = s.empty() ? "none" : s;
    const std::size_t at = text.find("sse42");
    if (at != std::string::npos) text.replace(at, 5, "sse4.2");
    if (f.sve) text += " (" + std::to_string(f.sve_bits) + " bits)";
    CHECK(std::string(machine::features_text(f).c_str()) == text);
    return s;
}

std::string features(const register_dump& r) { return features(machine::detect(r)); }

std::string level_text(const cache_level& c, cache_origin from) {
    constexpr const char* names[] = {"assumed", "sysfs", "4", "1d", "5/6", "none"};
    std::ostringstream s;
    s << c.bytes << ' ' << c.ways << ' ' << c.line << ' ' << c.sharing << ' ' << names[static_cast<int>(from)];
    return s.str();
}
std::string l1d(const cache_info& c) { return level_text(c.l1d, c.l1d_from); }
std::string l2(const cache_info& c) { return level_text(c.l2, c.l2_from); }
std::string l3(const cache_info& c) { return level_text(c.l3, c.l3_from); }

// What read_caches() promises for any source.
void check_promises(const cache_info& c) {
    for (const cache_level& v : {c.l1d, c.l2, c.l3}) {
        CHECK(v.bytes >= 4096);
        CHECK(v.bytes <= std::int64_t{1} << 38);
        CHECK(v.line >= 16);
        CHECK(v.line <= 256);
        CHECK((v.line & (v.line - 1)) == 0);
        CHECK(v.ways >= 1);
        CHECK(std::int64_t{v.ways} * v.line <= v.bytes);
        CHECK(v.sharing >= 1);
    }
    CHECK(c.l1d.bytes <= c.l2.bytes);
    CHECK(c.l2.bytes <= c.l3.bytes);
}

const std::string to_fma = "sse2 sse42 avx avx2 fma f16c";
const std::string default_l1d = "32768 8 64 1 assumed";
const std::string default_l2 = "524288 8 64 1 assumed";

}  // namespace

TEST_CASE("features of recorded machines") {
    const struct {
        const char* machine;
        std::string expected;
        int sve_bits;
    } rows[] = {
        {"no_osxsave", "sse2 sse42", 0},
        {"skylake_x", to_fma + " avx512f avx512dq avx512bw avx512vl", 0},
        {"unknown_vendor",
         to_fma + " avx_vnni avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16"
                  " amx_tile amx_int8 amx_bf16",
         0},
        {"qemu_family15", to_fma, 0},
        {"qemu_nehalem", "sse2 sse42", 0},
        {"hybrid", to_fma + " avx_vnni", 0},
        {"leaf7_garbage", "sse2 sse42 avx f16c", 0},
        {"vm_hidden_caches", to_fma, 0},
        {"zen5_vm",
         to_fma + " avx_vnni avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16", 0},
        {"neoverse_n1", "neon fp16 dotprod", 0},
        {"neoverse_v1", "neon fp16 dotprod i8mm bf16 sve sve_i8mm sve_bf16", 256},
        {"neoverse_v2", "neon fp16 dotprod i8mm bf16 sve sve2 sve_i8mm sve_bf16", 128},
        {"a64fx", "neon fp16 sve", 512},
    };
    for (const auto& row : rows) {
        INFO(row.machine);
        const cpu_features f = machine::detect(load(row.machine).registers);
        CHECK(features(f) == row.expected);
        CHECK(f.sve_bits == row.sve_bits);
    }
    CHECK(std::string(machine::detect(load("unknown_vendor").registers).vendor) == "TomorrowsCPU");
}

TEST_CASE("an empty record has no features") {
    CHECK(features(register_dump{}) == "");
    static_assert(!machine::detect(register_dump{}).sse2);
}

TEST_CASE("B61 what the system does not save is not used") {
    const std::string avx512 = to_fma + " avx512f avx512dq avx512bw avx512vl";
    recording r = load("skylake_x");
    const struct {
        std::uint64_t xcr0;
        std::string expected;
    } named[] = {
        {0x07, to_fma}, {0x67, to_fma}, {0xA7, to_fma}, {0xC7, to_fma}, {0xE7, avx512},
        {0x00, "sse2 sse42"}, {0x03, "sse2 sse42"}, {0x05, "sse2 sse42"}, {0xE3, "sse2 sse42"}, {0xE5, "sse2 sse42"},
    };
    for (const auto& row : named) {
        INFO(row.xcr0);
        r.registers.xcr0 = row.xcr0;
        CHECK(features(r.registers) == row.expected);
    }
}

TEST_CASE("B65 AMX takes both tile states and a permission") {
    recording r = load("unknown_vendor");
    const auto amx = [&](std::uint64_t xcr0, bool permitted) {
        r.registers.xcr0 = xcr0;
        r.registers.amx_permitted = permitted;
        const cpu_features f = machine::detect(r.registers);
        CHECK(f.amx_int8 == f.amx_tile);
        CHECK(f.amx_bf16 == f.amx_tile);
        CHECK(f.avx512_fp16);  // what is refused for tiles changes nothing else
        return f.amx_tile;
    };
    CHECK(amx(0x602E7, true));
    CHECK_FALSE(amx(0x602E7, false));
    CHECK_FALSE(amx(0x202E7, true));
    CHECK_FALSE(amx(0x402E7, true));
    CHECK_FALSE(amx(0x002E7, true));
}

TEST_CASE("B62 vendor, family and model decide nothing") {
    recording r = load("skylake_x");
    const std::string expected = features(r.registers);
    for (int i = 0; i < r.registers.cpuid_count; ++i) {
        machine::cpuid_entry& e = r.registers.cpuid[i];
        if (e.leaf == 0) e.out = {e.out.eax, 0, 0, 0};
        if (e.leaf == 1) e.out.eax = 0;
    }
    CHECK(features(r.registers) == expected);
    // A CPU of family 15 with AVX2 and FMA, as QEMU makes one: AMD's families 15 had neither.
    const recording old = load("qemu_family15");
    CHECK(features(old.registers) == to_fma);
    // A Skylake-X, by vendor, family and model, whose AVX-512 is switched off.
    recording off = load("skylake_x");
    for (int i = 0; i < off.registers.cpuid_count; ++i) {
        machine::cpuid_entry& e = off.registers.cpuid[i];
        if (e.leaf == 7 && e.subleaf == 0) e.out.ebx &= ~(1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31);
    }
    CHECK(features(off.registers) == to_fma);
    // Every flag, from nobody anyone knows.
    CHECK(features(load("unknown_vendor").registers).find("avx512_fp16 amx_tile") != std::string::npos);
}

TEST_CASE("each x86 bit switches its feature, and what is built on it") {
    // Clears one bit of the machine that has everything. The expected text is what must be missing.
    const struct {
        std::uint32_t leaf, subleaf;
        std::uint32_t cpuid_registers::*from;
        int index;
        std::string missing;
    } rows[] = {
        {7, 0, &cpuid_registers::ebx, 17, "avx512dq avx512_fp16"},
        {7, 0, &cpuid_registers::ebx, 30, "avx512bw avx512_bf16 avx512_fp16"},
        {7, 0, &cpuid_registers::ebx, 31, "avx512vl avx512_fp16"},
        {7, 0, &cpuid_registers::ecx, 11, "avx512_vnni"},
        {7, 0, &cpuid_registers::edx, 22, "amx_bf16"},
        {7, 0, &cpuid_registers::edx, 23, "avx512_fp16"},
        {7, 0, &cpuid_registers::edx, 24, "amx_tile amx_int8 amx_bf16"},
        {7, 0, &cpuid_registers::edx, 25, "amx_int8"},
        {7, 1, &cpuid_registers::eax, 4, "avx_vnni"},
        {7, 1, &cpuid_registers::eax, 5, "avx512_bf16"},
        {1, 0, &cpuid_registers::ecx, 12,
         "fma avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16"},
        {1, 0, &cpuid_registers::ecx, 29,
         "f16c avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16"},
        {7, 0, &cpuid_registers::ebx, 16, "avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16"},
        {7, 0, &cpuid_registers::ebx, 5,
         "avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16"},
    };
    const recording full = load("unknown_vendor");
    for (const auto& row : rows) {
        INFO(row.leaf << ' ' << row.index);
        recording r = full;
        for (int i = 0; i < r.registers.cpuid_count; ++i) {
            machine::cpuid_entry& e = r.registers.cpuid[i];
            if (e.leaf == row.leaf && e.subleaf == row.subleaf) e.out.*row.from &= ~(std::uint32_t{1} << row.index);
        }
        std::istringstream before(features(full.registers)), after(features(r.registers));
        std::string word, kept, missing;
        after >> kept;
        while (before >> word) {
            if (word == kept) {
                kept.clear();
                after >> kept;
            } else {
                missing += missing.empty() ? word : " " + word;
            }
        }
        CHECK(kept.empty());  // nothing appeared
        CHECK(missing == row.missing);
    }
}

TEST_CASE("leaf 7 subleaf 1 counts only where subleaf 0 says it exists") {
    recording r = load("unknown_vendor");
    for (int i = 0; i < r.registers.cpuid_count; ++i)
        if (r.registers.cpuid[i].leaf == 7 && r.registers.cpuid[i].subleaf == 0) r.registers.cpuid[i].out.eax = 0;
    const cpu_features f = machine::detect(r.registers);
    CHECK(f.avx512_vnni);
    CHECK_FALSE(f.avx512_bf16);
    CHECK_FALSE(f.avx_vnni);
}

TEST_CASE("B64 CPUID is run with a subleaf, and never above the largest leaf") {
    register_dump r;
    bool above = false;
    std::uint32_t basic = 7, caches = 1000;
    const auto cpuid = [&](std::uint32_t leaf, std::uint32_t subleaf) -> cpuid_registers {
        constexpr std::uint32_t ones = 0xFFFFFFFFu;
        if (leaf == 0) return {basic, 0x756E6547u, 0x6C65746Eu, 0x49656E69u};
        if (leaf == 0x80000000u) return {0x80000001u, 0, 0, 0};
        if (leaf > 0x80000001u || (leaf < 0x80000000u && leaf > basic)) {
            above = true;
            return {ones, ones, ones, ones};
        }
        if (leaf == 1) return {0, 0, 0x3C983203u, 0x07888979u};
        if (leaf == 4 && subleaf < caches) return {0x121, 0x01C0003F, 63, 0};
        if (leaf == 7 && subleaf == 0) return {0, 0x20, 0, 0};
        return {};
    };
    machine::record_cpuid(r, cpuid);
    r.xcr0 = 7;
    CHECK_FALSE(above);
    CHECK(features(r) == "sse2 sse42 avx avx2 fma f16c");
    CHECK(r.cpuid_count == 3 + register_dump::cache_subleaves + 2);  // the list of caches does not end by itself
    CHECK(machine::read_caches({nullptr, nullptr, &r, 1, 0}).l1d.bytes == 32768);

    caches = 3;
    machine::record_cpuid(r, cpuid);
    CHECK(r.cpuid_count == 3 + 3 + 2);

    basic = 4;  // leaf 7 is now above it
    machine::record_cpuid(r, cpuid);
    CHECK_FALSE(above);
    CHECK(features(r) == "sse2 sse42 avx fma f16c");

    basic = 0xFFFFFFFFu;  // every basic leaf is claimed: the reader stays inside its record
    machine::record_cpuid(r, cpuid);
    CHECK(r.cpuid_count <= register_dump::capacity);

    // Every subleaf of every list, and all leaves, fill the record and no more.
    machine::record_cpuid(r, [](std::uint32_t leaf, std::uint32_t) -> cpuid_registers {
        return {leaf == 0x80000000u ? 0x8000FFFFu : 0x0000FFFFu, 1, 1, 1};
    });
    CHECK(r.cpuid_count == 27);
}

TEST_CASE("B70 Arm features are separate, and SVE needs a believable length") {
    const recording v2 = load("neoverse_v2");
    const auto with_length = [&](int bytes) {
        register_dump r = v2.registers;
        r.sve_bytes = bytes;
        return machine::detect(r);
    };
    for (const int bytes : {16, 32, 48, 64, 128, 256}) CHECK(with_length(bytes).sve_bits == 8 * bytes);
    for (const int bytes : {0, -1, 1, 8, 17, 257, 272, 8192})
        CHECK(features(with_length(bytes)) == "neon fp16 dotprod i8mm bf16");

    const auto without = [&](int hwcap, int hwcap2) {
        register_dump r = v2.registers;
        if (hwcap >= 0) r.hwcap &= ~(std::uint64_t{1} << hwcap);
        if (hwcap2 >= 0) r.hwcap2 &= ~(std::uint64_t{1} << hwcap2);
        return features(r);
    };
    CHECK(without(1, -1) == "");
    CHECK(without(9, -1) == "neon dotprod i8mm bf16 sve sve2 sve_i8mm sve_bf16");
    CHECK(without(10, -1) == "neon dotprod i8mm bf16 sve sve2 sve_i8mm sve_bf16");
    CHECK(without(20, -1) == "neon fp16 i8mm bf16 sve sve2 sve_i8mm sve_bf16");
    CHECK(without(22, -1) == "neon fp16 dotprod i8mm bf16");
    CHECK(without(-1, 1) == "neon fp16 dotprod i8mm bf16 sve sve_i8mm sve_bf16");
    CHECK(without(-1, 9) == "neon fp16 dotprod i8mm bf16 sve sve2 sve_bf16");
    CHECK(without(-1, 12) == "neon fp16 dotprod i8mm bf16 sve sve2 sve_i8mm");
    CHECK(without(-1, 13) == "neon fp16 dotprod bf16 sve sve2 sve_i8mm sve_bf16");
    CHECK(without(-1, 14) == "neon fp16 dotprod i8mm sve sve2 sve_i8mm sve_bf16");
    CHECK(without(11, -1) == features(v2.registers));  // HWCAP_CPUID: nothing reads ID registers
}

TEST_CASE("caches of recorded machines") {
    const struct {
        const char* machine;
        std::string l1d, l2, l3;
        bool l3_assumed;
        std::int64_t l3_reported;
    } rows[] = {
        {"skylake_x", "32768 8 64 2 4", "1048576 16 64 2 4", "20185088 11 64 32 4", false, 20185088},
        {"hybrid", "49152 12 64 2 sysfs", "1310720 10 64 2 sysfs", "31457280 12 64 24 sysfs", false, 31457280},
        {"zen5_vm", "49152 12 64 1 sysfs", "1048576 16 64 1 sysfs", "33554432 16 64 2 sysfs", false, 33554432},
        {"vm_hidden_caches", "32768 8 64 1 5/6", "524288 8 64 1 5/6", "8388608 16 64 2 5/6", true, 268435456},
        {"qemu_family15", "65536 2 64 1 5/6", "524288 16 64 1 5/6", "8388608 16 64 2 5/6", true, 16777216},
        {"qemu_nehalem", "32768 8 64 1 4", "4194304 16 64 1 4", "16777216 16 64 1 4", false, 16777216},
        {"unknown_vendor", default_l1d, default_l2, "4194304 16 64 8 assumed", true, 0},
        {"leaf7_garbage", default_l1d, default_l2, "4194304 16 64 4 assumed", true, 0},
        {"neoverse_n1", "65536 4 64 1 sysfs", "1048576 8 64 1 sysfs", "33554432 16 64 64 sysfs", false, 33554432},
        {"neoverse_v1", "65536 4 64 1 sysfs", "1048576 8 64 1 sysfs", "33554432 16 64 64 sysfs", false, 33554432},
        {"neoverse_v2", "65536 4 64 1 sysfs", "1048576 8 64 1 sysfs", "4194304 16 64 72 assumed", true, 0},
        {"a64fx", "65536 4 256 1 sysfs", "8388608 16 256 12 sysfs", "8388608 16 256 12 none", false, 0},
    };
    for (const auto& row : rows) {
        INFO(row.machine);
        const cache_info c = caches_of(load(row.machine));
        CHECK(l1d(c) == row.l1d);
        CHECK(l2(c) == row.l2);
        CHECK(l3(c) == row.l3);
        CHECK(c.l3_assumed == row.l3_assumed);
        CHECK(c.l3_reported == row.l3_reported);
        check_promises(c);
    }
}

TEST_CASE("caches without sysfs come from CPUID") {
    const auto without_files = [](const char* name) {
        recording r = load(name);
        r.files.clear();
        return caches_of(r);
    };
    const cache_info intel = without_files("hybrid");
    CHECK(l1d(intel) == "49152 12 64 2 4");
    CHECK(l2(intel) == "1310720 10 64 8 4");
    CHECK(l3(intel) == "31457280 12 64 128 4");
    const cache_info amd = without_files("zen5_vm");
    CHECK(l1d(amd) == "49152 12 64 1 1d");
    CHECK(l2(amd) == "1048576 16 64 1 1d");
    CHECK(l3(amd) == "33554432 16 64 2 1d");

    // Leaf 0x8000001D is not defined without the topology extension; the 384 MiB of the package remain.
    recording r = load("zen5_vm");
    r.files.clear();
    for (int i = 0; i < r.registers.cpuid_count; ++i)
        if (r.registers.cpuid[i].leaf == 0x80000001u) r.registers.cpuid[i].out.ecx &= ~(1u << 22);
    const cache_info old = caches_of(r);
    CHECK(l1d(old) == "49152 12 64 1 5/6");
    CHECK(l2(old) == "1048576 16 64 1 5/6");
    CHECK(l3(old) == "8388608 16 64 2 5/6");
    CHECK(old.l3_reported == std::int64_t{384} << 20);
    CHECK(std::string(machine::caches_text(old).c_str()) ==
          "L1d 48 KiB 12-way, 64 B lines, shared by 1 (CPUID 0x80000005/6); "
          "L2 1024 KiB 16-way, 64 B lines, shared by 1 (CPUID 0x80000005/6); "
          "L3 8192 KiB 16-way, 64 B lines, shared by 2 (CPUID 0x80000005/6 claims 393216 KiB without saying which CPUs "
          "share it; counted as at most 4096 KiB per allowed CPU)");
}

TEST_CASE("the caches are those of the CPU asked for") {
    recording r = load("hybrid");
    r.cpu = 16;
    const cache_info c = caches_of(r);
    CHECK(l1d(c) == "32768 8 64 1 sysfs");
    CHECK(l2(c) == "2097152 16 64 4 sysfs");
    r.cpu = -3;  // nonsense is CPU 0
    CHECK(l1d(caches_of(r)) == "49152 12 64 2 sysfs");
}

TEST_CASE("an L3 whose sharing is unknown counts as 4 MiB per allowed CPU at most") {
    recording r = load("vm_hidden_caches");
    const auto bytes = [&](int allowed) {
        r.allowed = allowed;
        const cache_info c = caches_of(r);
        CHECK(c.l3_assumed);
        CHECK(c.l3_reported == std::int64_t{256} << 20);
        check_promises(c);
        return c.l3.bytes >> 20;
    };
    CHECK(bytes(1) == 4);
    CHECK(bytes(2) == 8);
    CHECK(bytes(63) == 252);
    CHECK(bytes(64) == 256);
    CHECK(bytes(65) == 256);
    CHECK(bytes(1000000) == 256);
    CHECK(bytes(0) == 4);
    CHECK(bytes(-7) == 4);

    // The same for sysfs without shared_cpu_list, or with one that is none.
    recording n1 = load("neoverse_n1");
    n1.allowed = 3;
    const std::string list = "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list";
    for (const char* text :
         {"", "\n", "unknown\n", "-1\n", "3-1\n", "0-7,9-7\n", "0-99999999\n", "0,\n", "0-\n", "0-3"}) {
        INFO(text);
        n1.files[list] = text;
        const cache_info c = caches_of(n1);
        CHECK(l3(c) == "12582912 16 64 3 sysfs");
        CHECK(c.l3_assumed);
    }
    n1.files.erase(list);
    CHECK(l3(caches_of(n1)) == "12582912 16 64 3 sysfs");
    for (const auto& [text, count] : {std::pair<const char*, int>{"7\n", 1}, {"0-63\n", 64}, {"0-3,8,10-11\n", 7}}) {
        n1.files[list] = text;
        const cache_info c = caches_of(n1);
        CHECK(c.l3.sharing == count);
        CHECK(c.l3.bytes == 33554432);
        CHECK_FALSE(c.l3_assumed);
    }
}

TEST_CASE("B73 hostile values in sysfs give defaults") {
    const std::string root = "/sys/devices/system/cpu/cpu0/cache/index";
    const recording good = load("neoverse_n1");
    for (const char* text : {"0", "0K", "1", "3", "-1", "-1K", "unknown", "", "K", "32X", "32K8", " 32K", "2G",
                             "2097152K", "2147483648", "99999999999999999999", "999999999G", "0x8000"}) {
        INFO(text);
        recording r = good;
        for (const char* index : {"0", "2", "3"}) r.files[root + index + "/size"] = std::string(text) + "\n";
        const cache_info c = caches_of(r);
        CHECK(l1d(c) == "32768 8 64 1 assumed");
        CHECK(l2(c) == "524288 8 64 1 assumed");
        check_promises(c);
        // An L3 that is too large to believe is a claim, cut to 4 MiB for each of the 64 CPUs.
        const bool large = c.l3_reported > 0;
        CHECK(large == (machine::parse_bytes(text) >= std::int64_t{2} << 30));
        CHECK(c.l3.bytes == (large ? 64 * 4194304 : 4194304));
        CHECK(c.l3_assumed);
    }

    // Sizes that are odd but true are kept to the byte.
    recording odd = good;
    odd.files[root + "3/size"] = "36608K\n";
    CHECK(caches_of(odd).l3.bytes == 36608 * 1024);

    const struct {
        const char *name, *text;
        std::string l2;
    } rows[] = {
        {"coherency_line_size", "0", "1048576 8 64 1 sysfs"},
        {"coherency_line_size", "128", "1048576 8 128 1 sysfs"},
        {"coherency_line_size", "3", "1048576 8 64 1 sysfs"},
        {"coherency_line_size", "-64", "1048576 8 64 1 sysfs"},
        {"coherency_line_size", "8", "1048576 8 64 1 sysfs"},
        {"coherency_line_size", "65536", "1048576 8 64 1 sysfs"},
        {"ways_of_associativity", "0", "1048576 8 64 1 sysfs"},
        {"ways_of_associativity", "16384", "1048576 16384 64 1 sysfs"},
        {"ways_of_associativity", "16385", "1048576 8 64 1 sysfs"},
        {"ways_of_associativity", "4294967295", "1048576 8 64 1 sysfs"},
        {"shared_cpu_list", "0-7", "1048576 8 64 8 sysfs"},
        {"shared_cpu_list", "x", "1048576 8 64 1 sysfs"},
        {"level", "0", default_l2},
        {"level", "two", default_l2},
        {"level", "99999999999", default_l2},
        {"level", "4294967298", default_l2},
        {"type", "Instruction", default_l2},
        {"type", "", default_l2},
    };
    for (const auto& row : rows) {
        INFO(row.name << " = " << row.text);
        recording r = good;
        r.files[root + "2/" + row.name] = std::string(row.text) + "\n";
        const cache_info c = caches_of(r);
        CHECK(l2(c) == row.l2);
        CHECK(l1d(c) == "65536 4 64 1 sysfs");
        check_promises(c);
    }

    // A level smaller than the one below it is raised to it.
    recording small = good;
    small.files[root + "2/size"] = "32K\n";
    small.files[root + "3/size"] = "256K\n";
    CHECK(caches_of(small).l2.bytes == 65536);
    small.files[root + "2/size"] = "2048K\n";
    CHECK(caches_of(small).l3.bytes == 2097152);
}

TEST_CASE("B74 every file may be missing") {
    const recording good = load("neoverse_n1");
    for (const auto& [path, text] : good.files) {
        INFO(path);
        recording r = good;
        r.files.erase(path);
        check_promises(caches_of(r));
    }
    recording none = good;
    none.files.clear();
    const cache_info c = caches_of(none);
    CHECK(l1d(c) == default_l1d);
    CHECK(l2(c) == default_l2);
    CHECK(l3(c) == "4194304 16 64 64 assumed");

    // A sandbox that denies every open, and a caller without CPUID.
    const auto denied = [](void*, const char*, char*, std::size_t) { return false; };
    CHECK(l3(machine::read_caches({denied, nullptr, nullptr, 2, 0})) == "4194304 16 64 2 assumed");
    CHECK(l3(machine::read_caches({})) == "4194304 16 64 1 assumed");
}

TEST_CASE("hostile CPUID cache leaves give defaults") {
    constexpr std::uint32_t ones = 0xFFFFFFFFu;
    for (const std::uint32_t leaf : {4u, 0x8000001Du}) {
        const cpuid_registers lies[] = {
            {ones, ones, ones, ones}, {0x121, 0, 0, 0}, {0x121, ones, ones, 0},
            {0x123, 0x01C0003F, 0, 0}, {0x1E3, ones, ones, 0}, {0x103, 63, 63, 0},
        };
        for (const cpuid_registers& out : lies) {
            register_dump r;
            machine::record(r, 0, 0, {0x20, 0, 0, 0});
            machine::record(r, 0x80000000u, 0, {0x8000001Eu, 0, 0, 0});
            machine::record(r, 0x80000001u, 0, {0, 0, 1u << 22, 0});
            machine::record(r, 0x80000005u, 0, {ones, ones, ones, ones});
            machine::record(r, 0x80000006u, 0, {0, 0, ones & ~0xF000u, ones});
            for (std::uint32_t i = 0; i < register_dump::cache_subleaves; ++i) machine::record(r, leaf, i, out);
            INFO(std::hex << leaf << ' ' << out.eax << ' ' << out.ebx << ' ' << out.ecx);
            const cache_info c = machine::read_caches({nullptr, nullptr, &r, 2, 0});
            check_promises(c);
            CHECK(l1d(c) == "261120 8 64 1 5/6");
            CHECK(l2(c) == default_l2);  // its associativity says it is switched off
            CHECK(l3(c) == "8388608 16 64 2 5/6");
            CHECK(c.l3_reported == std::int64_t{16383} * 512 * 1024);
        }
    }
}

TEST_CASE("B77 affinity masks of any length are counted") {
    unsigned long mask[2048 / (8 * sizeof(unsigned long))] = {};
    const std::size_t words = sizeof mask / sizeof mask[0];
    constexpr std::size_t bits = 8 * sizeof(unsigned long);
    CHECK(machine::count_affinity(mask, words).count == 1);  // nobody runs on no CPU
    CHECK(machine::count_affinity(mask, words).first == 0);
    for (std::size_t cpu : {127u, 1023u, 1024u, 1500u, 2047u}) mask[cpu / bits] |= 1ul << (cpu % bits);
    CHECK(machine::count_affinity(mask, words).count == 5);
    CHECK(machine::count_affinity(mask, words).first == 127);
    for (unsigned long& word : mask) word = ~0ul;
    CHECK(machine::count_affinity(mask, words).count == 2048);
    CHECK(machine::count_affinity(mask, words).first == 0);
}

TEST_CASE("this machine: caches, affinity and files") {
    const register_dump r = machine::read_registers();
    const machine::affinity a = machine::read_affinity();
    CHECK(a.count >= 1);
    CHECK(machine::allowed_cpus() == a.count);
    check_promises(machine::read_caches(machine::system_source(r)));

    errno = 77;
    (void)machine::read_registers();
    (void)machine::read_affinity();
    (void)machine::read_caches(machine::system_source(r));
    char text[8] = "garbage";
    CHECK_FALSE(machine::read_system_file(nullptr, "/no/such/file", text, sizeof text));
    CHECK(text[0] == '\0');
    CHECK_FALSE(machine::read_system_file(nullptr, "/", text, sizeof text));
    CHECK_FALSE(machine::read_system_file(nullptr, "/", text, 0));
    CHECK(errno == 77);

#if HONE_LINUX
    CHECK(machine::read_system_file(nullptr, "/proc/self/status", text, sizeof text));
    CHECK(std::string(text).substr(0, 6) == "Name:\t");

    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(a.first), &one);
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        CHECK(CPU_COUNT(&all) == a.count);
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
        CHECK(machine::allowed_cpus() == 1);
        CHECK(machine::read_affinity().first == a.first);
        REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
    }
#endif
}

TEST_CASE("this machine: its record, written and read back, gives the same answers") {
    const recording here = record_this_machine();
    std::stringstream file;
    write(file, here);
    const recording again = parse(file);
    CHECK(features(again.registers) == features(here.registers));
    CHECK(std::string(machine::caches_text(caches_of(again)).c_str()) ==
          machine::caches_text(caches_of(here)).c_str());
}

TEST_CASE("this machine: features agree with the compiler's own detection or the instruction") {
    const cpu_features f = machine::detect(machine::read_registers());
    INFO(machine::features_text(f).c_str());
#if HONE_X86
    __builtin_cpu_init();
    CHECK(f.sse2);
    CHECK(f.sse42 == (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")));
    CHECK(f.avx == static_cast<bool>(__builtin_cpu_supports("avx")));
    CHECK(f.avx2 == static_cast<bool>(__builtin_cpu_supports("avx2")));
    CHECK(f.fma == static_cast<bool>(__builtin_cpu_supports("fma")));
    CHECK(f.avx512f == static_cast<bool>(__builtin_cpu_supports("avx512f")));
    CHECK(f.avx512dq == static_cast<bool>(__builtin_cpu_supports("avx512dq")));
    CHECK(f.avx512bw == static_cast<bool>(__builtin_cpu_supports("avx512bw")));
    CHECK(f.avx512vl == static_cast<bool>(__builtin_cpu_supports("avx512vl")));
    CHECK(f.avx512_vnni == static_cast<bool>(__builtin_cpu_supports("avx512vnni")));
    CHECK(f.avx512_bf16 == static_cast<bool>(__builtin_cpu_supports("avx512bf16")));
    CHECK(std::strlen(f.vendor) == 12);
#elif HONE_ARM64
    CHECK(f.neon);
    if (f.sve) {
        long bytes = 0;
        __asm__ volatile(".inst 0x04bf5020\n\tmov %0, x0" : "=r"(bytes) : : "x0");  // rdvl x0, #1
        CHECK(f.sve_bits == 8 * bytes);
    }
    if (const char* expected = std::getenv("HONE_TEST_SVE_BITS")) CHECK(f.sve_bits == std::atoi(expected));
#endif
}

TEST_CASE("record this machine", "[.]") { write(std::cout, record_this_machine()); }
