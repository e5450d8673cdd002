// SPDX-License-Identifier: BSL-1.0
// Advanced SIMD, which every AArch64 CPU has.
#pragma once

#include "../kernel/requires.hpp"

#if HONE_ARM64
#include <arm_neon.h>

#define HONE_REGION neon
#include "begin.hpp"
#include "neon/reg.hpp"
#include "../kernel/all.inl"
#include "../kernel/all_relaxed.inl"
#include "end.hpp"
#endif
