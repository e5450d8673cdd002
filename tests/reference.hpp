// SPDX-License-Identifier: BSL-1.0
// What tests measure against: naive products, comparers that fail on NaN, memory that faults one element too far,
// executors, and the instruction sets of this machine.
#pragma once

#include <hone/gemm.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#include <csetjmp>
#include <csignal>
#define HONE_TEST_GUARD_PAGES 1
#else
#define HONE_TEST_GUARD_PAGES 0
#endif

#if HONE_X86
#include <immintrin.h>
#endif

#include "catch.hpp"

// Reports what is wrong with a problem that has text(); "" is right.
#define CHECK_RIGHT(problem, wrong)                          \
    do {                                                     \
        const std::string found_ = wrong;                    \
        if (!found_.empty())                                 \
            FAIL_CHECK((problem).text() << ": " << found_);  \
        else                                                 \
            SUCCEED();                                       \
    } while (false)

namespace test {

using hone::index_t;

// HONE_TEST_QUICK=1 shortens the sweeps: emulators are a hundred times slower.
inline bool quick() {
    static const bool set = [] {
        const char* text = std::getenv("HONE_TEST_QUICK");
        return text != nullptr && *text != '\0' && *text != '0';
    }();
    return set;
}

// ---- numbers
// ---------------------------------------------------------------------------------------------------------

// The same sequence everywhere. Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
class random_source {
public:
    explicit random_source(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    // Uniform in [-1, 1), 24 significant bits.
    float value() { return static_cast<float>(static_cast<std::int32_t>(bits() >> 39) - (1 << 24)) * 0x1p-24f; }
    // Uniform in [-1, 1), all significant bits of T.
    template <class T>
    T of() {
        if constexpr (std::is_same_v<T, double>) return static_cast<double>(static_cast<std::int64_t>(bits()) >> 10) * 0x1p-53;
        else return static_cast<T>(value());
    }
    // Uniform in [low, high].
    index_t between(index_t low, index_t high) {
        return low + static_cast<index_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
    }

private:
    std::uint64_t state_;
};

// A number as stored: what the compiler may neither contract with its neighbours nor keep in more precision.
template <class T>
T rounded(T x) {
    volatile T stored = x;
    return stored;
}

// Bit for bit the same, +0 apart from -0; two NaN are the same, their sign and payload are unspecified.
inline bool same(float x, float y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}
inline bool same(double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}

// |x - want| <= bound. NaN is near NaN only, an infinity only itself; a bound that is no number is a failure.
inline bool near(double x, double want, double bound) {
    if (std::isnan(want) || std::isnan(x)) return std::isnan(want) && std::isnan(x);
    if (std::isinf(want) || std::isinf(x)) return x == want;
    return bound >= 0 && std::abs(x - want) <= bound;
}

inline constexpr double eps = 0x1p-24;  // unit roundoff of float

// The distance of two neighbouring floats at x; the least subnormal at 0.
inline double ulp(double x) {
    const double size = std::abs(x);
    if (!(size > 0x1p-126)) return 0x1p-149;
    return std::ldexp(1.0, std::ilogb(size) - 23);
}

// What a naive product in f64 says, and how far a chain of k rounded steps may be from it.
struct near_value {
    double value = 0, bound = 0;
};

// alpha * A(row i) * B(column j) + beta * c. A chain of k steps, fused or not, errs by at most 2 k eps * sum |a| |b|
// (Higham: Accuracy and Stability of Numerical Algorithms, section 3.1: gamma_k of the sum plus one rounding a product;
// the factor 2 also covers eps^2); alpha, beta and the final sum add 4 eps of their terms. The least subnormal is for
// products that underflow. The f64 sum's own error is 2^-29 of that and lies in the factor.
inline near_value dot(double alpha, const hone::matrix_view<const float>& a, const hone::matrix_view<const float>& b,
                      double beta, double c, index_t i, index_t j) {
    double sum = 0, size = 0;
    if (alpha != 0) {
        for (index_t p = 0; p < a.cols; ++p) {
            const double product = static_cast<double>(*a.at(i, p)) * static_cast<double>(*b.at(p, j));
            sum += product;
            size += std::abs(product);
        }
    }
    near_value r;
    r.value = (alpha != 0 ? alpha * sum : 0.0) + (beta != 0 ? beta * c : 0.0);
    const double k = static_cast<double>(a.cols);
    r.bound = (2 * k + 4) * eps * std::abs(alpha) * size + (beta != 0 ? 4 * eps * std::abs(beta * c) : 0.0) +
              (k + 2) * 0x1p-149;
    return r;
}

// The same of doubles, beside a product in long double, which is 11 bits longer on x86; elsewhere nothing asks for it, as all
// instruction sets there have FMA and are compared to the bit. 2 k eps cover its own error.
inline near_value dot(double alpha, const hone::matrix_view<const double>& a, const hone::matrix_view<const double>& b, double beta,
                      double c, index_t i, index_t j) {
    constexpr double eps64 = 0x1p-53;
    long double sum = 0, size = 0;
    if (alpha != 0) {
        for (index_t p = 0; p < a.cols; ++p) {
            const long double product = static_cast<long double>(*a.at(i, p)) * *b.at(p, j);
            sum += product;
            size += std::abs(product);
        }
    }
    near_value r;
    r.value = static_cast<double>((alpha != 0 ? alpha * sum : 0.0L) + (beta != 0 ? static_cast<long double>(beta) * c : 0.0L));
    const double k = static_cast<double>(a.cols);
    r.bound = (2 * k + 5) * eps64 * std::abs(alpha) * static_cast<double>(size) + (beta != 0 ? 5 * eps64 * std::abs(beta * c) : 0.0) +
              (k + 2) * 0x1p-1074;
    return r;
}

// The contract of numerics::strict: t is a chain of fused multiply-adds from +0 with k ascending, u = alpha * t, and
// beta enters through one more. alpha and beta are what hone makes of the caller's double.
template <class T>
T strict_chain(double alpha, const hone::matrix_view<const T>& a, const hone::matrix_view<const T>& b, index_t i, index_t j) {
    const T factor = static_cast<T>(alpha);
    T t = 0;
    if (factor == 0) return t;
    for (index_t p = 0; p < a.cols; ++p) t = std::fma(*a.at(i, p), *b.at(p, j), t);
    return a.cols == 0 || factor == 1 ? t : rounded(factor * t);
}
inline float strict_dot(double alpha, const hone::matrix_view<const float>& a, const hone::matrix_view<const float>& b,
                        index_t i, index_t j) {
    return strict_chain<float>(alpha, a, b, i, j);
}
inline double strict_dot(double alpha, const hone::matrix_view<const double>& a, const hone::matrix_view<const double>& b,
                         index_t i, index_t j) {
    return strict_chain<double>(alpha, a, b, i, j);
}
inline float strict_sum(double beta, float c, float u) {
    const float factor = static_cast<float>(beta);
    return factor == 0.0f ? u : std::fma(factor, c, u);
}
inline double strict_sum(double beta, double c, double u) { return beta == 0 ? u : std::fma(beta, c, u); }

// ---- memory
// ----------------------------------------------------------------------------------------------------------

enum class edge { end, begin };

inline const char* name(edge side) {
    return side == edge::end ? "ends at a protected page" : "begins after a protected page";
}

#if HONE_TEST_GUARD_PAGES && HONE_X86
inline sigjmp_buf overread_jump;
__attribute__((target("avx2"), noinline)) inline void load_one_lane(const float* p) {
    const __m256i first = _mm256_setr_epi32(-1, 0, 0, 0, 0, 0, 0, 0);
    float out[8];
    _mm256_storeu_ps(out, _mm256_maskload_ps(p, first));
    volatile float kept = out[0];
    static_cast<void>(kept);
}
#endif

// Whether a masked load touches lanes that are off. No CPU does; QEMU up to 7.2 reads all 32 bytes of a vmaskmovps.
inline bool masked_loads_overread() {
#if HONE_TEST_GUARD_PAGES && HONE_X86
    static const bool overread = [] {
        if (!hone::available(hone::isa::avx2)) return false;
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        void* p = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return false;
        auto* bytes = static_cast<unsigned char*>(p);
        struct sigaction jump {
        }, before{};
        jump.sa_handler = [](int) { siglongjmp(overread_jump, 1); };
        volatile bool faulted = mprotect(bytes + page, page, PROT_NONE) != 0 || sigaction(SIGSEGV, &jump, &before) != 0;
        if (!faulted) {
            if (sigsetjmp(overread_jump, 1) == 0) {
                load_one_lane(reinterpret_cast<const float*>(bytes + page) - 1);
            } else {
                faulted = true;
            }
            sigaction(SIGSEGV, &before, nullptr);
        }
        munmap(p, 2 * page);
        return static_cast<bool>(faulted);
    }();
    return overread;
#else
    return false;
#endif
}

// `capacity` elements against a page that faults when touched: place(n) gives the n elements that end exactly there
// (edge::end), or begin exactly behind it (edge::begin). The rest of the pages in between holds a pattern; intact()
// says whether it still does. Where there is no mmap, the pattern alone guards, and only writes are seen; so too for
// the first 64 bytes behind the end on an emulator whose masked loads read too much.
template <class T>
class guarded {
public:
    explicit guarded(index_t capacity, edge side = edge::end) : side_(side) {
        if (side == edge::end && masked_loads_overread()) slack_ = 64;
        const auto need = static_cast<std::size_t>(std::max<index_t>(capacity, 1)) * sizeof(T) + slack_;
#if HONE_TEST_GUARD_PAGES
        page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = (need + page_ - 1) / page_ * page_;
        void* p = mmap(nullptr, bytes_ + 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) throw std::bad_alloc();
        whole_ = static_cast<unsigned char*>(p);
        if (mprotect(whole_, page_, PROT_NONE) != 0 || mprotect(whole_ + page_ + bytes_, page_, PROT_NONE) != 0) {
            munmap(whole_, bytes_ + 2 * page_);
            throw std::bad_alloc();
        }
#else
        page_ = 4096;
        bytes_ = (need + page_ - 1) / page_ * page_;
        whole_ = static_cast<unsigned char*>(std::malloc(bytes_ + 2 * page_));
        if (whole_ == nullptr) throw std::bad_alloc();
        std::memset(whole_, pattern, bytes_ + 2 * page_);
#endif
        place(capacity);
    }
    guarded(const guarded&) = delete;
    guarded& operator=(const guarded&) = delete;
    ~guarded() {
#if HONE_TEST_GUARD_PAGES
        munmap(whole_, bytes_ + 2 * page_);
#else
        std::free(whole_);
#endif
    }

