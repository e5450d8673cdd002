// SPDX-License-Identifier: BSL-1.0
// The caches that blocking is computed from, and the CPUs this process may use.
//
// Each level is taken from the first of these that gives a believable size:
//     1. sysfs     cpu<N>/cache/index*/: level type size ways_of_associativity coherency_line_size shared_cpu_list
//     2. CPUID     leaf 4 (Intel), leaf 0x8000001D (AMD)
//     3. CPUID     leaves 0x80000005 and 0x80000006, L1 and L2
//     4. default   32 KiB 8-way, 512 KiB 8-way, 4 MiB 16-way, lines of 64 bytes
//
// An L3 whose report does not say which CPUs share it (leaf 0x80000006 sums up the package; virtual machines pass on
// the host's) counts as min(reported, 4 MiB per allowed CPU). One virtual machine with two CPUs claimed 384 MiB so.
//
// Whatever a source says, every level comes out with bytes, ways, line and sharing above zero, ways * line <= bytes and
// l1d.bytes <= l2.bytes <= l3.bytes, so blocking needs no checks of its own.
//
// Sources: Linux Documentation/ABI/testing/sysfs-devices-system-cpu; Intel SDM volume 2A, CPUID leaf 4; AMD APM volume
// 3, appendix E, Fn8000_0005, Fn8000_0006, Fn8000_001D.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "../config.hpp"
#include "../core/text.hpp"
#include "cpu.hpp"

#if HONE_LINUX
#include <fcntl.h>
#include <sys/syscall.h>
#endif
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

HONE_FOR_SIZE_BEGIN
namespace hone::inline HONE_ABI::machine {

struct cache_level {
    std::int64_t bytes = 0;
    int ways = 0;
    int line = 0;     // bytes
    int sharing = 0;  // logical CPUs that share one such cache; CPUID may round it up
};

enum class cache_origin : std::uint8_t {
    assumed,        // nobody gave a believable size: the stated default
    sysfs,
    cpuid_4,
    cpuid_1d,       // 0x8000001D
    cpuid_5_6,      // 0x80000005, 0x80000006
    no_such_cache,  // a complete list of caches has no L3; l3 repeats l2, the last level there is
};

struct cache_info {
    cache_level l1d, l2, l3;
    cache_origin l1d_from = cache_origin::assumed;
    cache_origin l2_from = cache_origin::assumed;
    cache_origin l3_from = cache_origin::assumed;
    bool l3_assumed = false;       // l3.bytes is the rule of 4 MiB per allowed CPU, or the default, not a report
    std::int64_t l3_reported = 0;  // bytes claimed for L3, as they were; 0 is no claim
};

// Where everything is read from; tests replace it.
struct source {
    // Reads a small text file: at most size - 1 bytes, then a 0. False if it cannot be read. Must not throw.
    bool (*read)(void* context, const char* path, char* buffer, std::size_t size) = nullptr;  // null: no file is there
    void* context = nullptr;
    const register_dump* registers = nullptr;  // null: no CPUID
    int allowed_cpus = 1;
    int cpu = 0;  // whose caches: the first allowed one
};

// The CPUs this process may run on. count is at least 1; first is 0 where the system does not tell.
struct affinity {
    int count = 1;
    int first = 0;
};

}  // namespace hone::inline HONE_ABI::machine

