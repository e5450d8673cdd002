// SPDX-License-Identifier: BSL-1.0
// C = A * B for small products whose shape is known when the program is compiled.
//
//   hone::gemm<hone::shape{16, 16, 16}>(a, b, c);                        // views, checked
//   const hone::fixed_gemm<hone::shape{16, 16, 16}> multiply;            // for hot loops: pointers and row strides, unchecked
//   multiply(a, a_row, b, b_row, c, c_row);
//   const hone::fixed_gemm<hone::shape{16, 16, 16}, hone::rows::dense> dense;  // strides are the shape's own: k, n and n
//   dense(a, b, c);
//
// Each shape named in a program is compiled once per ISA of the build; m, n, k and, with rows::dense, all strides are
// constants in it. A shape that is not named costs nothing.
// Shapes: A (m, k), B (k, n), C (m, n), rows contiguous, their strides in elements. Each extent is 1 to fixed_extent.
// Numbers: as hone::gemm's, bit for bit: one chain of fused multiply-adds from +0 in ascending k.
// Memory: nothing is read outside A and B, nothing is written outside C, and C is never read. C may not share an element
//   with A or B. Elements lie on multiples of their alignment. Nothing is allocated.
// Threads: every function is thread-safe.
#pragma once

#include <cassert>
#include <type_traits>

#include "core/status.hpp"
#include "core/view.hpp"
#include "dispatch.hpp"
#include "plan.hpp"

namespace hone::inline HONE_ABI {

// The extents of a product, as a template argument.
struct shape {
    int m = 0, n = 0, k = 0;
    friend constexpr bool operator==(const shape&, const shape&) = default;
};

// Largest extent of a fixed shape. Above it operands leave L1, and products want blocks: hone::gemm has them.
inline constexpr int fixed_extent = 128;

// How the rows of the operands of a fixed_gemm follow each other: as the call says, or without a gap.
enum class rows : std::uint8_t { strided, dense };

namespace detail::inline HONE_UNIT {

template <class T>
using fixed_fn = void (*)(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row);
template <class T>
using fixed_dense_fn = void (*)(const T* a, const T* b, T* c);

inline constexpr int fixed_registers(hone::isa id) { return isa_row_of(id)->registers == 32 ? 32 : 16; }

template <class T, shape S, rows R>
inline auto fixed_kernel(hone::isa id) {
#define HONE_FIXED(region)                                                                                      \
    [] {                                                                                                        \
        if constexpr (R == rows::dense) {                                                                       \
            return &region::fixed_dense_micro<T, fixed_registers(isa::region), S.m, S.n, S.k>;                  \
        } else {                                                                                                \
            return &region::fixed_micro<T, fixed_registers(isa::region), S.m, S.n, S.k>;                        \
        }                                                                                                       \
    }()
    switch (id) {
#if HONE_X86
    case isa::avx512: return HONE_FIXED(avx512);
    case isa::avx2: return HONE_FIXED(avx2);
#endif
#if HONE_SVE
    case isa::sve2: return HONE_FIXED(sve2);
    case isa::sve: return HONE_FIXED(sve);
#endif
#if HONE_ARM64
    case isa::neon: return HONE_FIXED(neon);
#endif
    case isa::native: return HONE_FIXED(native);
    default: return HONE_FIXED(scalar);
    }
#undef HONE_FIXED
}

template <class T>
HONE_NOINLINE inline status check_fixed(const shape& s, const matrix_view<const T>& a, const matrix_view<const T>& b,
                                        const matrix_view<T>& c) {
    if (c.rows != s.m) return {code::mismatch, argument::c_rows, c.rows, s.m};
    if (c.cols != s.n) return {code::mismatch, argument::c_cols, c.cols, s.n};
    if (a.rows != s.m) return {code::mismatch, argument::a_rows, a.rows, s.m};
    if (a.cols != s.k) return {code::mismatch, argument::a_cols, a.cols, s.k};
    if (b.rows != s.k) return {code::mismatch, argument::b_rows, b.rows, s.k};
    if (b.cols != s.n) return {code::mismatch, argument::b_cols, b.cols, s.n};
    // The stride of an extent of one means nothing.
    if (s.k > 1 && a.col_stride != 1) return {code::mismatch, argument::a_col_stride, a.col_stride, 1};
    if (s.n > 1 && b.col_stride != 1) return {code::mismatch, argument::b_col_stride, b.col_stride, 1};
    if (s.n > 1 && c.col_stride != 1) return {code::mismatch, argument::c_col_stride, c.col_stride, 1};
    constexpr auto size = static_cast<index_t>(sizeof(T));
    if (status e = check_extent(s.m, s.k, a.row_stride, 1, size, argument::a_rows, argument::a_cols); !e.ok()) return e;
    if (status e = check_extent(s.k, s.n, b.row_stride, 1, size, argument::b_rows, argument::b_cols); !e.ok()) return e;
    if (status e = check_extent(s.m, s.n, c.row_stride, 1, size, argument::c_rows, argument::c_cols); !e.ok()) return e;
    if (coincides(s.m, s.n, c.row_stride, 1)) return {code::bad_stride, argument::c_row_stride, c.row_stride, s.n};
    if (a.data == nullptr) return {code::null_pointer, argument::a_data, 0, index_t{s.m} * s.k};
    if (b.data == nullptr) return {code::null_pointer, argument::b_data, 0, index_t{s.k} * s.n};
    if (c.data == nullptr) return {code::null_pointer, argument::c_data, 0, index_t{s.m} * s.n};
    if (status e = check_aligned(a.data, argument::a_data); !e.ok()) return e;
    if (status e = check_aligned(b.data, argument::b_data); !e.ok()) return e;
    if (status e = check_aligned(c.data, argument::c_data); !e.ok()) return e;
    if (overlaps(flat(a), flat(c))) return {code::overlap, argument::a_data, 1, 0};
    if (overlaps(flat(b), flat(c))) return {code::overlap, argument::b_data, 1, 0};
    return {};
}

// Operands as they mostly are: forward rows that do not overlap, memory apart from C's. The rest is for check_fixed().
template <class T>
HONE_INLINE bool plainly_apart(const shape& s, const matrix_view<const T>& a, const matrix_view<const T>& b,
                               const matrix_view<T>& c) {
    if (((c.rows ^ s.m) | (c.cols ^ s.n) | (a.rows ^ s.m) | (a.cols ^ s.k) | (b.rows ^ s.k) | (b.cols ^ s.n)) != 0) return false;
    if (((a.col_stride ^ 1) | (b.col_stride ^ 1) | (c.col_stride ^ 1)) != 0) return false;
    constexpr index_t far_apart = index_t{1} << 48;
    if (a.row_stride < s.k || b.row_stride < s.n || c.row_stride < s.n) return false;
    if ((a.row_stride | b.row_stride | c.row_stride) >= far_apart) return false;
    const auto at = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const auto span = [](index_t m, index_t n, index_t stride) {
        return static_cast<std::uintptr_t>((m - 1) * stride + n) * sizeof(T);
    };
    const std::uintptr_t a0 = at(a.data), b0 = at(b.data), c0 = at(c.data), c1 = c0 + span(s.m, s.n, c.row_stride);
    if (a0 == 0 || b0 == 0 || c0 == 0 || (a0 | b0 | c0) % alignof(T) != 0) return false;
    return (a0 >= c1 || c0 >= a0 + span(s.m, s.k, a.row_stride)) && (b0 >= c1 || c0 >= b0 + span(s.k, s.n, b.row_stride));
}

template <class T, shape S>
HONE_NOINLINE inline status run_fixed(const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c) {
    if (!plainly_apart<T>(S, a, b, c)) {
        if (status s = check_fixed<T>(S, a, b, c); !s.ok()) return s;
    }
    static const fixed_fn<T> kernel = fixed_kernel<T, S, rows::strided>(this_machine().choice.chosen);
    kernel(a.data, a.row_stride, b.data, b.row_stride, c.data, c.row_stride);
    return {};
}

template <class T, shape S>
consteval bool check_shape() {
    static_assert(std::is_same_v<T, float>, "hone::shape: the element type must be float");
    static_assert(S.m >= 1 && S.m <= fixed_extent, "hone::shape: m must be from 1 to hone::fixed_extent");
    static_assert(S.n >= 1 && S.n <= fixed_extent, "hone::shape: n must be from 1 to hone::fixed_extent");
    static_assert(S.k >= 1 && S.k <= fixed_extent, "hone::shape: k must be from 1 to hone::fixed_extent");
    return true;
}

}  // namespace detail::inline HONE_UNIT

// C = A * B on pointers: the kernel is chosen when the object is made, and a call is one indirect call of it. Nothing is
// checked but, where assert() is on, that no pointer is null and no row of C runs into the next; what else hone::gemm
// checks is the caller's to see to. Trivially copyable, as large as a pointer.
template <shape S, rows Rows = rows::strided, class T = float>
class fixed_gemm {
    static_assert(detail::check_shape<T, S>());
    using kernel = std::conditional_t<Rows == rows::dense, detail::fixed_dense_fn<T>, detail::fixed_fn<T>>;

public:
    using element = T;

