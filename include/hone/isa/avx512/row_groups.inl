// Few columns left over: two or four rows of C side by side in one register, each element still a chain of its own. Of 23
// columns the last seven take 12 registers of 23 rows instead of 23, and 4 x 4 x 4 is four multiply-adds.
//
//   G = 4:  s = | c(0, 0..3) | c(1, 0..3) | c(2, 0..3) | c(3, 0..3) |     four steps of k of A in each 128-bit lane, of which
//           x = | a(0, p..)  | a(1, p..)  | a(2, p..)  | a(3, p..)  |     vpermilps repeats one; B's four columns are
//   G = 2:  s = | c(0, 0..7)              | c(1, 0..7)              |     broadcast by the load
//
//   intrinsic                 instruction         Skylake-X   ports   Zen 5     pipes
//   _mm512_permute_ps         vpermilps           1 / 1       p5      1 / 0.5   FP1/2
//   _mm512_broadcast_f32x4    vbroadcastf32x4     8 / 0.5     p23     8 / 0.5   a load; with {k} it blends, p05
//   _mm_maskz_loadu_ps        vmovups {k}{z}      7 / 0.5     p23     7 / 0.5   lanes that are off do not fault
template <>
struct row_groups<float> {
    using R = reg<float>;
    using type = R::type;
    using quarter = x86::f32x4;
    using half = x86::f32x8;

    // Rows that share a register where `rest` columns are left.
    static constexpr int of(int m, int rest) { return rest == 0 || rest > 8 || m == 1 ? 1 : rest > 4 || m < 3 ? 2 : 4; }

    // Masked loads and stores are kept apart from what is done with their registers: GCC merges an extract and a masked store
    // into vextractf32x8 {k}, which faults on lanes that are off.
    template <class V>
    static HONE_INLINE V apart(V v) {
        asm("" : "+v"(v));
        return v;
    }
    template <int Count>
    static HONE_INLINE quarter load4(const float* p) {
        if constexpr (Count == 4) return *reinterpret_cast<const x86::f32x4_anywhere*>(p);
#if HONE_CLANG
        else return apart<quarter>(_mm_maskz_loadu_ps((1 << Count) - 1, p));
#else
        else return apart(__builtin_ia32_loadups128_mask(p, quarter{}, (1 << Count) - 1));
#endif
    }
    template <int Count>
    static HONE_INLINE half load8(const float* p) {
        if constexpr (Count == 8) return *reinterpret_cast<const x86::f32x8_anywhere*>(p);
#if HONE_CLANG
        else return apart<half>(_mm256_maskz_loadu_ps((1 << Count) - 1, p));
#else
        else return apart(__builtin_ia32_loadups256_mask(p, half{}, static_cast<unsigned char>((1 << Count) - 1)));
#endif
    }
    template <int Count>
    static HONE_INLINE void store4(float* p, quarter v) {
        if constexpr (Count == 4) *reinterpret_cast<x86::f32x4_anywhere*>(p) = v;
#if HONE_CLANG
        else _mm_mask_storeu_ps(p, (1 << Count) - 1, apart(v));
#else
        else __builtin_ia32_storeups128_mask(p, apart(v), (1 << Count) - 1);
#endif
    }
    template <int Count>
    static HONE_INLINE void store8(float* p, half v) {
        if constexpr (Count == 8) *reinterpret_cast<x86::f32x8_anywhere*>(p) = v;
#if HONE_CLANG
        else _mm256_mask_storeu_ps(p, (1 << Count) - 1, apart(v));
#else
        else __builtin_ia32_storeups256_mask(p, apart(v), static_cast<unsigned char>((1 << Count) - 1));
#endif
    }
    // v in the 128-bit lanes that `lanes` has a bit for, the others as they were in x.
    template <int Lanes>
    static HONE_INLINE type place4(type x, quarter v) {
        constexpr int mask = (Lanes & 1 ? 0xF : 0) | (Lanes & 2 ? 0xF0 : 0) | (Lanes & 4 ? 0xF00 : 0) | (Lanes & 8 ? 0xF000 : 0);
#if HONE_CLANG
        return _mm512_mask_broadcast_f32x4(x, mask, v);
#else
        return __builtin_ia32_broadcastf32x4_512(v, x, static_cast<unsigned short>(mask));
#endif
    }
    // Steps (1 to 4) of k of G rows of A; of them only the first Rows are there, and others repeat the last.
    template <int G, int Rows, int Steps, bool Adjacent>
    static HONE_INLINE type load_a(const float* a, index_t a_row) {
        constexpr int last = Rows < G ? Rows - 1 : G - 1;
        if constexpr (Adjacent && G == 4 && Steps == 4 && Rows >= 4) {
            return R::load(a);
        } else if constexpr (G == 4) {
            type x = place4<15>(R::zero(), load4<Steps>(a));
            if constexpr (last >= 1) x = place4<2>(x, load4<Steps>(a + a_row));
            if constexpr (last >= 2) x = place4<4>(x, load4<Steps>(a + 2 * a_row));
            if constexpr (last >= 3) x = place4<8>(x, load4<Steps>(a + 3 * a_row));
            return x;
        } else {
            type x = place4<15>(R::zero(), load4<Steps>(a));
            if constexpr (last >= 1) x = place4<12>(x, load4<Steps>(a + a_row));
            return x;
        }
    }
    template <int G, int Cols>
    static HONE_INLINE type load_b(const float* b) {
        if constexpr (G == 4) {
            return place4<15>(R::zero(), load4<Cols>(b));
        } else {
            const half v = load8<Cols>(b);
#if HONE_CLANG
            return _mm512_broadcast_f32x8(v);
#else
            return __builtin_ia32_broadcastf32x8_512_mask(v, R::zero(), static_cast<unsigned short>(0xFFFF));
#endif
        }
    }
    template <int G, int Rows, int Cols, bool Adjacent>
    static HONE_INLINE void store_c(float* c, index_t c_row, type s) {
        if constexpr (Adjacent && G * Cols == 16 && Rows >= G) {
            R::store(c, s);
        } else if constexpr (G == 4) {
            store4<Cols>(c, __builtin_shufflevector(s, s, 0, 1, 2, 3));
            if constexpr (Rows > 1) store4<Cols>(c + c_row, __builtin_shufflevector(s, s, 4, 5, 6, 7));
            if constexpr (Rows > 2) store4<Cols>(c + 2 * c_row, __builtin_shufflevector(s, s, 8, 9, 10, 11));
            if constexpr (Rows > 3) store4<Cols>(c + 3 * c_row, __builtin_shufflevector(s, s, 12, 13, 14, 15));
        } else {
            store8<Cols>(c, __builtin_shufflevector(s, s, 0, 1, 2, 3, 4, 5, 6, 7));
            if constexpr (Rows > 1) store8<Cols>(c + c_row, __builtin_shufflevector(s, s, 8, 9, 10, 11, 12, 13, 14, 15));
        }
    }

