// SPDX-License-Identifier: BSL-1.0
// Does not compile: a stage that sees whole rows stands behind the one that halves the columns.
#include <hone/gemm.hpp>

float sums[4];
#ifdef HONE_COMPILES
auto stages = hone::gated(hone::silu) | hone::row_sum(sums);
#else
auto stages = hone::row_sum(sums) | hone::gated(hone::silu);
#endif
bool halves = decltype(stages)::halves;
