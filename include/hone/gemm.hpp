// SPDX-License-Identifier: BSL-1.0
// C = epilogue(alpha * A * B + beta * C).
//
//   hone::gemm(a, b, c);                                                   // views; dispatched at run time
//   hone::gemm(a, b, c, hone::bias(v) | hone::gelu);                       // with an epilogue
//   hone::gemm(2.0, a, b, 1.0, c);                                         // with alpha and beta
//   hone::gemm<p>(a, b, c);                                                // a policy fixed at compile time
//   auto plan = hone::plan(hone::gemm_desc{.m = 64, .n = 256, .k = 512});  // decided once …; of doubles: plan<double>(…)
//   plan->run(a, b, c);                                                    // … run many times
//
// Elements: float or double, of A, B and the sums alike; C as well, or what store_as<T>() makes of it.
// Shapes: A (m, k), B (k, n), C (m, n), or (m, n / 2) behind gated(); any row and column strides, of either sign, in elements.
// Numbers (numerics strict): t is one chain of fused multiply-adds from +0 in ascending k; u = alpha == 1 ? t : alpha * t;
//   v = beta == 0 ? u : fma(beta, C, u); then the stages in order, each operation rounded. Bitwise equal on every ISA with
//   FMA, for every tile, block, packing, operand layout and number of workers. beta == 0 never reads C; alpha == 0 and
//   k == 0 read neither A nor B.
// Numbers (numerics relaxed): t is the same sum in another order where that is faster, |t - exact| <= gamma * sum |a| |b| with
//   gamma = k * eps / (1 - k * eps) and eps half the distance from 1 to the next number; u, v and the stages are as above. What
//   overflows on the way may be infinite or NaN in one order and not in another. The order depends on ISA, shape, layouts,
//   policy and whether B is packed, not on values, workers or the call: a plan gives the same bits whenever it runs. Fast where
//   few elements have long sums: at most 8 to 16 rows with B's columns contiguous, at most 8 columns with A's rows contiguous,
//   m * n below 64. Other sums are strict, and all sums where the policy names a tile, kc or packing.
// Memory: nothing is read outside A, B, C and what the stages view, and nothing written outside C. C may not share an
//   element with A or B; interleaved views do not. Elements lie on multiples of their alignment. No allocation in the steady
//   state.
// Threads: every function is thread-safe; a plan may run on many threads at once.
// Errors: a status names the argument, its value and the rule; C is untouched then.
#pragma once

#include <span>
#include <type_traits>

#include "context.hpp"
#include "dispatch.hpp"
#include "epilogue.hpp"
#include "nest/model.hpp"
#include "nest/relaxed.hpp"
#include "pack.hpp"
#include "plan.hpp"
#include "validate.hpp"

