// SPDX-License-Identifier: BSL-1.0
// What the unit's own flags allow: written once, on xsimd::batch or on vector types (HONE_XSIMD in config.hpp).
#pragma once

#include "../kernel/requires.hpp"

#if HONE_XSIMD
#include <xsimd/xsimd.hpp>
#elif HONE_X86
#include "x86.hpp"
#elif HONE_ARM64
#include <arm_neon.h>
#endif

#define HONE_REGION native
#define HONE_REGION_OF_UNIT
#include "begin.hpp"
#include "native/reg.hpp"
#include "../kernel/all.inl"
#if !HONE_X86 && !HONE_ARM64  // elsewhere native only stands in
#include "../kernel/all_relaxed.inl"
#endif
#include "end.hpp"
