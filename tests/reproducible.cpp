// SPDX-License-Identifier: BSL-1.0
// One checksum over the results of 1,000 random products and convolutions of floats, and one over 256 products of
// doubles, per instruction set: all must be equal, and equal to that of plain loops over std::fma, whatever tile,
// blocks, packing, operand layout, batch and workers computed them. reproducible.sh compares compilers and register
// widths.
//
//   reproducible [--isa NAME]… [--reverse-k]
//
//   checksum ISA COMPILER VECTOR_LENGTH HEX    in bits; "reference" is the plain loops; in brackets, what was covered
//   reverse-k ISA COMPILER VECTOR_LENGTH HEX   the same data summed in descending k: must differ from the line above
//   checksum-f64, reverse-k-f64 …              the same of doubles
//   skipped ISA COMPILER: why
//
// Shapes, values, alpha, beta and stages come from one generator and are the same everywhere. How each is computed
// comes from another, seeded with instruction set, register width, compiler and direction: no two lines share their
// variations. --reverse-k prints the second kind of line only. HONE_TEST_QUICK=1 takes every eighth shape, which has a
// checksum of its own. Exit code 0: everything that must be equal is, and what must differ does.
#include <hone/hone.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using hone::index_t;

constexpr int gemm_shapes = 700, deep_candidates = 340, conv_shapes = 300;
constexpr int deep_least = 200;  // products with k > 2 * kc and several blocks in m and n inside one worker's part
constexpr int gemm_f64_shapes = 256, deep_f64_candidates = 96, deep_f64_least = 48;
constexpr int quick_step = 8;

// How much of everything there is of T.
template <class T>
constexpr bool is_double = std::is_same_v<T, double>;
template <class T>
constexpr int shapes_of = is_double<T> ? gemm_f64_shapes : gemm_shapes + conv_shapes;
template <class T>
constexpr int gemm_shapes_of = is_double<T> ? gemm_f64_shapes : gemm_shapes;
template <class T>
constexpr int deep_candidates_of = is_double<T> ? deep_f64_candidates : deep_candidates;
template <class T>
constexpr int deep_least_of = is_double<T> ? deep_f64_least : deep_least;
template <class T>
constexpr int line_of = 64 / static_cast<int>(sizeof(T));  // columns of the narrowest panel

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#if HONE_CLANG
constexpr const char* compiler = "clang-" TEXT(__clang_major__);
#else
constexpr const char* compiler = "gcc-" TEXT(__GNUC__);
#endif

// ---- numbers -------------------------------------------------------------------------------------------------------

constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
class generator {
public:
    explicit generator(std::uint64_t seed) : state_(mixed(seed + 0x9E3779B97F4A7C15u)) {}
    std::uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
    index_t between(index_t low, index_t high) {
        return low + static_cast<index_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool one_in(index_t n) { return between(1, n) == 1; }

private:
    std::uint64_t state_;
};

// What values a shape's operands have: +-[1, 2) * 2^e, e uniform over 40 binades around `middle`; one in `zeros` is a
// zero of either sign (0: none).
struct spread {
    int middle = 0;
    index_t zeros = 0;
};
template <class T>
T value(generator& g, const spread& s) {
    const std::uint64_t b = g.bits();
    const T sign = b & 1 ? T(-1) : T(1);
    if (s.zeros != 0 && static_cast<index_t>((b >> 40) % static_cast<std::uint64_t>(s.zeros)) == 0) return sign * T(0);
    const int e = static_cast<int>((b >> 1) % 40) - 20 + s.middle;
    T fraction = T(1);
    if constexpr (is_double<T>) fraction += static_cast<T>(g.bits() >> 12) * 0x1p-52;
    else fraction += static_cast<T>((b >> 8) & 0x7FFFFF) * 0x1p-23f;
    return std::ldexp(sign * fraction, e);
}
template <class T>
std::vector<T> values(generator& g, const spread& s, index_t count) {
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) x = value<T>(g, s);
    return v;
}

// A number as stored: nothing the compiler may contract with its neighbours.
template <class T>
T rounded(T x) {
    volatile T stored = x;
    return stored;
}

template <class T>
constexpr T unset = std::numeric_limits<T>::quiet_NaN();  // memory that nothing may read

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

class checksum {
public:
    void add(std::uint64_t word) { state_ = mixed((state_ ^ word) + 0x9E3779B97F4A7C15u); }
    template <class T>
    void add(const std::vector<T>& results) {
        for (T x : results) add(std::uint64_t{bits_of(x)});
    }
    std::uint64_t get() const { return state_; }

private:
    std::uint64_t state_ = 0;
};

// ---- operands in memory --------------------------------------------------------------------------------------------

// A matrix in one of eight layouts; what lies between its elements is unset.
template <class T>
hone::matrix_view<T> lay_out(std::vector<T>& memory, index_t rows, index_t cols, generator& g) {
    const index_t gap = g.between(1, 5);
    index_t r = cols, c = 1;
    switch (g.between(0, 7)) {
        case 0:
            break;
        case 1:
            r = cols + gap;
            break;
        case 2:
            r = 1, c = rows;
            break;
        case 3:
            r = 1, c = rows + gap;
            break;
        case 4:
            r = 2 * cols + gap, c = 2;
            break;
        case 5:
            r = -(cols + gap);
            break;
        case 6:
            r = cols + gap, c = -1;
            break;
        default:
            r = -1, c = -(rows + gap);
            break;
    }
    const index_t down = (rows - 1) * r, across = (cols - 1) * c;
    if (rows == 0 || cols == 0) return {memory.data(), rows, cols, r, c};
    memory.assign(static_cast<std::size_t>(std::abs(down) + std::abs(across) + 1), unset<T>);
    T* first = memory.data() - std::min<index_t>(down, 0) - std::min<index_t>(across, 0);
    return {first, rows, cols, r, c};
}
template <class T>
void fill(const hone::matrix_view<T>& v, const std::vector<T>& dense) {
    for (index_t i = 0; i < v.rows; ++i) {
        for (index_t j = 0; j < v.cols; ++j) *v.at(i, j) = dense[static_cast<std::size_t>(i * v.cols + j)];
    }
}

