// SPDX-License-Identifier: BSL-1.0
// The whole public interface of hone: GEMM and convolution kernels for inference engines on CPUs.
#pragma once

#include "conv.hpp"
#include "error.hpp"
#include "fixed.hpp"
#include "gemm.hpp"
