// SPDX-License-Identifier: BSL-1.0
// Everything the bodies need, included before any region opens: a template of the standard library that is first compiled
// inside a region would carry the region's target into the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../core/access.hpp"
#include "../core/vec.hpp"
#include "../core/view.hpp"
#include "../epilogue.hpp"
#include "kernel.hpp"
