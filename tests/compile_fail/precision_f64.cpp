// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.precision must be the operands' f32 or f64 or dynamic for a, b and accumulate, and for c f32, f64,
// bf16, f16 or dynamic.
#include <hone/gemm.hpp>

constexpr hone::policy p{.precision = {.accumulate = hone::dtype::f32}};
#ifdef HONE_COMPILES
using element = float;
#else
using element = double;
#endif

const auto made = hone::plan<p, element>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