namespace hone::inline HONE_ABI {

// Distances in elements. Left out: dense rows.
struct strides {
    static constexpr index_t unset = INT64_MIN;
    index_t row = unset, col = unset;
    friend constexpr bool operator==(const strides&, const strides&) = default;
};

// What a GEMM plan is made for.
struct gemm_desc {
    index_t m = 0, n = 0, k = 0;
    strides a{}, b{}, c{};       // of A (m, k), B (k, n), C (m, n)
    double alpha = 1, beta = 0;  // rounded to the element type
    bool dynamic_m = false;      // m is an upper bound: run() takes any number of rows up to it
};

// The description of a product of these views.
template <class TA, class TB, class TC>
HONE_INLINE constexpr gemm_desc describe(const matrix_view<TA>& a, const matrix_view<TB>& b, const matrix_view<TC>& c) {
    return {.m = c.rows, .n = c.cols, .k = a.cols, .a = {a.row_stride, a.col_stride}, .b = {b.row_stride, b.col_stride},
            .c = {c.row_stride, c.col_stride}};
}

namespace detail::inline HONE_UNIT {

// Whether stages are a bias, a ReLU, or the one and then the other, of sums of type T: what some kernels do by themselves.
template <class E, class T>
inline constexpr bool is_bias_and_relu = false;
template <class T>
inline constexpr bool is_bias_and_relu<columns_stage<T, plus>, T> = true;
template <class T>
inline constexpr bool is_bias_and_relu<relu_stage, T> = true;
template <class T>
inline constexpr bool is_bias_and_relu<chain<columns_stage<T, plus>, relu_stage>, T> = true;

template <class T>
HONE_INLINE void add_to(bias_and_relu& s, const columns_stage<T, plus>& b) {
    s.bias = b.v.data;
}
HONE_INLINE void add_to(bias_and_relu& s, const relu_stage&) { s.relu = true; }
template <class A, class B>
HONE_INLINE void add_to(bias_and_relu& s, const chain<A, B>& c) {
    add_to(s, c.first);
    add_to(s, c.second);
}
template <class E>
inline bias_and_relu read_bias_and_relu(const void* epilogue) {
    bias_and_relu s;
    add_to(s, *static_cast<const E*>(epilogue));
    return s;
}

// What a decision needs to know of an epilogue's type.
struct epilogue_traits {
    index_t c_size = 0;      // bytes of an element of C
    bool plain = false;      // no stage, and C has the type of the sums
    bool views_c = false;    // may read C as it was
    bool halves = false;     // C has half the columns of the product
    bool whole_rows = false; // sees each row from its first column to its last
    dtype c = dtype::f32;    // element type of C
    bias_and_relu_fn simple = nullptr;  // reads a bias and a ReLU, where that is all: kernels of convolutions apply them
};

template <class E, class T>
consteval epilogue_traits traits_of() {
    using C = typename E::template stored<T>;
    epilogue_traits e{sizeof(C), std::is_same_v<E, identity_stage> && std::is_same_v<C, T>, E::may_view_c, E::halves, E::whole_rows, dtype_of<C>};
    if constexpr (std::is_same_v<T, float> && is_bias_and_relu<E, T>) e.simple = &read_bias_and_relu<E>;
    return e;
}

// A policy that names the type of C must name what the epilogue stores.
inline status check_result_type(const policy& p, const epilogue_traits& e) {
    if (p.precision.c == dtype::dynamic || p.precision.c == e.c) return {};
    return {code::mismatch, argument::policy_precision, static_cast<index_t>(p.precision.c), static_cast<index_t>(e.c)};
}

// Everything decided about one GEMM, without pointers.
template <class T>
struct gemm_decision {
    gemm_desc desc;
    gemm_kernel<T> kernel;
    index_t mc = 0, kc = 0, nc = 0;
    index_t l1 = 0;                    // elements of B that may stay in L1
    index_t c_size = 0;
    index_t half = 0;                  // the epilogue halves n to this many columns of C; else 0
    int workers = 1;
    bool whole_rows = false;           // C is split along rows only
    bool far = false, far_in_place = false;  // B is fetched ahead, packed or in place
    gemm_way way = gemm_way::tiles;    // for B as the description has it
    const relaxed_kernels<T>* relaxed = nullptr;
    gemm_task_fn<T> relaxed_task = nullptr;
    bool pack_a = false, b_in_place = false, plain_stages = false, sums_in_c = false;
    bool small = false;                // small ones run without a description of their tiles
    bool tile_from_policy = false, block_from_policy = false, isa_from_policy = false;
    finish_fn<T> finish = nullptr;
};

// Takes a relaxed way where it is better than the strict ones. Null where no relaxed policy is named: then none is compiled.
template <class T>
using relax_fn = void (*)(gemm_decision<T>&, const epilogue_traits&);

inline constexpr strides dense(strides s, index_t cols) { return s == strides{} ? strides{cols, 1} : s; }

// Whether A and B are read at all.
template <class T>
HONE_INLINE bool forms_product(const gemm_desc& g) {
    return g.k > 0 && static_cast<T>(g.alpha) != T(0);
}

// Whether a policy leaves open what products without a plan do not have: tile, blocks and packing.
HONE_INLINE constexpr bool leaves_open(const policy& p) {
    return p.tile == tile{} && p.block == blocking{} && p.packing == packing::dynamic;
}

// Products so small that planning them takes as long as computing them: row-major operands of at most small_extent rows,
// columns and steps, no stage.
inline constexpr index_t small_extent = 64;

template <class T>
HONE_INLINE bool is_small(const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c) {
    const auto m = static_cast<std::uint64_t>(c.rows), n = static_cast<std::uint64_t>(c.cols), k = static_cast<std::uint64_t>(a.cols);
    if (m - 1 >= small_extent || n - 1 >= small_extent || k - 1 >= small_extent) return false;
    if (a.rows != c.rows || b.rows != a.cols || b.cols != c.cols) return false;
    if (a.col_stride != 1 || b.col_stride != 1 || c.col_stride != 1) return false;
    constexpr index_t far_apart = index_t{1} << 48;
    if (a.row_stride < a.cols || b.row_stride < b.cols || c.row_stride < c.cols) return false;
    return (a.row_stride | b.row_stride | c.row_stride) < far_apart;
}

template <class T>
HONE_INLINE bool is_small(const gemm_desc& g) {
    const matrix_view<const T> a{nullptr, g.m, g.k, g.a.row, g.a.col}, b{nullptr, g.k, g.n, g.b.row, g.b.col};
    return is_small(a, b, matrix_view<T>{nullptr, g.m, g.n, g.c.row, g.c.col});
}

// Whether a kernel's registers fit the columns of a small product.
template <class T>
HONE_INLINE bool fits_small(const gemm_kernel<T>& kn, index_t n) {
    return (kn.tiny[0] && n <= 2 * kn.lanes) || kn.masked || n % kn.lanes == 0;
}

HONE_FOR_SIZE_BEGIN

// Whether products of this description run as small ones do where kernel kn is theirs.
template <class T>
inline bool needs_no_plan(const policy& p, const epilogue_traits& e, const gemm_desc& g, const gemm_kernel<T>& kn) {
    return leaves_open(p) && e.plain && g.alpha == 1 && g.beta == 0 && is_small<T>(g) && fits_small(kn, g.n);
}

template <class T>
inline status decide_gemm(gemm_decision<T>& d, gemm_desc desc, const policy& p, const gemm_kernel<T>* fixed, finish_fn<T> finish,
                          const epilogue_traits& e, int concurrency, relax_fn<T> relax) {
    const index_t c_cols = e.halves ? desc.n / 2 : desc.n;
    desc.a = dense(desc.a, desc.k);
    desc.b = dense(desc.b, desc.n);
    desc.c = dense(desc.c, c_cols);
    if (desc.k == 1) desc.a.col = 1;  // the stride of an extent of one means nothing
    if (desc.k <= 1) desc.b.row = 0;
    if (desc.n == 1) desc.b.col = 1;
    if (c_cols == 1) desc.c.col = 1;
    constexpr auto size = static_cast<index_t>(sizeof(T));
    if (desc.m < 0) return {code::negative, argument::m, desc.m, 0};
    if (desc.n < 0) return {code::negative, argument::n, desc.n, 0};
    if (desc.k < 0) return {code::negative, argument::k, desc.k, 0};
    if (status s = check_extent(desc.m, desc.k, desc.a.row, desc.a.col, size, argument::a_rows, argument::a_cols); !s.ok()) {
        return s;
    }
    if (status s = check_extent(desc.k, desc.n, desc.b.row, desc.b.col, size, argument::b_rows, argument::b_cols); !s.ok()) {
        return s;
    }
    if (status s = check_extent(desc.m, c_cols, desc.c.row, desc.c.col, e.c_size, argument::c_rows, argument::c_cols); !s.ok()) {
        return s;
    }
    if (coincides(desc.m, c_cols, desc.c.row, desc.c.col)) {
        if (c_cols > 1 && desc.c.col == 0) return {code::bad_stride, argument::c_col_stride, 0, 1};
        // The stride at fault is the longer one: of C by columns that of its columns.
        if (desc.c.row != 0 && magnitude(desc.c.col) > magnitude(desc.c.row)) {
            return {code::bad_stride, argument::c_col_stride, desc.c.col, product_of(desc.m, magnitude(desc.c.row))};
        }
        return {code::bad_stride, argument::c_row_stride, desc.c.row, product_of(c_cols, magnitude(desc.c.col))};
    }
    if (e.halves && desc.n % 2 != 0) return {code::mismatch, argument::n, desc.n, desc.n + 1};
    if (e.halves && desc.beta != 0) return {code::unsupported, argument::beta, 1, 0};
    if (status s = check_policy(p, dtype_of<T>); !s.ok()) return s;
    if (status s = check_result_type(p, e); !s.ok()) return s;
    if (status s = check_isa(p.isa); !s.ok()) return s;

    if (fixed) {
        d.kernel = *fixed;
        if (e.halves && !can_halve(d.kernel)) {
            return {code::unsupported, argument::policy_tile, d.kernel.nr, 2 * d.kernel.panel};
        }
    } else {
        const kernel_list<T>& list = gemm_kernels<T>(resolve_isa(p.isa));
        const gemm_kernel<T>* best = pick_gemm_kernel(list, p.tile, desc.m, desc.n, desc.k, e.halves);
        if (best == nullptr) {
            return {code::unsupported, argument::policy_tile, p.tile.nr, e.halves ? 2 * list.row[0].panel : list.row[0].nr};
        }
        d.kernel = *best;
    }
    d.isa_from_policy = p.isa != isa::dynamic;
    d.tile_from_policy = p.tile.mr != 0;
    const gemm_kernel<T>& kn = d.kernel;
    const blocking model = model_blocks(this_machine().cache, kn.mr, kn.nr, desc.m, static_cast<int>(size));
    d.block_from_policy = p.block.mc != 0 || p.block.kc != 0 || p.block.nc != 0;
    d.mc = p.block.mc ? p.block.mc : model.mc;
    d.kc = p.block.kc ? p.block.kc : model.kc;
    d.nc = p.block.nc ? p.block.nc : model.nc;
    d.l1 = this_machine().cache.l1d.bytes / 2 / size;
    d.mc = least(round_up(least(d.mc, most(desc.m, 1)), kn.mr), INT32_MAX / kn.mr * kn.mr);
    d.kc = least(d.kc, most(desc.k, 1));
    d.half = e.halves ? desc.n / 2 : 0;
    const index_t unit = column_unit(kn, e.halves);
    d.nc = least(round_up(least(d.nc, most(desc.n, 1)), unit), INT32_MAX / unit * unit);
    d.desc = desc;
    d.c_size = e.c_size;
    d.whole_rows = e.whole_rows;
    const bool want_a = p.packing == packing::a || p.packing == packing::both, want_b = p.packing == packing::b || p.packing == packing::both;
    d.pack_a = desc.a.col != 1 || want_a;
    const bool placeable = desc.b.col == 1 && !e.halves;
    d.b_in_place = placeable && (p.packing == packing::dynamic
                                     ? place_b(this_machine().cache, kn, desc.m, desc.n, desc.k, desc.b.row) : !want_b);
    if (p.packing != packing::dynamic) {
        constexpr auto a = static_cast<index_t>(packing::a), b = static_cast<index_t>(packing::b), both = static_cast<index_t>(packing::both);
        if (d.pack_a && !want_a) {
            return {code::unsupported, argument::policy_packing, static_cast<index_t>(p.packing), want_b ? both : a};
        }
        if (!placeable && !want_b) {
            return {code::unsupported, argument::policy_packing, static_cast<index_t>(p.packing), p.packing == packing::none ? b : both};
        }
    }
    d.far = fetches_ahead(this_machine().cache, kn, desc.m, desc.n, desc.k, false);
    d.far_in_place = fetches_ahead(this_machine().cache, kn, desc.m, desc.n, desc.k, true);
    if (p.tile.mr == 0 && p.block.kc == 0 && forms_product<T>(desc)) {
        const bool dynamic = p.packing == packing::dynamic, a_rows = desc.a.col == 1;
        if (d.b_in_place && !d.pack_a && prefers_rank(kn, desc.m, desc.n, desc.k)) {
            d.way = gemm_way::rank_updates;
        } else if (dynamic && !e.halves && a_rows && has_few_steps(this_machine().cache, kn, desc.m, desc.n, desc.k)) {
            d.way = gemm_way::few_steps;
            d.b_in_place = false;
        } else if (dynamic && !e.halves) {
            d.way = narrow_way_of(kn, desc.m, desc.n, desc.k, a_rows, desc.b.row == 1 && desc.b.col != 1, e.whole_rows);
        }
        if (relax && dynamic) relax(d, e);
    }
    d.finish = finish;
    d.plain_stages = e.plain && desc.c.col == 1 && desc.alpha == 1 && desc.beta == 0;
    d.small = !d.relaxed && needs_no_plan(p, e, desc, kn);
    d.sums_in_c = desc.beta == 0 && !e.views_c && !e.halves && desc.c.col == 1 && e.c_size == size && d.kc < desc.k;
    d.workers = concurrency < 1 ? 1 : concurrency < max_workers ? concurrency : max_workers;
    if (p.threads > 0 && p.threads < d.workers) d.workers = p.threads;
    const index_t tiles = ceil_div(desc.m, kn.mr) * ceil_div(desc.n, kn.nr);
    d.workers = static_cast<int>(least(d.workers, most(tiles, 1)));
    index_t column = 0, unused = 0;
    if (__builtin_mul_overflow(desc.k, size, &column)) return {code::too_large, argument::k, desc.k, INT64_MAX / size};
    if (__builtin_mul_overflow(desc.n + 2 * kn.panel, column, &unused)) {
        return {code::too_large, argument::n, desc.n, INT64_MAX / most(column, 1)};
    }
    return {};
}

HONE_FOR_SIZE_END

template <class T>
inline b_source source_of_b(const gemm_decision<T>& d, bool packed) {
    return packed ? b_source::packed_beforehand : d.b_in_place ? b_source::in_place : b_source::packed_each_call;
}

// Columns of B as the nest counts them.
template <class T>
inline index_t packed_columns(const gemm_decision<T>& d) {
    return d.half != 0 ? halved_columns(d.half, d.kernel.panel) : d.desc.n;
}

// Some ways read B, or its columns, where they lie.
template <class T>
inline gemm_way way_of(const gemm_decision<T>& d, bool packed) {
    if (packed && d.way == gemm_way::few_steps && 2 * d.kernel.lanes % d.kernel.panel != 0) return gemm_way::tiles;
    const bool lies = d.way == gemm_way::rank_updates || d.way == gemm_way::few_rows || d.way == gemm_way::dots_of_columns;
    return packed && lies ? gemm_way::tiles : d.way;
}

// Whether a task keeps sums in scratch before they go through the epilogue.
template <class T>
inline bool keeps_sums(const gemm_decision<T>& d, gemm_way way) {
    return way == gemm_way::tiles ? d.kc < d.desc.k && !d.sums_in_c : !d.plain_stages;
}

// Scratch of a task that has at most these rows and columns of packed B at once.
template <class T>
HONE_INLINE gemm_scratch scratch_of_part(const gemm_decision<T>& d, bool packed, index_t rows, index_t cols) {
    const gemm_way way = way_of(d, packed);
    return gemm_scratch_of(d.kernel, rows, cols, d.desc.k, d.mc, d.kc, d.nc, d.l1, d.pack_a, source_of_b(d, packed), keeps_sums(d, way),
                           d.half != 0, way);
}

template <class T>
inline gemm_scratch task_scratch(const gemm_decision<T>& d, bool packed, const parts& p) {
    const index_t unit = column_unit(d.kernel, d.half != 0);
    const index_t rows = ceil_div(ceil_div(d.desc.m, d.kernel.mr), p.rows) * d.kernel.mr;
    const index_t cols = ceil_div(ceil_div(packed_columns(d), unit), p.cols) * unit;
    return scratch_of_part(d, packed, least(rows, d.desc.m), cols);
}

template <class T>
inline parts parts_of(const gemm_decision<T>& d, bool packed, int workers) {
    const int most_workers = static_cast<int>(least(workers, d.workers));
    if (d.whole_rows) return split_parts(d.desc.m, 1, d.kernel.mr, 1, most_workers, !packed);
    return split_parts(d.desc.m, packed_columns(d), d.kernel.mr, column_unit(d.kernel, d.half != 0), most_workers, !packed);
}

// Of all parts. Views that repeat their elements may ask for more than there can be: then as much as can be said.
inline index_t scratch_for(const gemm_scratch& each, const parts& p) {
    index_t all = 0;
    return __builtin_mul_overflow(each.bytes(), index_t{p.rows} * p.cols, &all) ? INT64_MAX : all;
}

template <class T>
inline index_t scratch_of(const gemm_decision<T>& d, bool packed, int workers) {
    const parts p = parts_of(d, packed, workers);
    return scratch_for(task_scratch(d, packed, p), p);
}

HONE_FOR_SIZE_BEGIN

template <class T>
inline explanation explain_gemm(const gemm_decision<T>& d, bool packed) {
    explanation e;
    const parts p = parts_of(d, packed, d.workers);
    constexpr const char* ways[] = {"gemm",                "gemm by rank updates", "gemm of few steps", "gemm of few columns",
                                    "gemm of few columns", "gemm by dots",         "gemm by dots",      "gemm by split sums"};
    const gemm_way way = way_of(d, packed);
    e.kernel = d.small && !packed ? "gemm of small operands" : ways[static_cast<int>(way)];
    e.element = name(dtype_of<T>).data();
    e.isa = d.kernel.isa;
    e.tile = {d.kernel.mr, d.kernel.nr};
    e.block = {static_cast<int>(d.mc), static_cast<int>(d.kc), static_cast<int>(d.nc)};
    e.workers = p.rows * p.cols;
    e.row_parts = p.rows;
    e.col_parts = p.cols;
    e.packs_a = d.pack_a;
    constexpr const char* sources[] = {"packed beforehand", "packed each call", "in place"};
    const b_source source = source_of_b(d, packed);
    e.packs_b = source == b_source::packed_each_call;
    e.b = sources[static_cast<int>(source)];
    const machine_state& m = this_machine();
    e.why_isa = d.isa_from_policy ? "policy" : m.choice.capped ? "HONE_ISA" : "best here";
    e.why_tile = d.tile_from_policy ? "policy" : "covers the shape at least cost";
    e.why_block = d.block_from_policy ? "policy" : m.cache.l3_assumed ? "from caches, L3 assumed" : "from caches";
    const bool registers = way == gemm_way::tiles ? d.kc >= d.desc.k : !is_rank(way);
    e.sums = registers ? "registers" : keeps_sums(d, way) ? "scratch" : "C";
    e.scratch_bytes = scratch_of(d, packed, d.workers);
    return e;
}

template <class T>
inline packed_header packed_header_of(const gemm_decision<T>& d) {
    packed_header h;
    h.kind = d.half != 0 ? packed_kind::gemm_b_halves : packed_kind::gemm_b;
    h.element = sizeof(T);
    h.panel = static_cast<std::uint32_t>(d.kernel.panel);
    h.groups = 1;
    h.k = d.desc.k;
    h.n = d.desc.n;
    h.payload_bytes = static_cast<std::uint64_t>(round_up(packed_columns(d), d.kernel.panel) * d.desc.k) * sizeof(T);
    return h;
}

// Not inlined: into a caller whose memory is known to be too small GCC 16 warns of what the check keeps from happening.
template <class T>
HONE_NOINLINE inline status pack_gemm(const gemm_decision<T>& d, const matrix_view<const T>& b, std::span<std::byte> memory) {
    const gemm_desc& g = d.desc;
    if (b.rows != g.k) return {code::mismatch, argument::b_rows, b.rows, g.k};
    if (b.cols != g.n) return {code::mismatch, argument::b_cols, b.cols, g.n};
    if (status s = check_extent(b.rows, b.cols, b.row_stride, b.col_stride, sizeof(T), argument::b_rows, argument::b_cols); !s.ok()) {
        return s;
    }
    const packed_header h = packed_header_of(d);
    if (b.data == nullptr && h.payload_bytes != 0) return {code::null_pointer, argument::b_data, 0, product_of(b.rows, b.cols)};
    if (status s = check_aligned(b.data, argument::b_data); !s.ok()) return s;
    if (status s = check_pack_memory(memory, static_cast<index_t>(h.payload_bytes + sizeof h)); !s.ok()) return s;
    pack_panels(d.kernel, b.data, g.k > 1 ? b.row_stride : 0, g.n > 1 ? b.col_stride : 1, g.k, g.n, d.half, 0,
                ceil_div(packed_columns(d), d.kernel.panel), reinterpret_cast<T*>(memory.data() + sizeof h));
    seal<T>(memory.data(), h);
    return {};
}

HONE_FOR_SIZE_END

// Extents and strides of the operands of a run against those of the plan; pointers apart. b is null where B comes packed.
template <class T, class C>
HONE_INLINE status check_shapes(const gemm_decision<T>& d, const matrix_view<const T>& a, const matrix_view<const T>* b, const matrix_view<C>& c) {
    const gemm_desc& g = d.desc;
    if (g.dynamic_m ? c.rows > g.m : c.rows != g.m) {
        return {g.dynamic_m ? code::too_large : code::mismatch, argument::c_rows, c.rows, g.m};
    }
    if (c.rows < 0) return {code::negative, argument::c_rows, c.rows, 0};
    const index_t c_cols = d.half != 0 ? d.half : g.n;
    if (c.cols != c_cols) return {code::mismatch, argument::c_cols, c.cols, c_cols};
    if (a.rows != c.rows) return {code::mismatch, argument::a_rows, a.rows, c.rows};
    if (a.cols != g.k) return {code::mismatch, argument::a_cols, a.cols, g.k};
    if (b && b->rows != g.k) return {code::mismatch, argument::b_rows, b->rows, g.k};
    if (b && b->cols != g.n) return {code::mismatch, argument::b_cols, b->cols, g.n};
    if (c.rows == 0 || c.cols == 0) return {};
    if (c.rows > 1 && c.row_stride != g.c.row) return {code::mismatch, argument::c_row_stride, c.row_stride, g.c.row};
    if (c.cols > 1 && c.col_stride != g.c.col) return {code::mismatch, argument::c_col_stride, c.col_stride, g.c.col};
    if (!forms_product<T>(g)) return {};
    if (a.rows > 1 && a.row_stride != g.a.row) return {code::mismatch, argument::a_row_stride, a.row_stride, g.a.row};
    if (a.cols > 1 && a.col_stride != g.a.col) return {code::mismatch, argument::a_col_stride, a.col_stride, g.a.col};
    if (b && b->rows > 1 && b->row_stride != g.b.row) return {code::mismatch, argument::b_row_stride, b->row_stride, g.b.row};
    if (b && b->cols > 1 && b->col_stride != g.b.col) return {code::mismatch, argument::b_col_stride, b->col_stride, g.b.col};
    return {};
}

// The memory of the operands of one product that has elements.
template <class T, class C>
HONE_INLINE status check_memory(const gemm_decision<T>& d, const matrix_view<const T>& a, const matrix_view<const T>* b, const packed_view* packed,
                           const matrix_view<C>& c) {
    const bool product = forms_product<T>(d.desc);
    if (product) {
        if (a.data == nullptr) return {code::null_pointer, argument::a_data, 0, product_of(a.rows, a.cols)};
        if (b && b->data == nullptr) return {code::null_pointer, argument::b_data, 0, product_of(b->rows, b->cols)};
        if (status s = check_aligned(a.data, argument::a_data); !s.ok()) return s;
        if (status s = check_aligned(b ? b->data : nullptr, argument::b_data); !s.ok()) return s;
        if (!b) {
            if (status s = check_packed(*packed, packed_header_of(d)); !s.ok()) return s;
        }
    }
    if (c.data == nullptr) return {code::null_pointer, argument::c_data, 0, product_of(c.rows, c.cols)};
    if (status s = check_aligned(c.data, argument::c_data); !s.ok()) return s;
    if (product) {
        if (overlaps(flat(a), flat(c))) return {code::overlap, argument::a_data, 1, 0};
        if (b && overlaps(flat(*b), flat(c))) return {code::overlap, argument::b_data, 1, 0};
    }
    return {};
}

// The panels of weights that were checked, or null where they are not read.
template <class T>
HONE_INLINE const T* panels_of(const gemm_decision<T>& d, const packed_view* packed) {
    return forms_product<T>(d.desc) ? reinterpret_cast<const T*>(packed->payload()) : nullptr;
}

// What the nest is told of a product that was checked. b is B, or its panels where it is packed. The job refers to d.
template <class T, class C>
HONE_INLINE gemm_job<T> job_of(const gemm_decision<T>& d, const T* a, const T* b, bool packed, const matrix_view<C>& c, const void* epilogue) {
    const gemm_desc& g = d.desc;
    gemm_job<T> job;
    job.kernel = &d.kernel;
    job.m = c.rows;
    job.n = packed_columns(d);
    job.half = d.half;
    job.k = g.k;
    job.mc = d.mc;
    job.kc = d.kc;
    job.nc = d.nc;
    job.l1 = d.l1;
    job.far = source_of_b(d, packed) == b_source::in_place ? d.far_in_place : d.far;
    // The stride of an extent of one means nothing; how many rows there are is known here only.
    job.a = a;
    job.a_row_stride = c.rows > 1 ? g.a.row : 0;
    job.a_col_stride = g.a.col;
    if (packed) {
        job.packed = b;
    } else {
        job.b = b;
        job.b_row_stride = g.b.row;
        job.b_col_stride = g.b.col;
    }
    job.c = reinterpret_cast<unsigned char*>(c.data);
    job.c_row_stride = c.rows > 1 ? g.c.row : 0;
    job.c_col_stride = g.c.col;
    job.c_size = d.c_size;
    job.alpha = static_cast<T>(g.alpha);
    job.beta = static_cast<T>(g.beta);
    job.pack_a = d.pack_a;
    job.source = source_of_b(d, packed);
    job.way = way_of(d, packed);
    job.relaxed = d.relaxed;
    job.relaxed_task = d.relaxed_task;
    job.sums_in_c = d.sums_in_c;
    job.plain = d.plain_stages;
    job.finish = d.finish;
    job.epilogue = epilogue;
    return job;
}

// Runs one that fits and lies apart. next_a and next_b as gemm_small_task() has them.
template <class T>
HONE_INLINE void run_small(const gemm_kernel<T>& kn, const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c,
                           const T* next_a = nullptr, const T* next_b = nullptr) {
    if (kn.tiny[0] && c.cols <= 2 * kn.lanes) {
        const int over = static_cast<int>(c.cols) - kn.lanes;
        kn.tiny[over > 0](a.data, a.row_stride, b.data, b.row_stride, c.data, c.row_stride, c.rows, a.cols, over > 0 ? over : over + kn.lanes);
    } else {
        gemm_small_task(kn, c.rows, c.cols, a.cols, a.data, a.row_stride, b.data, b.row_stride, c.data, c.row_stride, next_a,
                        next_b);
    }
}

// Whether the memory of one is there, and C plainly apart from A and B.
template <class T>
HONE_INLINE bool apart_small(const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c) {
    const auto begin = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const std::uintptr_t a0 = begin(a.data), b0 = begin(b.data), c0 = begin(c.data);
    if (a0 == 0 || b0 == 0 || c0 == 0 || ((a0 | b0 | c0) % alignof(T)) != 0) return false;
    const auto span = [](const auto& v) { return static_cast<std::uintptr_t>((v.rows - 1) * v.row_stride + v.cols) * sizeof(T); };
    const std::uintptr_t c1 = c0 + span(c);
    return (a0 >= c1 || c0 >= a0 + span(a)) && (b0 >= c1 || c0 >= b0 + span(b));
}

// Checks everything that needs the pointers, then runs. b is null where packed is given.
template <bool MayThrow, class T, class C>
inline status run_gemm(const gemm_decision<T>& d, const matrix_view<const T>& a, const matrix_view<const T>* b, const packed_view* packed,
                       const matrix_view<C>& c, const void* epilogue, const context& ctx) {
    if (status s = check_shapes(d, a, b, c); !s.ok()) return s;
    if (c.rows == 0 || c.cols == 0) return {};
    if constexpr (std::is_same_v<T, C>) {
        if (d.small && b && ctx.scratch.empty() && is_small(a, *b, c) && apart_small(a, *b, c)) {
            run_small(d.kernel, a, *b, c);
            return {};
        }
    }
    if (status s = check_memory(d, a, b, packed, c); !s.ok()) return s;

    const parts p = parts_of(d, b == nullptr, ctx.executor.concurrency());
    const gemm_scratch each = task_scratch(d, b == nullptr, p);
    const borrowed_scratch memory(ctx, scratch_for(each, p));
    if (!memory) return memory.status();

    const gemm_job<T> job = job_of(d, a.data, b ? b->data : panels_of(d, packed), b == nullptr, c, epilogue);
    const index_t unit = column_unit(d.kernel, d.half != 0), bytes = each.bytes();
    auto task = [&](index_t i) {
        const range rows = part_of(job.m, d.kernel.mr, p.rows, i / p.cols);
        const range cols = part_of(job.n, unit, p.cols, i % p.cols);
        gemm_task(job, rows, cols, *memory + i * bytes);
    };
    run_tasks<MayThrow>(ctx.executor, index_t{p.rows} * p.cols, task);
    return {};
}

}  // namespace detail::inline HONE_UNIT

// A product decided once. Immutable, trivially copyable, safe to run on many threads at once.
template <class E = identity_stage, class T = float>
class gemm_plan {
public:
    using element = T;
    using stored = typename E::template stored<T>;  // what C holds
    static constexpr bool nothrow = detail::nothrow_of<E, T> || !HONE_EXCEPTIONS;

