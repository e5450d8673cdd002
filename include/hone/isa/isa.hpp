// SPDX-License-Identifier: BSL-1.0
// The ISA table: what each instruction set needs, and in which order they are preferred. Pure functions of a feature record.
#pragma once

#include <string_view>

#include "../core/isa.hpp"
#include "../core/status.hpp"
#include "../machine/cpu.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

struct isa_row {
    hone::isa id;
    bool compiled;     // this unit has the region
    int registers;     // vector registers a tile may use
    int bytes;         // of a register; 0: known at run time only
    bool (*runs)(const machine::cpu_features&);
};

inline bool runs_avx512(const machine::cpu_features& f) {
    return f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl && f.avx2 && f.fma && f.f16c;
}
inline bool runs_avx2(const machine::cpu_features& f) { return f.avx2 && f.fma && f.f16c; }
inline bool runs_sve2(const machine::cpu_features& f) { return f.sve2 && f.sve_bits != 0; }
inline bool runs_sve(const machine::cpu_features& f) { return f.sve && f.sve_bits != 0; }
inline bool runs_neon(const machine::cpu_features& f) { return f.neon; }
inline bool runs_always(const machine::cpu_features&) { return true; }

// Best first. SVE of 128 bits is left behind NEON, which has the same width without predicates (prefer()).
inline constexpr isa_row isa_table[] = {
    {isa::avx512, HONE_X86 != 0, 32, 64, runs_avx512},
    {isa::avx2, HONE_X86 != 0, 16, 32, runs_avx2},
    {isa::sve2, HONE_SVE != 0, 32, 0, runs_sve2},
    {isa::sve, HONE_SVE != 0, 32, 0, runs_sve},
    {isa::neon, HONE_ARM64 != 0, 32, 16, runs_neon},
    {isa::native, true, 0, 0, runs_always},
    {isa::scalar, true, 0, 4, runs_always},
};

inline constexpr const isa_row* isa_row_of(hone::isa id) {
    for (const isa_row& r : isa_table) {
        if (r.id == id) return &r;
    }
    return nullptr;
}

inline bool isa_available(hone::isa id, const machine::cpu_features& f) {
    const isa_row* r = isa_row_of(id);
    return r != nullptr && r->compiled && r->runs(f);
}

inline hone::isa best_isa(const machine::cpu_features& f) {
    const bool narrow = f.sve_bits <= 128;
    for (const isa_row& r : isa_table) {
        if ((r.id == isa::sve || r.id == isa::sve2) && narrow) continue;
        if (r.compiled && r.runs(f)) return r.id;
    }
    return isa::scalar;
}

struct isa_choice {
    hone::isa chosen = isa::scalar, best = isa::scalar;
    bool capped = false;        // HONE_ISA chose
    hone::status status{};      // not ok: HONE_ISA was set and could not be followed; chosen is then best
};

// `wanted` is the text of HONE_ISA, or null: case and surrounding blanks do not matter, empty is as if unset.
inline isa_choice choose_isa(const machine::cpu_features& f, const char* wanted) {
    isa_choice c;
    c.best = c.chosen = best_isa(f);
    if (wanted == nullptr) return c;
    std::string_view text(wanted);
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    if (text.empty()) return c;
    const auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; };
    for (int i = 1; i < isa_count; ++i) {
        const std::string_view name(isa_name(static_cast<isa>(i)));
        bool same = name.size() == text.size();
        for (std::size_t j = 0; same && j < name.size(); ++j) same = name[j] == lower(text[j]);
        if (!same) continue;
        const isa id = static_cast<isa>(i);
        if (isa_available(id, f)) {
            c.chosen = id;
            c.capped = true;
        } else {
            c.status = {code::isa_unavailable, argument::environment, i, static_cast<std::int64_t>(c.best)};
        }
        return c;
    }
    std::uint64_t letters = 0;
    for (std::size_t j = 0; j < text.size() && j < 8; ++j) {
        letters |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[j])) << (8 * j);
    }
    c.status = {code::isa_unknown, argument::environment, static_cast<std::int64_t>(letters), static_cast<std::int64_t>(c.best)};
    return c;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
