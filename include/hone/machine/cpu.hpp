// SPDX-License-Identifier: BSL-1.0
// What this CPU can run: registers are read once into a plain record, and a pure function decides from the record.
//
//     feature            CPUID bit               and the system saves the state (OSXSAVE and XCR0)
//     avx                1.ECX[28]               XCR0[2:1]        xmm, ymm
//     avx2               7.0.EBX[5]              as avx
//     fma, f16c          1.ECX[12], 1.ECX[29]    as avx
//     avx512f            7.0.EBX[16]             XCR0[7:5]        opmask, zmm0-15 upper halves, zmm16-31; and as avx
//     avx512dq bw vl     7.0.EBX[17] [30] [31]   as avx512f
//     avx512_vnni        7.0.ECX[11]             as avx512f
//     avx512_fp16        7.0.EDX[23]             as avx512f
//     avx512_bf16        7.1.EAX[5]              as avx512f
//     avx_vnni           7.1.EAX[4]              as avx
//     amx bf16 tile int8 7.0.EDX[22] [24] [25]   XCR0[18:17]      tile configuration, tile data; and a permission
//
// Sources: Intel SDM volume 2A, CPUID, and volume 1, 13.3 and 14; AMD APM volume 3, appendix E; Linux
// Documentation/arch/x86/xstate.rst (the AMX permission) and Documentation/arch/arm64/elf_hwcaps.rst. On Arm only
// HWCAP and HWCAP2 are asked: ID registers trap on some systems that claim to emulate them.
//
// Vendor, family and model decide nothing: emulated CPUs carry any of them, and a CPU made after this table must get
// the kernels its bits allow.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "../config.hpp"
#include "../core/text.hpp"

#if HONE_X86
#include <cpuid.h>
#endif
#if HONE_LINUX
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

HONE_FOR_SIZE_BEGIN
namespace hone::inline HONE_ABI::machine {

struct cpuid_registers {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

struct cpuid_entry {
    std::uint32_t leaf = 0, subleaf = 0;
    cpuid_registers out;
};

// Everything detection looks at. Read from the machine by read_registers(), or filled from a recording.
struct register_dump {
    static constexpr int capacity = 32;
    static constexpr int cache_subleaves = 8;  // of leaves 4 and 0x8000001D; no CPU lists more than five

    cpuid_entry cpuid[capacity];    // the first cpuid_count are valid, in any order
    int cpuid_count = 0;
    std::uint64_t xcr0 = 0;         // 0 where OSXSAVE is clear: XGETBV would fault
    bool amx_permitted = false;     // the system lets this process use tile data
    std::uint64_t hwcap = 0;        // Arm: AT_HWCAP
    std::uint64_t hwcap2 = 0;       // Arm: AT_HWCAP2
    int sve_bytes = 0;              // Arm: vector length of the calling thread; 0 is none or unknown
};

// What may be executed. A feature is set only if every feature that a compiler's target of that name implies is set.
struct cpu_features {
    bool sse2 = false, sse42 = false;  // sse42: SSE3, SSSE3, SSE4.1, SSE4.2 and POPCNT
    bool avx = false, avx2 = false, fma = false, f16c = false, avx_vnni = false;
    bool avx512f = false, avx512dq = false, avx512bw = false, avx512vl = false;
    bool avx512_vnni = false, avx512_bf16 = false, avx512_fp16 = false;
    bool amx_tile = false, amx_int8 = false, amx_bf16 = false;

    bool neon = false, fp16 = false, dotprod = false, i8mm = false, bf16 = false;  // fp16: half precision arithmetic
    bool sve = false, sve2 = false, sve_i8mm = false, sve_bf16 = false;
    int sve_bits = 0;  // of the thread that read the registers; 0 without sve