    // Bytes run() needs from context.scratch where its executor's concurrency() is `workers`; B packed beforehand or not.
    // Fewer workers can need more, as each has more to do: ask for every number that may occur.
    HONE_INLINE index_t scratch_bytes(int workers = 1, bool packed = false) const { return detail::scratch_of(d_, packed, workers); }

    // Bytes pack() needs: a header and the panels.
    HONE_INLINE index_t packed_bytes() const {
        return static_cast<index_t>(detail::packed_header_of(d_).payload_bytes + sizeof(packed_header));
    }

    // Packs B (k, n) of any strides into memory of at least packed_bytes(), 64-byte aligned.
    HONE_INLINE status pack(const matrix_view<const T>& b, std::span<std::byte> memory) const { return detail::pack_gemm(d_, b, memory); }

    // C = epilogue(alpha * A * B + beta * C). Extents and strides must be those of the plan.
    HONE_INLINE status run(const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<stored>& c,
                           const E& epilogue = E{}, const context& ctx = {}) const noexcept(nothrow) {
        if (status s = epilogue.check({.rows = c.rows, .cols = d_.desc.n}); !s.ok()) return s;
        return detail::run_gemm<!nothrow, T, stored>(d_, a, &b, nullptr, c, &epilogue, ctx);
    }
    // The same with B packed by pack() of a plan with the same n, k and panel width.
    HONE_INLINE status run(const matrix_view<const T>& a, const packed_view& b, const matrix_view<stored>& c, const E& epilogue = E{},
                           const context& ctx = {}) const noexcept(nothrow) {
        if (status s = epilogue.check({.rows = c.rows, .cols = d_.desc.n}); !s.ok()) return s;
        return detail::run_gemm<!nothrow, T, stored>(d_, a, nullptr, &b, c, &epilogue, ctx);
    }

