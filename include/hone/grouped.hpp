// SPDX-License-Identifier: BSL-1.0
// Many products of different extents in one call: a mixture of experts.
//
//   std::vector<hone::gemm_group<>> experts;  // with an epilogue: hone::gemm_group<float, decltype(stages)>
//   experts.push_back({a, b, c});             // a: its tokens, b: its weights, packed or not
//   hone::gemm_grouped(experts);
//
// For each group the contract is hone::gemm's, bit for bit. What the head of batched.hpp says of tasks, of memory and
// of errors holds for groups as well. Each has an epilogue of its own, of one type.
#pragma once

#include <type_traits>

#include "batched.hpp"

namespace hone::inline HONE_ABI {

namespace detail {

template <class T, class C>
struct group_operands {
    matrix_view<const T> a{}, b{};
    packed_view packed{};  // instead of b where it is not empty
    matrix_view<C> c{};
};

}  // namespace detail

// One product of a grouped call, with extents and strides of its own. It holds views: what they refer to must live
// until the call returns.
template <class T = float, class E = identity_stage>
struct gemm_group : detail::group_operands<T, typename E::template stored<T>> {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "hone::gemm_group: the element type must be float or double");
    using element = T;
    using stages = E;
    using stored = typename E::template stored<T>;
    E epilogue;

    gemm_group() = default;
    HONE_INLINE constexpr gemm_group(const matrix_view<const T>& left, const matrix_view<const T>& right,
                                     const matrix_view<stored>& out, const E& stages_of_c = E{})
        : detail::group_operands<T, stored>{left, right, {}, out}, epilogue(stages_of_c) {}
    HONE_INLINE constexpr gemm_group(const matrix_view<const T>& left, const packed_view& weights,
                                     const matrix_view<stored>& out, const E& stages_of_c = E{})
        : detail::group_operands<T, stored>{left, {}, weights, out}, epilogue(stages_of_c) {}
};
template <class TA, class B, class C>
gemm_group(const matrix_view<TA>&, const B&, const C&) -> gemm_group<std::remove_const_t<TA>>;
template <class TA, class B, class C, is_stage E>
gemm_group(const matrix_view<TA>&, const B&, const C&, const E&) -> gemm_group<std::remove_const_t<TA>, E>;

namespace detail::inline HONE_UNIT {

// The groups of a call and what they share. They are records that begin with their operands, whatever the epilogue's
// type.
template <class T, class C>
struct group_list {
    const unsigned char* first = nullptr;
    index_t count = 0, size = 0, to_epilogue = 0;  // bytes of a group, and from its beginning to its epilogue
    double alpha = 1, beta = 0;
    policy p;
    epilogue_traits e;
    const gemm_kernel<T>* fixed = nullptr;
    const kernel_list<T>* small = nullptr;         // not null: what runs products that need no plan
    finish_fn<T> finish = nullptr;
    status (*check)(const void* epilogue, const epilogue_extent&) = nullptr;
    int workers = 1;

