// SPDX-License-Identifier: BSL-1.0
// Operands, and the check of what a contender computed.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "peers/peer.hpp"

namespace bench {

// 64-byte aligned, so that no contender gains from where an allocation fell.
template <class T>
class numbers {
public:
    explicit numbers(long count)
        : size_(static_cast<std::size_t>(count)),
          data_(static_cast<T*>(std::aligned_alloc(64, (size_ * sizeof(T) + 127) / 64 * 64)), std::free) {
        if (data_ == nullptr) std::abort();
        fill(0);
    }
    T* data() { return data_.get(); }
    std::size_t size() const { return size_; }
    void fill(T value) { std::fill_n(data_.get(), size_, value); }
    // Uniform in [-1, 1), the same on every machine.
    void fill_random(std::uint64_t seed) {
        std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
        for (std::size_t i = 0; i < size_; ++i) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            data_.get()[i] =
                static_cast<T>(static_cast<std::int64_t>(x >> 40) - (1 << 23)) / static_cast<T>(1 << 23);
        }
    }

private:
    std::size_t size_;
    std::unique_ptr<T, void (*)(void*)> data_;
};
using floats = numbers<float>;

// What an element must be, in f64, and how far off it may be.
struct expectation {
    std::size_t at;
    double value, tolerance;
};

// Empty when all elements of the result are numbers and those with an expectation are within it.
template <class T>
std::string compare(const T* result, std::size_t size, const std::vector<expectation>& expected) {
    for (std::size_t i = 0; i < size; ++i)
        if (std::isnan(result[i])) return "element " + std::to_string(i) + " is NaN or was not written";
    for (const expectation& e : expected)
        if (!(std::abs(static_cast<double>(result[e.at]) - e.value) <= e.tolerance))
            return "element " + std::to_string(e.at) + " is " + std::to_string(result[e.at]) + " and must be " +
                   std::to_string(e.value);
    return "";
}

// Which elements of `size` get an expectation: all, or the first and last 64 and 2,000 spread over the rest by a step
// that has no common factor with tile sizes.
inline std::vector<std::size_t> sampled(std::size_t size) {
    std::vector<std::size_t> at;
    if (size <= 4096) {
        for (std::size_t i = 0; i < size; ++i) at.push_back(i);
        return at;
    }
    for (std::size_t i = 0; i < 64; ++i) at.push_back(i), at.push_back(size - 1 - i);
    const std::size_t step = size / 2000 | 1;
    for (std::size_t i = 0; i < size; i += step) at.push_back(i);
    return at;
}

// Every peer's entries for one problem. `output` is filled with NaN before a contender's first run: what it leaves out
// shows.
template <class Problem, class T>
std::vector<contender> contenders(std::vector<entry> (*peer::*how)(const Problem&), const Problem& problem,
                                  std::shared_ptr<void> owner, T* output, std::size_t size,
                                  std::shared_ptr<const std::vector<expectation>> expected) {
    std::vector<contender> all;
    for (const peer& p : peers()) {
        if (p.*how == nullptr) continue;
        for (entry& e : (p.*how)(problem)) {
            contender c;
            c.name = e.name;
            c.group = e.group;
            c.weights = e.weights;
            c.weight_bytes = e.weight_bytes;
            auto run = std::make_shared<std::function<void(long)>>(std::move(e.run));
            c.run = [run, owner](long times) { (*run)(times); };
            c.check = [run, read = e.read, owner, output, size, expected] {
                std::fill_n(output, size, std::numeric_limits<T>::quiet_NaN());
                (*run)(1);
                if (read) read();
                return compare(output, size, *expected);
            };
            all.push_back(std::move(c));
        }
    }
    return all;
}

}  // namespace bench