    HONE_INLINE hone::explanation explain(bool packed = false) const { return detail::explain_gemm(d_, packed); }

    detail::gemm_decision<T> d_;  // for hone's own use
};

namespace detail::inline HONE_UNIT {

HONE_FOR_SIZE_BEGIN

// The relaxed ways of ISA I, or of all.
template <class T, isa I>
inline void relax_gemm(gemm_decision<T>& d, const epilogue_traits& e) {
    const gemm_desc& g = d.desc;
    const relaxed_kernels<T>* kernels = relaxed_kernels_of<T, I>(d.kernel.isa);
    if (kernels == nullptr) return;
    const bool a_rows = g.a.col == 1, b_rows = g.b.col == 1, b_columns = g.b.row == 1;                   // contiguous
    const gemm_way way = relaxed_way_of(*kernels, d.kernel, g.m, g.n, g.k, a_rows, b_rows, b_columns, e.halves);
    if (way == gemm_way::tiles) return;
    d.way = way;
    d.b_in_place = way == gemm_way::split_sums || g.b.row == 1;
    d.relaxed = kernels;
    d.relaxed_task = &gemm_relaxed_task<T>;
}

HONE_FOR_SIZE_END

}  // namespace detail::inline HONE_UNIT

namespace detail {

// The plan of a run-time policy, or of a compile-time one, which instantiates its own ISA only.
template <class T, policy P, class E>
HONE_INLINE status make_gemm_plan(gemm_plan<E, T>& plan, const gemm_desc& desc, const policy& p, const context& ctx, relax_fn<T> relax) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "hone::plan: the element type must be float or double");
    constexpr epilogue_traits traits = traits_of<E, T>();
    static_assert(validate<P, T>());
    const fixed_choice<P, T, E> choice(p);
    return decide_gemm<T>(plan.d_, desc, p, choice.kernel(), choice.finish, traits, ctx.executor.concurrency(), relax);
}

