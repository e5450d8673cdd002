// SPDX-License-Identifier: BSL-1.0
// exp, tanh, erf, sigmoid and rsqrt on vec<float, N> and vec<double, N>, log on vec<float, N>: no tables, no branches, no
// library calls.
//
// The same bits on every instruction set and for every N: only + - * / and sqrt, each correctly rounded, in a fixed
// order, and integer operations. No reciprocal estimates, which differ between vendors; and no fused multiply-add,
// although it would save 8 of the 30 operations of an exp: on x86 without FMA it is a library call per lane, 32 for
// an exp of four floats. 8 operations on a vector of outputs are as many as 8 steps of the k loop that made it.
//
// Errors are in ulp of the exact result, greatest over all finite floats as measured; the tests hold the bounds
// stated. Operation counts are per vector, constants apart; a division counts as one. A NaN gives a NaN. Subnormal
// arguments and results are right as long as the thread does not flush them to zero. No floating-point exception flag
// is promised.
//
// Polynomials: minimax fits by the Remez exchange, made for this file, with the weight that makes the error relative in
// the result; coefficients rounded to float. Range reduction: Cody and Waite, Software Manual for the Elementary
// Functions (1980).
#pragma once

#include <cstdint>
#include <limits>

#include "../config.hpp"
#include "vec.hpp"

HONE_STRICT_MATH_BEGIN

namespace hone::inline HONE_ABI::vectors {

namespace detail::inline HONE_UNIT {

// x = n ln 2 + r, n whole, |r| <= 0.35: returns e^r - 1 and leaves n. Needs |x| < 2^21. 19 operations.
//
// Adding 1.5 * 2^23 rounds x / ln 2 to a whole number, which is then in the low bits of the sum. ln 2 in two parts: the
// first has 9 significant bits, so that n times it is exact. Relative error of the fit in e^r: 2^-28.2.
template <int N>
HONE_INLINE vec<float, N> exp_reduced(const vec<float, N>& x, vec<std::int32_t, N>& n) {
    const vec<float, N> shifted = x * 1.44269504f + 12582912.f;
    const vec<float, N> whole = shifted - 12582912.f;
    n = to_bits(shifted) - 0x4b400000;
    const vec<float, N> r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
    vec<float, N> q = r * 1.39517186e-3f + 8.36959854e-3f;
    q = q * r + 4.16661873e-2f;
    q = q * r + 1.66665122e-1f;
    q = q * r + 0.5f;
    return r + (r * r) * q;
}

// 2^n for -126 <= n <= 127.
template <int N>
HONE_INLINE vec<float, N> exp2_whole(const vec<std::int32_t, N>& n) {
    return from_bits((n + 127) << 23);
}

// e^x for -104 <= x <= 89. 2^n in two factors of half the exponent: the first product is exact, and the second is
// rounded once, to a subnormal, to zero or to infinity where it has to be.
template <int N>
HONE_INLINE vec<float, N> exp_clamped(const vec<float, N>& x) {
    vec<std::int32_t, N> n;
    const vec<float, N> p = exp_reduced(x, n) + 1.f;
    const vec<std::int32_t, N> half = n >> 1;
    return (p * exp2_whole(half)) * exp2_whole(n - half);
}

}  // namespace detail::inline HONE_UNIT

// e^x. At most 1.1 ulp. exp(-inf) = 0, exp(inf) = inf; subnormal results are rounded, not flushed. 30 operations.
template <int N>
HONE_INLINE vec<float, N> exp(const vec<float, N>& x) {
    return detail::exp_clamped(max(min(x, 89.f), -104.f));
}

// The natural logarithm. At most 0.9 ulp. log(0) = -inf, log(x < 0) = NaN, log(inf) = inf. 41 operations.
//
// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1: log(m) = f - f^2 / 2 + f^3 p(f), relative error of the fit
// 2^-27.3. A subnormal x is scaled by 2^23 first.
template <int N>
HONE_INLINE vec<float, N> log(const vec<float, N>& x) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr std::int32_t sqrt_half = 0x3f3504f3;
    const vec<float, N> least(std::numeric_limits<float>::min());
    const vec<float, N> scaled = x * 8388608.f;
    const vec<float, N> shift(-23.f);
    const vec<float, N> none(0.f);
    vec<float, N> y;
    vec<float, N> e;
    y.v = x.v < least.v ? scaled.v : x.v;
    e.v = x.v < least.v ? shift.v : none.v;