// Images of n x h x w x c in one of eight layouts.
hone::image_view<float> lay_out(std::vector<float>& memory, index_t n, index_t h, index_t w, index_t c, generator& g) {
    hone::image_view<float> v{nullptr, n, h, w, c, 0, 0, 0, 0};
    const auto set = [&v](index_t sn, index_t sh, index_t sw, index_t sc) {
        v.n_stride = sn, v.h_stride = sh, v.w_stride = sw, v.c_stride = sc;
    };
    switch (g.between(0, 7)) {
        case 0:  // NHWC
            set(h * w * c, w * c, c, 1);
            break;
        case 1:  // NCHW
            set(c * h * w, w, 1, h * w);
            break;
        case 2:  // channels of a wider NHWC
            set(h * w * (c + 3), w * (c + 3), c + 3, 1);
            break;
        case 3:  // channels of a wider NCHW
            set((c + 2) * h * w, w, 1, h * w);
            break;
        case 4:  // rows with gaps
            set(h * (w * c + 5) + 7, w * c + 5, c, 1);
            break;
        case 5:  // every second channel
            set(h * w * (2 * c + 1), w * (2 * c + 1), 2 * c + 1, 2);
            break;
        case 6:  // upside down
            set(h * w * c, -w * c, -c, 1);
            break;
        default:  // columns first
            set(w * h * c, c, h * c, 1);
            break;
    }
    index_t low = 0, high = 0;
    const index_t far[4] = {(n - 1) * v.n_stride, (h - 1) * v.h_stride, (w - 1) * v.w_stride, (c - 1) * v.c_stride};
    for (index_t x : far) (x < 0 ? low : high) += x;
    memory.assign(static_cast<std::size_t>(high - low + 1), unset<float>);
    v.data = memory.data() - low;
    return v;
}
template <class F>
void each_element(const hone::image_view<float>& v, F f) {
    for (index_t n = 0; n < v.n; ++n) {
        for (index_t h = 0; h < v.h; ++h) {
            for (index_t w = 0; w < v.w; ++w) {
                for (index_t c = 0; c < v.c; ++c) f(*v.at(n, h, w, c));
            }
        }
    }
}

hone::filter_view<float> lay_out_filter(std::vector<float>& memory, index_t groups, index_t oc, index_t ic, index_t kh,
                                        index_t kw, generator& g) {
    const index_t count = groups * oc * ic * kh * kw;
    memory.assign(static_cast<std::size_t>(3 * count), unset<float>);
    switch (g.between(0, 3)) {
        case 0:
            return hone::oihw(memory.data(), oc, ic, kh, kw, groups);
        case 1:
            return hone::iohw(memory.data(), ic, oc, kh, kw, groups);
        case 2:
            return hone::ohwi(memory.data(), oc, kh, kw, ic, groups);
        default:
            break;
    }
    // Taps backwards, every third element, groups innermost.
    const index_t tap = 3 * groups;
    return {memory.data() + (kh * kw - 1) * tap,
            groups,
            oc,
            ic,
            kh,
            kw,
            3,
            ic * kh * kw * tap,
            kh * kw * tap,
            -kw * tap,
            -tap};
}

class aligned_memory {
public:
    explicit aligned_memory(index_t bytes) : memory_(static_cast<std::size_t>(bytes) + 64, std::byte{0xFF}) {  // NaN
        const std::size_t over = reinterpret_cast<std::uintptr_t>(memory_.data()) % 64;
        used_ = {memory_.data() + (over == 0 ? 0 : 64 - over), static_cast<std::size_t>(bytes)};
    }
    aligned_memory(const aligned_memory&) = delete;
    aligned_memory& operator=(const aligned_memory&) = delete;
    std::span<std::byte> span() const { return used_; }

private:
    std::vector<std::byte> memory_;
    std::span<std::byte> used_;
};

// Workers: that many threads, each taking the next task that nobody has begun; or the caller alone, last task first.
class workers {
public:
    workers(int count, bool threads) : count_(count), threads_(threads) {}
    int concurrency() const { return count_; }
    void run(index_t n, void (*task)(void*, index_t), void* state) {
        if (!threads_) {
            for (index_t i = n; i-- > 0;) task(state, i);
            return;
        }
        std::atomic<index_t> next{0};
        const auto work = [&] {
            for (index_t i; (i = next.fetch_add(1)) < n;) task(state, i);
        };
        std::vector<std::thread> others;
        for (index_t i = 1; i < std::min<index_t>(count_, n); ++i) others.emplace_back(work);
        work();
        for (std::thread& t : others) t.join();
    }

private:
    int count_;
    bool threads_;
};

// ---- the problems --------------------------------------------------------------------------------------------------

// Stages of one problem: scale, bias, then the caller's own x * factor + addend.
template <class T>
struct stage_values {
    bool used = true;
    double scale = 1;
    T factor = 1;
    std::vector<T> bias, addend;

