// SPDX-License-Identifier: BSL-1.0
// What a nest of loops is told of one convolution, checked and decided beforehand.
#pragma once

#include "gemm.hpp"
#include "window.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

template <class T>
struct conv_job {
    const gemm_kernel<T>* kernel = nullptr;
    const winograd_kernels<T>* transforms = nullptr;
    index_t winograd = 0;                  // m of F(m x m, 3 x 3)
    index_t l1 = 0;                        // pointwise and Winograd: of the matrix products, as in gemm_job
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
    bool sums_in_output = false;                                           // partial sums may live there between k blocks
    bool plain = false;                                                    // the last block stores the output itself
    bool simple = false;                                                   // it does, with these stages
    bias_and_relu stages{};
    finish_fn<T> finish = nullptr;
    const void* epilogue = nullptr;

    HONE_INLINE unsigned char* out_at(index_t n, index_t h, index_t w, index_t c) const {
        return output + (n * out_n + h * out_h + w * out_w + c * out_c) * out_size;
    }
    // What a stage sees as at.row.
    HONE_INLINE index_t row_number(index_t n, index_t h, index_t w) const { return ((first_image + n) * y.out + h) * x.out + w; }
    // Sums (rows, cols) through the stages to pixels: out[i] is column `col` of the pixel that row[i] numbers.
    HONE_INLINE void apply_stages(const T* sums, index_t sums_row, index_t rows, void* const* out, const index_t* row, index_t col,
                                  index_t cols) const {
        finish_tile<T> ft;
        ft.t = sums;
        ft.t_stride = sums_row;
        ft.out = out;
        ft.out_stride = out_c;
        ft.row = row;
        ft.col = col;
        ft.rows = static_cast<int>(rows);
        ft.cols = static_cast<int>(cols);
        ft.image_h = y.out;
        ft.image_w = x.out;
        finish(ft, epilogue);
    }
};

// The product of `rows` rows of input channels and `cols` columns of packed weights, operands and result left open: what
// pointwise and Winograd convolutions are made of.
template <class T>
HONE_INLINE gemm_job<T> product_of_channels(const conv_job<T>& job, index_t rows, index_t cols) {
    gemm_job<T> g;
    g.kernel = job.kernel;
    g.m = rows;
    g.n = cols;
    g.k = job.ic;
    g.mc = job.mc;
    g.kc = job.kc;
    g.nc = job.nc;
    g.a_col_stride = 1;
    g.l1 = job.l1;
    g.far = job.far;
    g.source = b_source::packed_beforehand;
    return g;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
