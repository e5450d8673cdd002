// SPDX-License-Identifier: BSL-1.0
// Plain C++ on any machine.
#pragma once

#include "../kernel/requires.hpp"

#define HONE_REGION scalar
#include "begin.hpp"
#include "scalar/reg.hpp"
#include "../kernel/all.inl"
#include "end.hpp"