    // What lay there before is overwritten with the pattern.
    T* place(index_t count) {
        used_ = static_cast<std::size_t>(count) * sizeof(T);
        unsigned char* first = whole_ + page_;
        std::memset(first, pattern, bytes_);
        data_ = side_ == edge::begin ? first : first + bytes_ - slack_ - used_;
        return data();
    }
    T* data() const { return reinterpret_cast<T*>(data_); }
    index_t size() const { return static_cast<index_t>(used_ / sizeof(T)); }

    bool intact() const {
#if HONE_TEST_GUARD_PAGES
        const unsigned char *low = whole_ + page_, *high = low + bytes_;
#else
        const unsigned char *low = whole_, *high = low + bytes_ + 2 * page_;
#endif
        const auto kept = [](unsigned char c) { return c == pattern; };
        return std::all_of(low, static_cast<const unsigned char*>(data_), kept) &&
               std::all_of(static_cast<const unsigned char*>(data_ + used_), high, kept);
    }

private:
    static constexpr unsigned char pattern = 0xA5;
    edge side_;
    std::size_t page_ = 0, bytes_ = 0, used_ = 0, slack_ = 0;
    unsigned char *whole_ = nullptr, *data_ = nullptr;
};

#if HONE_TEST_GUARD_PAGES
// Address space for elements that lie gigabytes apart: nothing of it can be touched but the pages that are opened.
class far_memory {
public:
    far_memory(index_t first, index_t last) : first_(first) {
        page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = static_cast<std::size_t>(last - first + 1) * sizeof(float) + 4 * page_;
        whole_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    far_memory(const far_memory&) = delete;
    far_memory& operator=(const far_memory&) = delete;
    ~far_memory() {
        if (*this) munmap(whole_, bytes_);
    }
    explicit operator bool() const { return whole_ != MAP_FAILED; }
    // Where element 0 is.
    float* origin() const { return reinterpret_cast<float*>(static_cast<unsigned char*>(whole_) + page_) - first_; }
    // Element i, computed without hone; its page can be touched from now on.
    float& open(index_t i) const {
        unsigned char* p = static_cast<unsigned char*>(whole_) + page_ +
                           static_cast<std::size_t>(i - first_) * sizeof(float);
        const std::size_t off = reinterpret_cast<std::uintptr_t>(p) % page_;
        REQUIRE(mprotect(p - off, page_, PROT_READ | PROT_WRITE) == 0);
        return *reinterpret_cast<float*>(p);
    }

private:
    index_t first_;
    std::size_t page_ = 0, bytes_ = 0;
    void* whole_ = nullptr;
};
#endif

// Elements that no view describes: a NaN that names itself for floats, all ones for the rest.
template <class T>
T gap() {
    if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(0x7FC0DEADu);
    if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(0x7FF8DEADBEEFDEADull);
    T x;
    std::memset(&x, 0xFF, sizeof x);
    return x;
}

// How a matrix lies: distances between elements, in elements.
struct layout {
    index_t row = 0, col = 0;
};
inline layout rows_of(index_t cols, index_t more = 0) { return {cols + more, 1}; }
inline layout cols_of(index_t rows, index_t more = 0) { return {1, rows + more}; }

// A view of any strides whose first and last byte in memory are the first and last of its guarded buffer; every element
// between that the view does not describe is a gap.
template <class T>
class matrix {
public:
    matrix(guarded<T>& memory, index_t rows, index_t cols, layout l) : memory_(&memory) {
        index_t low = 0, high = 0;
        if (rows > 0 && cols > 0) {
            const index_t r = (rows - 1) * l.row, c = (cols - 1) * l.col;
            low = std::min<index_t>(r, 0) + std::min<index_t>(c, 0);
            high = std::max<index_t>(r, 0) + std::max<index_t>(c, 0) + 1;
        }
        T* first = memory.place(high - low);
        std::fill(first, first + (high - low), gap<T>());
        view_ = {first - low, rows, cols, l.row, l.col};
    }

