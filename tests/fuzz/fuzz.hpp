// SPDX-License-Identifier: BSL-1.0
// What the fuzz targets share: numbers from the fuzzer's bytes, memory of exact size, checks that end the process.
#pragma once

#include <hone/hone.hpp>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                  \
        }                                                                                  \
    } while (false)

using hone::index_t;

// The fuzzer's bytes, consumed front to back; zeros once they are used up.
class bytes_in {
public:
    bytes_in(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    std::uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }
    template <class T>
    T raw() {
        std::uint8_t b[sizeof(T)];
        for (std::uint8_t& x : b) x = byte();
        T value;
        std::memcpy(&value, b, sizeof value);
        return value;
    }
    int below(int n) { return byte() % n; }
    bool flag() { return (byte() & 1) != 0; }
    std::size_t left() const { return left_; }
    const std::uint8_t* rest() const { return data_; }

    // Near the ends of every range that a check might compute in, or anything.
    index_t wild() {
        const int bit = below(64);
        const index_t near = static_cast<index_t>(byte()) - 128;
        if (bit == 63) return raw<index_t>();
        const auto value = static_cast<index_t>((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(near));
        return flag() ? value : static_cast<index_t>(0 - static_cast<std::uint64_t>(value));
    }
    // Mostly small enough to be computed.
    index_t extent(int small) {
        const int kind = byte();
        return kind < 240 ? kind % small : wild();
    }
    double number() {
        constexpr double few[] = {1, 0, -1, 0.5, 2, -0.0};
        const int kind = below(8);
        return kind < 6 ? few[kind] : raw<double>();
    }
    hone::policy policy() {
        hone::policy p;
        const int kind = byte();
        if (kind < 64) return p;
        constexpr int tiles[][2] = {{0, 0},  {0, 0}, {8, 48}, {6, 64}, {8, 32}, {6, 16},
                                    {6, 8},  {4, 4}, {8, 24}, {6, 32}, {6, 4},  {4, 1}};
        constexpr int blocks[] = {0, 0, 0, 1, 2, 6, 8, 12, 16, 32, 48, 64, 96, 240};
        const auto block = [&] { return kind < 224 ? blocks[below(14)] : raw<int>(); };
        p.isa = static_cast<hone::isa>(below(kind < 224 ? 4 + 1 : 10));
        const auto& t = tiles[below(12)];
        p.tile = {t[0], t[1]};
        if (kind >= 240) p.tile = {raw<std::int16_t>(), raw<std::int16_t>()};
        p.block = {.mc = block(), .kc = block(), .nc = block()};
        p.packing = static_cast<hone::packing>(below(kind < 224 ? 5 : 7));
        p.algorithm = static_cast<hone::algorithm>(below(kind < 224 ? 3 : 5));
        p.threads = kind < 224 ? below(4) : raw<int>();
        if (kind >= 224) {
            p.precision = {static_cast<hone::dtype>(below(12)), static_cast<hone::dtype>(below(12)),
                           static_cast<hone::dtype>(below(12)), static_cast<hone::dtype>(below(12))};
            p.numerics = static_cast<hone::numerics>(below(3));
        }
        return p;
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

// What any plan answers without running, for its own number of workers and any other.
template <class Plan>
void check_answers(const Plan& plan, bytes_in& in, int pool) {
    FUZZ_CHECK(std::strlen(plan.explain().text().c_str()) > 20);
    FUZZ_CHECK(plan.packed_bytes() >= static_cast<index_t>(sizeof(hone::packed_header)));
    const int workers = in.flag() ? pool : in.template raw<int>();
    for (const bool packed : {false, true}) {
        FUZZ_CHECK(plan.scratch_bytes(workers, packed) >= 0);
        FUZZ_CHECK(plan.scratch_bytes(pool, packed) >= 0);
        FUZZ_CHECK(plan.explain(packed).scratch_bytes >= 0);
    }
}

// Exactly so many bytes on a 64-byte line: AddressSanitizer sees one byte beyond.
class exact_memory {
public:
    explicit exact_memory(std::size_t bytes) : size_(bytes) {
        void* p = nullptr;
        FUZZ_CHECK(posix_memalign(&p, 64, bytes == 0 ? 1 : bytes) == 0);
        data_ = static_cast<std::byte*>(p);
        std::memset(p, 0xAB, bytes);
    }
    exact_memory(const exact_memory&) = delete;
    exact_memory& operator=(const exact_memory&) = delete;
    ~exact_memory() { std::free(data_); }
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> span() const { return {data_, size_}; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data_);
    }
    float* floats() const { return as<float>(); }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// An executor that claims what it likes and runs its tasks backwards.
struct backwards {
    int count = 1;
    int concurrency() const { return count; }
    void run(index_t n, void (*task)(void*, index_t), void* state) const {
        for (index_t i = n; i-- > 0;) task(state, i);
    }
};

// Where the elements of a strided view lie: how many before its first one and in all, where those are below `most`.
struct span_of_view {
    index_t before = 0, count = 0;
    bool fits = true;
    span_of_view(std::initializer_list<std::pair<index_t, index_t>> axes, index_t most) {
        __int128 low = 0, high = 0;
        for (const auto& [extent, stride] : axes) {
            if (extent <= 0) {
                count = 0;
                before = 0;
                fits = true;
                return;
            }
            const __int128 reach = static_cast<__int128>(extent - 1) * stride;
            (reach < 0 ? low : high) += reach;
            if (high - low >= most) fits = false;
        }
        if (!fits) return;
        before = static_cast<index_t>(-low);
        count = static_cast<index_t>(high - low) + 1;
    }
    template <class T = float>
    std::size_t bytes() const {
        return static_cast<std::size_t>(count) * sizeof(T);
    }
};

// Operands: whole numbers, whose sums are exact in any order, or fractions and, rarely, what is not finite.
class values {
public:
    values(std::uint32_t seed, bool exact) : state_(seed), exact_(exact) {}
    float operator()() { return of<float>(); }
    template <class T>
    T of() {
        using limits = std::numeric_limits<T>;
        state_ = state_ * 1664525u + 1013904223u;
        const std::uint32_t r = state_ >> 8;
        const T whole = static_cast<T>(static_cast<int>(r % 17) - 8);
        if (exact_) return whole;
        switch (r / 17 % 1024) {
            case 0: return limits::infinity();
            case 1: return limits::quiet_NaN();
            case 2: return T(-0.0);
            case 3: return limits::min() / T(117);  // subnormal
            case 4: return limits::max() / T(1.13);
            default: return whole * T(0.37) + static_cast<T>(r % 1000) * T(1e-3);
        }
    }

private:
    std::uint32_t state_;
    bool exact_;
};

// Bits, but for the sign of zero where it is not promised; any NaN for any other.
template <class T>
bool same(T x, T y, bool signed_zero) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y && (!signed_zero || std::signbit(x) == std::signbit(y));
}

// Says what was refused.
inline void check_done(const hone::status& s) {
    if (!s.ok()) std::fprintf(stderr, "%s\n", s.message().c_str());
    FUZZ_CHECK(s.ok());
}

// A status that is not ok says something.
inline void check_refusal(const hone::status& s) {
    FUZZ_CHECK(!s.ok());
    FUZZ_CHECK(s.argument != hone::argument::none);
    FUZZ_CHECK(std::strlen(s.message().c_str()) > 8);
}