    void draw(generator& g, const spread& s, index_t columns, bool often) {
        static constexpr double scales[] = {0.7, -1.3, 1.0 / 3.0, 3.0};
        static constexpr T factors[] = {T(1.1), T(-0.9), T(0.3), T(-2.7)};
        used = !g.one_in(often ? 4 : 2);
        scale = scales[g.between(0, 3)];
        factor = factors[g.between(0, 3)];
        bias = values<T>(g, s, columns);
        addend = values<T>(g, s, columns);
    }
    auto epilogue() const {
        return hone::scale(scale) | hone::bias(bias) |
               hone::map([f = factor, t = addend.data()](auto& x, const auto& at) { x = x * f + at.cols(t); });
    }
    // What they make of x, each operation rounded.
    T of(T x, index_t column) const {
        if (!used) return x;
        const auto j = static_cast<std::size_t>(column);
        x = rounded(x * static_cast<T>(scale));
        x = rounded(x + bias[j]);
        x = rounded(x * factor);
        return rounded(x + addend[j]);
    }
};

// Products from 2^-40 to 2^40; one in eight: most are subnormal; one in eight: all vanish, and what is left of a sum is
// the sign of its last product. Fewer stages then, a bias hides that sign.
template <class T>
struct spreads {
    spread a, b, rest;
    bool vanishing = false;
    explicit spreads(generator& g) {
        constexpr int least = is_double<T> ? -1074 : -149;  // of subnormal numbers
        const index_t kind = g.between(1, 8);
        vanishing = kind == 2;
        if (kind == 1) a.middle = least / 2 + 14, b.middle = least - a.middle + 9;
        if (kind == 2) a.middle = least / 2 - 6, b.middle = least - a.middle - 41;
        if (kind <= 2) rest.middle = least + 14;
        if (g.one_in(3)) a.zeros = b.zeros = rest.zeros = g.one_in(2) ? 2 : 16;
        if (vanishing) rest.zeros = 2;
    }
};

template <class T>
struct gemm_problem {
    using element = T;
    index_t m = 0, n = 0, k = 0;
    bool deep = false;
    double alpha = 1, beta = 0;
    stage_values<T> stages;
    std::vector<T> a, b, c;  // (m, k), (k, n), (m, n), dense

    gemm_problem(int number, generator g) {
        deep = number % 2 == 0 && number / 2 < deep_candidates_of<T>;
        if (deep) {  // four 2048-bit registers are 256 columns of floats, the tallest tile is 16 rows
            m = g.between(24, 56);
            n = is_double<T> ? g.between(132, 200) : g.between(260, 400);
            k = g.between(20, 160);
        } else {
            switch (g.between(0, 7)) {
                case 0:
                case 1:
                case 2:
                    m = g.between(1, 20), n = g.between(1, 40), k = g.between(0, 4);
                    break;
                case 3:
                    m = g.between(1, 3), n = g.between(1, 300), k = g.between(1, 200);
                    break;
                case 4:
                    m = g.between(1, 100), n = g.between(1, 3), k = g.between(1, 200);
                    break;
                case 5:
                    m = g.between(1, 12), n = g.between(1, 70), k = g.between(520, 1300);
                    break;
                default:
                    m = g.between(1, 70), n = g.between(1, 140), k = g.between(1, 120);
                    break;
            }
        }
        spreads<T> s(g);
        if (k <= 4 && g.one_in(2)) s.a.zeros = s.b.zeros = s.rest.zeros = 2;  // sums of nothing but -0
        static constexpr double alphas[] = {1, 1, 1, -1, 0.5, 1.7, -0.3, 1.0 / 3.0};
        static constexpr double betas[] = {0, 0, 0, 0, 1, -1, 0.3, 2.5};
        alpha = !deep && g.one_in(10) ? 0 : alphas[g.between(0, 7)];
        beta = betas[g.between(0, 7)];
        stages.draw(g, s.rest, n, !s.vanishing);
        a = values<T>(g, s.a, m * k);
        b = values<T>(g, s.b, k * n);
        c = values<T>(g, s.rest, m * n);
    }

    std::vector<T> reference(bool reverse) const {
        const T factor = static_cast<T>(alpha), keep = static_cast<T>(beta);
        std::vector<T> out(c.size()), row(static_cast<std::size_t>(n));
        for (index_t i = 0; i < m; ++i) {
            std::fill(row.begin(), row.end(), T(0));
            for (index_t q = 0; q < k && factor != T(0); ++q) {
                const index_t p = reverse ? k - 1 - q : q;
                const T x = a[static_cast<std::size_t>(i * k + p)];
                const T* y = b.data() + p * n;
                for (index_t j = 0; j < n; ++j) {
                    T& t = row[static_cast<std::size_t>(j)];
                    t = std::fma(x, y[j], t);
                }
            }
            for (index_t j = 0; j < n; ++j) {
                const auto at = static_cast<std::size_t>(i * n + j);
                T x = row[static_cast<std::size_t>(j)];
                if (factor != T(1) && factor != T(0) && k != 0) x = rounded(factor * x);
                if (keep != T(0)) x = std::fma(keep, c[at], x);
                out[at] = stages.of(x, j);
            }
        }
        return out;
    }
    std::string text() const {
        return (is_double<T> ? "gemm f64 m " : "gemm m ") + std::to_string(m) + " n " + std::to_string(n) + " k " +
               std::to_string(k) + " alpha " + std::to_string(alpha) + " beta " + std::to_string(beta) +
               (stages.used ? " with" : " without") + " stages";
    }
};

struct conv_problem {
    using element = float;
    hone::conv_desc d;
    index_t oh = 0, ow = 0;
    stage_values<float> stages;
    std::vector<float> input, filter;  // (n, h, w, ic), (groups, oc, ic, kh, kw), dense