// What makes P's plans relaxed, if it is.
template <class T, policy P>
HONE_INLINE constexpr relax_fn<T> fixed_relax() {
    if constexpr (P.numerics == numerics::relaxed) return &relax_gemm<T, P.isa>;
    else return nullptr;
}

}  // namespace detail

// A plan for C = epilogue(alpha * A * B + beta * C), or the status that says why there is none. The epilogue's stages are
// part of the plan's type; the values they hold are given to run(). The context says how many workers to plan for.
template <class T = float, class E = identity_stage>
HONE_INLINE expected<gemm_plan<E, T>> plan(const gemm_desc& desc, const policy& p, const E& = identity, const context& ctx = {}) {
    gemm_plan<E, T> result;
    const detail::relax_fn<T> relax = p.numerics == numerics::relaxed ? &detail::relax_gemm<T, isa::dynamic> : nullptr;
    if (status s = detail::make_gemm_plan<T, policy{}>(result, desc, p, ctx, relax); !s.ok()) return s;
    return result;
}
// The same where everything is left to run time.
template <class T = float>
HONE_INLINE expected<gemm_plan<identity_stage, T>> plan(const gemm_desc& desc) {
    gemm_plan<identity_stage, T> result;
    if (status s = detail::make_gemm_plan<T, policy{}>(result, desc, policy{}, context{}, nullptr); !s.ok()) return s;
    return result;
}
// The same for a policy that is fixed at compile time: a field that breaks a rule does not compile.
template <policy P, class T = float, class E = identity_stage>
HONE_INLINE expected<gemm_plan<E, T>> plan(const gemm_desc& desc, const E& = identity, const context& ctx = {}) {
    gemm_plan<E, T> result;
    if (status s = detail::make_gemm_plan<T, P>(result, desc, P, ctx, detail::fixed_relax<T, P>()); !s.ok()) return s;
    return result;
}