    // For reports only.
    char vendor[13] = {};
    char brand[49] = {};
};

// Using AMX on Linux takes a permission, which belongs to the process, is inherited, and makes every signal frame
// larger. So it is asked for only by a caller who will run AMX kernels.
enum class amx_permission : std::uint8_t { query, request };

namespace detail {

inline constexpr std::uint64_t xcr0_avx = 0x6;         // xmm, ymm
inline constexpr std::uint64_t xcr0_avx512 = 0xE6;     // and opmask, upper halves of zmm0-15, zmm16-31
inline constexpr std::uint64_t xcr0_amx = 0x60000;     // tile configuration, tile data

inline constexpr int hwcap_asimd = 1, hwcap_fphp = 9, hwcap_asimdhp = 10, hwcap_asimddp = 20, hwcap_sve = 22;
inline constexpr int hwcap2_sve2 = 1, hwcap2_svei8mm = 9, hwcap2_svebf16 = 12, hwcap2_i8mm = 13, hwcap2_bf16 = 14;

}  // namespace detail

}  // namespace hone::inline HONE_ABI::machine

namespace hone::inline HONE_ABI::machine::inline HONE_UNIT {

constexpr bool bit(std::uint64_t value, int index) { return ((value >> index) & 1) != 0; }

// The recorded registers of a leaf as they stand; zeros where it was not recorded.
constexpr cpuid_registers recorded(const register_dump& r, std::uint32_t leaf, std::uint32_t subleaf) {
    for (int i = 0; i < r.cpuid_count && i < register_dump::capacity; ++i)
        if (r.cpuid[i].leaf == leaf && r.cpuid[i].subleaf == subleaf) return r.cpuid[i].out;
    return {};
}

// The largest valid leaf of the basic (root 0) or the extended (root 0x80000000) range; 0 if the range does not exist.
// A CPU without extended leaves answers the question for them with an unrelated basic leaf, hence the comparison.
constexpr std::uint32_t max_leaf(std::uint32_t root, std::uint32_t answer) {
    if (root == 0) return answer;
    return (answer & 0xFFFF0000u) == root ? answer : 0;
}

// The registers of a leaf, zeros above the largest valid leaf: there Intel CPUs return the data of another leaf.
constexpr cpuid_registers cpuid_of(const register_dump& r, std::uint32_t leaf, std::uint32_t subleaf = 0) {
    const std::uint32_t root = leaf & 0x80000000u;
    if (leaf > max_leaf(root, recorded(r, root, 0).eax)) return {};
    return recorded(r, leaf, subleaf);
}

constexpr void record(register_dump& r, std::uint32_t leaf, std::uint32_t subleaf, const cpuid_registers& out) {
    if (r.cpuid_count >= 0 && r.cpuid_count < register_dump::capacity) r.cpuid[r.cpuid_count++] = {leaf, subleaf, out};
}

// Runs the given CPUID over all leaves that detection looks at and that exist.
// cpuid: (std::uint32_t leaf, std::uint32_t subleaf) -> cpuid_registers; must set ECX to the subleaf, always.
template <class Cpuid>
constexpr void record_cpuid(register_dump& r, Cpuid&& cpuid) {
    constexpr std::uint32_t roots[] = {0, 0x80000000u};
    constexpr std::uint32_t plain[] = {
        1, 0x80000001u, 0x80000002u, 0x80000003u, 0x80000004u, 0x80000005u, 0x80000006u,
    };  // leaves without subleaves
    r.cpuid_count = 0;
    for (const std::uint32_t root : roots) {
        const cpuid_registers first = cpuid(root, 0u);
        record(r, root, 0, first);
        const std::uint32_t last = max_leaf(root, first.eax);

        for (const std::uint32_t leaf : plain)
            if ((leaf & 0x80000000u) == root && leaf <= last) record(r, leaf, 0, cpuid(leaf, 0u));

        if (root == 0 && last >= 7) {
            const cpuid_registers seven = cpuid(7u, 0u);
            record(r, 7, 0, seven);
            if (seven.eax >= 1) record(r, 7, 1, cpuid(7u, 1u));
        }

        const std::uint32_t caches = root == 0 ? 4u : 0x8000001Du;
        for (std::uint32_t i = 0; caches <= last && i < register_dump::cache_subleaves; ++i) {
            const cpuid_registers out = cpuid(caches, i);
            if ((out.eax & 31) == 0) break;  // the list ends
            record(r, caches, i, out);
        }
    }
}

// What the recorded machine can run. Pure: the same record gives the same answer on any machine.
constexpr cpu_features detect(const register_dump& r) {
    cpu_features f{};

    const cpuid_registers one = cpuid_of(r, 1);
    const cpuid_registers seven = cpuid_of(r, 7, 0);
    const cpuid_registers seven_1 = seven.eax >= 1 ? cpuid_of(r, 7, 1) : cpuid_registers{};
    const bool osxsave = bit(one.ecx, 27);
    const bool ymm = osxsave && (r.xcr0 & detail::xcr0_avx) == detail::xcr0_avx;
    const bool zmm = osxsave && (r.xcr0 & detail::xcr0_avx512) == detail::xcr0_avx512;
    const bool tiles = osxsave && (r.xcr0 & detail::xcr0_amx) == detail::xcr0_amx && r.amx_permitted;

    f.sse2 = bit(one.edx, 26);
    f.sse42 = f.sse2 && bit(one.ecx, 0) && bit(one.ecx, 9) && bit(one.ecx, 19) && bit(one.ecx, 20) && bit(one.ecx, 23);
    f.avx = ymm && f.sse42 && bit(one.ecx, 28);
    f.fma = f.avx && bit(one.ecx, 12);
    f.f16c = f.avx && bit(one.ecx, 29);
    f.avx2 = f.avx && bit(seven.ebx, 5);
    f.avx_vnni = f.avx2 && bit(seven_1.eax, 4);

    // Hypervisors mask bits one by one. Compilers let avx512f imply avx2, fma and f16c, so it needs them here.
    f.avx512f = zmm && f.avx2 && f.fma && f.f16c && bit(seven.ebx, 16);
    f.avx512dq = f.avx512f && bit(seven.ebx, 17);
    f.avx512bw = f.avx512f && bit(seven.ebx, 30);
    f.avx512vl = f.avx512f && bit(seven.ebx, 31);
    f.avx512_vnni = f.avx512f && bit(seven.ecx, 11);
    f.avx512_bf16 = f.avx512bw && bit(seven_1.eax, 5);
    f.avx512_fp16 = f.avx512bw && f.avx512dq && f.avx512vl && bit(seven.edx, 23);

    f.amx_tile = tiles && bit(seven.edx, 24);
    f.amx_int8 = f.amx_tile && bit(seven.edx, 25);
    f.amx_bf16 = f.amx_tile && bit(seven.edx, 22);

    f.neon = bit(r.hwcap, detail::hwcap_asimd);
    f.fp16 = f.neon && bit(r.hwcap, detail::hwcap_fphp) && bit(r.hwcap, detail::hwcap_asimdhp);
    f.dotprod = f.neon && bit(r.hwcap, detail::hwcap_asimddp);
    f.i8mm = f.neon && bit(r.hwcap2, detail::hwcap2_i8mm);
    f.bf16 = f.neon && bit(r.hwcap2, detail::hwcap2_bf16);
    // Vector lengths are the multiples of 16 bytes up to 256. Where a sandbox hides the length, NEON runs: register
    // tiles cannot be chosen for an unknown width.
    const bool length = r.sve_bytes >= 16 && r.sve_bytes <= 256 && r.sve_bytes % 16 == 0;
    f.sve = f.neon && length && bit(r.hwcap, detail::hwcap_sve);
    f.sve2 = f.sve && bit(r.hwcap2, detail::hwcap2_sve2);
    f.sve_i8mm = f.sve && bit(r.hwcap2, detail::hwcap2_svei8mm);
    f.sve_bf16 = f.sve && bit(r.hwcap2, detail::hwcap2_svebf16);
    f.sve_bits = f.sve ? r.sve_bytes * 8 : 0;

    const auto letters = [](char* to, std::uint32_t four) {
        for (int i = 0; i < 4; ++i) to[i] = static_cast<char>((four >> (8 * i)) & 127);
    };
    const cpuid_registers zero = cpuid_of(r, 0);
    letters(f.vendor, zero.ebx);
    letters(f.vendor + 4, zero.edx);
    letters(f.vendor + 8, zero.ecx);
    for (std::uint32_t i = 0; i < 3; ++i) {
        const cpuid_registers part = cpuid_of(r, 0x80000002u + i);
        char* to = f.brand + 16 * i;
        letters(to, part.eax);
        letters(to + 4, part.ebx);
        letters(to + 8, part.ecx);
        letters(to + 12, part.edx);
    }
    return f;
}

#if HONE_X86
inline cpuid_registers run_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    cpuid_registers out{};
    __cpuid_count(leaf, subleaf, out.eax, out.ebx, out.ecx, out.edx);
    return out;
}

// Needs OSXSAVE. In assembly, because the intrinsic asks for -mxsave.
inline std::uint64_t run_xgetbv() {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<std::uint64_t>(high) << 32) | low;
}