    const vec<std::int32_t, N> i = to_bits(y) - sqrt_half;
    e += to_float(i >> 23);
    const vec<float, N> f = from_bits((i & 0x7fffff) + sqrt_half) - 1.f;
    const vec<float, N> f2 = f * f;
    vec<float, N> p = f * -7.85961673e-2f + 1.28816500e-1f;
    p = p * f + -1.31287530e-1f;
    p = p * f + 1.41811922e-1f;
    p = p * f + -1.66245535e-1f;
    p = p * f + 2.00022861e-1f;
    p = p * f + -2.50008106e-1f;
    p = p * f + 3.33333164e-1f;
    // The small terms first.
    vec<float, N> r = ((p * f) * f2 + e * -2.12194440e-4f) - f2 * 0.5f;
    r = (f + r) + e * 0.693359375f;

    const vec<float, N> at_zero(-inf);
    const vec<float, N> below_zero(std::numeric_limits<float>::quiet_NaN());
    const vec<float, N> infinite(inf);
    vec<float, N> edge;
    edge.v = x.v == none.v ? at_zero.v : below_zero.v;
    r.v = x.v > none.v ? r.v : edge.v;
    r.v = x.v < infinite.v ? r.v : x.v;
    return r;
}

// The hyperbolic tangent, odd to the bit. At most 2.5 ulp. tanh(+-inf) = +-1, tanh(+-0) = +-0. 32 operations.
//
// -expm1(-2|x|) / (2 + expm1(-2|x|)), where expm1 = 2^n (e^r - 1) + (2^n - 1) cancels nowhere: 2^n - 1 is exact or
// rounds to -1, and is 0 or at least 1/2 in size while |e^r - 1| < 0.42. From |x| = 9.02 on the result is 1.
template <int N>
HONE_INLINE vec<float, N> tanh(const vec<float, N>& x) {
    vec<std::int32_t, N> n;
    const vec<float, N> p = detail::exp_reduced(min(abs(x), 10.f) * -2.f, n);
    const vec<float, N> s = detail::exp2_whole(n);
    const vec<float, N> expm1 = p * s + (s - 1.f);
    return copysign(expm1 / (expm1 + 2.f), x);
}

// The logistic function 1 / (1 + e^-x). At most 2.5 ulp. sigmoid(-inf) = 0, sigmoid(inf) = 1. 35 operations.
//
// With e = e^-|x|: 1 / (1 + e) from zero on and e / (1 + e) below, so that it stays accurate down to the subnormals.
template <int N>
HONE_INLINE vec<float, N> sigmoid(const vec<float, N>& x) {
    const vec<float, N> e = detail::exp_clamped(max(-abs(x), -104.f));
    const vec<float, N> zero(0.f);
    const vec<float, N> one(1.f);
    vec<float, N> above;
    above.v = x.v < zero.v ? e.v : one.v;
    return above / (e + one);
}

