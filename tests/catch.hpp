// SPDX-License-Identifier: BSL-1.0
// Catch2 of either major version.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
