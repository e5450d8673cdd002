// SPDX-License-Identifier: BSL-1.0
// Many products of one shape in one call. (Of different shapes: grouped.hpp.)
//
//   hone::gemm_batched(hone::batch(a, 96), hone::batch(b, 96), hone::batch(c, 96));  // from the first, end to end
//   hone::gemm_batched(hone::batch(a, 96, 512), b, hone::batch(c, 96));              // A 512 elements apart, one B
//   hone::gemm_batched(hone::pointer_batch<const float>{pointers, 64, 64, 64, 1}, weights, c);  // A anywhere, B packed
//   auto plan = hone::plan(hone::batched_desc{.item = {.m = 64, .n = 64, .k = 64}, .count = 96});
//   plan->run(a, b, c);
//
// The contract is hone::gemm's (gemm.hpp) with strict numerics, which a relaxed policy permits as well: each product is bit
// for bit what hone::gemm computes for it alone. To that add:
// Operands: A and B are a batch_view, a pointer_batch or one matrix_view for all; B may be a packed_view for all. C is
//   a batch_view or a pointer_batch. Zero products, and products of no elements, are right.
// Epilogue: one for all products; at.row and at.col count within a product. It views no C, and has no row output.
// Threads: an executor is given at most as many tasks as it has workers; a product is cut where the share of a task
//   ends. Tasks share nothing that is written.
// Memory: no C may share an element with another C, nor with any A or B. Found are, before anything is written:
//   - of C in a batch_view, every element that two of them share;
//   - otherwise what hone::gemm finds of a pair, for each C and the C, A and B whose addresses reach into its own;
//     where more than 64 C interleave with a matrix, for the 64 of them that begin last.
//   Checking takes time linear in the number of products, n log n where the pointers to C neither ascend nor descend.
// Errors: a status as hone::gemm's. Of arguments a_item, b_item and c_item the value is the number of the product.
//   Nothing is written then.
#pragma once

#include <span>
#include <type_traits>

#include "apart.hpp"
#include "gemm.hpp"
#include "nest/batch.hpp"

namespace hone::inline HONE_ABI {

// `count` matrices of one shape, `batch_stride` elements from one to the next, of either sign. 0, for operands that are
// only read: one matrix for all.
template <class T>
struct batch_view {
    T* data = nullptr;
    index_t count = 0, rows = 0, cols = 0;
    index_t batch_stride = 0, row_stride = 0, col_stride = 0;  // elements

    HONE_INLINE constexpr matrix_view<T> operator[](index_t i) const {
        return {data + i * batch_stride, rows, cols, row_stride, col_stride};
    }
    HONE_INLINE constexpr operator batch_view<const T>() const {
        return {data, count, rows, cols, batch_stride, row_stride, col_stride};
    }
};

// Matrices of one shape, each where its pointer says. The pointers are read during the call only.
template <class T>
struct pointer_batch {
    std::span<T* const> data{};
    index_t rows = 0, cols = 0;
    index_t row_stride = 0, col_stride = 0;  // elements

    HONE_INLINE constexpr matrix_view<T> operator[](index_t i) const {
        return {data[static_cast<std::size_t>(i)], rows, cols, row_stride, col_stride};
    }
};

// The batch that begins with matrix v. Left out: one behind the other, as rows below rows, or columns beside columns.
template <class T>
HONE_INLINE constexpr batch_view<T> batch(const matrix_view<T>& v, index_t count, index_t batch_stride) {
    return {v.data, count, v.rows, v.cols, batch_stride, v.row_stride, v.col_stride};
}
template <class T>
HONE_INLINE constexpr batch_view<T> batch(const matrix_view<T>& v, index_t count) {
    const bool by_rows = detail::magnitude(v.row_stride) >= detail::magnitude(v.col_stride);
    return batch(v, count, by_rows ? v.rows * v.row_stride : v.cols * v.col_stride);
}

// What a batched plan is made for.
struct batched_desc {
    gemm_desc item{};   // each product
    index_t count = 0;  // products; run() takes any number up to it
    // Batch strides of A, B and C; 0: one matrix for all, packed weights too. Left out: any, and pointers.
    index_t a = strides::unset, b = strides::unset, c = strides::unset;
};

namespace detail::inline HONE_UNIT {

// What every form of operand comes down to.
template <class T>
struct operand_batch {
    static constexpr index_t any_count = INT64_MIN;
    T* data = nullptr;
    T* const* pointers = nullptr;
    index_t count = any_count;
    index_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
    index_t step = 0;  // of pointers strides::unset

