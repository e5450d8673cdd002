// SPDX-License-Identifier: BSL-1.0
// A policy says what is fixed at compile time. One structural aggregate: a template argument and a run-time value alike.
//
//   constexpr hone::policy p{.isa = hone::isa::avx512, .tile = {8, 48}, .block = {.mc = 240, .kc = 384, .nc = 3072}};
//   hone::gemm<p>(a, b, c);                        // all of it fixed at compile time
//   hone::plan(desc, p);                           // the same value at run time
//
// A field left out is hone::dynamic: decided at run time. Field order is part of the interface.
#pragma once

#include <cstdint>

#include "config.hpp"
#include "core/dtype.hpp"
#include "core/isa.hpp"

namespace hone::inline HONE_ABI {

// strict: one chain of fused multiply-adds per element, bitwise equal on every ISA with FMA. relaxed: a product may add in any
// order that gains by it, the same each time on one ISA; it need not (gemm.hpp, "Numbers").
enum class numerics : std::uint8_t { strict, relaxed };

// What is copied before the register tile reads it, B packed beforehand apart: neither, A only, B only, or both. Operands
// that are not copied must have contiguous rows.
enum class packing : std::uint8_t { dynamic, none, a, b, both };

// How a convolution is computed. The first five form the same chains, bit for bit. Winograd's sums are others, of larger error
// (conv.hpp, "Numbers"): only where they are named or numerics are relaxed.
enum class algorithm : std::uint8_t {
    dynamic,
    implicit_gemm,  // any convolution: a matrix product of windows that are never written down
    depthwise,      // one channel in and out per group
    pointwise,      // 1 x 1, stride 1, no padding: a matrix product of pixels
    first_layer,    // few channels: a row of taps is one run of memory, pixels lying side by side
    winograd_2x2,   // 3 x 3, stride 1: 2.25 times fewer products
    winograd_4x4    // 4 times fewer
};

// The value of every field that is decided at run time.
struct dynamic_t {
    template <class T>
    HONE_INLINE constexpr operator T() const {
        return T{};
    }
    template <class T>
    friend HONE_INLINE constexpr bool operator==(const T& field, dynamic_t) {
        return field == T{};
    }
};
inline constexpr dynamic_t dynamic{};

// The register tile: mr rows of A by nr columns of B.
struct tile {
    int mr = 0, nr = 0;
    friend constexpr bool operator==(const tile&, const tile&) = default;
};

// Cache blocks: mc rows of A, kc of k, nc columns of B.
struct blocking {
    int mc = 0, kc = 0, nc = 0;
    friend constexpr bool operator==(const blocking&, const blocking&) = default;
};

// Element types of the operands, of the sums and of the result; dynamic: what the views hold.
struct precision {
    dtype a{}, b{}, accumulate{}, c{};
    friend constexpr bool operator==(const precision&, const precision&) = default;
};

struct policy {
    hone::isa isa = hone::isa::dynamic;
    hone::tile tile{};
    hone::blocking block{};
    hone::precision precision{};
    hone::numerics numerics = hone::numerics::strict;
    hone::packing packing = hone::packing::dynamic;
    hone::algorithm algorithm = hone::algorithm::dynamic;
    int threads = 0;  // most workers one call may use; dynamic: as many as the executor has
    friend constexpr bool operator==(const policy&, const policy&) = default;
};

}  // namespace hone::inline HONE_ABI
