// SPDX-License-Identifier: BSL-1.0
// Opens a target region: every function defined until end.hpp is compiled for HONE_REGION_TARGET, whatever the unit's
// flags, and without contraction. On GCC also without scheduling before register allocation, which hoists broadcasts on
// AArch64 until the 6 x 4 tile of NEON spills (it needs 29 of 32 registers). Templates keep the target when they are
// instantiated after the region.
// Included many times, once per ISA; everything a body needs is included before the region opens.
//   HONE_REGION         the namespace, and the enumerator of hone::isa
//   HONE_REGION_TARGET  the target string of this compiler; not defined: the unit's own flags
//   HONE_REGION_OF_UNIT defined: its numbers follow the unit's flags, -ffast-math too
#if HONE_CLANG
HONE_STRICT_MATH_BEGIN
#ifdef HONE_REGION_TARGET
#define HONE_REGION_PUSH(target_text) \
    HONE_PRAGMA(clang attribute push(__attribute__((target(target_text))), apply_to = function))
HONE_REGION_PUSH(HONE_REGION_TARGET)
#undef HONE_REGION_PUSH
#endif
#else
HONE_PRAGMA(GCC push_options)
#ifdef HONE_REGION_OF_UNIT  // -ffast-math stays: xsimd's functions have it, and GCC would call each of them
#define HONE_REGION_MATH "fp-contract=off"
#else
#define HONE_REGION_MATH HONE_STRICT_MATH
#endif
#ifdef HONE_REGION_TARGET
#define HONE_REGION_PUSH(target_text) HONE_PRAGMA(GCC target(target_text))
HONE_REGION_PUSH(HONE_REGION_TARGET)
#undef HONE_REGION_PUSH
#endif
HONE_PRAGMA(GCC optimize(HONE_REGION_MATH, "no-schedule-insns"))
#undef HONE_REGION_MATH
#endif
namespace hone::inline HONE_ABI::detail::inline HONE_UNIT::HONE_REGION {
