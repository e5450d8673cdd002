// SPDX-License-Identifier: BSL-1.0
// Packing of operands whose rows are not contiguous. 128-bit registers, which every unit has: compiled once for all ISAs, as
// memory bounds it.
#pragma once

#include <cstring>

#include "../core/arithmetic.hpp"
#include "../core/view.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Copies a (rows, cols) block with any strides to rows of `out_stride` elements. It packs A where rows are not contiguous
// and, panel by panel, B. Tried and lost: gathers (AVX-512 vgatherdps takes 16 load slots, a 4 x 4 transpose of
// registers 4 loads, 8 shuffles and 4 stores for the same 16 elements).
template <class T>
HONE_NOINLINE void pack_rows(const T* src, index_t row_stride, index_t col_stride, index_t rows, index_t cols,
                             T* HONE_RESTRICT out, index_t out_stride) {
    constexpr int lanes = static_cast<int>(16 / sizeof(T));
    typedef T quad __attribute__((vector_size(16)));
    if (col_stride == 1) {
        for (index_t i = 0; i < rows; ++i) {
            const T* s = src + i * row_stride;
            T* o = out + i * out_stride;
            index_t j = 0;
            for (; j + 4 * lanes <= cols; j += 4 * lanes) {
                __builtin_memcpy(o + j, s + j, 64);
            }
            for (; j < cols; ++j) o[j] = s[j];
        }
        return;
    }
    index_t i = 0;
    if constexpr (sizeof(T) == 4) {
        if (row_stride == 1) {
            for (; i + 4 <= rows; i += 4) {
                index_t j = 0;
                for (; j + 4 <= cols; j += 4) {
                    quad q0, q1, q2, q3;
                    __builtin_memcpy(&q0, src + i + (j + 0) * col_stride, 16);
                    __builtin_memcpy(&q1, src + i + (j + 1) * col_stride, 16);
                    __builtin_memcpy(&q2, src + i + (j + 2) * col_stride, 16);
                    __builtin_memcpy(&q3, src + i + (j + 3) * col_stride, 16);
                    const quad l01 = __builtin_shufflevector(q0, q1, 0, 4, 1, 5);
                    const quad h01 = __builtin_shufflevector(q0, q1, 2, 6, 3, 7);
                    const quad l23 = __builtin_shufflevector(q2, q3, 0, 4, 1, 5);
                    const quad h23 = __builtin_shufflevector(q2, q3, 2, 6, 3, 7);
                    q0 = __builtin_shufflevector(l01, l23, 0, 1, 4, 5);
                    q1 = __builtin_shufflevector(l01, l23, 2, 3, 6, 7);
                    q2 = __builtin_shufflevector(h01, h23, 0, 1, 4, 5);
                    q3 = __builtin_shufflevector(h01, h23, 2, 3, 6, 7);
                    __builtin_memcpy(out + (i + 0) * out_stride + j, &q0, 16);
                    __builtin_memcpy(out + (i + 1) * out_stride + j, &q1, 16);
                    __builtin_memcpy(out + (i + 2) * out_stride + j, &q2, 16);
                    __builtin_memcpy(out + (i + 3) * out_stride + j, &q3, 16);
                }
                for (; j < cols; ++j) {
                    for (index_t r = 0; r < 4; ++r) out[(i + r) * out_stride + j] = src[i + r + j * col_stride];
                }
            }
        }
    } else if constexpr (sizeof(T) == 8) {
        if (row_stride == 1) {
            for (; i + 4 <= rows; i += 4) {
                index_t j = 0;
                for (; j + 2 <= cols; j += 2) {
                    quad q0, q1, q2, q3;
                    __builtin_memcpy(&q0, src + i + (j + 0) * col_stride, 16);
                    __builtin_memcpy(&q1, src + i + (j + 1) * col_stride, 16);
                    __builtin_memcpy(&q2, src + i + 2 + (j + 0) * col_stride, 16);
                    __builtin_memcpy(&q3, src + i + 2 + (j + 1) * col_stride, 16);
                    const quad l01 = __builtin_shufflevector(q0, q1, 0, 2);
                    const quad h01 = __builtin_shufflevector(q0, q1, 1, 3);
                    const quad l23 = __builtin_shufflevector(q2, q3, 0, 2);
                    const quad h23 = __builtin_shufflevector(q2, q3, 1, 3);
                    __builtin_memcpy(out + (i + 0) * out_stride + j, &l01, 16);
                    __builtin_memcpy(out + (i + 1) * out_stride + j, &h01, 16);
                    __builtin_memcpy(out + (i + 2) * out_stride + j, &l23, 16);
                    __builtin_memcpy(out + (i + 3) * out_stride + j, &h23, 16);
                }
                for (; j < cols; ++j) {
                    for (index_t r = 0; r < 4; ++r) out[(i + r) * out_stride + j] = src[i + r + j * col_stride];
                }
            }
        }
    }
    for (; i < rows; ++i) {
        for (index_t j = 0; j < cols; ++j) out[i * out_stride + j] = src[i * row_stride + j * col_stride];
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
