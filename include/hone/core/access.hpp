// SPDX-License-Identifier: BSL-1.0
// Lanes to and from memory of another element type or with a stride between elements. Only `lanes` elements are touched.
#pragma once

#include <type_traits>

#include "dtype.hpp"
#include "vec.hpp"
#include "view.hpp"

HONE_STRICT_MATH_BEGIN

namespace hone::inline HONE_ABI {

// p[0 .. lanes) as T; the other lanes are 0.
template <class T, int N, class U>
HONE_INLINE vec<T, N> load_as(const U* p, int lanes) {
    using S = std::remove_const_t<U>;
    if constexpr (std::is_same_v<S, T> || std::is_same_v<S, bf16> || std::is_same_v<S, f16>) {
        return load<T, N>(p, lanes);
    } else {
        vec<T, N> r = vec<T, N>::set(T(0));
        for (int i = 0; i < N && i < lanes; ++i) r.set_lane(i, static_cast<T>(p[i]));
        return r;
    }
}

// p[0], p[stride], … as T; the other lanes are 0.
template <class T, int N, class U>
HONE_INLINE vec<T, N> gather_as(const U* p, index_t stride, int lanes) {
    vec<T, N> r = vec<T, N>::set(T(0));
    for (int i = 0; i < N && i < lanes; ++i) r.set_lane(i, static_cast<T>(p[i * stride]));
    return r;
}

// Lanes 0 .. lanes - 1 to p, rounded to nearest even where U is narrower.
template <class U, class T, int N>
HONE_INLINE void store_lanes(U* p, const vec<T, N>& x, int lanes) {
    if constexpr (std::is_same_v<U, double> && std::is_same_v<T, float>) {
        for (int i = 0; i < N && i < lanes; ++i) p[i] = static_cast<double>(x[i]);
    } else {
        store(p, x, lanes);
    }
}

// Lanes 0 .. lanes - 1 to p, p + stride, …
template <class U, class T, int N>
HONE_INLINE void scatter_lanes(U* p, index_t stride, const vec<T, N>& x, int lanes) {
    U some[std::size_t{N}];
    store_lanes(some, x, N);
    for (int i = 0; i < N && i < lanes; ++i) p[i * stride] = some[i];
}

}  // namespace hone::inline HONE_ABI

HONE_STRICT_MATH_END
