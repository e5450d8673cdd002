// SPDX-License-Identifier: BSL-1.0
// Does not compile: policy.threads must not be negative.
#include <hone/conv.hpp>

#ifdef HONE_COMPILES
constexpr hone::policy p{.threads = 2};
#else
constexpr hone::policy p{.threads = -2};
#endif

const auto made = hone::plan<p>(hone::conv_desc{.h = 4, .w = 4, .ic = 4, .oc = 4});