    HONE_INLINE const group_operands<T, C>& operator[](index_t i) const {
        return *reinterpret_cast<const group_operands<T, C>*>(first + i * size);
    }
    HONE_INLINE const void* epilogue(index_t i) const { return first + i * size + to_epilogue; }
    HONE_INLINE flat_view view(index_t i) const { return flat((*this)[i].c); }
    HONE_INLINE byte_range bytes(index_t i) const { return bytes_of(view(i)); }
    HONE_INLINE index_t work(index_t i) const {
        const auto& g = (*this)[i];
        return work_of(g.c.rows, g.c.cols, g.a.cols, count);
    }
    HONE_INLINE bool is_small(index_t i) const {
        if constexpr (std::is_same_v<T, C>) {
            const auto& g = (*this)[i];
            return small && g.packed.empty() && detail::is_small(g.a, g.b, g.c) && apart_small(g.a, g.b, g.c) &&
                   fits_small(small->row[0], g.c.cols);
        }
        return false;
    }
};

struct grouped_scratch {
    index_t order = 0, each = 0, tasks = 0, total = 0;  // total: work of all groups
    constexpr index_t bytes() const { return order + each * tasks; }
};

HONE_FOR_SIZE_BEGIN

template <class T, class C>
inline status decide_group(gemm_decision<T>& d, const group_list<T, C>& groups, index_t i) {
    const auto& g = groups[i];
    const bool packed = !g.packed.empty();
    gemm_desc desc{.m = g.c.rows, .n = g.c.cols, .k = g.a.cols, .alpha = groups.alpha, .beta = groups.beta};
    if (groups.e.halves) desc.n = packed ? product_of(2, g.c.cols) : g.b.cols;
    desc.a = {g.a.row_stride, g.a.col_stride};
    if (!packed) desc.b = {g.b.row_stride, g.b.col_stride};
    desc.c = {g.c.row_stride, g.c.col_stride};
    return decide_gemm<T>(d, desc, groups.p, groups.fixed, groups.finish, groups.e, 1, nullptr);
}

template <class T, class C>
inline cell_grid grid_of_group(const gemm_decision<T>& d, const group_list<T, C>& groups, index_t i) {
    return grid_of(d.kernel, d.desc.m, packed_columns(d), d.half != 0, d.whole_rows, groups.work(i), groups.workers);
}

// Checks each group by itself, its memory too where that is asked, and says what scratch a run needs. which: the group
// that the status speaks of.
template <class T, class C>
inline status survey_groups(const group_list<T, C>& groups, bool memory, grouped_scratch& s, index_t& which) {
    index_t tiles = 0;
    for (index_t i = 0; i < groups.count; ++i) {
        const index_t work = groups.work(i);
        s.total += work;
        if (work > 0) tiles += least(product_of(groups[i].c.rows / 16 + 1, groups[i].c.cols / 64 + 1), max_workers);
    }
    s.tasks = least(tiles, groups.workers);
    s.order = round_up(2 * groups.count * static_cast<index_t>(sizeof(written_item)), 64);
    for (which = 0; which < groups.count; ++which) {
        if (groups.is_small(which)) continue;
        const auto& g = groups[which];
        const matrix_view<const T>* b = g.packed.empty() ? &g.b : nullptr;
        gemm_decision<T> d;
        if (status e = decide_group(d, groups, which); !e.ok()) return e;
        if (status e = groups.check(groups.epilogue(which), {.rows = g.c.rows, .cols = d.desc.n}); !e.ok()) return e;
        if (status e = check_shapes(d, g.a, b, g.c); !e.ok()) return e;
        if (groups.work(which) == 0) continue;
        if (memory) {
            if (status e = check_memory(d, g.a, b, &g.packed, g.c); !e.ok()) return e;
        }
        const cell_grid grid = grid_of_group(d, groups, which);
        const index_t share = s.total / s.tasks + 1;
        const gemm_scratch part = scratch_of_part(d, b == nullptr, grid.most_rows(share), grid.most_cols(share));
        s.each = most(s.each, part.bytes());
    }
    return {};
}

HONE_FOR_SIZE_END

template <bool MayThrow, class T, class C>
inline status run_grouped(const group_list<T, C>& groups, const context& ctx, index_t& which) {
    grouped_scratch layout;
    if (status s = survey_groups(groups, true, layout, which); !s.ok() || layout.total == 0) return s;
    const borrowed_scratch memory(ctx, layout.bytes());
    if (!memory) return memory.status();
    auto* list = reinterpret_cast<written_item*>(*memory);
    index_t listed = 0;
    for (index_t i = 0; i < groups.count; ++i) {
        if (groups.work(i) > 0) list[listed++] = {groups.bytes(i).begin, i};
    }
    written_items written(groups, listed, list);
    if (!written.in_order()) written.sort(list, list + listed);
    status apart = written.check_each_other();
    for (index_t i = 0; i < groups.count && apart.ok() && static_cast<T>(groups.alpha) != T(0); ++i) {
        const auto& g = groups[i];
        if (groups.work(i) == 0 || g.a.cols == 0) continue;
        apart = written.check_read(flat(g.a), bytes_of(flat(g.a)), argument::a_item, i);
        if (!apart.ok() || !g.packed.empty()) continue;
        apart = written.check_read(flat(g.b), bytes_of(flat(g.b)), argument::b_item, i);
    }
    if (!apart.ok()) {
        which = apart.value;
        return apart;
    }

    auto task = [&](index_t t) {
        std::byte* scratch = *memory + layout.order + t * layout.each;
        const index_t begin = share_begin(layout.total, layout.tasks, t);
        const index_t end = share_begin(layout.total, layout.tasks, t + 1);
        index_t at = 0;
        for (index_t i = 0; i < groups.count && at < end; ++i) {
            const index_t work = groups.work(i), before = at;
            at += work;
            if (work == 0 || at <= begin) continue;
            const auto& g = groups[i];
            if constexpr (std::is_same_v<T, C>) {
                if (groups.is_small(i)) {
                    const cell_grid one{.work = work};                                  // not worth a cut
                    const bool mine = one.before(begin - before) < one.before(end - before);
                    if (mine) run_small(groups.small->small(g.c.cols), g.a, g.b, g.c);
                    continue;
                }
            }
            gemm_decision<T> d;
            static_cast<void>(decide_group(d, groups, i));                              // was well when it was checked
            const cell_grid grid = grid_of_group(d, groups, i);
            const bool packed = !g.packed.empty();
            const T* right = packed ? panels_of(d, &g.packed) : g.b.data;
            const gemm_job<T> job = job_of(d, g.a.data, right, packed, g.c, groups.epilogue(i));
            grid.for_parts(grid.before(begin - before), grid.before(end - before),
                           [&](range rows, range cols) { gemm_task(job, rows, cols, scratch); });
        }
    };
    run_tasks<MayThrow>(ctx.executor, layout.tasks, task);
    return {};
}

template <class>
inline constexpr bool is_group = false;
template <class T, class E>
inline constexpr bool is_group<gemm_group<T, E>> = true;

template <class E>
inline status check_epilogue(const void* epilogue, const epilogue_extent& e) {
    return static_cast<const E*>(epilogue)->check(e);
}

template <policy P, class G, class Choice>
HONE_INLINE auto list_groups(const Choice& choice, double alpha, const G* groups, index_t count, double beta,
                             int concurrency) {
    using T = typename G::element;
    using C = typename G::stored;
    group_list<T, C> list;
    list.first = reinterpret_cast<const unsigned char*>(static_cast<const group_operands<T, C>*>(groups));
    list.count = count;
    list.size = sizeof(G);
    if (count > 0) list.to_epilogue = reinterpret_cast<const unsigned char*>(&groups->epilogue) - list.first;
    list.alpha = alpha;
    list.beta = beta;
    list.p = P;
    list.e = traits_of<typename G::stages, T>();
    list.fixed = choice.kernel();
    list.finish = choice.finish;
    list.check = &check_epilogue<typename G::stages>;
    list.workers = workers_of(P, concurrency);
    if (leaves_open(P) && list.e.plain && alpha == 1 && beta == 0) list.small = &gemm_kernels<T>(resolve_isa(P.isa));
    return list;
}

template <class R>
concept range_of_groups = contiguous_range<R> && is_group<element_of<R>>;

template <range_of_groups R>
inline constexpr bool nothrow_of_groups =
    nothrow_of<typename element_of<R>::stages, typename element_of<R>::element> || !HONE_EXCEPTIONS;

}  // namespace detail::inline HONE_UNIT

