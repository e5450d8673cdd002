// SPDX-License-Identifier: BSL-1.0
// Which instruction set runs, and which kernel of it. The machine is read once, by whichever thread comes first.
#pragma once

#include <cstdlib>

#include "isa/avx2.hpp"
#include "isa/avx512.hpp"
#include "isa/isa.hpp"
#include "isa/native.hpp"
#include "isa/neon.hpp"
#include "isa/scalar.hpp"
#include "isa/sve.hpp"
#include "isa/sve2.hpp"
#include "machine/cache.hpp"
#include "machine/cpu.hpp"
#include "policy.hpp"

namespace hone::inline HONE_ABI {

// What hone found and chose, as data; text() is one line.
struct machine_explanation {
    hone::isa isa = hone::isa::scalar;        // every dispatched call runs this
    hone::isa best = hone::isa::scalar;       // the best this machine, system and build can run
    bool from_environment = false;            // HONE_ISA chose
    hone::status environment{};               // not ok: HONE_ISA could not be followed, and why
    machine::cpu_features cpu{};
    machine::cache_info cache{};
    bool precise_math = true;                 // false: -ffast-math voids some of what is promised of NaN and reproducibility

    text_line text() const;
};

namespace detail::inline HONE_UNIT {

struct machine_state {
    machine::cpu_features cpu;
    machine::cache_info cache;
    isa_choice choice;
};

HONE_FOR_SIZE_BEGIN

inline const machine_state& this_machine() {
    static const machine_state state = [] {
        machine_state s;
        const machine::register_dump registers = machine::read_registers();
        s.cpu = machine::detect(registers);
        s.cache = machine::read_caches(machine::system_source(registers));
        s.choice = choose_isa(s.cpu, std::getenv("HONE_ISA"));
        return s;
    }();
    return state;
}

// The rows of kernels.def of one ISA; the file is read once per use of a macro.
template <class T>
inline kernel_list<T> make_gemm_kernels(hone::isa id) {
    kernel_list<T> list;
#define HONE_GEMM(region, type, mr, registers)                        \
    if constexpr (std::is_same_v<T, type>) {                          \
        if (id == isa::region) list.add(region::make_gemm_kernel<type, mr, registers>()); \
    }
#include "kernels.def"
    return list;
}

// The GEMM kernels of an ISA that this machine can run. Made once.
template <class T>
inline const kernel_list<T>& gemm_kernels(hone::isa id) {
    static const auto lists = [] {
        struct {
            kernel_list<T> of[isa_count];
        } all;
        for (int i = 0; i < isa_count; ++i) {
            if (isa_available(static_cast<isa>(i), this_machine().cpu)) all.of[i] = make_gemm_kernels<T>(static_cast<isa>(i));
        }
        return all;
    }();
    return lists.of[static_cast<int>(id)];
}

HONE_FOR_SIZE_END

template <class T>
inline depthwise_fn<T> depthwise_kernel(hone::isa id) {
#define HONE_DEPTHWISE(region, type)                                  \
    if constexpr (std::is_same_v<T, type>) {                          \
        if (id == isa::region) return &region::depthwise_micro<type>; \
    }
#include "kernels.def"
    return nullptr;
}

// The tiles of an ISA for groups of `channels` in and out that share a register; false where it has none.
template <class T>
inline bool grouped_kernel(hone::isa id, index_t channels, gemm_kernel<T>& kernel) {
    bool found = false;
    (void)id, (void)channels, (void)kernel;
#define HONE_GROUPED(region, type, count)                                                 \
    if constexpr (std::is_same_v<T, type>) {                                              \
        if (id == isa::region && channels == count) {                                     \
            kernel = region::make_grouped_kernel<type, count>();                          \
            found = true;                                                                 \
        }                                                                                 \
    }
#include "kernels.def"
    return found;
}

// The transforms of an ISA, or null.
template <class T>
inline const winograd_kernels<T>* winograd_kernels_of(hone::isa id) {
#define HONE_WINOGRAD(region, type)                                   \
    if constexpr (std::is_same_v<T, type>) {                          \
        if (id == isa::region) return &region::winograd_record<type>; \
    }
#include "kernels.def"
    return nullptr;
}

// The kernels of relaxed sums of an ISA, or null. Of one that is known at compile time, I, no other is instantiated.
template <class T, isa I = isa::dynamic>
inline const relaxed_kernels<T>* relaxed_kernels_of(hone::isa id) {
#define HONE_RELAXED(region, type)                                                                    \
    if constexpr (std::is_same_v<T, type> && (I == isa::dynamic || I == isa::region)) {               \
        if (id == isa::region) return &region::relaxed_record<type, isa_row_of(isa::region)->registers == 32>; \
    }
#include "kernels.def"
    return nullptr;
}

// The epilogue pass of an ISA for the stages E: one small function per ISA and epilogue; everything else is shared.
template <class T, class E>
inline finish_fn<T> finish_of(hone::isa id) {
    switch (id) {
#if HONE_X86
    case isa::avx512: return &avx512::finish<T, E>;
    case isa::avx2: return &avx2::finish<T, E>;
#endif
#if HONE_SVE
    case isa::sve2: return &sve2::finish<T, E>;
    case isa::sve: return &sve::finish<T, E>;
#endif
#if HONE_ARM64
    case isa::neon: return &neon::finish<T, E>;
#endif
    case isa::native: return &native::finish<T, E>;
    default: return &scalar::finish<T, E>;
    }
}

// Reported where an ISA is asked for that cannot run.
inline status check_isa(hone::isa id) {
    if (id == isa::dynamic || isa_available(id, this_machine().cpu)) return {};
    const auto best = static_cast<std::int64_t>(this_machine().choice.best);
    if (isa_row_of(id) == nullptr) return {code::isa_unknown, argument::policy_isa, '?', best};
    return {code::isa_unavailable, argument::policy_isa, static_cast<std::int64_t>(id), best};
}

inline hone::isa resolve_isa(hone::isa id) { return id == isa::dynamic ? this_machine().choice.chosen : id; }

inline machine_explanation explain_machine() {
    const machine_state& s = this_machine();
    machine_explanation e;
    e.isa = s.choice.chosen;
    e.best = s.choice.best;
    e.from_environment = s.choice.capped;
    e.environment = s.choice.status;
    e.cpu = s.cpu;
    e.cache = s.cache;
    e.precise_math = e.isa == isa::native   ? !HONE_FAST_MATH
                     : e.isa == isa::scalar ? HONE_PRECISE_SCALAR
                                            : HONE_PRECISE_MATH;
    return e;
}

inline text_line machine_text(const machine_explanation& e) {
    text_line t;
    t.append("isa ").append(isa_name(e.isa));
    if (e.from_environment) t.append(" (HONE_ISA; best here ").append(isa_name(e.best)).append(")");
    if (!e.environment.ok()) t.append(" (").append(e.environment.message()).append(")");
    if (e.isa == isa::native && !HONE_NATIVE_FMA) t.append(" (no FMA in this unit's flags: results differ in the last bits)");
    if (HONE_ARM64 && !HONE_SVE) t.append(" (this compiler has no SVE regions: GCC 12 or Clang 16 do)");
    if (!e.precise_math) t.append(" (-ffast-math: not all that is promised of NaN and reproducibility holds)");
    return t.append("; cpu ").append(machine::features_text(e.cpu));
}

}  // namespace detail::inline HONE_UNIT

HONE_INLINE text_line machine_explanation::text() const { return detail::machine_text(*this); }

// The machine as hone sees it and the ISA that dispatched calls run. Thread-safe; the first call reads the machine.
HONE_INLINE machine_explanation explain() { return detail::explain_machine(); }

// The ISA that dispatched calls run.
HONE_INLINE isa active_isa() { return detail::this_machine().choice.chosen; }

// Whether this machine, system and build can run `i`.
HONE_INLINE bool available(isa i) { return detail::isa_available(i, detail::this_machine().cpu); }

}  // namespace hone::inline HONE_ABI
