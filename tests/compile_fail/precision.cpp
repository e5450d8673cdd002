// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.precision must be the operands' f32 or f64 or dynamic for a, b and accumulate, and for c f32, f64,
// bf16, f16 or dynamic.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.precision = {.a = hone::dtype::f32}};
#else
constexpr hone::policy p{.precision = {.a = hone::dtype::u8}};
#endif

const auto made = hone::plan<p>(hone::gemm_desc{.m = 4, .n = 4, .k = 4});
