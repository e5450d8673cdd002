// SPDX-License-Identifier: BSL-1.0
// Closes the region that begin.hpp opened.
}  // namespace HONE_REGION
#if HONE_CLANG
#ifdef HONE_REGION_TARGET
HONE_PRAGMA(clang attribute pop)
#endif
HONE_STRICT_MATH_END
#else
HONE_PRAGMA(GCC pop_options)
#endif
#undef HONE_REGION
#undef HONE_REGION_TARGET
#undef HONE_REGION_OF_UNIT