    explicit conv_problem(generator g) {
        hone::conv_window& w = d.window;
        do {
            d.n = g.between(1, 3);
            d.h = g.between(1, 12);
            d.w = g.between(1, 12);
            d.kh = g.between(1, 4);
            d.kw = g.between(1, 4);
            d.groups = 1;
            switch (g.between(0, 5)) {
                case 0:
                    d.groups = d.ic = d.oc = g.between(1, 80);
                    break;  // depthwise
                case 1:
                    d.groups = g.between(2, 4), d.ic = d.groups * g.between(1, 9), d.oc = d.groups * g.between(1, 20);
                    break;
                case 2:
                    d.kh = d.kw = 1, d.ic = g.between(1, 90), d.oc = g.between(1, 90);
                    break;
                case 3:
                    d.ic = g.between(1, 4), d.oc = g.between(1, 40);
                    break;
                default:
                    d.ic = g.between(8, 50), d.oc = g.between(8, 70);
                    break;
            }
            w.stride_h = g.between(1, 3);
            w.stride_w = g.between(1, 3);
            w.dilation_h = g.between(1, 2);
            w.dilation_w = g.between(1, 2);
            w.pad = {g.between(0, 2), g.between(0, 2), g.between(0, 2), g.between(0, 2)};
            w.transposed = g.one_in(6);
            w.output_padding_h = w.transposed ? g.between(0, std::max(w.stride_h, w.dilation_h) - 1) : 0;
            w.output_padding_w = w.transposed ? g.between(0, std::max(w.stride_w, w.dilation_w) - 1) : 0;
            oh = hone::output_h(d);
            ow = hone::output_w(d);
        } while (oh < 1 || ow < 1);
        const spreads<float> s(g);
        stages.draw(g, s.rest, d.oc, !s.vanishing);
        input = values<float>(g, s.a, d.n * d.h * d.w * d.ic);
        filter = values<float>(g, s.b, d.oc * (d.ic / d.groups) * d.kh * d.kw);
    }

    // The input row under tap t of output y; negative: in the padding, or between the rows of a transposed convolution.
    static index_t source(index_t y, index_t t, index_t in, index_t stride, index_t dilation, index_t pad,
                          bool transposed) {
        index_t p = transposed ? y + pad - t * dilation : y * stride - pad + t * dilation;
        if (transposed) {
            if (p < 0 || p % stride != 0) return -1;
            p /= stride;
        }
        return p < in ? p : -1;
    }
    // Reversed, where there is one group: input channels in descending order under each tap.
    std::vector<float> reference(bool reverse) const {
        const hone::conv_window& w = d.window;
        const index_t icg = d.ic / d.groups, ocg = d.oc / d.groups;
        const bool backwards = reverse && d.groups == 1;
        std::vector<float> out;
        for (index_t n = 0; n < d.n; ++n) {
            for (index_t y = 0; y < oh; ++y) {
                for (index_t x = 0; x < ow; ++x) {
                    for (index_t o = 0; o < d.oc; ++o) {
                        float sum = 0.0f;
                        const index_t g = o / ocg;
                        for (index_t ky = 0; ky < d.kh; ++ky) {
                            const index_t iy = source(y, ky, d.h, w.stride_h, w.dilation_h, w.pad.top, w.transposed);
                            for (index_t kx = 0; iy >= 0 && kx < d.kw; ++kx) {
                                const index_t ix =
                                    source(x, kx, d.w, w.stride_w, w.dilation_w, w.pad.left, w.transposed);
                                if (ix < 0) continue;
                                for (index_t q = 0; q < icg; ++q) {
                                    const index_t i = backwards ? icg - 1 - q : q;
                                    const index_t pixel = ((n * d.h + iy) * d.w + ix) * d.ic + g * icg + i;
                                    const index_t weight = ((o * icg + i) * d.kh + ky) * d.kw + kx;
                                    sum = std::fma(input[static_cast<std::size_t>(pixel)],
                                                   filter[static_cast<std::size_t>(weight)], sum);
                                }
                            }
                        }
                        out.push_back(stages.of(sum, o) + 0.0f);  // -0 counts as +0
                    }
                }
            }
        }
        return out;
    }
    std::string text() const {
        const hone::conv_window& w = d.window;
        const auto s = [](index_t x) { return std::to_string(x); };
        return "conv n " + s(d.n) + " h " + s(d.h) + " w " + s(d.w) + " ic " + s(d.ic) + " oc " + s(d.oc) + " kernel " +
               s(d.kh) + "x" + s(d.kw) + " groups " + s(d.groups) + " stride " + s(w.stride_h) + "," + s(w.stride_w) +
               " dilation " + s(w.dilation_h) + "," + s(w.dilation_w) + " pad " + s(w.pad.top) + "," + s(w.pad.left) +
               "," + s(w.pad.bottom) + "," + s(w.pad.right) + (w.transposed ? " transposed" : "") +
               (stages.used ? " with" : " without") + " stages";
    }
};

// ---- computing them ------------------------------------------------------------------------------------------------

// One instruction set: what it has been seen to do, and its checksums.
struct line {
    hone::isa isa;
    int bits;
    const char* element = "";  // behind what is printed
    std::vector<hone::tile> tiles{};  // the registered ones
    checksum sum{};
    int shapes = 0, deep = 0;
    std::set<std::pair<int, int>> tiles_run{};
    std::set<int> parts_run{};
    double seconds = 0;
    int differing = 0;