    const hone::matrix_view<T>& view() const { return view_; }
    hone::matrix_view<const T> in() const { return view_; }
    T& operator()(index_t i, index_t j) const { return *view_.at(i, j); }

    template <class F>
    void fill(F f) {
        for (index_t i = 0; i < view_.rows; ++i) {
            for (index_t j = 0; j < view_.cols; ++j) *view_.at(i, j) = f(i, j);
        }
    }
    void fill(random_source& source) {
        fill([&](index_t, index_t) { return source.of<T>(); });
    }

    // Remembers every byte; unchanged() and gaps_unchanged() compare with it.
    void remember() { before_.assign(memory_->data(), memory_->data() + memory_->size()); }
    bool unchanged() const { return memory_->intact() && equal(before_); }
    bool gaps_unchanged() const {
        std::vector<T> want = before_;
        for (index_t i = 0; i < view_.rows; ++i) {
            for (index_t j = 0; j < view_.cols; ++j)
                want[static_cast<std::size_t>(view_.at(i, j) - memory_->data())] = *view_.at(i, j);
        }
        return memory_->intact() && equal(want);
    }
    const T& old(index_t i, index_t j) const {
        return before_[static_cast<std::size_t>(view_.at(i, j) - memory_->data())];
    }

private:
    bool equal(const std::vector<T>& want) const {
        return want.empty() || std::memcmp(want.data(), memory_->data(), want.size() * sizeof(T)) == 0;
    }
    guarded<T>* memory_;
    hone::matrix_view<T> view_;
    std::vector<T> before_;
};

// Elements that `rows` x `cols` of this layout span.
inline index_t span_of(index_t rows, index_t cols, layout l) {
    return rows > 0 && cols > 0 ? (rows - 1) * std::abs(l.row) + (cols - 1) * std::abs(l.col) + 1 : 0;
}

// "" or where two matrices differ in a bit.
inline std::string difference(const hone::matrix_view<const float>& got, const hone::matrix_view<const float>& want) {
    for (index_t i = 0; i < want.rows; ++i) {
        for (index_t j = 0; j < want.cols; ++j) {
            if (same(*got.at(i, j), *want.at(i, j))) continue;
            std::ostringstream text;
            text.precision(9);
            text << "(" << i << ", " << j << ") is " << *got.at(i, j) << ", not " << *want.at(i, j);
            return text.str();
        }
    }
    return "";
}

// ---- executors
// -------------------------------------------------------------------------------------------------------

// As many std::threads as are asked for, made for each call; each takes the next task that nobody has begun.
class thread_executor {
public:
    explicit thread_executor(int threads) : threads_(threads) {}
    int concurrency() const { return threads_; }
    void run(index_t n, void (*task)(void*, index_t), void* state) {
        std::atomic<index_t> next{0};
        const auto work = [&] {
            for (index_t i; (i = next.fetch_add(1)) < n;) task(state, i);
        };
        std::vector<std::thread> workers;
        for (index_t i = 1; i < std::min<index_t>(threads_, n); ++i) workers.emplace_back(work);
        work();
        for (std::thread& t : workers) t.join();
        most_tasks = std::max(most_tasks, n);
    }
    index_t most_tasks = 0;  // the most one call split into

private:
    int threads_;
};

// Claims `concurrency` workers and runs the tasks on the caller, last first.
class reverse_executor {
public:
    explicit reverse_executor(int concurrency) : concurrency_(concurrency) {}
    int concurrency() const { return concurrency_; }
    void run(index_t n, void (*task)(void*, index_t), void* state) {
        for (index_t i = n; i-- > 0;) task(state, i);
        most_tasks = std::max(most_tasks, n);
    }
    index_t most_tasks = 0;

private:
    int concurrency_;
};

// ---- instruction sets
// ------------------------------------------------------------------------------------------------

// The instruction sets this machine, system and build can run; what cannot run is reported by name.
inline std::vector<hone::isa> isas() {
    std::vector<hone::isa> list;
    std::string skipped;
    for (int i = 1; i < hone::isa_count; ++i) {
        const auto id = static_cast<hone::isa>(i);
        const hone::detail::isa_row* row = hone::detail::isa_row_of(id);
        const bool sve_left_out = HONE_ARM64 && !HONE_SVE && (id == hone::isa::sve || id == hone::isa::sve2);
        if (row == nullptr || (!row->compiled && !sve_left_out))
            continue;  // another architecture's: nothing is missing
        if (hone::available(id)) {
            list.push_back(id);
        } else {
            skipped += skipped.empty() ? "" : ", ";
            skipped += hone::isa_name(id);
        }
    }
    if (masked_loads_overread())
        WARN("reads past the end are not seen: this emulator's masked loads read lanes that are off");
    if (!skipped.empty()) WARN("skipped, this CPU or compiler cannot do them: " << skipped);
    return list;
}

// Whether strict numbers are promised bit for bit.
inline bool reproducible(hone::isa id) { return id != hone::isa::native || HONE_NATIVE_FMA; }

// One registered kernel, and the policy that picks it.
struct kernel {
    hone::isa isa;
    int mr, nr, lanes, panel;
    hone::policy policy() const { return {.isa = isa, .tile = {mr, nr}}; }
    std::string text() const {
        return std::string(hone::isa_name(isa)) + " " + std::to_string(mr) + "x" + std::to_string(nr);
    }
};

// Every line of kernels.def for T that this machine can run.
template <class T = float>
std::vector<kernel> kernels() {
    std::vector<kernel> list;
    for (hone::isa id : isas()) {
        const auto& rows = hone::detail::gemm_kernels<T>(id);
        for (int i = 0; i < rows.count; ++i)
            list.push_back({id, rows.row[i].mr, rows.row[i].nr, rows.row[i].lanes, rows.row[i].panel});
    }
    return list;
}

// One kernel of each instruction set: the first.
template <class T = float>
std::vector<kernel> first_kernels() {
    std::vector<kernel> list;
    for (const kernel& k : kernels<T>()) {
        if (list.empty() || list.back().isa != k.isa) list.push_back(k);
    }
    return list;
}

}  // namespace test

namespace Catch {
template <>
struct StringMaker<hone::status> {
    static std::string convert(const hone::status& s) { return std::string(s.message().view()); }
};
}  // namespace Catch