    template <int G, int Rows, int Cols, int Steps, bool Adjacent, int Count>
    static HONE_INLINE void steps(type (&s)[std::size_t{Count}], const float* a, index_t a_row, const float* b, index_t b_row) {
        type x[std::size_t{Count}];
        HONE_UNROLL
        for (int g = 0; g < Count - 1; ++g) x[g] = load_a<G, G, Steps, Adjacent>(a + g * G * a_row, a_row);
        x[Count - 1] = load_a<G, Rows - (Count - 1) * G, Steps, Adjacent>(a + (Count - 1) * G * a_row, a_row);
        step<0, G, Cols, Count>(s, x, b);
        if constexpr (Steps > 1) step<1, G, Cols, Count>(s, x, b + b_row);
        if constexpr (Steps > 2) step<2, G, Cols, Count>(s, x, b + 2 * b_row);
        if constexpr (Steps > 3) step<3, G, Cols, Count>(s, x, b + 3 * b_row);
    }
    template <int P, int G, int Cols, int Count>
    static HONE_INLINE void step(type (&s)[std::size_t{Count}], const type (&x)[std::size_t{Count}], const float* b) {
        const type y = load_b<G, Cols>(b);
        HONE_UNROLL
        for (int g = 0; g < Count; ++g) s[g] = R::fma(R::template spread<P>(x[g]), y, s[g]);
    }

    template <int G, int Rows, int Cols, int K, bool ADense, bool CDense>
    static HONE_INLINE void tile(const float* a, index_t a_row, const float* b, index_t b_row, float* c, index_t c_row) {
        constexpr int count = (Rows + G - 1) / G, whole = K / 4;
        type s[std::size_t{count}];
        HONE_UNROLL
        for (int g = 0; g < count; ++g) s[g] = chain_begin<R>();
        if constexpr (count * K <= fixed_unroll_limit) {
            HONE_UNROLL
            for (int q = 0; q < whole; ++q) {
                steps<G, Rows, Cols, 4, ADense && K == 4, count>(s, a + 4 * q, a_row, b + 4 * q * b_row, b_row);
            }
        } else {
            for (int q = 0; q < whole; ++q) {
                steps<G, Rows, Cols, 4, false, count>(s, a + 4 * q, a_row, b + 4 * q * b_row, b_row);
            }
        }
        if constexpr (K % 4 != 0) {
            steps<G, Rows, Cols, K % 4, false, count>(s, a + 4 * whole, a_row, b + 4 * whole * b_row, b_row);
        }
        HONE_UNROLL
        for (int g = 0; g < count - 1; ++g) store_c<G, G, Cols, CDense>(c + g * G * c_row, c_row, s[g]);
        store_c<G, Rows - (count - 1) * G, Cols, CDense>(c + (count - 1) * G * c_row, c_row, s[count - 1]);
    }

    // All rows by the last Cols of N columns. A register of A beside each of sums, one of B, one that is repeated: 26 of 32.
    template <int G, int M, int Cols, int K, bool Dense, int N>
    static HONE_INLINE void run(const float* a, index_t a_row, const float* b, index_t b_row, float* c, index_t c_row) {
        constexpr int groups = (M + G - 1) / G;
        constexpr even_split split = split_evenly(groups, Dense ? 12 : 6);
        constexpr int big = split.big * G, small = split.small * G;
        constexpr int full = split.small_count > 0 ? split.big_count : split.big_count - 1;
        for (int i = 0; i < full; ++i, a += big * a_row, c += big * c_row) {
            tile<G, big, Cols, K, Dense, Dense && Cols == N>(a, a_row, b, b_row, c, c_row);
        }
        if constexpr (split.small_count > 0) {
            for (int i = 0; i < split.small_count - 1; ++i, a += small * a_row, c += small * c_row) {
                tile<G, small, Cols, K, Dense, Dense && Cols == N>(a, a_row, b, b_row, c, c_row);
            }
            tile<G, small - (groups * G - M), Cols, K, Dense, Dense && Cols == N>(a, a_row, b, b_row, c, c_row);
        } else {
            tile<G, big - (groups * G - M), Cols, K, Dense, Dense && Cols == N>(a, a_row, b, b_row, c, c_row);
        }
    }
};
