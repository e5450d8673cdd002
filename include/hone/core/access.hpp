// SPDX-License-Identifier: BSL-1.0
// Lanes to and from memory of another element type or with a stride between elements. Only `lanes` elements are touched.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dtype.hpp"
#include "vec.hpp"
#include "view.hpp"

HONE_STRICT_MATH_BEGIN

namespace hone::inline HONE_ABI {

namespace detail::inline HONE_UNIT {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

// One element as T; halves by way of float, which holds them exactly.
template <class T, class U>
HONE_INLINE T element_as(const U& x) {
    if constexpr (is_half<U>) return static_cast<T>(static_cast<float>(x));
    else return static_cast<T>(x);
}

template <int N>
HONE_INLINE vec<double, N> widened(const vec<float, N>& x) {
    vec<double, N> r;
    r.v = __builtin_convertvector(x.v, typename vec<double, N>::raw);
    return r;
}
template <int N>
HONE_INLINE vec<float, N> narrowed(const vec<double, N>& x) {
    vec<float, N> r;
    r.v = __builtin_convertvector(x.v, typename vec<float, N>::raw);
    return r;
}

// The float next to x toward zero, its last bit set where x is none: what is then rounded to a half is rounded once, as the
// bit says on which side of every half step x lies. Boldo, Melquiond: Emulation of FMA and Correctly Rounded Sums, 2008.
HONE_INLINE float rounded_to_odd(double x) {
    const float f = static_cast<float>(x);
    const double back = static_cast<double>(f);
    auto u = __builtin_bit_cast(std::uint32_t, f);
    if (back != x) u = (u - (__builtin_fabs(back) > __builtin_fabs(x) ? 1u : 0u)) | 1u;
    return __builtin_bit_cast(float, u);
}

}  // namespace detail::inline HONE_UNIT

// p[0 .. lanes) as T; the other lanes are 0.
template <class T, int N, class U>
HONE_INLINE vec<T, N> load_as(const U* p, int lanes) {
    using S = std::remove_const_t<U>;
    if constexpr (std::is_same_v<S, T> || (std::is_same_v<T, float> && detail::is_half<S>)) {
        return load<T, N>(p, lanes);
    } else if constexpr (std::is_same_v<T, double> && (std::is_same_v<S, float> || detail::is_half<S>)) {
        return detail::widened(load<float, N>(p, lanes));
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
    for (int i = 0; i < N && i < lanes; ++i) r.set_lane(i, detail::element_as<T>(p[i * stride]));
    return r;
}

// Lanes 0 .. lanes - 1 to p, rounded to nearest even where U is narrower.
template <class U, class T, int N>
HONE_INLINE void store_lanes(U* p, const vec<T, N>& x, int lanes) {
    if constexpr (std::is_same_v<U, double> && std::is_same_v<T, float>) {
        for (int i = 0; i < N && i < lanes; ++i) p[i] = static_cast<double>(x[i]);
    } else if constexpr (std::is_same_v<U, float> && std::is_same_v<T, double>) {
        store(p, detail::narrowed(x), lanes);
    } else if constexpr (detail::is_half<U> && std::is_same_v<T, double>) {
        vec<float, N> odd;
        for (int i = 0; i < N; ++i) odd.set_lane(i, detail::rounded_to_odd(x[i]));
        store(p, odd, lanes);
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