    // For the ISA that dispatched calls run.
    HONE_INLINE fixed_gemm() : kernel_(detail::fixed_kernel<T, S, Rows>(detail::this_machine().choice.chosen)) {}

    // For another ISA, or the status that says why it cannot run.
    static HONE_INLINE expected<fixed_gemm> on(isa id) {
        if (status s = detail::check_isa(id); !s.ok()) return s;
        return fixed_gemm(detail::fixed_kernel<T, S, Rows>(detail::resolve_isa(id)));
    }

    // Strides: elements from one row to the next.
    HONE_INLINE void operator()(const T* a, index_t a_row, const T* b, index_t b_row, T* c, index_t c_row) const noexcept
        requires(Rows == rows::strided)
    {
        assert(a != nullptr && b != nullptr && c != nullptr);
        assert(S.m == 1 || c_row >= S.n || c_row <= -S.n);
        kernel_(a, a_row, b, b_row, c, c_row);
    }
    // Rows are k, n and n elements apart.
    HONE_INLINE void operator()(const T* a, const T* b, T* c) const noexcept
        requires(Rows == rows::dense)
    {
        assert(a != nullptr && b != nullptr && c != nullptr);
        kernel_(a, b, c);
    }

private:
    HONE_INLINE explicit fixed_gemm(kernel k) : kernel_(k) {}
    kernel kernel_;
};

// C = A * B on views, whose extents must be those of the shape, and whose rows must be contiguous: a status names the
// argument that is not so, and C is untouched then.
template <shape S, class TA, class TB, class TC>
HONE_INLINE status gemm(const matrix_view<TA>& a, const matrix_view<TB>& b, const matrix_view<TC>& c) noexcept {
    using T = std::remove_const_t<TA>;
    static_assert(detail::check_shape<T, S>());
    static_assert(std::is_same_v<T, std::remove_const_t<TB>> && std::is_same_v<T, TC>,
                  "hone::gemm<hone::shape>: A, B and C must have one element type");
    return detail::run_fixed<T, S>(a, b, c);
}

}  // namespace hone::inline HONE_ABI
