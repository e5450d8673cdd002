// The kernels of sums in any order. Many: there are 32 registers, else 16. Tried and lost: two rows of dots apart from
// four, and two rows of two registers of split sums, as they took the same time.
template <class T, bool Many>
HONE_INLINE constexpr relaxed_kernels<T> make_relaxed_kernels() {
    relaxed_kernels<T> k;
    k.dot_rows = Many ? 16 : 8;
    k.dot[0] = &dot_micro<T, 1, 4>;
    k.dot[1] = &dot_micro<T, 4, Many ? 4 : 2>;
    k.split_rows = Many ? 4 : 2;
    k.split[0] = &split_micro<T, 1, 1>;
    k.split[1] = &split_micro<T, 1, 2>;
    if constexpr (Many) {
        k.split[2] = &split_micro<T, 1, 3>;
        k.split[3] = &split_micro<T, 1, 4>;
    }
    k.split_several = &split_micro<T, Many ? 4 : 2, 1>;
    return k;
}

template <class T, bool Many>
inline constexpr relaxed_kernels<T> relaxed_record = make_relaxed_kernels<T, Many>();