inline bool ask_amx_permission(amx_permission how) {
#if HONE_LINUX && defined(SYS_arch_prctl)
    constexpr long get_permitted = 0x1022, request_permission = 0x1023, tile_data = 18;
    if (how == amx_permission::request) return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    std::uint64_t permitted = 0;
    return syscall(SYS_arch_prctl, get_permitted, &permitted) == 0 && bit(permitted, tile_data);
#else
    (void)how;
    return false;
#endif
}
#endif

// Reads this machine, on the calling thread. errno is left as found.
inline register_dump read_registers([[maybe_unused]] amx_permission amx = amx_permission::query) {
    const int saved = errno;
    register_dump r{};
#if HONE_X86
    record_cpuid(r, run_cpuid);
    if (bit(cpuid_of(r, 1).ecx, 27)) r.xcr0 = run_xgetbv();
    if (bit(cpuid_of(r, 7).edx, 24) && (r.xcr0 & detail::xcr0_amx) == detail::xcr0_amx)
        r.amx_permitted = ask_amx_permission(amx);
#elif HONE_ARM64 && HONE_LINUX
    r.hwcap = getauxval(AT_HWCAP);
    r.hwcap2 = getauxval(AT_HWCAP2);
    if (bit(r.hwcap, detail::hwcap_sve)) {
        constexpr int get_vector_length = 51, length_mask = 0xFFFF;
        const int answer = prctl(get_vector_length, 0, 0, 0, 0);
        r.sve_bytes = answer < 0 ? 0 : answer & length_mask;
    }
#elif HONE_ARM64
    r.hwcap = std::uint64_t{1} << detail::hwcap_asimd;  // every AArch64 system has it; nothing more is asked elsewhere
#endif
    errno = saved;
    return r;
}

