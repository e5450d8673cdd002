// SPDX-License-Identifier: BSL-1.0
// Which tile, which blocks, how many parts: pure functions of shapes, kernels and caches. Numbers only, no memory.
#pragma once

#include "../machine/cache.hpp"
#include "../policy.hpp"
#include "gemm.hpp"
#include "window.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Issue slots one k step of a tile of `rows` by `regs` registers takes, in halves of a cycle on a core that issues two
// multiply-adds and two loads a cycle; below eight chains the latency of four cycles bounds it.
HONE_INLINE constexpr index_t tile_cost(index_t rows, index_t regs) { return most(most(rows * regs, rows + regs), 8); }

// Entering and leaving a tile: its sums set and stored, its loop left by a branch that nobody foresees.
inline constexpr double tile_entry_cost = 80;

// Cost of covering (m, n) with kernel kn over k steps.
template <class T>
HONE_INLINE double cover_cost(const gemm_kernel<T>& kn, index_t m, index_t n, index_t k) {
    if (m <= 0 || n <= 0) return 0;
    const even_tiles across(ceil_div(n, kn.lanes), kn.nr / kn.lanes);
    const index_t narrow = across.tiles - across.long_tiles;
    double sum = 0;
    for (index_t i = 0; i < m;) {
        const tile_run run = next_run(kn, m - i, narrow > 0 ? static_cast<int>(across.size - 1) : static_cast<int>(across.size));
        const int height = tile_heights[run.index];
        const index_t step = across.long_tiles * tile_cost(height, across.size) + narrow * tile_cost(height, across.size - 1);
        sum += static_cast<double>(run.count) *
               (static_cast<double>(step) * static_cast<double>(k) + static_cast<double>(across.tiles) * tile_entry_cost);
        i += run.count * run.height;
    }
    return sum;
}

// The kernel that covers (m, n) at least cost among those the policy's tile allows and the epilogue can use; the first of
// those within a percent. Null where there is none.
template <class T>
inline const gemm_kernel<T>* pick_gemm_kernel(const kernel_list<T>& list, const tile& wanted, index_t m, index_t n, index_t k, bool halves) {
    const gemm_kernel<T>* best = nullptr;
    double best_cost = 0;
    for (int i = 0; i < list.count; ++i) {
        const gemm_kernel<T>& kn = list.row[i];
        if (wanted.mr != 0 && (wanted.mr != kn.mr || wanted.nr != kn.nr)) continue;
        if (halves && !can_halve(kn)) continue;
        const double cost = cover_cost(kn, m, n, k);
        if (best == nullptr || cost < 0.99 * best_cost) {
            best_cost = cost;
            best = &kn;
        }
    }
    return best;
}

// Blocks for a shape: the fields the policy leaves open, from the caches. After Low, Igual, Smith, Quintana-Orti:
// Analytical Modeling Is Enough for High-Performance BLIS, ACM TOMS 43(2), moved up by one cache:
//   kc   a sliver of B (kc, nr) takes a fifth of L2 and streams through L1: nr elements a k step are 11 to 16 bytes a cycle,
//        which the cores of the last ten years bring from L2 behind the multiply-adds. In L1, as in the paper, kc would be 200
//        to 400, and C, which then comes back for every k block, costs more: 2048^3 on Zen 5 with kc of 256 0.72 of the
//        ceiling, with 1024 0.88. Of doubles 512 are enough: mc is then twice as much, and B comes half as often. One or two
//        rows have so little of A that half of L1 holds all of k;
//   mc   A (mc, kc) takes half of L2;
//   nc   B (kc, nc) takes half of L3.
inline blocking model_blocks(const machine::cache_info& c, int mr, int nr, index_t m, int size) {
    index_t kc = least(most(c.l2.bytes / 5 / (nr * size) / 8 * 8, 256), 4096 / size);
    if (m <= 2) kc = most(kc, c.l1d.bytes / 2 / (most(m, 1) * size));
    const index_t mc = most(c.l2.bytes / 2 / (kc * size) / mr, 1) * mr;
    const index_t nc = least(most(c.l3.bytes / 2 / (kc * size) / nr, 1), 8192 / nr) * nr;
    return {static_cast<int>(least(mc, 4096 / mr * mr)), static_cast<int>(kc), static_cast<int>(nc)};
}