// The error function, odd to the bit. At most 1.5 ulp. erf(+-inf) = +-1, erf(+-0) = +-0. 55 operations.
//
// |x| < 0.875: x + x p(x^2), relative error of the fit 2^-26.8. Above: 1 - e^q(|x|), q a fit of log(erfc) of relative
// error 2^-29 in erf; from |x| = 3.93 on the result is 1. Both are computed.
template <int N>
HONE_INLINE vec<float, N> erf(const vec<float, N>& x) {
    const vec<float, N> size = abs(x);
    const vec<float, N> s = x * x;
    vec<float, N> p = s * -6.22242282e-4f + 5.03587211e-3f;
    p = p * s + -2.67939549e-2f;
    p = p * s + 1.12825245e-1f;
    p = p * s + -3.76125574e-1f;
    p = p * s + 1.28379151e-1f;
    const vec<float, N> near = x + x * p;

    const vec<float, N> t = min(size, 4.f);
    vec<float, N> q = t * 2.00996234e-4f + -3.09229223e-3f;
    q = q * t + 2.24202182e-2f;
    q = q * t + -1.04327507e-1f;
    q = q * t + -6.36737227e-1f;
    q = q * t + -1.12793612f;
    q = q * t + -1.33575042e-4f;
    vec<std::int32_t, N> n;
    const vec<float, N> e = detail::exp_reduced(q, n) + 1.f;
    const vec<float, N> far = copysign(1.f - e * detail::exp2_whole(n), x);

    const vec<float, N> split(0.875f);
    vec<float, N> r;
    r.v = size.v < split.v ? near.v : far.v;
    return r;
}

// The same functions of doubles: the same reductions, polynomials of higher degree. Whole numbers stay doubles with 1.5 * 2^52
// on top, whose low bits hold them: there is no vec of 64-bit integers, and no conversion to one before AVX-512. Errors as
// measured over 10^8 arguments; the tests hold the bounds stated.

namespace detail::inline HONE_UNIT {

inline constexpr double whole_on_top = 0x1.8p52;

// x = n ln 2 + r, n whole, |r| <= 0.347: returns e^r - 1 and leaves n + whole_on_top. Needs |x| < 2^11: the first part of ln 2
// has 42 significant bits, so that n times it is exact. Relative error of the fit in e^r: 2^-57.9. 29 operations.
template <int N>
HONE_INLINE vec<double, N> exp_reduced(const vec<double, N>& x, vec<double, N>& n) {
    n = x * 1.4426950408889634 + whole_on_top;
    const vec<double, N> whole = n - whole_on_top;
    const vec<double, N> r = (x - whole * 0x1.62e42fefa38p-1) - whole * 0x1.ef35793c7673p-45;
    vec<double, N> q = r * 2.499934130007554e-08 + 2.763023778437044e-07;
    q = q * r + 2.7557588898314943e-06;
    q = q * r + 2.4801493136717556e-05;
    q = q * r + 0.0001984126950342985;
    q = q * r + 0.0013888888943582763;
    q = q * r + 0.008333333333496082;
    q = q * r + 0.0416666666665304;
    q = q * r + 0.1666666666666641;
    q = q * r + 0.5000000000000011;
    return r + (r * r) * q;
}

// 2^n for -1022 <= n <= 1023, of n + whole_on_top.
template <int N>
HONE_INLINE vec<double, N> exp2_whole(const vec<double, N>& n) {
    using bits = typename mask<double, N>::raw;
    vec<double, N> r;
    r.v = reinterpret_cast<typename vec<double, N>::raw>((reinterpret_cast<bits>(n.v) + 1023) << 52);
    return r;
}

// e^x for -746 <= x <= 710. 2^n in two factors, as of floats.
template <int N>
HONE_INLINE vec<double, N> exp_clamped(const vec<double, N>& x) {
    vec<double, N> n;
    const vec<double, N> p = exp_reduced(x, n) + 1.0;
    const vec<double, N> half = (n - whole_on_top) * 0.5 + whole_on_top;
    const vec<double, N> rest = (n - half) + whole_on_top;
    return (p * exp2_whole(half)) * exp2_whole(rest);
}

}  // namespace detail::inline HONE_UNIT

// e^x. At most 1.1 ulp. exp(-inf) = 0, exp(inf) = inf; subnormal results are rounded, not flushed. 40 operations.
template <int N>
HONE_INLINE vec<double, N> exp(const vec<double, N>& x) {
    return detail::exp_clamped(max(min(x, 710.0), -746.0));
}

