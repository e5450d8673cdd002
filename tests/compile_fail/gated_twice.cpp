// SPDX-License-Identifier: BSL-1.0
// Does not compile: an epilogue can halve the number of columns once.
#include <hone/gemm.hpp>

#ifdef HONE_COMPILES
auto stages = hone::gated(hone::silu) | hone::relu;
#else
auto stages = hone::gated(hone::silu) | hone::gated(hone::silu);
#endif
bool halves = decltype(stages)::halves;
