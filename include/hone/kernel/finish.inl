// The epilogue pass: a tile of sums through alpha, beta and the stages of E to C, in the caller's order, each step rounded.
// flatten: the stages, a user's lambda among them, are compiled into this function for this region's registers. It is
// kept apart from the register tile so that one tile serves every epilogue: the tile buffer costs MR * NV stores and
// loads that stay in L1, below 2 % of a tile from k = 128 on.
//
// Whole registers that nothing scales go through a loop of their own: bias and ReLU are 9 instructions a register there, 34 where
// the number of lanes, alpha, beta and the distance of columns are looked at each time.

// Columns [from, cols) of one row: any alpha, beta, distance of columns and number of lanes.
template <class T, class E>
HONE_INLINE void finish_columns(const finish_tile<T>& g, const E& stages, const T* t, typename E::template stored<T>* c, place<T, epilogue_lanes<T>> at,
                                int from) {
    constexpr int W = epilogue_lanes<T>;
    for (int j = from; j < g.cols; j += W) {
        at.col = g.col + j;
        at.lanes = g.cols - j < W ? g.cols - j : W;
        vec<T, W> x = load<T, W>(E::halves ? t + j / g.panel * 2 * g.panel + j % g.panel : t + j);
        if (g.alpha != T(1)) x = x * vec<T, W>::set(g.alpha);
        if constexpr (E::halves) {
            place<T, W> other = at;
            other.col = at.col + g.half;
            vec<T, W> y = load<T, W>(t + (j / g.panel * 2 + 1) * g.panel + j % g.panel);
            if (g.alpha != T(1)) y = y * vec<T, W>::set(g.alpha);
            stages(x, at, y, other);
        } else {
            if (g.beta != T(0)) {
                vec<T, W> old;
                if (g.out_stride == 1) old = load_as<T, W>(c + j, at.lanes);
                else old = gather_as<T, W>(c + j * g.out_stride, g.out_stride, at.lanes);
                x = fma(vec<T, W>::set(g.beta), old, x);
            }
            stages(x, at);
        }
        if (g.out_stride == 1) store_lanes(c + j, x, at.lanes);
        else scatter_lanes(c + j * g.out_stride, g.out_stride, x, at.lanes);
    }
}

template <class T, class E>
HONE_NOINLINE HONE_FLATTEN void finish(const finish_tile<T>& g, const void* epilogue) {
    constexpr int W = epilogue_lanes<T>;
    const E& stages = *static_cast<const E*>(epilogue);
    using C = typename E::template stored<T>;
    const index_t t_stride = g.t_stride, first_col = g.col, image_h = g.image_h, image_w = g.image_w;
    const int rows = g.rows, whole = !E::halves && g.alpha == T(1) && g.beta == T(0) && g.out_stride == 1 ? g.cols / W * W : 0;
    const bool more = whole < g.cols;
    const T* t = g.t;                                                      // (rows, cols)
    for (int i = 0; i < rows; ++i, t += t_stride) {
        C* c = static_cast<C*>(g.out[i]);
        place<T, W> at;
        at.row = g.row[i];
        if (image_w != 0) {
            const index_t y = at.row / image_w;
            at.w = at.row - y * image_w;
            at.n = y / image_h;
            at.h = y - at.n * image_h;
        }
        if constexpr (!E::halves) {
            at.lanes = W;
            for (int j = 0; j < whole; j += W) {
                at.col = first_col + j;
                vec<T, W> x = load<T, W>(t + j);
                stages(x, at);
                store_lanes(c + j, x, W);
            }
        }
        if (more) finish_columns<T, E>(g, stages, t, c, at, whole);
    }
}