    void saw(const hone::explanation& e) {
        if (e.tile.mr != 0) tiles_run.insert({e.tile.mr, e.tile.nr});
        parts_run.insert(e.workers);
    }
};

// A tile that is fixed at compile time and in no line of kernels.def.
template <hone::isa I, int MR, int NR>
constexpr hone::policy fixed_tile{.isa = I, .tile = {MR, NR}};

constexpr int fixed_tiles = 2;  // per instruction set whose register width is known

template <hone::policy P, class E, class T>
hone::status fixed_plan(hone::gemm_plan<E, T>& plan, const hone::gemm_desc& desc, hone::policy p,
                        const hone::context& ctx) {
    p.tile = P.tile;
    return hone::detail::make_gemm_plan<T, P>(plan, desc, p, ctx, hone::detail::fixed_relax<T, P>());
}
// The columns of a tile of floats are as many registers of doubles as half of them.
template <class T>
constexpr int half(int columns) {
    return is_double<T> ? columns / 2 : columns;
}
template <class T>
hone::tile fixed_tile_of(hone::isa isa, bool second) {
    switch (isa) {
        case hone::isa::avx512:
            return second ? hone::tile{14, half<T>(32)} : hone::tile{2, half<T>(64)};
        case hone::isa::avx2:
            return second ? hone::tile{12, half<T>(8)} : hone::tile{2, half<T>(32)};
        case hone::isa::neon:
            return second ? hone::tile{12, half<T>(8)} : hone::tile{4, half<T>(16)};
        case hone::isa::scalar:
            return second ? hone::tile{16, 1} : hone::tile{8, 2};
        default:
            return {};
    }
}
template <class E, class T>
hone::status fixed_plan(bool second, hone::gemm_plan<E, T>& plan, const hone::gemm_desc& desc, const hone::policy& p,
                        const hone::context& ctx) {
    using hone::isa;
    switch (p.isa) {
#if HONE_X86
        case isa::avx512:
            return second ? fixed_plan<fixed_tile<isa::avx512, 14, half<T>(32)>>(plan, desc, p, ctx)
                          : fixed_plan<fixed_tile<isa::avx512, 2, half<T>(64)>>(plan, desc, p, ctx);
        case isa::avx2:
            return second ? fixed_plan<fixed_tile<isa::avx2, 12, half<T>(8)>>(plan, desc, p, ctx)
                          : fixed_plan<fixed_tile<isa::avx2, 2, half<T>(32)>>(plan, desc, p, ctx);
#endif
#if HONE_ARM64
        case isa::neon:
            return second ? fixed_plan<fixed_tile<isa::neon, 12, half<T>(8)>>(plan, desc, p, ctx)
                          : fixed_plan<fixed_tile<isa::neon, 4, half<T>(16)>>(plan, desc, p, ctx);
#endif
        default:
            return second ? fixed_plan<fixed_tile<isa::scalar, 16, 1>>(plan, desc, p, ctx)
                          : fixed_plan<fixed_tile<isa::scalar, 8, 2>>(plan, desc, p, ctx);
    }
}

// 1 to 8 workers, one more often than the others: its part is all of C, with the most blocks.
int draw_workers(generator& v, bool deep) {
    return v.between(1, 16) <= (deep ? 11 : 8) ? 1 : static_cast<int>(v.between(1, 8));
}

// A status that is not ok, as text.
std::string failed(const char* what, const hone::status& s) {
    return std::string(what) + ": " + std::string(s.message().view());
}

