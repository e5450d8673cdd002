// SPDX-License-Identifier: BSL-1.0
// The registers of x86's vector units as vector types, and how they are loaded without an alignment. <immintrin.h> would bring
// the names too, and 0.3 seconds of parsing into every unit that includes hone under GCC, a sixth of what a product costs;
// there the few instructions that vector types cannot say are asked for by the builtins that the header itself is made of.
#pragma once

#include "../config.hpp"

#if HONE_X86

#if HONE_CLANG || HONE_NATIVE_AVX512
#include <immintrin.h>
#endif

namespace hone::inline HONE_ABI::detail::x86 {

typedef float f32x4 __attribute__((vector_size(16), may_alias));
typedef float f32x8 __attribute__((vector_size(32), may_alias));
typedef float f32x16 __attribute__((vector_size(64), may_alias));
typedef int i32x8 __attribute__((vector_size(32), may_alias));
typedef double f64x2 __attribute__((vector_size(16), may_alias));
typedef double f64x4 __attribute__((vector_size(32), may_alias));
typedef double f64x8 __attribute__((vector_size(64), may_alias));
typedef long long i64x4 __attribute__((vector_size(32), may_alias));
typedef float f32x8_anywhere __attribute__((vector_size(32), may_alias, aligned(4)));
typedef float f32x16_anywhere __attribute__((vector_size(64), may_alias, aligned(4)));
typedef float f32x4_anywhere __attribute__((vector_size(16), may_alias, aligned(4)));
typedef double f64x4_anywhere __attribute__((vector_size(32), may_alias, aligned(8)));
typedef double f64x8_anywhere __attribute__((vector_size(64), may_alias, aligned(8)));
// Laid out here: GCC 12 at -O0 fails on a type that is first laid out inside a target region.
static_assert(sizeof(f32x8) == 32 && sizeof(f32x16) == 64 && sizeof(i32x8) == 32);
static_assert(sizeof(f64x4) == 32 && sizeof(f64x8) == 64 && sizeof(i64x4) == 32);
static_assert(sizeof(f32x4) == 16 && sizeof(f64x2) == 16);
static_assert(sizeof(f32x4_anywhere) == 16 && sizeof(f32x8_anywhere) == 32 && sizeof(f32x16_anywhere) == 64);
static_assert(sizeof(f64x4_anywhere) == 32 && sizeof(f64x8_anywhere) == 64);

}  // namespace hone::inline HONE_ABI::detail::x86

#endif