namespace hone::inline HONE_ABI::machine::inline HONE_UNIT {

inline constexpr std::int64_t KiB = 1024;
inline constexpr std::int64_t MiB = 1024 * 1024;
inline constexpr std::int64_t l3_per_cpu = 4 * MiB;
inline constexpr int max_cpus = 65536;

// What a level may be believed to be, and what it is where nothing is believed.
struct cache_rule {
    std::int64_t least, most;
    cache_level fallback;
};
inline constexpr cache_rule l1d_rule{4 * KiB, 1 * MiB, {32 * KiB, 8, 64, 1}};
inline constexpr cache_rule l2_rule{32 * KiB, 128 * MiB, {512 * KiB, 8, 64, 1}};
inline constexpr cache_rule l3_rule{256 * KiB, 1024 * MiB, {4 * MiB, 16, 64, 1}};

// What one source says of each level; zeros are "does not say".
struct cache_report {
    cache_level l1d, l2, l3;
    bool lists_l3 = false;  // an L3 is listed, with or without a size
};

constexpr int clamp_cpus(std::int64_t n) { return n < 1 ? 1 : n > max_cpus ? max_cpus : static_cast<int>(n); }

constexpr bool believable(const cache_rule& rule, const cache_level& c) {
    return c.bytes >= rule.least && c.bytes <= rule.most;
}

// A level with every field usable.
constexpr cache_level completed(cache_level c, const cache_rule& rule, std::int64_t default_sharing) {
    const bool line_fits = c.line >= 16 && c.line <= 256 && (c.line & (c.line - 1)) == 0;
    if (!line_fits) c.line = rule.fallback.line;
    if (c.ways < 1 || c.ways > c.bytes / c.line) c.ways = rule.fallback.ways;
    if (c.sharing < 1 || c.sharing > max_cpus) c.sharing = clamp_cpus(default_sharing);
    return c;
}

// "48K", "36608K\n", "1M", "512": bytes. Anything else, and what would not fit, is 0.
constexpr std::int64_t parse_bytes(const char* s) {
    std::int64_t v = 0;
    int digits = 0;
    for (; *s >= '0' && *s <= '9'; ++s) {
        if (++digits > 9) return 0;
        v = v * 10 + (*s - '0');
    }
    if (digits == 0) return 0;
    if (*s == 'K' || *s == 'k') v *= KiB, ++s;
    else if (*s == 'M' || *s == 'm') v *= MiB, ++s;
    else if (*s == 'G' || *s == 'g') v *= 1024 * MiB, ++s;
    return *s == '\0' || *s == '\n' ? v : 0;
}

// A small count; anything else is 0.
constexpr int parse_count(const char* s) {
    int v = 0;
    for (; *s >= '0' && *s <= '9'; ++s) {
        v = v * 10 + (*s - '0');
        if (v > max_cpus) return 0;
    }
    return *s == '\0' || *s == '\n' ? v : 0;
}

// How many CPUs "0-3,8,10-11\n" names; 0 if it is not such a list. A list cut short by the buffer is not one.
constexpr int parse_cpu_list(const char* s) {
    int count = 0;
    while (true) {
        int ends[2] = {};
        int n = 0;
        do {
            if (n == 1) ++s;  // the dash
            int digits = 0;
            for (; *s >= '0' && *s <= '9'; ++s) {
                if (++digits > 6) return 0;
                ends[n] = ends[n] * 10 + (*s - '0');
            }
            if (digits == 0) return 0;
            ++n;
        } while (n == 1 && *s == '-');
        if (n == 1) ends[1] = ends[0];
        if (ends[1] < ends[0]) return 0;
        count += ends[1] - ends[0] + 1;
        if (count > max_cpus) return 0;
        if (*s == '\n') return count;
        if (*s != ',') return 0;
        ++s;
    }
}

inline cache_report report_from_sysfs(const source& s) {
    cache_report out{};
    if (s.read == nullptr) return out;

    constexpr int indices = 8;  // five are the most seen: L1d, L1i, L2, L3, L4
    char text[4096];            // a sysfs attribute is at most one page
    for (int i = 0; i < indices; ++i) {
        const auto attribute = [&](const char* name) {
            text_line path;
            path.append("/sys/devices/system/cpu/cpu").append(s.cpu < 0 ? 0 : s.cpu).append("/cache/index").append(i)
                .append("/").append(name);
            text[0] = '\0';
            return s.read(s.context, path.c_str(), text, sizeof text);
        };
        const int level = attribute("level") ? parse_count(text) : 0;
        if (level < 1 || level > 3) continue;
        if (!attribute("type") || (text[0] != 'D' && text[0] != 'U')) continue;  // Data, Unified

        cache_level& to = level == 1 ? out.l1d : level == 2 ? out.l2 : out.l3;
        if (level == 3) out.lists_l3 = true;
        if (to.bytes != 0) continue;
        if (attribute("size")) to.bytes = parse_bytes(text);
        if (attribute("ways_of_associativity")) to.ways = parse_count(text);
        if (attribute("coherency_line_size")) to.line = parse_count(text);
        if (attribute("shared_cpu_list")) to.sharing = parse_cpu_list(text);
    }
    return out;
}

// Leaves 4 and 0x8000001D have one layout.
constexpr cache_report report_from_list(const register_dump& r, std::uint32_t leaf) {
    cache_report out{};
    // Without the topology extension AMD does not define leaf 0x8000001D.
    if (leaf == 0x8000001Du && !bit(cpuid_of(r, 0x80000001u).ecx, 22)) return out;

    for (std::uint32_t i = 0; i < register_dump::cache_subleaves; ++i) {
        const cpuid_registers c = cpuid_of(r, leaf, i);
        const std::uint32_t type = c.eax & 31, level = (c.eax >> 5) & 7;
        if (type == 0) break;                                              // the list ends
        if ((type != 1 && type != 3) || level < 1 || level > 3) continue;  // data, unified

        cache_level& to = level == 1 ? out.l1d : level == 2 ? out.l2 : out.l3;
        if (level == 3) out.lists_l3 = true;
        if (to.bytes != 0) continue;
        const std::int64_t sets = std::int64_t{c.ecx} + 1;
        const std::int64_t line = (c.ebx & 0xFFF) + 1, partitions = ((c.ebx >> 12) & 0x3FF) + 1;
        const std::int64_t ways = (c.ebx >> 22) + 1;
        if (sets > (std::int64_t{1} << 28)) continue;  // keeps the product below 2^60
        to = {line * partitions * ways * sets, static_cast<int>(ways), static_cast<int>(line),
              static_cast<int>((c.eax >> 14) & 0xFFF) + 1};
    }
    return out;
}

constexpr cache_report report_from_5_6(const register_dump& r) {
    cache_report out{};
    const std::uint32_t l1 = cpuid_of(r, 0x80000005u).ecx;
    const std::uint32_t l2 = cpuid_of(r, 0x80000006u).ecx;
    const std::uint32_t l3 = cpuid_of(r, 0x80000006u).edx;
    constexpr std::uint8_t ways[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};  // 0: full, or unsaid

    const int l1_ways = static_cast<int>((l1 >> 16) & 0xFF);
    out.l1d = {(l1 >> 24) * KiB, l1_ways == 0xFF ? 0 : l1_ways, static_cast<int>(l1 & 0xFF), 0};
    if (((l2 >> 12) & 15) != 0)  // 0: switched off
        out.l2 = {(l2 >> 16) * KiB, ways[(l2 >> 12) & 15], static_cast<int>(l2 & 0xFF), 0};
    if (((l3 >> 12) & 15) != 0)
        out.l3 = {(l3 >> 18) * 512 * KiB, ways[(l3 >> 12) & 15], static_cast<int>(l3 & 0xFF), 0};
    return out;
}

// Reads the caches of one CPU through the source. Costs some twenty small reads: call it once and keep the answer.
inline cache_info read_caches(const source& s) {
    const int allowed = clamp_cpus(s.allowed_cpus);
    struct {
        cache_report says;
        cache_origin name = cache_origin::assumed;
    } reports[4];
    reports[0] = {report_from_sysfs(s), cache_origin::sysfs};
    if (s.registers != nullptr) {
        reports[1] = {report_from_list(*s.registers, 4), cache_origin::cpuid_4};
        reports[2] = {report_from_list(*s.registers, 0x8000001Du), cache_origin::cpuid_1d};
        reports[3] = {report_from_5_6(*s.registers), cache_origin::cpuid_5_6};
    }

    cache_info c{};
    bool has_l1d = false, has_l2 = false, has_l3 = false, complete_without_l3 = false;
    cache_level claim{};  // the first claim of an L3 that does not say who shares it, or that nobody believes
    cache_origin claim_from = cache_origin::assumed;
    for (const auto& report : reports) {
        const cache_report& says = report.says;
        const bool l1d = believable(l1d_rule, says.l1d), l2 = believable(l2_rule, says.l2);
        if (!has_l1d && l1d) {
            c.l1d = says.l1d;
            c.l1d_from = report.name;
            has_l1d = true;
        }
        if (!has_l2 && l2) {
            c.l2 = says.l2;
            c.l2_from = report.name;
            has_l2 = true;
        }
        if (!has_l3 && believable(l3_rule, says.l3) && says.l3.sharing > 0) {
            c.l3 = says.l3;
            c.l3_from = report.name;
            c.l3_reported = says.l3.bytes;
            has_l3 = true;
        } else if (claim.bytes == 0 && says.l3.bytes >= l3_rule.least) {
            claim = says.l3;
            claim_from = report.name;
        }
        if (l1d && l2 && !says.lists_l3 && report.name != cache_origin::cpuid_5_6) complete_without_l3 = true;
    }

    c.l1d = completed(has_l1d ? c.l1d : l1d_rule.fallback, l1d_rule, 1);
    c.l2 = completed(has_l2 ? c.l2 : l2_rule.fallback, l2_rule, 1);
    if (c.l2.bytes < c.l1d.bytes) c.l2.bytes = c.l1d.bytes;

    if (!has_l3 && claim.bytes != 0) {
        const std::int64_t cap = l3_per_cpu * allowed;
        c.l3_reported = claim.bytes;
        c.l3_from = claim_from;
        c.l3 = claim;
        c.l3.sharing = 0;
        if (c.l3.bytes > cap) c.l3.bytes = cap;
        c.l3_assumed = true;
    } else if (!has_l3 && complete_without_l3) {
        c.l3 = c.l2;
        c.l3_from = cache_origin::no_such_cache;
    } else if (!has_l3) {
        c.l3 = l3_rule.fallback;
        c.l3.sharing = 0;
        c.l3_assumed = true;
    }
    if (c.l3.bytes < c.l2.bytes) c.l3.bytes = c.l2.bytes;
    c.l3 = completed(c.l3, l3_rule, allowed);
    return c;
}

// Counts the bits of an affinity mask of any length.
constexpr affinity count_affinity(const unsigned long* mask, std::size_t words) {
    constexpr int word_bits = static_cast<int>(8 * sizeof(unsigned long));
    std::int64_t count = 0;
    int first = -1;
    for (std::size_t w = 0; w < words; ++w) {
        if (mask[w] == 0) continue;
        if (first < 0) first = static_cast<int>(w) * word_bits + __builtin_ctzl(mask[w]);
        for (unsigned long rest = mask[w]; rest != 0; rest &= rest - 1) ++count;
    }
    return {clamp_cpus(count), first < 0 ? 0 : first};
}

// The CPUs the calling thread may run on. errno is left as found.
inline affinity read_affinity() {
    const int saved = errno;
    affinity a{};
    bool known = false;
#if HONE_LINUX
    // The system call itself: it fills any length, where cpu_set_t ends at CPU 1023 and refuses to work beyond.
    unsigned long mask[static_cast<std::size_t>(max_cpus) / (8 * sizeof(unsigned long))] = {};
    const long filled = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    if (filled > 0) {
        a = count_affinity(mask, sizeof mask / sizeof mask[0]);
        known = true;
    }
#endif
#if defined(_SC_NPROCESSORS_ONLN)
    if (!known) a.count = clamp_cpus(sysconf(_SC_NPROCESSORS_ONLN));
#else
    (void)known;
#endif
    errno = saved;
    return a;
}

// How many CPUs the calling thread may run on, at least 1.
inline int allowed_cpus() { return read_affinity().count; }

// source::read of the running system. sysfs exists on Linux only; elsewhere no file is there.
inline bool read_system_file(void*, [[maybe_unused]] const char* path, char* buffer, std::size_t size) {
    if (size == 0) return false;
    buffer[0] = '\0';
#if HONE_LINUX
    const int saved = errno;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    if (file >= 0) {
        n = ::read(file, buffer, size - 1);  // an attribute comes whole in one read
        close(file);
    }
    errno = saved;
    if (n >= 0) buffer[n] = '\0';
    return n > 0;
#else
    return false;
#endif
}

// The running system. registers must outlive the source.
inline source system_source(const register_dump& registers) {
    const affinity a = read_affinity();
    return {read_system_file, nullptr, &registers, a.count, a.first};
}

// "L1d 48 KiB 12-way (sysfs), L2 ..., L3 8192 KiB 16-way (...: 393216 KiB claimed ...)", for explain().
inline text_line caches_text(const cache_info& c) {
    constexpr const char* names[] = {
        "assumed", "sysfs", "CPUID 4", "CPUID 0x8000001D", "CPUID 0x80000005/6", "no such cache",
    };
    static_assert(sizeof names / sizeof names[0] == static_cast<std::size_t>(cache_origin::no_such_cache) + 1);
    text_line t;
    const auto level = [&](const char* name, const cache_level& v, cache_origin from) {
        t.append(name).append(v.bytes / KiB).append(" KiB ").append(v.ways).append("-way, ").append(v.line)
            .append(" B lines, shared by ").append(v.sharing).append(" (").append(names[static_cast<int>(from)]);
    };
    level("L1d ", c.l1d, c.l1d_from);
    level("); L2 ", c.l2, c.l2_from);
    level("); L3 ", c.l3, c.l3_from);
    if (c.l3_assumed && c.l3_reported != 0)
        t.append(" claims ").append(c.l3_reported / KiB)
            .append(" KiB without saying which CPUs share it; counted as at most 4096 KiB per allowed CPU");
    return t.append(")");
}

}  // namespace hone::inline HONE_ABI::machine::inline HONE_UNIT
HONE_FOR_SIZE_END
