// SPDX-License-Identifier: BSL-1.0
// What a nest of loops is told of one convolution, checked and decided beforehand.
#pragma once

#include "../kernel/kernel.hpp"
#include "window.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

template <class T>
struct conv_job {
    const gemm_kernel<T>* kernel = nullptr;
    const winograd_kernels<T>* transforms = nullptr;
    index_t winograd = 0;                  // m of F(m x m, 3 x 3)
    index_t l1 = 0;                        // of the matrix products, as in gemm_job
    bool far = false;
    bool rows_of_taps = false;             // a row of taps may be one run
    depthwise_fn<T> depthwise = nullptr;
    conv_axis y, x;
    index_t images = 0, groups = 1, ic = 0, oc = 0;                        // channels per group
    index_t group_ic = 0, group_oc = 0;                                    // from the first channel of a group to that of the next
    index_t all_oc = 0;                                                    // of all groups
    index_t mc = 0, kc = 0, nc = 0;
    const T* input = nullptr;                                              // channels are contiguous
    index_t in_n = 0, in_h = 0, in_w = 0;                                  // strides, elements
    const T* weights = nullptr;                                            // packed: (groups, panels, kh * kw * ic, panel)
    index_t group_weights = 0;                                             // elements from one group to the next
    bool finite = true;
    const T* zeros = nullptr;                                              // as many as the longest run
    unsigned char* output = nullptr;
    index_t out_n = 0, out_h = 0, out_w = 0, out_c = 0, out_size = 0;      // strides, elements; bytes of an element
    index_t first_image = 0;                                               // what image 0 of this job is to a stage
    bool plain = false;                                                    // the last block stores the output itself
    bool simple = false;                                                   // it does, with these stages
    bias_and_relu stages{};
    finish_fn<T> finish = nullptr;
    const void* epilogue = nullptr;

    HONE_INLINE unsigned char* out_at(index_t n, index_t h, index_t w, index_t c) const {
        return output + (n * out_n + h * out_h + w * out_w + c * out_c) * out_size;
    }
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
