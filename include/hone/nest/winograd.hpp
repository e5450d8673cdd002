// SPDX-License-Identifier: BSL-1.0
// Winograd convolution F(m x m, 3 x 3): a tile of m x m output pixels takes a x a products for each pair of channels, a = m + 2,
// instead of 9 * m * m. Element e of all tiles of a block is one matrix product, tiles by input channels by output channels.
//
//   loop   over                    step   owner              what stays where
//   ic     tiles                   mc     winograd_task      input transformed (a * a, mc, ic), with what follows 3/4 of L2
//   jc     output channels         nc     winograd_task      products (a * a, mc, nc)
//   e      elements of a tile      1      winograd_task      weights (ic, nc) pass through
//   -      the product of one      -      gemm_task
//
// Sums are not those of the definition: they are rounded in other places, and more often. Of f32 with values in [-1, 1] the error
// of m = 2 is about that of a sum in plain order, of m = 4 ten times as much (tests/winograd_test.cpp has the bounds). An infinite
// or NaN input or weight makes NaN of all that it meets in a transform.
#pragma once

#include "conv_job.hpp"
#include "model.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Bytes of each part of one task's scratch, in the order they lie there, each on 64-byte lines.
struct winograd_scratch {
    index_t pixels = 0, input = 0, products = 0, sums = 0, gemm = 0;
    constexpr index_t bytes() const { return pixels + input + products + sums + gemm; }
};

template <class T>
HONE_INLINE constexpr winograd_scratch winograd_scratch_of(const gemm_kernel<T>& kn, index_t m, index_t ic, index_t mc, index_t kc, index_t nc,
                                                           index_t l1) {
    const index_t e = winograd_elements(m), size = static_cast<index_t>(sizeof(T));
    winograd_scratch s;
    s.pixels = round_up(e * static_cast<index_t>(sizeof(void*)), 64);
    s.input = round_up(e * mc * round_up(ic, panel_floor) * size, 64);
    s.products = round_up(e * mc * round_up(nc, panel_floor) * size, 64);
    s.sums = round_up((m * m * round_up(nc, panel_floor) + panel_floor) * size, 64);
    s.gemm = gemm_scratch_of(kn, mc, nc, ic, mc, kc, nc, l1, false, b_source::packed_beforehand, false, false, gemm_way::tiles).bytes();
    return s;
}

