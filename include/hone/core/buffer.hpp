// SPDX-License-Identifier: BSL-1.0
// Memory on 64-byte lines: an owning buffer, and the scratch that calls without a context share per thread.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "../config.hpp"

namespace hone::inline HONE_ABI {

inline constexpr std::size_t buffer_alignment = 64;  // bytes: a cache line, an AVX-512 register

// Owns bytes that begin on a 64-byte boundary; null where the system had none to give. Movable, not copyable.
class aligned_buffer {
public:
    aligned_buffer() = default;
    HONE_INLINE explicit aligned_buffer(std::size_t bytes) {
        const std::size_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
        if (bytes == 0 || rounded < bytes) return;
        data_ = static_cast<std::byte*>(std::aligned_alloc(buffer_alignment, rounded));
        size_ = data_ ? bytes : 0;
    }
    HONE_INLINE aligned_buffer(aligned_buffer&& o) noexcept : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
    HONE_INLINE aligned_buffer& operator=(aligned_buffer&& o) noexcept {
        std::swap(data_, o.data_);
        std::swap(size_, o.size_);
        return *this;
    }
    aligned_buffer(const aligned_buffer&) = delete;
    aligned_buffer& operator=(const aligned_buffer&) = delete;
    HONE_INLINE ~aligned_buffer() { std::free(data_); }

    HONE_INLINE std::byte* data() const { return data_; }
    HONE_INLINE std::size_t size() const { return size_; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

// Grows, never shrinks by itself: no allocation in the steady state.
HONE_INLINE aligned_buffer& thread_scratch() {
    thread_local aligned_buffer scratch;
    return scratch;
}

}  // namespace detail

// Frees the scratch that calls without caller memory left behind on this thread.
HONE_INLINE void release_scratch() { detail::thread_scratch() = aligned_buffer(); }

}  // namespace hone::inline HONE_ABI
