// SPDX-License-Identifier: BSL-1.0
// What the unit's own flags allow, written once on xsimd::batch.
#pragma once

#include <xsimd/xsimd.hpp>

#include "../kernel/requires.hpp"

#define HONE_REGION native
#define HONE_REGION_OF_UNIT
#include "begin.hpp"
#include "native/reg.hpp"
#include "../kernel/all.inl"
#if !HONE_X86 && !HONE_ARM64  // elsewhere native only stands in
#include "../kernel/all_relaxed.inl"
#endif
#include "end.hpp"