// The hyperbolic tangent, odd to the bit. At most 3 ulp. From |x| = 19.1 on the result is 1. 42 operations.
template <int N>
HONE_INLINE vec<double, N> tanh(const vec<double, N>& x) {
    vec<double, N> n;
    const vec<double, N> p = detail::exp_reduced(min(abs(x), 20.0) * -2.0, n);
    const vec<double, N> s = detail::exp2_whole(n);
    const vec<double, N> expm1 = p * s + (s - 1.0);
    return copysign(expm1 / (expm1 + 2.0), x);
}

// The logistic function. At most 2.5 ulp. sigmoid(-inf) = 0, sigmoid(inf) = 1. 45 operations.
template <int N>
HONE_INLINE vec<double, N> sigmoid(const vec<double, N>& x) {
    const vec<double, N> e = detail::exp_clamped(max(-abs(x), -746.0));
    const vec<double, N> zero(0.0);
    const vec<double, N> one(1.0);
    vec<double, N> above;
    above.v = x.v < zero.v ? e.v : one.v;
    return above / (e + one);
}

// The error function, odd to the bit. At most 2 ulp. erf(+-inf) = +-1, erf(+-0) = +-0. 105 operations.
//
// |x| < 1: x + x p(x^2), relative error of the fit 2^-56.9. Above: 1 - e^q(|x| - 1), q a fit of log(erfc) of relative error
// 2^-57 in erf, about 1 because there erfc is largest and must be exact; from |x| = 5.93 on the result is 1.
template <int N>
HONE_INLINE vec<double, N> erf(const vec<double, N>& x) {
    const vec<double, N> size = abs(x);
    const vec<double, N> s = x * x;
    vec<double, N> p = s * -7.779462971761597e-10 + 1.3710988704190523e-08;
    p = p * s + -1.6206318752969208e-07;
    p = p * s + 1.6447132699786621e-06;
    p = p * s + -1.4924712439534814e-05;
    p = p * s + 0.0001205529358693695;
    p = p * s + -0.0008548325929766244;
    p = p * s + 0.005223977606130842;
    p = p * s + -0.026866170643113415;
    p = p * s + 0.112837916709442;
    p = p * s + -0.3761263890318352;
    p = p * s + 0.12837916709551256;
    const vec<double, N> near = x + x * p;

    const vec<double, N> t = min(size, 6.0) - 1.0;
    vec<double, N> q = t * -4.9282816865659635e-12 + 1.2070289018728618e-10;
    q = q * t + -1.3325528975135677e-09;
    q = q * t + 8.596784855078003e-09;
    q = q * t + -3.369095300064246e-08;
    q = q * t + 5.8816897181284526e-08;
    q = q * t + 2.032535692318402e-07;
    q = q * t + -2.1297367189674625e-06;
    q = q * t + 9.669092462065968e-06;
    q = q * t + -2.719724311596698e-05;
    q = q * t + 2.6295383283211333e-05;
    q = q * t + 0.0002373167975141979;
    q = q * t + -0.001977901310665511;
    q = q * t + 0.010033825195120994;
    q = q * t + -0.04156109802668007;
    q = q * t + -0.8431072563593304;
    q = q * t + -2.6389675142347775;
    q = q * t + -1.8496055099332482;
    vec<double, N> n;
    const vec<double, N> e = detail::exp_reduced(q, n) + 1.0;
    const vec<double, N> far = copysign(1.0 - e * detail::exp2_whole(n), x);

    const vec<double, N> split(1.0);
    vec<double, N> r;
    r.v = size.v < split.v ? near.v : far.v;
    return r;
}

// 1 / sqrt(x), by a square root and a division. At most 1.5 ulp. rsqrt(+-0) = +-inf, rsqrt(inf) = 0, below zero NaN.
// 2 operations.
template <class T, int N>
    requires std::is_floating_point_v<T>
HONE_INLINE vec<T, N> rsqrt(const vec<T, N>& x) {
    return T(1) / sqrt(x);
}

}  // namespace hone::inline HONE_ABI::vectors

namespace hone::inline HONE_ABI {
using vectors::erf;
using vectors::exp;
using vectors::log;
using vectors::rsqrt;
}  // namespace hone::inline HONE_ABI

HONE_STRICT_MATH_END
