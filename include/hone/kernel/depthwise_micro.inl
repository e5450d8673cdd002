// One output pixel of a depthwise convolution, channels across lanes: out[c] = sum over taps r of rows[r][c] * b[start[r], c],
// one chain per channel in the order of the taps; taps in the padding are not among them. Four registers of channels at a
// time give four chains, enough for a latency of four at one multiply-add a cycle: each takes two loads, so it is loads
// (two a cycle) that bound it.
template <class T>
HONE_NOINLINE void depthwise_micro(const depthwise_pixel<T>& g) {
    using R = reg<T>;
    const index_t lanes = R::lanes();
    index_t c = 0;
    for (; c + 4 * lanes <= g.channels; c += 4 * lanes) {
        typename R::type s0 = R::zero(), s1 = R::zero(), s2 = R::zero(), s3 = R::zero();
        for (index_t r = 0; r < g.taps; ++r) {
            const T* a = g.rows[r] + c;                                    // (4 lanes)
            const T* b = g.b + g.start[r] * g.channels + c;                // (4 lanes)
            s0 = R::fma(R::load(a), R::load(b), s0);
            s1 = R::fma(R::load(a + lanes), R::load(b + lanes), s1);
            s2 = R::fma(R::load(a + 2 * lanes), R::load(b + 2 * lanes), s2);
            s3 = R::fma(R::load(a + 3 * lanes), R::load(b + 3 * lanes), s3);
        }
        R::store(g.out + c, s0);
        R::store(g.out + c + lanes, s1);
        R::store(g.out + c + 2 * lanes, s2);
        R::store(g.out + c + 3 * lanes, s3);
    }
    for (; c < g.channels; c += lanes) {
        const index_t left = g.channels - c;
        const typename R::tail t = R::make_tail(static_cast<int>(left < lanes ? left : lanes));
        typename R::type s = R::zero();
        for (index_t r = 0; r < g.taps; ++r) {
            s = R::fma(R::load(g.rows[r] + c, t), R::load(g.b + g.start[r] * g.channels + c, t), s);
        }
        R::store(g.out + c, s, t);
    }
}