// G g G' of one filter of 3 x 3 weights: its (a, a) elements.
template <class T>
inline void winograd_filter(index_t m, const T (&g)[9], double (&u)[36]) {
    constexpr double two[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    constexpr double four[6][3] = {{1.0 / 4, 0, 0},
                                   {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                   {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                   {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                   {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                   {0, 0, 1}};
    const double(*t)[3] = m == 2 ? two : four;
    const index_t a = m + 2;
    for (index_t i = 0; i < a; ++i) {
        double row[3];
        for (int x = 0; x < 3; ++x) {
            row[x] = 0;
            for (int y = 0; y < 3; ++y) row[x] += t[i][y] * static_cast<double>(g[3 * y + x]);
        }
        for (index_t j = 0; j < a; ++j) u[i * a + j] = t[j][0] * row[0] + t[j][1] * row[1] + t[j][2] * row[2];
    }
}

// One task: part `row_part` of the tiles of all images, part `col_part` of the output channels.
template <class T>
inline void winograd_task(const conv_job<T>& job, index_t row_part, index_t row_parts, index_t col_part, index_t col_parts,
                          const winograd_scratch& s, std::byte* scratch) {
    const gemm_kernel<T>& kn = *job.kernel;
    const index_t m = job.winograd, a = m + 2, elements = a * a;
    const T** pixels = reinterpret_cast<const T**>(scratch);                            // (a, a)
    T* input = reinterpret_cast<T*>(scratch + s.pixels);                                // (a * a, mc, ic)
    T* products = reinterpret_cast<T*>(scratch + s.pixels + s.input);                   // (a * a, mc, nc)
    T* sums = reinterpret_cast<T*>(scratch + s.pixels + s.input + s.products);          // (m * m, nc)
    std::byte* own = scratch + s.pixels + s.input + s.products + s.sums;
    const index_t each_image = winograd_tiles(job.y, job.x, m), each_row = ceil_div(job.x.out, m), unit = column_unit(kn, false);
    const range tiles = part_of(job.images * each_image, kn.mr, row_parts, row_part), cols = part_of(job.oc, unit, col_parts, col_part);
    if (tiles.begin >= tiles.end || cols.begin >= cols.end) return;
    const index_t mc = equal_block(tiles.end - tiles.begin, job.mc, kn.mr), nc = equal_block(cols.end - cols.begin, job.nc, unit);
    const index_t input_row = round_up(job.ic, panel_floor), product_row = round_up(nc, panel_floor);
    struct corner {
        index_t n, h, w;  // of a tile, in the output
    };
    const auto corner_of = [=](index_t tile) {
        const index_t n = tile / each_image, at = tile % each_image;
        return corner{n, at / each_row * m, at % each_row * m};
    };
    for (index_t ic = tiles.begin; ic < tiles.end; ic += mc) {
        const index_t count = least(mc, tiles.end - ic);
        winograd_input_tile<T> in;
        in.pixels = pixels;
        in.channels = job.ic;
        in.out_step = mc * input_row;
        for (index_t t = 0; t < count; ++t) {
            const corner at = corner_of(ic + t);
            for (index_t i = 0; i < a; ++i) {
                for (index_t j = 0; j < a; ++j) {
                    const index_t h = at.h - job.y.pad + i, w = at.w - job.x.pad + j;
                    const bool inside = h >= 0 && h < job.y.in && w >= 0 && w < job.x.in;
                    pixels[i * a + j] = inside ? job.input + at.n * job.in_n + h * job.in_h + w * job.in_w : job.zeros;
                }
            }
            in.out = input + t * input_row;
            job.transforms->input[m / 4](in);
        }
        for (index_t jc = cols.begin; jc < cols.end; jc += nc) {
            const index_t width = least(nc, cols.end - jc);
            gemm_job<T> g = product_of_channels(job, count, width);
            g.a_row_stride = input_row;
            g.c_row_stride = product_row;
            g.c_col_stride = 1;
            g.c_size = static_cast<index_t>(sizeof(T));
            g.sums_in_c = job.ic > job.kc;
            g.plain = true;
            for (index_t e = 0; e < elements; ++e) {
                g.a = input + e * mc * input_row;
                g.packed = job.weights + e * job.group_weights + jc * job.ic;
                g.c = reinterpret_cast<unsigned char*>(products + e * mc * product_row);
                gemm_task(g, {0, count}, {0, width}, own);
            }
            winograd_output_tile<T> out;
            out.in_step = mc * product_row;
            out.channels = round_up(width, panel_floor);
            out.out = sums;
            out.out_step = product_row;
            for (index_t t = 0; t < count; ++t) {
                out.in = products + t * product_row;
                job.transforms->output[m / 4](out);
                const corner at = corner_of(ic + t);
                const index_t wide = least(m, job.x.out - at.w), high = least(m, job.y.out - at.h);
                for (index_t i = 0; i < high; ++i) {
                    void* out_rows[max_mr];                                             // (wide)
                    index_t row_numbers[max_mr];                                        // (wide)
                    for (index_t j = 0; j < wide; ++j) {
                        out_rows[j] = job.out_at(at.n, at.h + i, at.w + j, jc);
                        row_numbers[j] = job.row_number(at.n, at.h + i, at.w + j);
                    }
                    job.apply_stages(sums + i * m * product_row, product_row, wide, out_rows, row_numbers, jc, width);
                }
            }
        }
    }
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