// Whether B is read where it lies: packing writes all of B once and is repaid by the rows of A that then find it in order.
// Rows that alias repay a copy sooner; of another B that stays in L2 tiles of A notice little. In place over packed, Zen 5:
// 256^3 1.015, 128^3 1.017, 127x129x131 1.01, 384x384x64 1.009, 64x768x768 1.013; 512x512x128 0.992, 3136x256x64 0.99,
// 32x1024x1024 0.97, 96x2048x128 0.97.
template <class T>
HONE_INLINE bool place_b(const machine::cache_info& c, const gemm_kernel<T>& kn, index_t m, index_t n, index_t k, index_t row_stride) {
    if (!kn.masked && n < kn.panel) return false;
    const double bytes = static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(sizeof(T));
    const bool aliases = k > 1 && rows_alias<T>(row_stride);
    if (bytes > static_cast<double>(c.l3.bytes) / 4 || (aliases && bytes > static_cast<double>(c.l2.bytes))) return m <= 24;
    return m <= (aliases ? 64 : bytes > static_cast<double>(c.l2.bytes) / 2 ? 96 : 384);
}

// Whether rank updates do better than register tiles where B is read in place.
template <class T>
HONE_INLINE bool prefers_rank(const gemm_kernel<T>& kn, index_t m, index_t n, index_t k) {
    return kn.rank[0][0] != nullptr && n >= 2 * kn.lanes && m <= rank_rows && k >= rank_steps;
}

// Whether k is so short that rows of C are written from left to right, without tiles. Narrow rows are tiles' as well; of long
// ones B would not stay near.
template <class T>
HONE_INLINE bool has_few_steps(const machine::cache_info& c, const gemm_kernel<T>& kn, index_t m, index_t n, index_t k) {
    if (kn.rank[1][0] == nullptr || k < 1 || k > rank_steps || m < 8 || n < 256) return false;
    return n <= c.l2.bytes / 2 / static_cast<index_t>(sizeof(T)) / k;
}

// Which side, if any, goes through the kernel for at most four columns. With fewer than eight rows it would have nothing to
// overlap.
template <class T>
HONE_INLINE gemm_way narrow_way_of(const gemm_kernel<T>& kn, const index_t m, index_t n, index_t k, bool a_rows_contiguous,
                                   bool b_columns_contiguous, bool whole_rows) {
    if (!kn.narrow || k < 8) return gemm_way::tiles;
    if (n <= 4 && m >= 8 && a_rows_contiguous) return gemm_way::few_columns;
    if (m <= 4 && n >= 8 && b_columns_contiguous && !whole_rows) return gemm_way::few_rows;
    return gemm_way::tiles;
}

// How sums in any order are formed; tiles: in no other way than where their order is fixed.
template <class T>
HONE_INLINE gemm_way relaxed_way_of(const relaxed_kernels<T>& r, const gemm_kernel<T>& kn, index_t m, index_t n, index_t k,
                                    bool a_rows_contiguous, bool b_rows_contiguous, bool b_columns_contiguous, bool halves) {
    if (m <= 0 || n <= 0) return gemm_way::tiles;
    // Adding the lanes of a dot costs as much as some registers of k, which the tiles of three rows and more notice.
    // A k that only a stride of zero makes possible is not copied.
    const auto long_enough = [&](index_t few) { return k >= (few > 2 ? 8 : 2) * kn.lanes && k <= index_t{1} << 48; };
    const bool rows = a_rows_contiguous && n <= least(dot_columns, kn.panel) && !halves && long_enough(n);
    const bool columns = b_columns_contiguous && m <= r.dot_rows && long_enough(m);
    // The few are copied where they are not contiguous: for B that is a transposition, which many rows repay.
    if (rows && (b_columns_contiguous ? m >= n || !columns : m >= 4 * n)) return gemm_way::dots_of_rows;
    if (columns) return gemm_way::dots_of_columns;
    // Tiles of less than eight registers take four cycles a step.
    const index_t regs = ceil_div(n, kn.lanes);
    const bool split = regs <= max_registers && r.split[regs - 1] != nullptr && m <= (regs == 1 ? r.split_rows : 1);
    if (split && b_rows_contiguous && !halves && k >= 16 && (kn.masked || n % kn.lanes == 0)) return gemm_way::split_sums;
    return gemm_way::tiles;
}

