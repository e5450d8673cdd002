// SPDX-License-Identifier: BSL-1.0
// The whole public interface of hone: GEMM and convolution kernels for inference engines on CPUs.
#pragma once

#include "batched.hpp"
#include "conv.hpp"
#include "error.hpp"
#include "fixed.hpp"
#include "gemm.hpp"
#include "grouped.hpp"