// Runs the problem as `v` says. "" or what went wrong.
template <class T, class E>
std::string compute(const gemm_problem<T>& p, const E& epilogue, bool reverse, generator& v, line& l,
                    std::vector<T>& out) {
    hone::policy policy{.isa = l.isa};
    // A tile: chosen by shape, one that is registered, or one of the caller's.
    const auto registered = static_cast<index_t>(l.tiles.size());
    const index_t fixed = fixed_tile_of<T>(l.isa, false).mr == 0 ? 0 : fixed_tiles;
    const index_t pick = v.between(-1, registered + fixed - 1);
    const bool is_fixed = pick >= registered;
    const hone::tile tile = pick < 0   ? l.tiles[0]
                            : is_fixed ? fixed_tile_of<T>(l.isa, pick > registered)
                                       : l.tiles[static_cast<std::size_t>(pick)];
    if (pick >= 0) policy.tile = tile;
    // Blocks: small ones for the deep products; else the model's, or anything.
    const int panel = std::max(line_of<T>, l.bits / (8 * static_cast<int>(sizeof(T))));
    const index_t unit = std::max(tile.nr, panel);
    const auto blocks = [&](index_t extent, index_t step) {
        const index_t most = std::max<index_t>((extent - 1) / step, 1);
        return static_cast<int>(step * v.between(1, p.deep ? (most + 1) / 2 : most));
    };
    if (p.deep || v.one_in(2)) {
        policy.block.mc = blocks(p.m, tile.mr);
        policy.block.nc = blocks(p.n, hone::detail::round_up(unit, tile.nr));
        policy.block.kc = static_cast<int>(
            v.between(std::max<index_t>(p.k / 12, 1), std::max<index_t>((p.k - 1) / (p.deep ? 2 : 1), 1)));
    }

    std::vector<T> a_memory, b_memory, c_memory;
    hone::matrix_view<T> a = lay_out(a_memory, p.m, p.k, v), b = lay_out(b_memory, p.k, p.n, v);
    const hone::matrix_view<T> c = lay_out(c_memory, p.m, p.n, v);
    if (reverse && p.k > 0) {
        a.data += (p.k - 1) * a.col_stride, a.col_stride = -a.col_stride;
        b.data += (p.k - 1) * b.row_stride, b.row_stride = -b.row_stride;
    }
    if (p.alpha != 0) {  // else neither is read
        for (index_t q = 0; q < p.k; ++q) {
            const index_t at = reverse ? p.k - 1 - q : q;
            for (index_t i = 0; i < p.m; ++i) *a.at(i, q) = p.a[static_cast<std::size_t>(i * p.k + at)];
            for (index_t j = 0; j < p.n; ++j) *b.at(q, j) = p.b[static_cast<std::size_t>(at * p.n + j)];
        }
    }
    if (p.beta != 0) fill(c, p.c);

    // What may be left uncopied are operands with contiguous rows.
    const bool a_rows = a.col_stride == 1 || p.k == 1, b_rows = b.col_stride == 1 || p.n == 1;
    std::vector<hone::packing> packings{hone::packing::dynamic, hone::packing::both};
    if (b_rows) packings.push_back(hone::packing::a);
    if (a_rows) packings.push_back(hone::packing::b);
    if (a_rows && b_rows) packings.push_back(hone::packing::none);
    policy.packing = packings[static_cast<std::size_t>(v.between(0, static_cast<index_t>(packings.size()) - 1))];

    const int count = draw_workers(v, p.deep);
    workers crew(count, v.one_in(2));
    if (v.one_in(5)) policy.threads = static_cast<int>(v.between(1, 8));
    hone::context ctx;
    if (crew.concurrency() > 1 || v.one_in(2)) ctx.executor = hone::executor_ref(crew);

    hone::gemm_desc desc = hone::describe(a, b, c);
    desc.alpha = p.alpha;
    desc.beta = p.beta;
    // All rows in one call, or in two of a plan that takes any number of them.
    const index_t first_rows = p.m > 1 && v.one_in(5) ? v.between(1, p.m - 1) : p.m;
    desc.dynamic_m = first_rows != p.m;
    hone::gemm_plan<E, T> plan;
    if (is_fixed) {
        if (const hone::status s = fixed_plan(pick > registered, plan, desc, policy, ctx); !s.ok())
            return failed("plan", s);
    } else {
        const auto made = hone::plan<T>(desc, policy, epilogue, ctx);
        if (!made) return failed("plan", made.status());
        plan = *made;
    }
    const bool packed = v.one_in(4);
    aligned_memory packed_memory(packed ? plan.packed_bytes() : 0);
    hone::packed_view packed_b{};
    if (packed) {
        if (const hone::status s = plan.pack(b, packed_memory.span()); !s.ok()) return failed("pack", s);
        const auto opened = hone::packed_view::open(packed_memory.span());
        if (!opened) return failed("open", opened.status());
        packed_b = *opened;
    }
    const bool own_scratch = v.one_in(2);
    aligned_memory scratch(own_scratch ? plan.scratch_bytes(ctx.executor.concurrency(), packed) : 0);
    if (own_scratch) ctx.scratch = scratch.span();
    for (index_t row = 0; row < p.m; row += first_rows) {
        const index_t rows = std::min(first_rows, p.m - row);
        const hone::matrix_view<const T> part_a{a.data + (p.k > 0 ? row * a.row_stride : 0), rows, p.k,
                                                    a.row_stride, a.col_stride};
        const hone::matrix_view<T> part_c{c.at(row, 0), rows, p.n, c.row_stride, c.col_stride};
        const hone::status s =
            packed ? plan.run(part_a, packed_b, part_c, epilogue, ctx) : plan.run(part_a, b, part_c, epilogue, ctx);
        if (!s.ok()) return failed("run", s);
    }

    const hone::explanation e = plan.explain(packed);
    l.saw(e);
    const auto part = [](index_t extent, int step, int parts) {
        return hone::detail::ceil_div(hone::detail::ceil_div(extent, step), parts) * step;
    };
    if (p.k > 2 * index_t{e.block.kc} && p.alpha != 0 &&
        part(std::min(p.m, first_rows), e.tile.mr, e.row_parts) > e.block.mc &&
        part(p.n, std::max(e.tile.nr, panel), e.col_parts) > e.block.nc) {
        ++l.deep;
    }
    out.clear();
    for (index_t i = 0; i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) out.push_back(*c.at(i, j));
    }
    return "";
}

