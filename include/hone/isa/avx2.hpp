// SPDX-License-Identifier: BSL-1.0
// AVX2 with FMA and F16C: Haswell, Zen and later.
#pragma once

#include "../kernel/requires.hpp"

#if HONE_X86
#include "x86.hpp"

#define HONE_REGION avx2
#define HONE_REGION_TARGET "avx2,fma,f16c"
#include "begin.hpp"
#include "avx2/reg.hpp"
#include "../kernel/all.inl"
#include "../kernel/all_relaxed.inl"
#include "end.hpp"
#endif
