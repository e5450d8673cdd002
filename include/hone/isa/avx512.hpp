// SPDX-License-Identifier: BSL-1.0
// AVX-512 F, BW, DQ and VL: every server part since Skylake-X, Zen 4 and later.
#pragma once

#include "../kernel/requires.hpp"

#if HONE_X86
#include "x86.hpp"

#define HONE_REGION avx512
#define HONE_REGION_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"
#include "begin.hpp"
#include "avx512/reg.hpp"
#include "../kernel/all.inl"
#include "../kernel/all_relaxed.inl"
#include "avx512/row_groups.inl"
#include "avx512/grouped_micro.inl"
#include "end.hpp"
#endif
