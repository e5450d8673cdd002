// SPDX-License-Identifier: BSL-1.0
// The rules a policy must keep: as static_asserts for one fixed at compile time, as a status for one given at run time.
#pragma once

#include "core/arithmetic.hpp"
#include "core/status.hpp"
#include "dispatch.hpp"
#include "policy.hpp"

namespace hone::inline HONE_ABI {

namespace detail {

// Bytes of an element of type t: f32 or f64.
HONE_INLINE constexpr int policy_bytes(dtype t) { return t == dtype::f64 ? 8 : 4; }
// Elements of type t in a register; 0: known at run time only (SVE), or the unit's flags decide (native).
HONE_INLINE constexpr int policy_lanes(isa i, dtype t) {
    const int bytes = i == isa::avx512 ? 64 : i == isa::avx2 ? 32 : i == isa::neon ? 16 : 0;
    return i == isa::scalar ? 1 : bytes / policy_bytes(t);
}
HONE_INLINE constexpr int policy_registers(isa i) { return i == isa::avx512 || i == isa::neon ? 32 : i == isa::avx2 ? 16 : 0; }
HONE_INLINE constexpr bool policy_compiled(isa i) {
    if (i == isa::avx2 || i == isa::avx512) return HONE_X86 != 0;
    if (i == isa::neon) return HONE_ARM64 != 0;
    if (i == isa::sve || i == isa::sve2) return HONE_SVE != 0;
    return true;
}
// Panels of B are a line of 16 floats or 8 doubles wide: a tile covers whole panels or a whole part of one.
HONE_INLINE constexpr bool policy_panel(int nr, dtype t) {
    const int panel = 64 / policy_bytes(t);
    return nr == 0 || nr % panel == 0 || panel % nr == 0;
}

// The heights a tile can have.
HONE_INLINE constexpr bool policy_height(int mr) {
    for (int rows : {1, 2, 4, 6, 8, 12, 14, 16}) {
        if (rows == mr) return true;
    }
    return false;
}

// What the kernels of this version can hold where the operands are of type t.
HONE_INLINE constexpr bool policy_precision(const precision& p, dtype t) {
    const auto own = [t](dtype d) { return d == dtype::dynamic || d == t; };
    const bool c = p.c == dtype::dynamic || p.c == dtype::f32 || p.c == dtype::f64 || p.c == dtype::bf16 || p.c == dtype::f16;
    return own(p.a) && own(p.b) && own(p.accumulate) && c;
}

// Sums, one row of B and one broadcast of A in registers.
HONE_INLINE constexpr int policy_register_need(const policy& p, dtype t) {
    const int lanes = policy_lanes(p.isa, t), regs = lanes ? p.tile.nr / lanes : 0;
    return (p.tile.mr + 1) * regs + 1;
}

}  // namespace detail

// True, or a compile error that names the field and the rule. T: the element type of the operands.
template <policy P, class T = float>
consteval bool validate() {
    constexpr dtype t = dtype_of<T>;
    static_assert(static_cast<int>(P.isa) < isa_count, "policy.isa must be one of hone::isa");
    static_assert(detail::policy_compiled(P.isa), "policy.isa must be an instruction set of the architecture and compiler in use");
    static_assert(P.tile.mr >= 0 && P.tile.nr >= 0, "policy.tile.mr and policy.tile.nr must not be negative");
    static_assert((P.tile.mr == 0) == (P.tile.nr == 0), "policy.tile.mr and policy.tile.nr must both be given or both be dynamic");
    static_assert(P.tile.mr == 0 || P.isa != isa::dynamic, "policy.tile needs policy.isa: a tile is made for one instruction set");
    static_assert(P.tile.mr == 0 || (P.isa != isa::sve && P.isa != isa::sve2 && P.isa != isa::native),
                  "policy.tile must be dynamic where the register length is not known from policy.isa (sve, sve2, native)");
    static_assert(P.tile.mr == 0 || detail::policy_lanes(P.isa, t) == 0 || P.tile.nr % detail::policy_lanes(P.isa, t) == 0,
                  "policy.tile.nr must be a multiple of the register width of policy.isa");
    static_assert(P.tile.mr == 0 || detail::policy_lanes(P.isa, t) == 0 || P.tile.nr <= 4 * detail::policy_lanes(P.isa, t),
                  "policy.tile.nr must be at most four registers of policy.isa");
    static_assert(P.tile.mr == 0 || detail::policy_height(P.tile.mr), "policy.tile.mr must be one of 1, 2, 4, 6, 8, 12, 14, 16");
    static_assert(t == dtype::f64 || detail::policy_panel(P.tile.nr, t),
                  "policy.tile.nr must be a multiple or a divisor of the panel width 16");
    static_assert(t != dtype::f64 || detail::policy_panel(P.tile.nr, t),
                  "policy.tile.nr must be a multiple or a divisor of the panel width 8 of f64");
    static_assert(P.tile.mr == 0 || detail::policy_registers(P.isa) == 0 || detail::policy_register_need(P, t) <= detail::policy_registers(P.isa),
                  "policy.tile must fit the registers of policy.isa: (mr + 1) * registers of nr + 1 at most");
    static_assert(P.block.mc >= 0 && P.block.kc >= 0 && P.block.nc >= 0, "policy.block fields must not be negative");
    static_assert(P.tile.mr == 0 || P.block.mc % P.tile.mr == 0, "policy.block.mc must be a multiple of policy.tile.mr");
    static_assert(P.tile.nr == 0 || P.block.nc % P.tile.nr == 0, "policy.block.nc must be a multiple of policy.tile.nr");
    static_assert(detail::policy_precision(P.precision, t),
                  "policy.precision must be the operands' f32 or f64 or dynamic for a, b and accumulate, and for c f32, f64, bf16, f16 or dynamic");
    static_assert(P.threads >= 0, "policy.threads must not be negative");
    return true;
}

namespace detail::inline HONE_UNIT {

// The same rules for a policy that is only known at run time. t: the element type of the operands.
inline status check_policy(const policy& p, dtype t) {
    if (static_cast<int>(p.isa) >= isa_count) {
        return {code::bad_policy, argument::policy_isa, static_cast<int>(p.isa), isa_count - 1};
    }
    if (p.tile.mr != 0 && !policy_height(p.tile.mr)) {
        return {code::bad_policy, argument::policy_tile, p.tile.mr, max_mr};
    }
    if (p.tile.nr < 0) return {code::bad_policy, argument::policy_tile, p.tile.nr, 0};
    if ((p.tile.mr == 0) != (p.tile.nr == 0)) {
        return {code::bad_policy, argument::policy_tile, most(p.tile.mr, p.tile.nr), 0};
    }
    if (p.block.mc < 0 || (p.tile.mr && p.block.mc % p.tile.mr)) {
        return {code::bad_policy, argument::policy_mc, p.block.mc, p.tile.mr};
    }
    if (p.block.kc < 0) return {code::bad_policy, argument::policy_kc, p.block.kc, 0};
    if (p.block.nc < 0 || (p.tile.nr && p.block.nc % p.tile.nr)) {
        return {code::bad_policy, argument::policy_nc, p.block.nc, p.tile.nr};
    }
    if (!policy_precision(p.precision, t)) {
        return {code::unsupported, argument::policy_precision, static_cast<int>(p.precision.a), static_cast<int>(t)};
    }
    if (p.packing > packing::both) {
        return {code::bad_policy, argument::policy_packing, static_cast<int>(p.packing), static_cast<int>(packing::both)};
    }
    if (p.numerics > numerics::relaxed) {
        return {code::bad_policy, argument::policy_numerics, static_cast<int>(p.numerics), static_cast<int>(numerics::relaxed)};
    }
    if (p.threads < 0) return {code::bad_policy, argument::policy_threads, p.threads, 0};
    return {};
}

// The epilogue pass of one ISA, no other instantiated.
template <isa I, class T, class E>
HONE_INLINE constexpr finish_fn<T> fixed_finish() {
#if HONE_X86
    if constexpr (I == isa::avx512) return &avx512::finish<T, E>;
    else if constexpr (I == isa::avx2) return &avx2::finish<T, E>;
    else
#endif
#if HONE_SVE
    if constexpr (I == isa::sve2) return &sve2::finish<T, E>;
    else if constexpr (I == isa::sve) return &sve::finish<T, E>;
    else
#endif
#if HONE_ARM64
    if constexpr (I == isa::neon) return &neon::finish<T, E>;
    else
#endif
    if constexpr (I == isa::native) return &native::finish<T, E>;
    else return &scalar::finish<T, E>;
}

// The GEMM kernel of one ISA and tile, registered or not.
template <isa I, class T, int MR, int NR>
HONE_INLINE gemm_kernel<T> fixed_gemm_kernel() {
    constexpr int registers = NR / policy_lanes(I, dtype_of<T>);
#if HONE_X86
    if constexpr (I == isa::avx512) return avx512::make_gemm_kernel<T, MR, registers>();
    else if constexpr (I == isa::avx2) return avx2::make_gemm_kernel<T, MR, registers>();
    else
#endif
#if HONE_ARM64
    if constexpr (I == isa::neon) return neon::make_gemm_kernel<T, MR, registers>();
    else
#endif
    return scalar::make_gemm_kernel<T, MR, registers>();
}

// What policy P fixes at compile time: its ISA's epilogue pass and no other, and its tile, registered or not. p is the same
// policy, or the run-time one where P fixes nothing.
template <policy P, class T, class E>
struct fixed_choice {
    static constexpr bool has_isa = P.isa != isa::dynamic, has_tile = has_isa && P.tile.mr != 0;
    finish_fn<T> finish;
    gemm_kernel<T> tile{};

    HONE_INLINE explicit fixed_choice(const policy& p) {
        if constexpr (has_isa) finish = fixed_finish<P.isa, T, E>();
        else finish = finish_of<T, E>(resolve_isa(p.isa));
        // Making the record already runs code of the region.
        if constexpr (has_tile) {
            if (isa_available(P.isa, this_machine().cpu)) tile = fixed_gemm_kernel<P.isa, T, P.tile.mr, P.tile.nr>();
        }
    }
    HONE_INLINE const gemm_kernel<T>* kernel() const { return has_tile ? &tile : nullptr; }
};

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
