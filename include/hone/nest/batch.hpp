// SPDX-License-Identifier: BSL-1.0
// Many products as one list of work, cut evenly among tasks. Each task finds its share by arithmetic on extents:
// nothing is written down, nothing is shared.
//
//     product 0         product 1   product 2              each in cells: bands of rows by units of columns,
//   | 0 1 2 3 4 5 6 7 | 0 1 2 3 4 | 0 1 2 3 4 5 |          counted band by band
//   |---- task 0 ----|---- task 1 ---|- task 2 -|
//
// A cut falls where the work is even and not where a product ends, so a large product is no task of its own, and of T
// tasks at most T - 1 products are cut.
#pragma once

#include "model.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// What a product takes in comparison with others. Reading a column of B takes as long as multiplying it by some 16
// rows. Bounded so that the work of `count` of them can be added up.
inline constexpr index_t work_of(index_t m, index_t n, index_t k, index_t count) {
    if (m <= 0 || n <= 0) return 0;
    return least(product_of(m + least(16, INT64_MAX - m), n, most(k, 1)), INT64_MAX / 2 / most(count, 1));
}

// Whether a small product asks for the operands of the next one. In L3 it costs as much as it gives. Beyond, hardware
// foresees what is read once from its first byte to its last, and is best left alone, but neither where pointers lead
// nor what two columns of tiles share: on Zen 5 64^3 in order 104 -> 192 GFLOP/s, 48^3 165 -> 151, and behind pointers
// 68 -> 81.
template <class T>
inline bool fetches_next(const machine::cache_info& c, const gemm_kernel<T>& kn, index_t n, bool scattered,
                         double bytes) {
    return bytes > static_cast<double>(c.l3.bytes) / 2 && (n > kn.nr || scattered);
}

// Where the share of task t of `tasks` begins.
inline constexpr index_t share_begin(index_t total, index_t tasks, index_t t) {
    return total / tasks * t + least(t, total % tasks);
}

struct cell_grid {
    index_t m = 0, n = 0;         // n: columns of packed B
    index_t mr = 1, unit = 1;     // rows of a tile, columns of a unit
    index_t bands = 1, cols = 1;
    index_t work = 0;             // of all cells

    HONE_INLINE constexpr index_t cells() const { return bands * cols; }
    HONE_INLINE constexpr index_t each() const { return most(work / cells(), 1); }
    // The number of cells before a cut at `amount` of the work.
    HONE_INLINE constexpr index_t before(index_t amount) const {
        return amount <= 0 ? 0 : amount >= work ? cells() : least((amount + each() / 2) / each(), cells());
    }
    // Rows and columns that a task whose share is `share` has at most at once.
    HONE_INLINE constexpr index_t most_rows(index_t share) const {
        const index_t tiles = ceil_div(m, mr), whole = least(most((share / each() + 2) / cols, 1), bands);
        return least(whole * ceil_div(tiles, bands), tiles) * mr;
    }
    HONE_INLINE constexpr index_t most_cols(index_t share) const { return least(share / each() + 2, cols) * unit; }

    // Calls f(rows, cols) for the part of a band, the whole bands and the part of a band that cells [from, to) are.
    template <class F>
    HONE_INLINE void for_parts(index_t from, index_t to, F f) const {
        while (from < to) {
            const index_t band = from / cols, col = from % cols;
            const index_t down = col == 0 ? most((to - from) / cols, 1) : 1, across = least(cols - col, to - from);
            f(range{part_of(m, mr, bands, band).begin, part_of(m, mr, bands, band + down - 1).end},
              range{col * unit, least((col + across) * unit, n)});
            from += across * down;
        }
    }
};

// The cells of a product among `workers`: columns are cut first, as every part along the rows packs or reads its B
// again. Eight cells for each worker, where there are so many tiles, leave shares even.
template <class T>
inline cell_grid grid_of(const gemm_kernel<T>& kn, index_t m, index_t n, bool halves, bool whole_rows, index_t work,
                         int workers) {
    cell_grid g{.m = m, .n = n, .mr = kn.mr, .unit = whole_rows ? n : column_unit(kn, halves), .work = work};
    g.cols = ceil_div(n, g.unit);
    g.bands = least(ceil_div(m, kn.mr), ceil_div(index_t{8} * workers, g.cols));
    return g;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