template <class E>
std::string compute(const conv_problem& p, const E& epilogue, bool reverse, generator& v, line& l,
                    std::vector<float>& out) {
    hone::conv_desc desc = p.d;
    const index_t icg = desc.ic / desc.groups, ocg = desc.oc / desc.groups;
    hone::policy policy{.isa = l.isa};
    const index_t pick = v.between(-1, static_cast<index_t>(l.tiles.size()) - 1);
    const hone::tile tile = l.tiles[static_cast<std::size_t>(std::max<index_t>(pick, 0))];
    if (pick >= 0) policy.tile = tile;
    if (v.between(0, 3) != 0) {
        policy.block.mc = tile.mr * static_cast<int>(v.between(1, 4));
        policy.block.nc = tile.nr * static_cast<int>(v.between(1, 4));
        policy.block.kc = static_cast<int>(v.between(1, desc.kh * desc.kw * icg));
    }
    const bool depthwise = icg == 1 && ocg == 1;
    if (v.one_in(3))
        policy.algorithm = hone::algorithm::implicit_gemm;
    else if (depthwise && v.one_in(2))
        policy.algorithm = hone::algorithm::depthwise;

    std::vector<float> in_memory, filter_memory, out_memory;
    hone::image_view<float> in = lay_out(in_memory, desc.n, desc.h, desc.w, desc.ic, v);
    hone::filter_view<float> filter = lay_out_filter(filter_memory, desc.groups, ocg, icg, desc.kh, desc.kw, v);
    const hone::image_view<float> result = lay_out(out_memory, desc.n, p.oh, p.ow, desc.oc, v);
    std::size_t at = 0;
    each_element(in, [&](float& x) { x = p.input[at++]; });
    at = 0;
    for (index_t g = 0; g < filter.groups; ++g) {
        for (index_t o = 0; o < ocg; ++o) {
            for (index_t i = 0; i < icg; ++i) {
                for (index_t y = 0; y < filter.kh; ++y) {
                    for (index_t x = 0; x < filter.kw; ++x) *filter.at(g, o, i, y, x) = p.filter[at++];
                }
            }
        }
    }
    if (reverse && desc.groups == 1) {
        in.data += (desc.ic - 1) * in.c_stride, in.c_stride = -in.c_stride;
        filter.data += (icg - 1) * filter.i_stride, filter.i_stride = -filter.i_stride;
    }

    const int count = draw_workers(v, false);
    workers crew(count, v.one_in(2));
    if (v.one_in(5)) policy.threads = static_cast<int>(v.between(1, 8));
    hone::context ctx;
    if (crew.concurrency() > 1 || v.one_in(2)) ctx.executor = hone::executor_ref(crew);

    // All images in one call, or each in its own.
    const index_t batch = desc.n > 1 && v.one_in(3) ? 1 : desc.n;
    desc.n = batch;
    desc.input = {in.n_stride, in.h_stride, in.w_stride, in.c_stride};
    desc.output = {result.n_stride, result.h_stride, result.w_stride, result.c_stride};
    const auto plan = hone::plan(desc, policy, epilogue, ctx);
    if (!plan) return failed("plan", plan.status());
    const bool packed = v.one_in(2);
    aligned_memory packed_memory(packed ? plan->packed_bytes() : 0);
    hone::packed_view packed_filter{};
    if (packed) {
        if (const hone::status s = plan->pack(filter, packed_memory.span()); !s.ok()) return failed("pack", s);
        const auto opened = hone::packed_view::open(packed_memory.span());
        if (!opened) return failed("open", opened.status());
        packed_filter = *opened;
    }
    const bool own_scratch = v.one_in(2);
    aligned_memory scratch(own_scratch ? plan->scratch_bytes(ctx.executor.concurrency(), packed) : 0);
    if (own_scratch) ctx.scratch = scratch.span();
    for (index_t n = 0; n < p.d.n; n += batch) {
        hone::image_view<float> part_in = in, part_out = result;
        part_in.n = part_out.n = batch;
        part_in.data = in.at(n, 0, 0);
        part_out.data = result.at(n, 0, 0);
        const hone::status s = packed ? plan->run(part_in, packed_filter, part_out, epilogue, ctx)
                                      : plan->run(part_in, filter, part_out, epilogue, ctx);
        if (!s.ok()) return failed("run", s);
    }
    l.saw(plan->explain(packed));
    out.clear();
    each_element(result, [&](float& x) { out.push_back(x + 0.0f); });  // -0 counts as +0
    return "";
}

// ---- all of it -----------------------------------------------------------------------------------------------------

// Computes one problem on every line and compares bits with the plain loops.
template <class P>
bool compute_everywhere(const P& p, int number, bool reverse, line& reference, std::vector<line>& lines) {
    using clock = std::chrono::steady_clock;
    const auto since = [](clock::time_point start) {
        return std::chrono::duration<double>(clock::now() - start).count();
    };
    auto start = clock::now();
    using T = typename P::element;
    const std::vector<T> want = p.reference(reverse);
    reference.seconds += since(start);
    reference.sum.add(want);
    ++reference.shapes;
    for (T x : want) {
        if (x - x == T(0)) continue;
        std::printf("failed reference shape %d (%s): a result is no finite number: the problem proves nothing\n",
                    number, p.text().c_str());
        return false;
    }
    bool good = true;
    for (line& l : lines) {
        std::uint64_t seed = static_cast<std::uint64_t>(number) * 64 + static_cast<std::uint64_t>(l.isa);
        seed = mixed(seed * 2 + (reverse ? 1 : 0)) + static_cast<std::uint64_t>(l.bits);
        for (const char* c = compiler; *c != '\0'; ++c) seed = mixed(seed + static_cast<unsigned char>(*c));
        generator v(seed);
        std::vector<T> got;
        start = clock::now();
        const std::string why = p.stages.used ? compute(p, p.stages.epilogue(), reverse, v, l, got)
                                              : compute(p, hone::identity, reverse, v, l, got);
        l.seconds += since(start);
        if (!why.empty()) {
            std::printf("failed %s %s shape %d (%s): %s\n", hone::isa_name(l.isa), compiler, number, p.text().c_str(),
                        why.c_str());
            good = false;
            continue;
        }
        l.sum.add(got);
        ++l.shapes;
        std::size_t at = 0;
        while (at < want.size() && at < got.size() && bits_of(want[at]) == bits_of(got[at])) ++at;
        if (at == want.size() && got.size() == want.size()) continue;
        good = false;
        if (l.differing++ > 2 || at >= want.size() || at >= got.size()) continue;
        std::printf("differs %s %s%s shape %d (%s) element %zu: %a, not %a\n", hone::isa_name(l.isa), compiler,
                    reverse ? " reverse-k" : "", number, p.text().c_str(), at, static_cast<double>(got[at]),
                    static_cast<double>(want[at]));
    }
    return good;
}