    HONE_INLINE constexpr T* at(index_t i) const { return pointers ? pointers[i] : data + i * step; }
    HONE_INLINE constexpr bool scattered() const { return pointers != nullptr; }
    HONE_INLINE constexpr matrix_view<T> operator[](index_t i) const {
        return {at(i), rows, cols, row_stride, col_stride};
    }
    HONE_INLINE constexpr matrix_view<T> shape() const { return {nullptr, rows, cols, row_stride, col_stride}; }
    HONE_INLINE constexpr operator operand_batch<const T>() const {
        return {data, pointers, count, rows, cols, row_stride, col_stride, step};
    }
};

template <class T>
HONE_INLINE constexpr operand_batch<T> as_batch(const matrix_view<T>& v) {
    return {v.data, nullptr, operand_batch<T>::any_count, v.rows, v.cols, v.row_stride, v.col_stride, 0};
}
template <class T>
HONE_INLINE constexpr operand_batch<T> as_batch(const batch_view<T>& v) {
    return {v.data, nullptr, v.count, v.rows, v.cols, v.row_stride, v.col_stride, v.batch_stride};
}
template <class T>
HONE_INLINE constexpr operand_batch<T> as_batch(const pointer_batch<T>& v) {
    const auto count = static_cast<index_t>(v.data.size());
    return {nullptr, v.data.data(), count, v.rows, v.cols, v.row_stride, v.col_stride, strides::unset};
}

template <class>
inline constexpr bool is_matrix_view = false;
template <class T>
inline constexpr bool is_matrix_view<matrix_view<T>> = true;

template <class X>
concept batch_operand = requires(const X& x) { as_batch(x); };
template <batch_operand X>
using element_of_batch = std::remove_pointer_t<decltype(as_batch(std::declval<const X&>()).data)>;
template <class X>
concept batch_or_packed = batch_operand<X> || std::is_same_v<X, packed_view>;

// Whether the rows of C are alike to the stages of E, so that products may lie one below the other in a taller one.
template <class E, class... Stages>
inline constexpr bool is_one_of = (std::is_same_v<E, Stages> || ...);
template <class E>
inline constexpr bool rows_alike =
    std::is_base_of_v<unary_stage<E>, E> ||
    is_one_of<E, identity_stage, scale_stage, relu_stage, clip_stage, hard_sigmoid_stage>;
template <class U, class Op>
inline constexpr bool rows_alike<columns_stage<U, Op>> = true;
template <class U>
inline constexpr bool rows_alike<store_as_stage<U>> = true;
template <class F>
inline constexpr bool rows_alike<gated_stage<F>> = rows_alike<F>;
template <class A, class B>
inline constexpr bool rows_alike<chain<A, B>> = rows_alike<A> && rows_alike<B>;

// The matrices of an operand as a Source.
template <class T>
class batch_source {
public:
    HONE_INLINE explicit batch_source(const operand_batch<T>& v) : v_(v), around_(bytes_of(flat(v.shape()))) {}
    HONE_INLINE flat_view view(index_t i) const { return flat(v_[i]); }
    HONE_INLINE byte_range bytes(index_t i) const {
        const auto at = reinterpret_cast<std::intptr_t>(v_.at(i));
        return {at + around_.begin, at + around_.end};
    }

private:
    const operand_batch<T>& v_;
    byte_range around_;
};

template <class T>
struct batched_decision {
    gemm_decision<T> item;                  // of one product; where they are stacked, of all of them
    batched_desc desc;
    index_t rows = 0;                       // of one product
    int workers = 1;
    bool stacked = false;                   // one below the other: one taller product
    bool packs_once = false;                // B is one for all, and is copied once
    const kernel_list<T>* small = nullptr;  // not null: what runs products that need no plan
};

// Parts of the scratch of a run, in bytes, in the order they lie there.
struct batched_scratch {
    index_t order = 0, panels = 0, each = 0, tasks = 1;
    constexpr index_t bytes() const { return order + panels + each * tasks; }
};

inline constexpr index_t most_products = index_t{1} << 48;  // more have no place in memory

inline int workers_of(const policy& p, int concurrency) {
    return static_cast<int>(least(most(concurrency, 1), p.threads > 0 ? least(p.threads, max_workers) : max_workers));
}

// Whether products go on from the rows of one to those of the next at the same stride; single rows do at any.
HONE_INLINE constexpr bool stacks(index_t rows, const strides& s, index_t step) {
    return step != strides::unset && (rows == 1 || step == product_of(rows, s.row));
}

HONE_FOR_SIZE_BEGIN

// packable: what products with packed weights need is decided, too.
template <class T>
inline status decide_batched(batched_decision<T>& d, const batched_desc& desc, const policy& p,
                             const gemm_kernel<T>* fixed, finish_fn<T> finish, const epilogue_traits& e, bool alike,
                             int concurrency, bool packable) {
    if (desc.count < 0) return {code::negative, argument::c_count, desc.count, 0};
    if (desc.count > most_products) return {code::too_large, argument::c_count, desc.count, most_products};
    gemm_desc item = desc.item;
    const index_t c_cols = e.halves ? item.n / 2 : item.n;
    item.a = dense(item.a, item.k);
    item.b = dense(item.b, item.n);
    item.c = dense(item.c, c_cols);
    d.desc = desc;
    d.rows = item.m;
    d.workers = workers_of(p, concurrency);
    const index_t all_rows = product_of(item.m, most(desc.count, 1));
    d.stacked = alike && !item.dynamic_m && item.m > 0 && all_rows < INT64_MAX && desc.b == 0 &&
                stacks(item.m, item.a, desc.a) && stacks(item.m, item.c, desc.c) &&
                !coincides(all_rows, c_cols, item.m == 1 ? desc.c : item.c.row, item.c.col);
    if (d.stacked) {
        if (item.m == 1) item.a.row = desc.a, item.c.row = desc.c;
        item.m = all_rows;
        item.dynamic_m = true;
    } else if (check_isa(p.isa).ok() && needs_no_plan(p, e, item, gemm_kernels<T>(resolve_isa(p.isa)).row[0])) {
        d.small = &gemm_kernels<T>(resolve_isa(p.isa));
        if (!packable) {
            d.item.desc = item;
            d.item.kernel = d.small->small(item.n);
            return {};
        }
    }
    if (status s = decide_gemm<T>(d.item, item, p, fixed, finish, e, concurrency, nullptr); !s.ok()) return s;
    const gemm_desc& g = d.item.desc;
    const bool one_b = desc.b == 0 && desc.count > 1 && d.item.way == gemm_way::tiles;
    if (one_b && !d.stacked && !d.small) {
        const bool repaid = !place_b(this_machine().cache, d.item.kernel, all_rows, g.n, g.k, g.b.row);
        d.packs_once = !d.item.b_in_place || (repaid && p.packing == packing::dynamic);
    }
    return {};
}

// The cells of each of `count` products of m rows.
template <class T>
inline cell_grid grid_of_item(const batched_decision<T>& d, bool packed, index_t m, index_t count) {
    const index_t n = packed_columns(d.item);
    const index_t work = work_of(m, n, d.item.desc.k, count);
    cell_grid g = grid_of(d.item.kernel, m, n, d.item.half != 0, d.item.whole_rows, work, d.workers);
    if (d.small && !packed) g.bands = 1, g.cols = 1, g.unit = n;                        // not worth a cut
    return g;
}

template <class T>
inline batched_scratch layout_of(const batched_decision<T>& d, bool packed, bool sorts, const cell_grid& g,
                                 index_t count, index_t workers) {
    const bool once = d.packs_once && !packed, panels = packed || once;
    batched_scratch s;
    if (sorts) s.order = round_up(2 * count * static_cast<index_t>(sizeof(written_item)), 64);
    if (once) s.panels = static_cast<index_t>(packed_header_of(d.item).payload_bytes);
    s.tasks = least(least(workers, d.workers), product_of(count, g.cells()));
    if (d.small && !packed) return s;
    const index_t share = g.work * count / s.tasks + 1;
    s.each = scratch_of_part(d.item, panels, g.most_rows(share), g.most_cols(share)).bytes();
    return s;
}

// That of as many products as were planned for.
template <class T>
inline batched_scratch planned_layout(const batched_decision<T>& d, bool packed, int workers) {
    const index_t count = d.desc.count;
    if (count == 0 || d.rows == 0 || packed_columns(d.item) == 0) return {};
    const cell_grid grid = grid_of_item(d, packed, d.rows, count);
    return layout_of(d, packed, d.desc.c == strides::unset, grid, count, most(workers, 1));
}

template <class T>
inline index_t scratch_of_batched(const batched_decision<T>& d, bool packed, int workers) {
    return d.stacked ? scratch_of(d.item, packed, workers) : planned_layout(d, packed, workers).bytes();
}

template <class T>
inline explanation explain_batched(const batched_decision<T>& d, bool packed) {
    explanation e = explain_gemm(d.item, packed);
    if (d.stacked) return e;
    const batched_scratch layout = planned_layout(d, packed, d.workers);
    if (d.small && !packed) e.kernel = "gemm of small operands";
    if (d.packs_once && !packed) e.b = "packed once", e.packs_b = true;
    e.row_parts = e.workers = static_cast<int>(layout.tasks);
    e.col_parts = 1;
    e.scratch_bytes = layout.bytes();
    return e;
}

// Address arithmetic of a batch that has elements fits 64 bits, and each matrix is somewhere.
template <class T>
inline status check_items(const operand_batch<T>& v, index_t count, argument of_count, argument data, argument item) {
    const index_t elements = product_of(v.rows, v.cols);
    if (!v.scattered()) {
        // Of one matrix the reach of rows and of columns fits, as was checked; their sum may not.
        const index_t down = magnitude((v.rows - 1) * v.row_stride), across = magnitude((v.cols - 1) * v.col_stride);
        const index_t reach = down > INT64_MAX - across ? INT64_MAX : down + across;
        const status s = check_extent(count, 2, magnitude(v.step), reach, sizeof(T), of_count, of_count);
        if (!s.ok()) return s;
        if (v.data == nullptr) return {code::null_pointer, data, 0, elements};
        return check_aligned(v.data, data);
    }
    for (index_t i = 0; i < count; ++i) {
        if (v.pointers[i] == nullptr) return {code::null_pointer, item, i, elements};
        if (status s = check_aligned(v.pointers[i], data); !s.ok()) return s;
    }
    return {};
}

// The counts and batch strides of a run against those of the plan.
template <class T>
inline status check_batch(const operand_batch<T>& v, index_t count, index_t planned, argument of_count,
                          argument of_stride) {
    if (v.count != operand_batch<T>::any_count && v.count != count) return {code::mismatch, of_count, v.count, count};
    if (count <= 1 || planned == strides::unset || v.step == planned) return {};
    if (v.scattered() && planned == 0) return {code::mismatch, of_count, count, 1};
    return {code::mismatch, of_stride, v.scattered() ? 0 : v.step, planned};
}

HONE_FOR_SIZE_END

// Whether what the products read is apart from every C.
template <class T, class Source>
inline status check_reads(const operand_batch<T>& v, index_t count, argument which, written_items<Source>& written) {
    const batch_source<T> source(v);
    if (v.step == 0) return written.check_read(source.view(0), source.bytes(0), which, 0);
    if (!v.scattered() && !meet(united(source.bytes(0), source.bytes(count - 1)), written.all())) return {};
    for (index_t i = 0; i < count; ++i) {
        if (status s = written.check_read(source.view(i), source.bytes(i), which, i); !s.ok()) return s;
    }
    return {};
}

// Bytes of all operands, what is one for all counted once.
template <class T, class C>
inline double bytes_of_all(const operand_batch<const T>& a, const operand_batch<const T>& b,
                           const operand_batch<C>& c) {
    const auto of = [&c](const auto& v, std::size_t size) {
        const double elements = static_cast<double>(v.rows) * static_cast<double>(v.cols);
        return static_cast<double>(v.step == 0 ? 1 : c.count) * elements * static_cast<double>(size);
    };
    return of(a, sizeof(T)) + of(b, sizeof(T)) + of(c, sizeof(C));
}

// Packs one B for all products, in `tasks` parts.
template <class T>
inline void pack_once(const gemm_decision<T>& d, const T* b, index_t tasks, T* out, const context& ctx) {
    const index_t panel = d.kernel.panel, panels = ceil_div(packed_columns(d), panel), k = d.desc.k;
    auto task = [&](index_t t) {
        const range part = part_of(panels, 1, tasks, t);
        pack_panels(d.kernel, b, d.desc.b.row, d.desc.b.col, k, d.desc.n, d.half, part.begin, part.end - part.begin,
                    out + part.begin * panel * k);
    };
    run_tasks<false>(ctx.executor, tasks, task);
}

// Checks everything that needs the pointers, then runs. b is null where packed is given.
template <bool MayThrow, class T, class C>
inline status run_batched(const batched_decision<T>& d, const operand_batch<const T>& a,
                          const operand_batch<const T>* b, const packed_view* packed, const operand_batch<C>& c,
                          const void* epilogue, const context& ctx) {
    const index_t count = c.count;
    if (count < 0) return {code::negative, argument::c_count, count, 0};
    if (count > d.desc.count) return {code::too_large, argument::c_count, count, d.desc.count};
    if (status s = check_batch(c, count, d.desc.c, argument::c_count, argument::c_batch_stride); !s.ok()) return s;
    if (status s = check_batch(a, count, d.desc.a, argument::a_count, argument::a_batch_stride); !s.ok()) return s;
    if (b) {
        if (status s = check_batch(*b, count, d.desc.b, argument::b_count, argument::b_batch_stride); !s.ok()) return s;
    }
    matrix_view<const T> first_a = a.shape(), first_b = b ? b->shape() : matrix_view<const T>{};
    matrix_view<C> first_c = c.shape();
    if (d.stacked) {
        if (c.rows != d.rows) return {code::mismatch, argument::c_rows, c.rows, d.rows};
        if (a.rows != d.rows) return {code::mismatch, argument::a_rows, a.rows, d.rows};
        if (d.rows == 1) first_a.row_stride = d.item.desc.a.row, first_c.row_stride = d.item.desc.c.row;
        first_a.rows = first_c.rows = d.rows * count;
        if (count > 0) {
            first_a.data = a.at(0);
            first_b.data = b ? b->at(0) : nullptr;
            first_c.data = c.at(0);
        }
        return run_gemm<MayThrow>(d.item, first_a, b ? &first_b : nullptr, packed, first_c, epilogue, ctx);
    }
    if (status s = check_shapes(d.item, first_a, b ? &first_b : nullptr, first_c); !s.ok()) return s;
    if (count == 0 || c.rows == 0 || c.cols == 0) return {};
    const bool product = forms_product<T>(d.item.desc);
    if (product) {
        status s = check_items(a, count, argument::a_count, argument::a_data, argument::a_item);
        if (!s.ok()) return s;
        if (b) s = check_items(*b, count, argument::b_count, argument::b_data, argument::b_item);
        else s = check_packed(*packed, packed_header_of(d.item));
        if (!s.ok()) return s;
    }
    if (status s = check_items(c, count, argument::c_count, argument::c_data, argument::c_item); !s.ok()) return s;
    if (!c.scattered() && coincide(flat(c[0]), c.step, count)) {
        const byte_range one = bytes_of(flat(c[0]));
        const index_t least_stride = (one.end - one.begin) / static_cast<index_t>(sizeof(C));
        return {code::bad_stride, argument::c_batch_stride, c.step, least_stride};
    }
    const batch_source<C> source(c);
    auto written = c.scattered() ? written_items(source, count) : written_items(source, count, c.step < 0);

    const int workers = ctx.executor.concurrency();
    const cell_grid grid = grid_of_item(d, packed != nullptr, c.rows, count);
    const batched_scratch layout = layout_of(d, packed != nullptr, !written.in_order(), grid, count, workers);
    const borrowed_scratch memory(ctx, layout.bytes());
    if (!memory) return memory.status();
    if (c.scattered()) {
        if (!written.in_order()) {
            auto* list = reinterpret_cast<written_item*>(*memory);
            for (index_t i = 0; i < count; ++i) list[i] = {source.bytes(i).begin, i};
            written.sort(list, list + count);
        }
        if (status s = written.check_each_other(); !s.ok()) return s;
    }
    if (product) {
        if (status s = check_reads(a, count, argument::a_item, written); !s.ok()) return s;
        if (b) {
            if (status s = check_reads(*b, count, argument::b_item, written); !s.ok()) return s;
        }
    }

    const bool panels = packed || d.packs_once;                                         // of one B for all
    const T* right = packed ? panels_of(d.item, packed) : nullptr;
    if (panels && !packed && product) {
        T* memory_of_b = reinterpret_cast<T*>(*memory + layout.order);
        pack_once<T>(d.item, b->at(0), layout.tasks, memory_of_b, ctx);
        right = memory_of_b;
    }
    const index_t total = grid.work * count;
    const bool fetch = d.small && b && fetches_next(this_machine().cache, d.small->row[0], c.cols,
                                                    a.scattered() || b->scattered(), bytes_of_all(a, *b, c));
    // Fetching takes a pass over the columns for each operand of the next product.
    const gemm_kernel<T>& small = d.small == nullptr ? d.item.kernel : fetch ? d.small->row[0] : d.small->small(c.cols);
    auto task = [&](index_t t) {
        gemm_job<T> job = job_of<T>(d.item, nullptr, right, panels, first_c, epilogue);
        std::byte* scratch = *memory + layout.order + layout.panels + t * layout.each;
        const index_t begin = share_begin(total, layout.tasks, t), end = share_begin(total, layout.tasks, t + 1);
        for (index_t i = begin / grid.work; i < count && i * grid.work < end; ++i) {
            const index_t from = grid.before(begin - i * grid.work), to = grid.before(end - i * grid.work);
            if (from == to) continue;
            if constexpr (std::is_same_v<T, C>) {
                if (d.small && b) {
                    const bool ask = fetch && i + 1 < count;
                    const T* next_a = ask && a.step != 0 ? a.at(i + 1) : nullptr;
                    const T* next_b = ask && b->step != 0 ? b->at(i + 1) : nullptr;
                    run_small(small, a[i], (*b)[i], c[i], next_a, next_b);
                    continue;
                }
            }
            if (product) job.a = a.at(i);
            if (product && !panels) job.b = b->at(i);
            job.c = reinterpret_cast<unsigned char*>(c.at(i));
            grid.for_parts(from, to, [&](range rows, range cols) { gemm_task(job, rows, cols, scratch); });
        }
    };
    run_tasks<MayThrow>(ctx.executor, layout.tasks, task);
    return {};
}

template <bool MayThrow, class T, class A, class B, class C>
HONE_INLINE status run_batched_on(const batched_decision<T>& d, const A& a, const B& b, const C& c,
                                  const void* epilogue, const context& ctx) {
    using stored = element_of_batch<C>;
    const operand_batch<const T> left = as_batch(a);
    if constexpr (std::is_same_v<B, packed_view>) {
        return run_batched<MayThrow, T, stored>(d, left, nullptr, &b, as_batch(c), epilogue, ctx);
    } else {
        const operand_batch<const T> right = as_batch(b);
        return run_batched<MayThrow, T, stored>(d, left, &right, nullptr, as_batch(c), epilogue, ctx);
    }
}

// The description of a batch of these operands.
template <class E, class A, class B, class C>
HONE_INLINE constexpr batched_desc describe_batch(const A& a, const B& b, const C& c) {
    const auto left = as_batch(a);
    const auto out = as_batch(c);
    batched_desc d{.count = out.count, .a = left.step, .b = 0, .c = out.step};
    d.item.m = out.rows;
    d.item.n = E::halves ? product_of(2, out.cols) : out.cols;
    d.item.k = left.cols;
    d.item.a = {left.row_stride, left.col_stride};
    d.item.c = {out.row_stride, out.col_stride};
    if constexpr (!std::is_same_v<B, packed_view>) {
        const auto right = as_batch(b);
        if (E::halves) d.item.n = right.cols;
        d.item.b = {right.row_stride, right.col_stride};
        d.b = right.step;
    }
    return d;
}

// What the template arguments of a batch must be.
template <class E, class T, class A, class B, class C>
consteval bool check_batch_types() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "hone::gemm_batched: the elements of A must be float or double");
    if constexpr (!std::is_same_v<B, packed_view>) {
        static_assert(std::is_same_v<T, std::remove_const_t<element_of_batch<B>>>,
                      "hone::gemm_batched: A and B must have one element type");
    }
    static_assert(!is_matrix_view<C>,
                  "hone::gemm_batched: C must be a batch_view or a pointer_batch, as every product has its own");
    static_assert(std::is_same_v<element_of_batch<C>, typename E::template stored<T>>,
                  "hone::gemm_batched: C must have the element type of A, or that of the epilogue's store_as<T>()");
    static_assert(!E::whole_rows,
                  "hone::gemm_batched: a row output belongs to one product; groups have an epilogue each");
    return true;
}

}  // namespace detail::inline HONE_UNIT

