// SPDX-License-Identifier: BSL-1.0
// SVE2 at any vector length: the bodies of the sve folder, compiled for CPUs that have SVE2.
#pragma once

#include "../kernel/requires.hpp"

#if HONE_SVE
#include <arm_sve.h>

#define HONE_REGION sve2
#if HONE_CLANG
#define HONE_REGION_TARGET "sve2"
#else
#define HONE_REGION_TARGET "+sve2"
#endif
#include "begin.hpp"
#include "sve/reg.hpp"
#include "sve/gemm_micro.inl"
#include "sve/fixed_micro.inl"
#include "sve/relaxed_micro.inl"
#include "../kernel/common.inl"
#include "../kernel/relaxed.inl"
#include "end.hpp"
#endif
