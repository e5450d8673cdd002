// SPDX-License-Identifier: BSL-1.0
// What went wrong, without allocating: a code, the argument it concerns, its value and the limit it broke.
// The text is made on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../config.hpp"
#include "isa.hpp"
#include "text.hpp"

namespace hone::inline HONE_ABI {

// Which rule was broken.
enum class code : std::uint8_t {
    ok,
    negative,          // an extent, a stride of padding or a count is below its least value
    too_large,         // an extent or an address computed from it does not fit
    mismatch,          // two extents that must be equal are not
    null_pointer,      // elements are described, but there is no data
    bad_stride,        // elements of C coincide
    overlap,           // C shares an element with A or B
    misaligned,        // memory given by the caller is not aligned as asked
    too_small,         // memory given by the caller is smaller than the query said
    unsupported,       // the combination does not exist
    isa_unknown,       // HONE_ISA or a policy names no instruction set
    isa_unavailable,   // this machine, system or build cannot run it
    bad_policy,        // a policy field breaks a rule that validate<P>() states
    corrupt,           // packed weights: magic, version or checksum do not match
    out_of_memory,
    item_overlap,      // C of one product of a batch shares an element with an operand of another
};

// Which argument a status speaks of.
enum class argument : std::uint8_t {
    none,
    a_data, a_rows, a_cols, a_row_stride, a_col_stride,
    b_data, b_rows, b_cols, b_row_stride, b_col_stride,
    c_data, c_rows, c_cols, c_row_stride, c_col_stride,
    m, n, k, alpha, beta,
    input_data, input_n, input_h, input_w, input_c, input_stride,
    filter_data, filter_groups, filter_oc, filter_ic, filter_kh, filter_kw, filter_stride,
    output_data, output_n, output_h, output_w, output_c, output_stride,
    conv_stride, conv_dilation, conv_padding, conv_output_padding, conv_groups,
    policy_isa, policy_tile, policy_mc, policy_kc, policy_nc, policy_precision, policy_algorithm, policy_packing,
    policy_numerics, policy_threads,
    epilogue_vector, epilogue_view, epilogue_bounds,
    packed_magic, packed_version, packed_layout, packed_extent, packed_header, packed_payload, packed_bytes,
    scratch, memory, environment, executor,
    a_count, b_count, c_count, a_batch_stride, b_batch_stride, c_batch_stride, a_item, b_item, c_item,
};

namespace detail {

HONE_INLINE constexpr const char* argument_name(argument a) {
    constexpr const char* names[] = {
        "none",
        "a.data", "a.rows", "a.cols", "a.row_stride", "a.col_stride",
        "b.data", "b.rows", "b.cols", "b.row_stride", "b.col_stride",
        "c.data", "c.rows", "c.cols", "c.row_stride", "c.col_stride",
        "m", "n", "k", "alpha", "beta",
        "input.data", "input.n", "input.h", "input.w", "input.c", "input strides",
        "filter.data", "filter.groups", "filter.oc", "filter.ic", "filter.kh", "filter.kw", "filter strides",
        "output.data", "output.n", "output.h", "output.w", "output.c", "output strides",
        "conv.stride", "conv.dilation", "conv.padding", "conv.output_padding", "conv.groups",
        "policy.isa", "policy.tile", "policy.block.mc", "policy.block.kc", "policy.block.nc", "policy.precision",
        "policy.algorithm", "policy.packing", "policy.numerics", "policy.threads",
        "epilogue vector", "epilogue view", "epilogue bounds",
        "packed.magic", "packed.version", "packed.layout", "packed extent", "packed header", "packed payload",
        "packed.bytes",
        "scratch", "memory", "HONE_ISA", "executor",
        "a.count", "b.count", "c.count", "a.batch_stride", "b.batch_stride", "c.batch_stride", "a of item", "b of item", "c of item",
    };
    static_assert(sizeof(names) / sizeof(names[0]) == static_cast<std::size_t>(argument::c_item) + 1);
    return names[static_cast<std::size_t>(a)];
}

HONE_INLINE constexpr const char* code_rule(code c) {
    constexpr const char* rules[] = {
        "ok",
        "must be at least",
        "must be at most",
        "must equal",
        "must not be null: elements at stake are",
        "makes elements of C coincide; it must be at least",
        "or more elements shared with C; allowed are",
        "must be aligned to bytes",
        "is too small; bytes or elements needed are",
        "is not supported; the nearest that is",
        "names no instruction set; the choice made instead is isa",
        "cannot run here; the best that can is isa",
        "breaks the rule of validate<P>(); the limit is",
        "does not match what was packed; expected",
        "could not be allocated; bytes asked were",
        "shares elements with c of item",
    };
    static_assert(sizeof(rules) / sizeof(rules[0]) == static_cast<std::size_t>(code::item_overlap) + 1);
    return rules[static_cast<std::size_t>(c)];
}

}  // namespace detail

// Success or one broken rule. 24 bytes, no allocation, safe to copy between threads.
struct [[nodiscard]] status {
    hone::code code = code::ok;
    hone::argument argument = argument::none;
    std::int64_t value = 0;  // what the argument was (isa_unknown: the first 8 characters of the name)
    std::int64_t limit = 0;  // what it was held against

    HONE_INLINE constexpr bool ok() const { return code == hone::code::ok; }
    HONE_INLINE constexpr explicit operator bool() const { return ok(); }
    friend constexpr bool operator==(const status&, const status&) = default;

    // "a.cols = 7 must equal 8": the argument, its value and the rule.
    HONE_INLINE text_line message() const {
        text_line t;
        if (ok()) return t.append("ok");
        if (code == hone::code::isa_unknown || code == hone::code::isa_unavailable) {
            t.append(detail::argument_name(argument)).append(" = ");
            if (code == hone::code::isa_unknown) {
                for (int i = 0; i < 8; ++i) {
                    const char letter = static_cast<char>((value >> (8 * i)) & 0xFF);
                    if (letter != 0) t.append(std::string_view(&letter, 1));
                }
            } else {
                t.append(isa_name(static_cast<isa>(value)));
            }
            return t.append(" ").append(detail::code_rule(code)).append(" ").append(isa_name(static_cast<isa>(limit)));
        }
        return t.append(detail::argument_name(argument)).append(" = ").append(value).append(" ")
                .append(detail::code_rule(code)).append(" ").append(limit);
    }
};
static_assert(sizeof(status) == 24);

namespace detail {

// Elements lie on multiples of their alignment. Reading others is undefined, and faults on some machines; a pointer into a
// mapped file may be such.
template <class T>
HONE_INLINE constexpr status check_aligned(const T* data, argument which) {
    if (std::is_constant_evaluated()) return {};
    const auto off = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % alignof(T));
    return off == 0 ? status{} : status{code::misaligned, which, off, static_cast<std::int64_t>(alignof(T))};
}

}  // namespace detail

// A value, or the status that says why there is none. T is trivially copyable.
template <class T>
class [[nodiscard]] expected {
public:
    HONE_INLINE constexpr expected(const T& value) : value_(value) {}
    HONE_INLINE constexpr expected(hone::status why) : status_(why) {}

    HONE_INLINE constexpr bool has_value() const { return status_.ok(); }
    HONE_INLINE constexpr explicit operator bool() const { return status_.ok(); }
    HONE_INLINE constexpr hone::status status() const { return status_; }
    HONE_INLINE constexpr const T& operator*() const { return value_; }      // has_value() is the caller's to check
    HONE_INLINE constexpr const T* operator->() const { return &value_; }

private:
    T value_{};
    hone::status status_{};
};

}  // namespace hone::inline HONE_ABI