// Products decided once. Immutable, trivially copyable, safe to run on many threads at once.
template <class E = identity_stage, class T = float>
class batched_plan {
public:
    using element = T;
    using stored = typename E::template stored<T>;  // what C holds
    static constexpr bool nothrow = detail::nothrow_of<E, T> || !HONE_EXCEPTIONS;

    // Bytes run() needs from context.scratch where its executor's concurrency() is `workers`; B packed beforehand or
    // not. Fewer workers can need more, as each has more to do: ask for every number that may occur.
    HONE_INLINE index_t scratch_bytes(int workers = 1, bool packed = false) const {
        return detail::scratch_of_batched(d_, packed, workers);
    }

    // As gemm_plan's, for one B (k, n).
    HONE_INLINE index_t packed_bytes() const {
        return static_cast<index_t>(detail::packed_header_of(d_.item).payload_bytes + sizeof(packed_header));
    }
    HONE_INLINE status pack(const matrix_view<const T>& b, std::span<std::byte> memory) const {
        return detail::pack_gemm(d_.item, b, memory);
    }

    // C[i] = epilogue(alpha * A[i] * B[i] + beta * C[i]) for each i below c's count, which a and b share or have one
    // matrix for all; b may be a packed_view. Extents and strides must be those of the plan, and batch strides where it
    // has any.
    template <detail::batch_operand A, detail::batch_or_packed B, detail::batch_operand C>
    HONE_INLINE status run(const A& a, const B& b, const C& c, const E& epilogue = E{}, const context& ctx = {}) const
        noexcept(nothrow) {
        static_assert(std::is_same_v<T, std::remove_const_t<detail::element_of_batch<A>>>,
                      "hone::batched_plan: A must have the element type of the plan");
        static_assert(detail::check_batch_types<E, T, A, B, C>());
        if (status s = epilogue.check({.rows = c.rows, .cols = d_.item.desc.n}); !s.ok()) return s;
        return detail::run_batched_on<!nothrow, T>(d_, a, b, c, &epilogue, ctx);
    }

