// Output pixels of a depthwise convolution, channels across lanes: each a chain in the order of the taps that lie inside the
// image. Eight pixels side by side share a register of weights: eight chains cover a latency of four at two multiply-adds a
// cycle, and take nine loads for eight multiply-adds, where loads are as many a cycle. Reusing a register of input for the taps
// of its neighbours would save half of the loads, and bind the kernel to a filter's width and stride.
// Where fewer than eight are left, eight are taken that overlap those before: the same sums are stored twice.

template <class T, bool Part>
HONE_INLINE typename reg<T>::type load_part(const T* p, typename reg<T>::tail t) {
    if constexpr (Part) return reg<T>::load(p, t);
    else return reg<T>::load(p);
}
template <class T, bool Part>
HONE_INLINE void store_part(T* p, typename reg<T>::type v, typename reg<T>::tail t) {
    if constexpr (Part) reg<T>::store(p, v, t);
    else reg<T>::store(p, v);
}

// b is 0 where there is no bias: of a sum of -0 it makes +0, which counts as the same.
template <class T>
HONE_INLINE typename reg<T>::type with_bias_and_relu(typename reg<T>::type s, typename reg<T>::type b, bool relu) {
    s = reg<T>::add(s, b);
    return relu ? reg<T>::relu(s) : s;
}

// P pixels from pixel x of a span on; of a register of channels the part t.
template <class T, int P, bool Part>
HONE_INLINE void depthwise_pixels(const depthwise_tile<T>& g, const depthwise_span& span, index_t x, index_t c, typename reg<T>::tail t) {
    using R = reg<T>;
    const index_t step = g.pixel_step, tap = g.tap_step, b_step = g.b_step;
    [[maybe_unused]] typename R::type s0 = R::zero(), s1 = R::zero(), s2 = R::zero(), s3 = R::zero();
    [[maybe_unused]] typename R::type s4 = R::zero(), s5 = R::zero(), s6 = R::zero(), s7 = R::zero();
    for (index_t r = 0; r < g.tap_rows; ++r) {
        const T* a = g.rows[r] + span.in + x * step + c;                   // (taps, P, lanes)
        [[maybe_unused]] const T* upper = P > 4 ? a + 4 * step : a;
        const T* b = g.b[r] + span.b + c;                                  // (taps, lanes)
        for (index_t q = span.taps; q > 0; --q) {
            const typename R::type w = load_part<T, Part>(b, t);
            s0 = R::fma(load_part<T, Part>(a, t), w, s0);
            if constexpr (P > 1) {
                s1 = R::fma(load_part<T, Part>(a + step, t), w, s1);
                s2 = R::fma(load_part<T, Part>(a + 2 * step, t), w, s2);
                s3 = R::fma(load_part<T, Part>(a + 3 * step, t), w, s3);
            }
            if constexpr (P > 4) {
                s4 = R::fma(load_part<T, Part>(upper, t), w, s4);
                s5 = R::fma(load_part<T, Part>(upper + step, t), w, s5);
                s6 = R::fma(load_part<T, Part>(upper + 2 * step, t), w, s6);
                s7 = R::fma(load_part<T, Part>(upper + 3 * step, t), w, s7);
                upper += tap;
            }
            a += tap;
            b += b_step;
            // Hidden from Clang, which else keeps a pointer for each pixel and unrolls, with more of them than there are registers.
            asm("" : "+r"(a));
            if constexpr (P > 4) asm("" : "+r"(upper));
        }
    }
    const typename R::type b = g.bias ? load_part<T, Part>(g.bias + c, t) : R::zero();
    const bool relu = g.relu;
    T* out = g.out + (span.out + x) * g.out_step + c;                      // (P, lanes)
    store_part<T, Part>(out, with_bias_and_relu<T>(s0, b, relu), t);
    if constexpr (P > 1) {
        store_part<T, Part>(out + g.out_step, with_bias_and_relu<T>(s1, b, relu), t);
        store_part<T, Part>(out + 2 * g.out_step, with_bias_and_relu<T>(s2, b, relu), t);
        store_part<T, Part>(out + 3 * g.out_step, with_bias_and_relu<T>(s3, b, relu), t);
    }
    if constexpr (P > 4) {
        out += 4 * g.out_step;
        store_part<T, Part>(out, with_bias_and_relu<T>(s4, b, relu), t);
        store_part<T, Part>(out + g.out_step, with_bias_and_relu<T>(s5, b, relu), t);
        store_part<T, Part>(out + 2 * g.out_step, with_bias_and_relu<T>(s6, b, relu), t);
        store_part<T, Part>(out + 3 * g.out_step, with_bias_and_relu<T>(s7, b, relu), t);
    }
}

// Masked loads are no operands of multiply-adds in AVX2, and eight of them a tap take a pointer more than there is.
template <class T, bool Part>
HONE_INLINE void depthwise_spans(const depthwise_tile<T>& g, index_t c, typename reg<T>::tail t) {
    constexpr int widest = Part ? 4 : 8;
    for (index_t i = 0; i < g.spans; ++i) {
        const depthwise_span& span = g.span[i];
        const index_t pixels = span.pixels;
        if (pixels < 4) {
            for (index_t x = 0; x < pixels; ++x) depthwise_pixels<T, 1, Part>(g, span, x, c, t);
        } else if (!Part && pixels < 8) {
            depthwise_pixels<T, 4, Part>(g, span, 0, c, t);
            if (pixels > 4) depthwise_pixels<T, 4, Part>(g, span, pixels - 4, c, t);
        } else {
            for (index_t x = 0; x < pixels; x += widest) {
                depthwise_pixels<T, widest, Part>(g, span, x + widest <= pixels ? x : pixels - widest, c, t);
            }
        }
    }
}

template <class T>
HONE_NOINLINE void depthwise_micro(const depthwise_tile<T>& g) {
    const index_t lanes = reg<T>::lanes();
    index_t c = 0;
    for (; c + lanes <= g.channels; c += lanes) depthwise_spans<T, false>(g, c, reg<T>::make_tail(static_cast<int>(lanes)));
    if (c < g.channels) depthwise_spans<T, true>(g, c, reg<T>::make_tail(static_cast<int>(g.channels - c)));
}
