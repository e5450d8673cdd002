// SPDX-License-Identifier: BSL-1.0
// The only copy of the version: CMake reads it from here.
#pragma once

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0

// The inline namespace of everything public: two shared libraries with different versions live in one process.
#define HONE_ABI v0_1