    // Of one product, with the workers and the scratch of all; of a batch that is one taller product, of that.
    HONE_INLINE hone::explanation explain(bool packed = false) const { return detail::explain_batched(d_, packed); }

    detail::batched_decision<T> d_;  // for hone's own use
};

namespace detail {

template <class T, policy P, class E>
HONE_INLINE status make_batched_plan(batched_plan<E, T>& plan, const batched_desc& desc, const policy& p,
                                     const context& ctx, bool packable = true) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "hone::plan: the element type must be float or double");
    static_assert(validate<P, T>());
    constexpr epilogue_traits traits = traits_of<E, T>();
    const fixed_choice<P, T, E> choice(p);
    return decide_batched<T>(plan.d_, desc, p, choice.kernel(), choice.finish, traits, rows_alike<E>,
                             ctx.executor.concurrency(), packable);
}

}  // namespace detail

// A plan for a batch, or the status that says why there is none; otherwise as plan(gemm_desc).
template <class T = float, class E = identity_stage>
HONE_INLINE expected<batched_plan<E, T>> plan(const batched_desc& desc, const policy& p = {}, const E& = identity,
                                              const context& ctx = {}) {
    batched_plan<E, T> result;
    if (status s = detail::make_batched_plan<T, policy{}>(result, desc, p, ctx); !s.ok()) return s;
    return result;
}
template <policy P, class T = float, class E = identity_stage>
HONE_INLINE expected<batched_plan<E, T>> plan(const batched_desc& desc, const E& = identity, const context& ctx = {}) {
    batched_plan<E, T> result;
    if (status s = detail::make_batched_plan<T, P>(result, desc, P, ctx); !s.ok()) return s;
    return result;
}

