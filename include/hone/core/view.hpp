// SPDX-License-Identifier: BSL-1.0
// Where operands lie: pointer, extents, strides. Nothing here owns memory or touches it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../config.hpp"

namespace hone::inline HONE_ABI {

// Extents and strides are signed 64-bit counts of elements.
using index_t = std::int64_t;

// rows x cols elements; element (i, j) is data[i * row_stride + j * col_stride]. Strides may be of either sign; 0 repeats
// a row or column (for operands that are only read).
template <class T>
struct matrix_view {
    T* data = nullptr;
    index_t rows = 0, cols = 0;
    index_t row_stride = 0, col_stride = 0;  // elements

    HONE_INLINE constexpr T* at(index_t i, index_t j) const { return data + i * row_stride + j * col_stride; }
    HONE_INLINE constexpr operator matrix_view<const T>() const { return {data, rows, cols, row_stride, col_stride}; }
};

// Rows one after another, `stride` elements from one row to the next (dense: cols).
template <class T>
HONE_INLINE constexpr matrix_view<T> row_major(T* data, index_t rows, index_t cols, index_t stride) {
    return {data, rows, cols, stride, 1};
}
template <class T>
HONE_INLINE constexpr matrix_view<T> row_major(T* data, index_t rows, index_t cols) {
    return {data, rows, cols, cols, 1};
}

// Columns one after another, `stride` elements from one column to the next (dense: rows).
template <class T>
HONE_INLINE constexpr matrix_view<T> col_major(T* data, index_t rows, index_t cols, index_t stride) {
    return {data, rows, cols, 1, stride};
}
template <class T>
HONE_INLINE constexpr matrix_view<T> col_major(T* data, index_t rows, index_t cols) {
    return {data, rows, cols, 1, rows};
}

// The same elements, rows and columns exchanged; nothing moves.
template <class T>
HONE_INLINE constexpr matrix_view<T> transposed(matrix_view<T> v) {
    return {v.data, v.cols, v.rows, v.col_stride, v.row_stride};
}

// n images of h x w pixels of c channels; element (i, y, x, k) is data[i * n_stride + y * h_stride + x * w_stride + k * c_stride].
template <class T>
struct image_view {
    T* data = nullptr;
    index_t n = 0, h = 0, w = 0, c = 0;
    index_t n_stride = 0, h_stride = 0, w_stride = 0, c_stride = 0;  // elements

    HONE_INLINE constexpr T* at(index_t i, index_t y, index_t x, index_t k = 0) const {
        return data + i * n_stride + y * h_stride + x * w_stride + k * c_stride;
    }
    HONE_INLINE constexpr operator image_view<const T>() const {
        return {data, n, h, w, c, n_stride, h_stride, w_stride, c_stride};
    }
};

// Dense images, channels last.
template <class T>
HONE_INLINE constexpr image_view<T> nhwc(T* data, index_t n, index_t h, index_t w, index_t c) {
    return {data, n, h, w, c, h * w * c, w * c, c, 1};
}
// Dense images, channels first.
template <class T>
HONE_INLINE constexpr image_view<T> nchw(T* data, index_t n, index_t c, index_t h, index_t w) {
    return {data, n, h, w, c, c * h * w, w, 1, h * w};
}

// Weights of a convolution. Extents are per group: `oc` output and `ic` input channels in each of `groups` groups, kh x kw taps.
// Element (g, o, i, y, x) is data[g * g_stride + o * o_stride + i * i_stride + y * h_stride + x * w_stride].
template <class T>
struct filter_view {
    T* data = nullptr;
    index_t groups = 1, oc = 0, ic = 0, kh = 0, kw = 0;
    index_t g_stride = 0, o_stride = 0, i_stride = 0, h_stride = 0, w_stride = 0;  // elements

    HONE_INLINE constexpr T* at(index_t g, index_t o, index_t i, index_t y, index_t x) const {
        return data + g * g_stride + o * o_stride + i * i_stride + y * h_stride + x * w_stride;
    }
    HONE_INLINE constexpr operator filter_view<const T>() const {
        return {data, groups, oc, ic, kh, kw, g_stride, o_stride, i_stride, h_stride, w_stride};
    }
};

// Dense weights in the order of ONNX Conv: (groups * oc, ic, kh, kw).
template <class T>
HONE_INLINE constexpr filter_view<T> oihw(T* data, index_t oc, index_t ic, index_t kh, index_t kw, index_t groups = 1) {
    return {data, groups, oc, ic, kh, kw, oc * ic * kh * kw, ic * kh * kw, kh * kw, kw, 1};
}
// Dense weights in the order of ONNX ConvTranspose: (groups * ic, oc, kh, kw).
template <class T>
HONE_INLINE constexpr filter_view<T> iohw(T* data, index_t ic, index_t oc, index_t kh, index_t kw, index_t groups = 1) {
    return {data, groups, oc, ic, kh, kw, oc * ic * kh * kw, kh * kw, oc * kh * kw, kw, 1};
}
// Dense weights in the order of TensorFlow Lite: (groups * oc, kh, kw, ic).
template <class T>
HONE_INLINE constexpr filter_view<T> ohwi(T* data, index_t oc, index_t kh, index_t kw, index_t ic, index_t groups = 1) {
    return {data, groups, oc, ic, kh, kw, oc * ic * kh * kw, ic * kh * kw, 1, kw * ic, ic};
}

}  // namespace hone::inline HONE_ABI
