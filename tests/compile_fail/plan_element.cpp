// SPDX-License-Identifier: BSL-1.0
// Does not compile: hone::plan: the element type must be float or double.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
using element = float;
#else
using element = hone::f16;
#endif

hone::status product() { return hone::plan<element>({.m = 4, .n = 4, .k = 4}).status(); }