void print(const line& l, const char* name, bool reverse) {
    std::printf("%s%s %s %s %d %016llX", reverse ? "reverse-k" : "checksum", l.element, name, compiler, l.bits,
                static_cast<unsigned long long>(l.sum.get()));
    std::printf("  (%d shapes", l.shapes);
    if (!l.parts_run.empty()) {
        std::printf(", %d of several blocks in m, n and k, tiles", l.deep);
        for (const auto& t : l.tiles_run) std::printf(" %dx%d", t.first, t.second);
        std::printf(", 1 to %d parts", *l.parts_run.rbegin());
    }
    std::printf(", %.1f s)\n", l.seconds);
    std::fflush(stdout);
}

// One direction on every instruction set; the checksum of the plain loops, 0 where something is wrong.
template <class T>
std::uint64_t run(bool reverse, const std::vector<line>& empty, int step) {
    line reference{.isa = hone::isa::dynamic, .bits = 8 * sizeof(T), .element = empty.front().element};
    std::vector<line> lines = empty;
    bool good = true;
    for (int i = 0; i < shapes_of<T>; i += step) {
        // Deep products are the even numbers below twice their count: a step of eight would meet nothing else.
        const int number = step == 1 ? i : i + i / step % 2;
        // No product of doubles has the data of one of floats.
        const generator data(static_cast<std::uint64_t>(number) + (is_double<T> ? 1 << 20 : 0));
        if (number < gemm_shapes_of<T>) {
            good = compute_everywhere(gemm_problem<T>(number, data), number, reverse, reference, lines) && good;
        } else if constexpr (!is_double<T>) {
            good = compute_everywhere(conv_problem(data), number, reverse, reference, lines) && good;
        }
    }
    print(reference, "reference", reverse);
    for (const line& l : lines) {
        print(l, hone::isa_name(l.isa), reverse);
        if (l.sum.get() != reference.sum.get()) good = false;
        if (l.differing > 0)
            std::printf("differs %s %s: %d of %d shapes\n", hone::isa_name(l.isa), compiler, l.differing, l.shapes);
        const int least = step == 1 ? deep_least_of<T> : deep_least_of<T> / step / 2;
        if (l.deep < least) {
            std::printf("failed %s %s: only %d products have several blocks in m, n and k; %d are promised\n",
                        hone::isa_name(l.isa), compiler, l.deep, least);
            good = false;
        }
        for (const hone::tile& t : l.tiles) {
            if (l.tiles_run.count({t.mr, t.nr}) != 0) continue;
            std::printf("failed %s %s: tile %dx%d did not run\n", hone::isa_name(l.isa), compiler, t.mr, t.nr);
            good = false;
        }
    }
    return good ? reference.sum.get() : 0;
}

// The lines of T of one instruction set.
template <class T>
line line_for(hone::isa id) {
    const auto& kernels = hone::detail::gemm_kernels<T>(id);
    line l{.isa = id,
           .bits = kernels.row[0].lanes * 8 * static_cast<int>(sizeof(T)),
           .element = is_double<T> ? "-f64" : ""};
    for (int k = 0; k < kernels.count; ++k) l.tiles.push_back({kernels.row[k].mr, kernels.row[k].nr});
    return l;
}

// Both directions, or the second alone: whether all that must be equal is, and what must differ does.
template <class T>
bool reproducible(const std::vector<line>& lines, bool forward, int step) {
    const std::uint64_t sum = forward ? run<T>(false, lines, step) : 0, reversed = run<T>(true, lines, step);
    if (reversed == 0 || (forward && sum == 0)) return false;
    if (forward && sum == reversed) {
        std::printf("failed: the order of the sums does not show in the checksum%s\n", lines.front().element);
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    std::set<std::string> only;
    bool forward = true;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--reverse-k") == 0) {
            forward = false;
        } else if (std::strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
            only.insert(argv[++i]);
        } else {
            std::fprintf(stderr, "usage: reproducible [--isa NAME]... [--reverse-k]\n");
            return 2;
        }
    }
    const char* quick = std::getenv("HONE_TEST_QUICK");
    const int step = quick != nullptr && *quick != '\0' && *quick != '0' ? quick_step : 1;

    std::vector<line> lines, lines_f64;
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        const char* name = hone::isa_name(id);
        if (!only.empty() && only.count(name) == 0) continue;
        const bool sve = id == hone::isa::sve || id == hone::isa::sve2;
        const char* why = nullptr;
        if (const auto* row = hone::detail::isa_row_of(id); row == nullptr || !row->compiled) {
            if (!sve || !HONE_ARM64) continue;  // another architecture's
            why = "this compiler has no <arm_sve.h> in target regions";
        } else if (!hone::available(id)) {
            why = "this CPU does not have it";
        } else if (id == hone::isa::native && !HONE_NATIVE_FMA) {
            why = "this build's flags have no fused multiply-add, so nothing is promised";
        }
        if (why != nullptr) {
            std::printf("skipped %s %s: %s\n", name, compiler, why);
            continue;
        }
        lines.push_back(line_for<float>(id));
        lines_f64.push_back(line_for<double>(id));
    }
    if (lines.empty()) {
        std::printf("failed: no instruction set to compare\n");
        return 1;
    }
    const bool floats = reproducible<float>(lines, forward, step);
    if (!reproducible<double>(lines_f64, forward, step) || !floats) {
        std::printf("NOT reproducible\n");
        return 1;
    }
    std::printf("reproducible: the plain loops and %zu of the instruction sets agree%s\n", lines.size(),
                forward ? ", and reversed k gives another checksum" : " on reversed k");
    return 0;
}
