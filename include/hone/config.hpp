// SPDX-License-Identifier: BSL-1.0
// Every question about the compiler, the operating system and the flags of the including unit is answered here,
// and nowhere else.
#pragma once

#include "version.hpp"

// Compilers: GCC 12 or newer, Clang 14 or newer (AppleClang, clang-cl and icx count as Clang).
#if defined(__clang__)
#define HONE_CLANG 1
#define HONE_GCC 0
#elif defined(__GNUC__)
#define HONE_CLANG 0
#define HONE_GCC 1
#else
#error "hone needs GCC or Clang: its kernels are compiled for several instruction sets in one unit, through target regions"
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define HONE_X86 1
#else
#define HONE_X86 0
#endif

#if defined(__aarch64__) && !defined(__AARCH64EB__)
#define HONE_ARM64 1
#else
#define HONE_ARM64 0
#endif

#if defined(__linux__)
#define HONE_LINUX 1
#else
#define HONE_LINUX 0
#endif

// <arm_sve.h> inside a target region: GCC 12, Clang 16. Below that NEON runs, and explain() says why.
#if HONE_ARM64 && ((HONE_GCC && __GNUC__ >= 12) || (HONE_CLANG && __clang_major__ >= 16))
#define HONE_SVE 1
#else
#define HONE_SVE 0
#endif

#if defined(__cpp_exceptions)
#define HONE_EXCEPTIONS 1
#else
#define HONE_EXCEPTIONS 0
#endif

// -ffast-math, or a part of it.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#define HONE_FAST_MATH 1
#else
#define HONE_FAST_MATH 0
#endif

// Whether all kernels but native's keep what is promised of NaN and of bits under -ffast-math, too; explain() reports it,
// include/hone/README.md tells the cases. Three things that Clang does no pragma reaches. It fuses products and sums in
// its backend: core/vec.hpp fences every product, and the fence exists on x86. From 17 on every float that a function
// takes or returns is taken for finite. Before 19 __builtin_fmaf is taken apart where the flags have no FMA.
#if !HONE_FAST_MATH || HONE_GCC || (HONE_X86 && (__clang_major__ < 17 || !__FINITE_MATH_ONLY__))
#define HONE_PRECISE_MATH 1
#else
#define HONE_PRECISE_MATH 0
#endif
#if HONE_FAST_MATH && HONE_CLANG && __clang_major__ < 19 && !defined(__FMA__)
#define HONE_PRECISE_SCALAR 0
#else
#define HONE_PRECISE_SCALAR HONE_PRECISE_MATH
#endif
#if HONE_FAST_MATH && HONE_CLANG && HONE_X86
#define HONE_FENCED_PRODUCTS 1
#else
#define HONE_FENCED_PRODUCTS 0
#endif

// Whether a product and a sum of this unit's own flags can be one rounding: what native's fma is made of.
#if defined(__FMA__) || HONE_ARM64
#define HONE_NATIVE_FMA 1
#else
#define HONE_NATIVE_FMA 0
#endif

// Where the unit's flags have AVX-512.
#if defined(__AVX512F__)
#define HONE_NATIVE_AVX512 1
#else
#define HONE_NATIVE_AVX512 0
#endif

// Whether `native` is made of xsimd::batch. Where hone's own vector types say the same, on x86 and AArch64, it is not unless
// a unit asks with -DHONE_XSIMD=1: parsing xsimd is a tenth of what a unit with one product costs.
#ifndef HONE_XSIMD
#define HONE_XSIMD (!HONE_X86 && !HONE_ARM64)
#endif

// Around code that decides and explains: GCC compiles it for size, in half the time.
#if !HONE_CLANG && defined(__OPTIMIZE__)
#define HONE_FOR_SIZE_BEGIN HONE_PRAGMA(GCC push_options) HONE_PRAGMA(GCC optimize("Os"))
#define HONE_FOR_SIZE_END HONE_PRAGMA(GCC pop_options)
#else
#define HONE_FOR_SIZE_BEGIN
#define HONE_FOR_SIZE_END
#endif

// Around the register tiles, which are written as they are to be compiled: what GCC's global passes look for is not there,
// and a third of a tile's compilation is spent on looking. -O3 would split the loops over k and unroll those that set up
// pointers: half more instructions, and 0.5 to 1.5 % slower. Behind "O2" the region's own options are said again.
#if !HONE_CLANG && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define HONE_TILES_BEGIN                                                                                    \
    HONE_PRAGMA(GCC push_options)                                                                           \
    HONE_PRAGMA(GCC optimize("O2", HONE_STRICT_MATH, "no-schedule-insns", "no-tree-vrp", "no-thread-jumps", \
                             "no-gcse", "no-tree-dominator-opts", "no-tree-pre"))