namespace detail::inline HONE_UNIT {

// Answers false, having done nothing, where the general way has to decide or to complain.
template <class T>
HONE_NOINLINE bool gemm_small(const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c) {
    if (!is_small(a, b, c) || !apart_small(a, b, c)) return false;
    static const kernel_list<T>& list = gemm_kernels<T>(this_machine().choice.chosen);
    if (!fits_small(list.row[0], c.cols)) return false;
    run_small(list.small(c.cols), a, b, c);
    return true;
}

}  // namespace detail::inline HONE_UNIT

// C = epilogue(alpha * A * B + beta * C): plan and run in one call. Planning is arithmetic on a few numbers (about a tenth
// of a microsecond) and needs no cache.
template <policy P = policy{}, class TA, class TB, class TC, is_stage E = identity_stage>
HONE_INLINE status gemm(double alpha, const matrix_view<TA>& a, const matrix_view<TB>& b, double beta, const matrix_view<TC>& c,
                        const E& epilogue = identity, const context& ctx = {})
    noexcept(detail::nothrow_of<E, std::remove_const_t<TA>> || !HONE_EXCEPTIONS) {
    using T = std::remove_const_t<TA>;
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "hone::gemm: A must be a matrix_view of float or double");
    static_assert(std::is_same_v<T, std::remove_const_t<TB>>, "hone::gemm: A and B must have one element type");
    static_assert(std::is_same_v<TC, typename E::template stored<T>>,
                  "hone::gemm: C must have the element type of A, or that of the epilogue's store_as<T>()");
    if constexpr (P == policy{.numerics = P.numerics} && std::is_same_v<E, identity_stage>) {
        if (alpha == 1 && beta == 0 && ctx.scratch.empty() && detail::gemm_small<T>(a, b, c)) return {};
    }
    gemm_desc desc = describe(a, b, c);
    if constexpr (E::halves) desc.n = b.cols;
    desc.alpha = alpha;
    desc.beta = beta;
    gemm_plan<E, T> plan;
    if (status s = detail::make_gemm_plan<T, P>(plan, desc, P, ctx, detail::fixed_relax<T, P>()); !s.ok()) return s;
    return plan.run(a, b, c, epilogue, ctx);
}
template <policy P = policy{}, class TA, class TB, class TC, is_stage E = identity_stage>
HONE_INLINE status gemm(const matrix_view<TA>& a, const matrix_view<TB>& b, const matrix_view<TC>& c, const E& epilogue = identity,
                        const context& ctx = {})
    noexcept(detail::nothrow_of<E, std::remove_const_t<TA>> || !HONE_EXCEPTIONS) {
    return gemm<P>(1.0, a, b, 0.0, c, epilogue, ctx);
}

}  // namespace hone::inline HONE_ABI
