// SPDX-License-Identifier: BSL-1.0
// Which matrices of many products share memory. The checks take time linear in the number of products, but for the
// sorting of addresses that are not in order. What two matrices share, plan.hpp tells.
#pragma once

#include <utility>

#include "plan.hpp"

namespace hone::inline HONE_ABI::detail::inline HONE_UNIT {

inline constexpr index_t compared_neighbours = 64;  // where matrices interleave

inline byte_range united(const byte_range& x, const byte_range& y) {
    return {least(x.begin, y.begin), most(x.end, y.end)};
}

// Strides nest where each is longer than all that the shorter ones reach: those of every slice of a dense tensor do.
inline bool nested(const flat_view& v, index_t step, index_t count) {
    index_t extents[] = {v.rows, v.cols, count};
    index_t lengths[] = {magnitude(v.row_stride), magnitude(v.col_stride), magnitude(step)};
    index_t reach = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = i + 1; j < 3; ++j) {
            if (lengths[j] < lengths[i]) std::swap(lengths[i], lengths[j]), std::swap(extents[i], extents[j]);
        }
        if (extents[i] <= 1) continue;
        if (lengths[i] <= reach) return false;
        reach += (extents[i] - 1) * lengths[i];
    }
    return true;
}

// Whether two of `count` views that are `step` elements apart share an element.
inline bool coincide(const flat_view& v, index_t step, index_t count) {
    if (count <= 1 || nested(v, step, count)) return false;
    if (step == 0) return true;
    const byte_range r = bytes_of(v);
    flat_view moved = v;
    for (index_t i = 1; i < count; ++i) {
        moved.at += step * v.size;
        if (!meet(r, bytes_of(moved))) return false;
        if (overlaps(v, moved)) return true;
    }
    return false;
}

// A product and where its C begins.
struct written_item {
    std::intptr_t begin = 0;
    index_t item = 0;
};

// Sorts a list by where C begins, byte by byte of the addresses, into one of two lists, which it returns. Tried and
// lost: heapsort, 100 ns a product where there are many.
inline const written_item* sort_items(written_item* list, written_item* other, index_t count) {
    std::uintptr_t differ = 0;
    for (index_t k = 1; k < count; ++k) differ |= static_cast<std::uintptr_t>(list[k].begin ^ list[0].begin);
    for (unsigned shift = 0; shift < 8 * sizeof differ; shift += 8) {
        const auto digit = [shift](const written_item& w) {
            return (static_cast<std::uintptr_t>(w.begin) >> shift) % 256;
        };
        if ((differ >> shift) % 256 == 0) continue;
        index_t place[257] = {};
        for (index_t k = 0; k < count; ++k) ++place[digit(list[k]) + 1];
        for (int d = 0; d < 256; ++d) place[d + 1] += place[d];
        for (index_t k = 0; k < count; ++k) other[place[digit(list[k])]++] = list[k];
        std::swap(list, other);
    }
    return list;
}

// The matrices C of several products in the order of their first addresses. Source: view(i) and bytes(i), C of product
// i and where it lies.
template <class Source>
class written_items {
public:
    // Products 0 .. count - 1, whose addresses ascend or descend evenly.
    written_items(const Source& source, index_t count, bool backward)
        : source_(source), count_(count), backward_(backward), all_(united(source.bytes(0), source.bytes(count - 1))),
          widest_(source.bytes(0).end - source.bytes(0).begin) {}
    // Products 0 .. count - 1. Where they are not in_order(), sort() comes first.
    written_items(const Source& source, index_t count) : source_(source), count_(count) {
        bool descending = true;
        for (index_t i = 0; i < count; ++i) {
            const byte_range r = source.bytes(i);
            if (i > 0) in_order_ &= before_ <= r.begin, descending &= before_ >= r.begin;
            add(r);
        }
        if (!in_order_) in_order_ = backward_ = descending;
    }
    // Those of `count` products that `list` holds. Where they are not in_order(), sort() comes first.
    written_items(const Source& source, index_t count, const written_item* list)
        : source_(source), count_(count), sorted_(list) {
        for (index_t k = 0; k < count; ++k) {
            if (k > 0) in_order_ &= before_ <= list[k].begin;
            add(source.bytes(list[k].item));
        }
    }
    bool in_order() const { return in_order_; }
    const byte_range& all() const { return all_; }
    // Two lists of as many products, the first of them filled.
    void sort(written_item* list, written_item* other) { sorted_ = sort_items(list, other, count_); }

    // Whether C of one is apart from C of the others.
    status check_each_other() const {
        for (index_t k = 0; k + 1 < count_; ++k) {
            if (begin(k + 1) - begin(k) >= widest_) continue;
            const index_t i = item(k);
            const std::intptr_t end = source_.bytes(i).end;
            for (index_t l = k + 1; l < count_ && l - k <= compared_neighbours && begin(l) < end; ++l) {
                const index_t j = item(l);
                if (!overlaps(source_.view(i), source_.view(j))) continue;
                return {code::item_overlap, argument::c_item, most(i, j), least(i, j)};
            }
        }
        return {};
    }

    // Whether matrix v at r, which product i reads, is apart from every C. Where the matrices that are asked about
    // ascend, each is found beside the last one.
    status check_read(const flat_view& v, const byte_range& r, argument which, index_t i) {
        if (!meet(r, all_)) return {};
        index_t k = last_;                                                              // how many begin before r ends
        if (k < count_ && begin(k) < r.end) ++k;
        if ((k > 0 && begin(k - 1) >= r.end) || (k < count_ && begin(k) < r.end)) {
            index_t low = 0;
            for (index_t high = count_; low < high;) {
                const index_t middle = low + (high - low) / 2;
                if (begin(middle) < r.end) low = middle + 1;
                else high = middle;
            }
            k = low;
        }
        last_ = k;
        for (index_t l = k; l > 0 && k - l < compared_neighbours && begin(l - 1) + widest_ > r.begin; --l) {
            const index_t j = item(l - 1);
            if (overlaps(v, source_.view(j))) return {code::item_overlap, which, i, j};
        }
        return {};
    }

private:
    void add(const byte_range& r) {
        all_ = widest_ == 0 ? r : united(all_, r);
        widest_ = most(widest_, r.end - r.begin);
        before_ = r.begin;
    }
    index_t item(index_t k) const { return sorted_ ? sorted_[k].item : backward_ ? count_ - 1 - k : k; }
    std::intptr_t begin(index_t k) const { return sorted_ ? sorted_[k].begin : source_.bytes(item(k)).begin; }

    const Source& source_;
    index_t count_ = 0;
    const written_item* sorted_ = nullptr;
    bool backward_ = false, in_order_ = true;
    std::intptr_t before_ = 0;
    byte_range all_{};
    index_t widest_ = 0;  // bytes
    index_t last_ = 0;
};

}  // namespace hone::inline HONE_ABI::detail::inline HONE_UNIT
