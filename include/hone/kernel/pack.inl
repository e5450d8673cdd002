// Copies (k, panels * width) of a B whose rows are contiguous into `panels` panels, `out_panel` elements apart. Four panels
// at a time, so that 256 bytes of a row are read together: a panel at a time reads one line of each row, and where rows are
// 4 KiB apart those lines share one set of L1 and the prefetcher, which stops at pages, never helps. The rows ahead are
// asked for instead; past the end that asks for nothing.
template <class T>
HONE_NOINLINE void pack_lines(const T* src, index_t row_stride, index_t k, index_t panels, T* HONE_RESTRICT out, index_t out_panel) {
    using R = reg<T>;
    const index_t lanes = R::lanes(), width = R::panel();
    for (index_t q = 0; q < panels; q += 4) {
        const index_t count = panels - q < 4 ? panels - q : 4;
        for (index_t p = 0; p < k; ++p) {
            const T* s = src + p * row_stride + q * width;                 // (count * width)
            T* o = out + q * out_panel + p * width;                        // (count, width), out_panel apart
            __builtin_prefetch(s + 8 * row_stride);
            __builtin_prefetch(s + 8 * row_stride + 2 * width);
            for (index_t v = 0; v < count; ++v) {
                for (index_t j = 0; j < width; j += lanes) R::store(o + v * out_panel + j, R::load(s + v * width + j));
            }
        }
    }
}