// C = epilogue(alpha * A * B + beta * C) for each of some groups (a vector, array or span of gemm_group). m, n and k
// may be 0. A group whose B is not packed may pack it, also where others have the same B: pack beforehand what several
// share. Where `which` is given and the status is not ok, it is set to the group that the status speaks of, or to their
// number where that is none.
template <policy P = policy{}, detail::range_of_groups R>
HONE_INLINE status gemm_grouped(double alpha, const R& groups, double beta, const context& ctx = {},
                                index_t* which = nullptr)
    noexcept(detail::nothrow_of_groups<R>) {
    using G = detail::element_of<R>;
    using T = typename G::element;
    static_assert(validate<P, T>());
    if (status s = detail::check_isa(P.isa); !s.ok()) return s;
    const detail::fixed_choice<P, T, typename G::stages> choice(P);
    const auto count = static_cast<index_t>(groups.size());
    const auto list = detail::list_groups<P>(choice, alpha, groups.data(), count, beta, ctx.executor.concurrency());
    index_t at = count;
    const status s = detail::run_grouped<!detail::nothrow_of_groups<R>>(list, ctx, at);
    if (which && !s.ok()) *which = at;
    return s;
}
template <policy P = policy{}, detail::range_of_groups R>
HONE_INLINE status gemm_grouped(const R& groups, const context& ctx = {}, index_t* which = nullptr)
    noexcept(detail::nothrow_of_groups<R>) {
    return gemm_grouped<P>(1.0, groups, 0.0, ctx, which);
}

// Bytes gemm_grouped() needs from context.scratch for these groups, where its executor's concurrency() is `workers`, or
// the status that says why it would not run. Extents and strides count; the memory of the operands may be missing.
template <policy P = policy{}, detail::range_of_groups R>
HONE_INLINE expected<index_t> grouped_scratch_bytes(const R& groups, int workers = 1, double alpha = 1,
                                                    double beta = 0) {
    using G = detail::element_of<R>;
    static_assert(validate<P, typename G::element>());
    if (status s = detail::check_isa(P.isa); !s.ok()) return s;
    const detail::fixed_choice<P, typename G::element, typename G::stages> choice(P);
    const auto count = static_cast<index_t>(groups.size());
    const auto list = detail::list_groups<P>(choice, alpha, groups.data(), count, beta, workers);
    detail::grouped_scratch layout;
    index_t at = 0;
    if (status s = detail::survey_groups(list, false, layout, at); !s.ok()) return s;
    return layout.total == 0 ? 0 : layout.bytes();
}

}  // namespace hone::inline HONE_ABI