// C[i] = epilogue(alpha * A[i] * B[i] + beta * C[i]) for each i below c's count: plan and run in one call. It is
// decided once for all products how they are computed.
template <policy P = policy{}, detail::batch_operand A, detail::batch_or_packed B, detail::batch_operand C,
          is_stage E = identity_stage>
HONE_INLINE status gemm_batched(double alpha, const A& a, const B& b, double beta, const C& c,
                                const E& epilogue = identity, const context& ctx = {})
    noexcept(detail::nothrow_of<E, std::remove_const_t<detail::element_of_batch<A>>> || !HONE_EXCEPTIONS) {
    using T = std::remove_const_t<detail::element_of_batch<A>>;
    static_assert(detail::check_batch_types<E, T, A, B, C>());
    batched_desc desc = detail::describe_batch<E>(a, b, c);
    desc.item.alpha = alpha;
    desc.item.beta = beta;
    batched_plan<E, T> plan;
    constexpr bool packed = std::is_same_v<B, packed_view>;
    if (status s = detail::make_batched_plan<T, P>(plan, desc, P, ctx, packed); !s.ok()) return s;
    return plan.run(a, b, c, epilogue, ctx);
}
template <policy P = policy{}, detail::batch_operand A, detail::batch_or_packed B, detail::batch_operand C,
          is_stage E = identity_stage>
HONE_INLINE status gemm_batched(const A& a, const B& b, const C& c, const E& epilogue = identity,
                                const context& ctx = {})
    noexcept(detail::nothrow_of<E, std::remove_const_t<detail::element_of_batch<A>>> || !HONE_EXCEPTIONS) {
    return gemm_batched<P>(1.0, a, b, 0.0, c, epilogue, ctx);
}

}  // namespace hone::inline HONE_ABI
