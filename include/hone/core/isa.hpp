// SPDX-License-Identifier: BSL-1.0
// The instruction sets by name. What each needs, and which runs where, is isa/isa.hpp's business.
#pragma once

#include <cstdint>

#include "../config.hpp"

namespace hone::inline HONE_ABI {

// One target region each. sve needs SVE alone; sve2 is the same bodies on CPUs that have SVE2. native is whatever the unit
// is compiled for (through xsimd where hone has no vectors of its own); scalar is plain C++. dynamic: the best the machine has.
enum class isa : std::uint8_t { dynamic, scalar, native, avx2, avx512, neon, sve, sve2 };
inline constexpr int isa_count = 8;

HONE_INLINE constexpr const char* isa_name(isa i) {
    constexpr const char* names[isa_count] = {"dynamic", "scalar", "native", "avx2", "avx512", "neon", "sve", "sve2"};
    return static_cast<int>(i) < isa_count ? names[static_cast<int>(i)] : "invalid";
}

}  // namespace hone::inline HONE_ABI
