// SPDX-License-Identifier: BSL-1.0
// A pointwise convolution is the product of pixels and weights (nest/gemm.hpp): 1 x 1, stride 1, no padding.
#pragma once

#include "conv_job.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// One task: part `row_part` of the pixels of all images, part `col_part` of the output channels.
template <class T>
inline void pointwise_task(const conv_job<T>& job, index_t row_part, index_t row_parts, index_t col_part, index_t col_parts, std::byte* scratch) {
    gemm_job<T> g = product_of_channels(job, job.images * job.y.out * job.x.out, job.oc);
    g.a = job.input;
    g.a_row_stride = job.in_w;
    g.packed = job.weights;
    g.c = job.output;
    g.c_row_stride = job.out_w;
    g.c_col_stride = job.out_c;
    g.c_size = job.out_size;
    g.sums_in_c = job.sums_in_output && job.ic > job.kc;
    g.plain = job.plain;
    g.finish = job.finish;
    g.epilogue = job.epilogue;
    g.first_row = job.row_number(0, 0, 0);
    g.image_h = job.y.out;
    g.image_w = job.x.out;
    gemm_task(g, part_of(g.m, job.kernel->mr, row_parts, row_part), part_of(g.n, column_unit(*job.kernel, false), col_parts, col_part), scratch);
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