#define HONE_TILES_END HONE_PRAGMA(GCC pop_options)
#else
#define HONE_TILES_BEGIN
#define HONE_TILES_END
#endif

#define HONE_INLINE inline __attribute__((always_inline))
#define HONE_NOINLINE __attribute__((noinline))
#define HONE_FLATTEN __attribute__((flatten))
#define HONE_RESTRICT __restrict__

#define HONE_PRAGMA_(text) _Pragma(#text)
#define HONE_PRAGMA(text) HONE_PRAGMA_(text)
#define HONE_CAT_(a, b) a##b
#define HONE_CAT(a, b) HONE_CAT_(a, b)
#define HONE_STRING_(text) #text
#define HONE_STRING(text) HONE_STRING_(text)

// In front of a loop whose trip count is a template argument: unrolled whole, so that arrays of registers stay registers.
#if HONE_CLANG
#define HONE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HONE_UNROLL _Pragma("GCC unroll 64")
#endif

// Arithmetic as written, at namespace scope around core/vec.hpp and in every target region: no contraction of a * b + c
// (a fused multiply-add exists only as hone::fma), no reassociation, NaN and infinity honoured.
#if HONE_CLANG && (HONE_X86 || __clang_major__ >= 17)
#define HONE_PRECISE_PUSH HONE_PRAGMA(float_control(push)) HONE_PRAGMA(float_control(precise, on))
#define HONE_PRECISE_POP HONE_PRAGMA(float_control(pop))
#else  // Clang before 17 knows no float_control on AArch64: contraction then stays off for the rest of the unit
#define HONE_PRECISE_PUSH
#define HONE_PRECISE_POP
#endif
#if HONE_CLANG
#define HONE_STRICT_MATH_BEGIN HONE_PRECISE_PUSH HONE_PRAGMA(clang fp contract(off))
#define HONE_STRICT_MATH_END HONE_PRECISE_POP
#else
// A function of other flags is inlined by GCC only if it is always-inline, or has no arithmetic of its own: under
// -ffast-math a user's lambda stays a function apart, unless it carries the attribute.
#if HONE_FAST_MATH
#define HONE_STRICT_MATH "no-fast-math", "no-math-errno", "fp-contract=off"
#else
#define HONE_STRICT_MATH "fp-contract=off"
#endif
#define HONE_STRICT_MATH_BEGIN     \
    HONE_PRAGMA(GCC push_options)  \
    HONE_PRAGMA(GCC optimize(HONE_STRICT_MATH))
#define HONE_STRICT_MATH_END HONE_PRAGMA(GCC pop_options)
#endif

// HONE_UNIT names what this unit was compiled for. A region's target is added to the command line's, so a unit built
// with -march=native compiles a stronger avx2 region than its neighbour; were the two under one name, the linker would
// keep either. Private code lives in `inline namespace HONE_UNIT`; public functions are always-inline doors into it.
#if defined(__AVX512F__)
#define HONE_UNIT_1 _avx512
#elif defined(__AVX2__)
#define HONE_UNIT_1 _avx2
#elif defined(__AVX__)
#define HONE_UNIT_1 _avx
#elif defined(__SSE4_2__)
#define HONE_UNIT_1 _sse42
#elif defined(__SSSE3__)
#define HONE_UNIT_1 _ssse3
#elif defined(__ARM_FEATURE_SVE2)
#define HONE_UNIT_1 _sve2
#elif defined(__ARM_FEATURE_SVE)
#define HONE_UNIT_1 _sve
#else
#define HONE_UNIT_1 _base
#endif
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
#define HONE_UNIT_2 _dot
#else
#define HONE_UNIT_2
#endif
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16)
#define HONE_UNIT_3 _bf16
#else
#define HONE_UNIT_3
#endif
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define HONE_UNIT_4 _fp16
#else
#define HONE_UNIT_4
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HONE_UNIT_5 _fma
#else
#define HONE_UNIT_5
#endif
#if defined(__AMX_TILE__)
#define HONE_UNIT_6 _amx
#else
#define HONE_UNIT_6
#endif
#if HONE_FAST_MATH
#define HONE_UNIT_7 _fastmath
#else
#define HONE_UNIT_7
#endif
#if HONE_XSIMD
#define HONE_UNIT_8 _xsimd
#else
#define HONE_UNIT_8
#endif
#define HONE_UNIT_CAT(a, b, c, d, e, f, g, h) unit##a##b##c##d##e##f##g##h
#define HONE_UNIT_EXPAND(a, b, c, d, e, f, g, h) HONE_UNIT_CAT(a, b, c, d, e, f, g, h)
#define HONE_UNIT \
    HONE_UNIT_EXPAND(HONE_UNIT_1, HONE_UNIT_2, HONE_UNIT_3, HONE_UNIT_4, HONE_UNIT_5, HONE_UNIT_6, HONE_UNIT_7, HONE_UNIT_8)