// Whether the kernels ask for B ahead of time: where it lies beyond L2 and several tiles of rows wait for its first lines, or
// far beyond, where little of L3 is left for one of many guests. One or two rows are as fast as hardware's own prefetching,
// and slower for being in its way; so are two or three tiles of rows over a B in place.
template <class T>
HONE_INLINE bool fetches_ahead(const machine::cache_info& c, const gemm_kernel<T>& kn, index_t m, index_t n, index_t k, bool in_place) {
    const double bytes = static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(sizeof(T));
    if (m >= 3 && bytes > static_cast<double>(c.l3.bytes) / 4) return true;
    return m > (in_place ? 3 : 1) * kn.mr && bytes > static_cast<double>(c.l2.bytes) / 2;
}

struct conv_blocks {
    index_t mc = 0, kc = 0, nc = 0;
};

// Blocks of a convolution with `taps` taps of `ic` channels (one group). Weights (kc, nc) take half of L2 and stay there
// while pixels pass; nc gives way before kc does, so that partial sums leave the registers as rarely as can be; kc is at
// most what leaves the pixels of one tile (mr, kc) half of L1. mc bounds the sums: (mc, nc) a quarter of L2.
inline conv_blocks model_conv_blocks(const machine::cache_info& c, int mr, index_t unit, index_t taps, index_t ic, index_t oc,
                                     index_t size) {
    const index_t l2 = c.l2.bytes / 2 / size, k = most(taps * ic, 1);
    const index_t longest = most(c.l1d.bytes / 2 / size / mr, 64);
    conv_blocks b;
    b.kc = least(k, longest);
    b.nc = least(round_up(most(oc, 1), unit), most(l2 / b.kc / unit, 1) * unit);
    b.mc = most(c.l2.bytes / 4 / size / b.nc / mr, 1) * mr;
    return b;
}

// Of a depthwise convolution: channels (nc) so few that the rows of input under one row of output take half of L1, and pixels (mc)
// whose tile of sums takes a quarter.
inline conv_blocks model_depthwise_blocks(const machine::cache_info& c, const conv_axis& y, const conv_axis& x, index_t channels,
                                          index_t size) {
    const index_t row = least(x.in, x.transposed ? x.in : x.out * x.stride), rows = least(y.taps, most(y.in, 1));
    conv_blocks b;
    b.kc = 1;
    b.nc = most(c.l1d.bytes / 2 / size / most(rows * row, 1) / panel_floor, 1) * panel_floor;
    b.nc = least(b.nc, round_up(most(channels, 1), panel_floor));
    b.mc = most(c.l1d.bytes / 4 / size / b.nc, 1);
    return b;
}

// Of a Winograd convolution of m x m outputs a tile: elements of a transformed tile, and tiles of an image.
HONE_INLINE constexpr index_t winograd_elements(index_t m) { return (m + 2) * (m + 2); }
HONE_INLINE constexpr index_t winograd_tiles(const conv_axis& y, const conv_axis& x, index_t m) { return ceil_div(y.out, m) * ceil_div(x.out, m); }

// And its blocks: tiles (mc) whose transformed input and products take three quarters of L2, output channels of these (nc).
inline conv_blocks model_winograd_blocks(const machine::cache_info& c, index_t kc, int mr, index_t unit, index_t m, index_t ic, index_t oc,
                                         index_t size) {
    conv_blocks b;
    b.kc = kc;
    b.nc = round_up(least(most(oc, 1), 128), unit);
    const index_t each = winograd_elements(m) * (round_up(ic, panel_floor) + b.nc) * size;
    b.mc = most(c.l2.bytes / 4 * 3 / each / mr, 1) * mr;
    return b;
}

inline constexpr int max_workers = 1024;  // of one call, whatever an executor claims

struct parts {
    int rows = 1, cols = 1;
};

// Splits (m, n) among at most `workers`: the split whose largest part holds the fewest tiles; among equals the one that
// repeats less packing: columns when B is packed each call, rows when it is not.
inline parts split_parts(index_t m, index_t n, index_t mr, index_t nr, int workers, bool packs_b) {
    const index_t row_tiles = most(ceil_div(m, mr), 1), col_tiles = most(ceil_div(n, nr), 1);
    parts best;
    index_t best_tiles = INT64_MAX;
    int best_repeats = 0;
    for (int r = 1; r <= workers && r <= row_tiles; ++r) {
        const int c = static_cast<int>(least(workers / r, col_tiles));
        const index_t tiles = ceil_div(row_tiles, r) * ceil_div(col_tiles, c);
        const int repeats = packs_b ? r : c;
        if (tiles < best_tiles || (tiles == best_tiles && repeats < best_repeats)) {
            best_tiles = tiles;
            best_repeats = repeats;
            best = {r, c};
        }
    }
    return best;
}

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
