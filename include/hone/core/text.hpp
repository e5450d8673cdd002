// SPDX-License-Identifier: BSL-1.0
// One line of text of bounded length, made without allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "../config.hpp"

namespace hone::inline HONE_ABI {

// What does not fit is cut at the end; the text is always terminated.
class text_line {
public:
    static constexpr std::size_t capacity = 383;

    HONE_INLINE text_line& append(std::string_view s) {
        // As one copy: a loop of bytes GCC 16 turns into vectors, and warns that they do not fit.
        const std::size_t count = s.size() < capacity - size_ ? s.size() : capacity - size_;
        if (count != 0) std::memcpy(data_ + size_, s.data(), count);
        size_ += count;
        data_[size_] = '\0';
        return *this;
    }

    HONE_INLINE text_line& append(std::int64_t v) {
        char digits[20];
        std::size_t n = 0;
        std::uint64_t u = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
        do {
            digits[n++] = static_cast<char>('0' + u % 10);
            u /= 10;
        } while (u != 0);
        if (v < 0) append("-");
        while (n != 0) append(std::string_view(&digits[--n], 1));
        return *this;
    }

    HONE_INLINE const char* c_str() const { return data_; }
    HONE_INLINE std::string_view view() const { return {data_, size_}; }
    HONE_INLINE operator std::string_view() const { return view(); }

private:
    char data_[capacity + 1] = {};
    std::size_t size_ = 0;
};

}  // namespace hone::inline HONE_ABI