// "sse2 sse4.2 avx avx2 fma f16c": the features that are set, for explain().
inline text_line features_text(const cpu_features& f) {
    const struct {
        bool set;
        const char* name;
    } rows[] = {
        {f.sse2, "sse2"}, {f.sse42, "sse4.2"}, {f.avx, "avx"}, {f.avx2, "avx2"}, {f.fma, "fma"}, {f.f16c, "f16c"},
        {f.avx_vnni, "avx_vnni"},
        {f.avx512f, "avx512f"}, {f.avx512dq, "avx512dq"}, {f.avx512bw, "avx512bw"}, {f.avx512vl, "avx512vl"},
        {f.avx512_vnni, "avx512_vnni"}, {f.avx512_bf16, "avx512_bf16"}, {f.avx512_fp16, "avx512_fp16"},
        {f.amx_tile, "amx_tile"}, {f.amx_int8, "amx_int8"}, {f.amx_bf16, "amx_bf16"},
        {f.neon, "neon"}, {f.fp16, "fp16"}, {f.dotprod, "dotprod"}, {f.i8mm, "i8mm"}, {f.bf16, "bf16"},
        {f.sve, "sve"}, {f.sve2, "sve2"}, {f.sve_i8mm, "sve_i8mm"}, {f.sve_bf16, "sve_bf16"},
    };
    text_line t;
    bool first = true;
    for (const auto& row : rows) {
        if (!row.set) continue;
        t.append(first ? "" : " ").append(row.name);
        first = false;
    }
    if (f.sve) t.append(" (").append(f.sve_bits).append(" bits)");
    return first ? t.append("none") : t;
}

}  // namespace hone::inline HONE_ABI::machine::inline HONE_UNIT
HONE_FOR_SIZE_END
