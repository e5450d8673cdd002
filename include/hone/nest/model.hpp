// SPDX-License-Identifier: BSL-1.0
// Which tile, which blocks, how many parts: pure functions of shapes, kernels and caches. Numbers only, no memory.
#pragma once

#include "../machine/cache.hpp"
#include "../policy.hpp"
#include "gemm.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

// Issue slots one k step of a tile of `rows` by `regs` registers takes, in halves of a cycle on a core that issues two
// multiply-adds and two loads a cycle; below eight chains the latency of four cycles bounds it.
HONE_INLINE constexpr index_t tile_cost(index_t rows, index_t regs) { return most(most(rows * regs, rows + regs), 8); }

// Cost of covering (m, n) with kernel k, edges in their own smaller tiles.
template <class T>
HONE_INLINE constexpr index_t cover_cost(const gemm_kernel<T>& k, index_t m, index_t n) {
    const index_t full_rows = m / k.mr, rest_rows = m % k.mr;
    const index_t edge = rest_rows ? row_classes[row_class(static_cast<int>(rest_rows), k.mr)] : 0;
    const index_t regs = k.nr / k.lanes, full_cols = n / k.nr, rest_regs = ceil_div(n % k.nr, k.lanes);
    const auto cost = [](index_t r, index_t v) { return r == 0 || v == 0 ? 0 : tile_cost(r, v); };
    return full_rows * full_cols * tile_cost(k.mr, regs) + full_rows * cost(k.mr, rest_regs) + full_cols * cost(edge, regs) +
           cost(edge, rest_regs);
}

// The kernel that covers (m, n) at least cost among those the policy's tile allows and the epilogue can use; the first of
// equals. Null where there is none.
template <class T>
inline const gemm_kernel<T>* pick_gemm_kernel(const kernel_list<T>& list, const tile& wanted, index_t m, index_t n, bool halves) {
    const gemm_kernel<T>* best = nullptr;
    index_t best_cost = INT64_MAX;
    for (int i = 0; i < list.count; ++i) {
        const gemm_kernel<T>& k = list.row[i];
        if (wanted.mr != 0 && (wanted.mr != k.mr || wanted.nr != k.nr)) continue;
        if (halves && !can_halve(k)) continue;
        const index_t cost = cover_cost(k, m, n);
        if (cost < best_cost) {
            best_cost = cost;
            best = &k;
        }
    }
    return best;
}

// Blocks for a shape: the fields the policy leaves open, from the caches. After Low, Igual, Smith, Quintana-Orti:
// Analytical Modeling Is Enough for High-Performance BLIS, ACM TOMS 43(2), with the roles that row-major tiles give:
//   kc   a sliver of B (kc, nr) and one of A (mr, kc) share L1, one way left for C;
//   mc   A (mc, kc) takes half of L2;
//   nc   B (kc, nc) takes half of L3.
// kc is not let below 256, even where that overflows L1: B then streams from L2 at nr elements a k step, 10 to 16 bytes a
// cycle, which costs less than visiting C again.
inline blocking model_blocks(const machine::cache_info& c, int mr, int nr, int size) {
    const index_t ways = most(c.l1d.ways, 2);
    const index_t l1 = c.l1d.bytes / ways * (ways - 1);
    const index_t kc = least(most(l1 / ((mr + nr) * size) / 8 * 8, 256), 512);
    const index_t mc = most(c.l2.bytes / 2 / (kc * size) / mr, 1) * mr;
    const index_t nc = least(most(c.l3.bytes / 2 / (kc * size) / nr, 1), 8192 / nr) * nr;
    return {static_cast<int>(least(mc, 4096 / mr * mr)), static_cast<int>(kc), static_cast<int>(nc)};
}

// Whether B is read where it lies: packing reads and writes all of B once, reading it in place costs a page of address
// translation per k and tile, so few rows of A are not worth the copy.
template <class T>
HONE_INLINE bool place_b(const gemm_kernel<T>& k, index_t m, index_t n) {
    return n >= k.panel && m <= 96;
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
