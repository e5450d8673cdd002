// SPDX-License-Identifier: BSL-1.0
// Memory on 64-byte lines: an owning buffer, and the scratch that calls without a context share per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "../config.hpp"
#if HONE_LINUX
#include <sys/mman.h>
#endif

namespace hone::inline HONE_ABI {

inline constexpr std::size_t buffer_alignment = 64;  // bytes: a cache line, an AVX-512 register

namespace detail {

// Buffers of at least a quarter of a huge page take whole ones, where the system has them for the asking. Small pages lie
// anywhere in memory, so that some sets of L2 are asked for by more lines than they hold while others stay empty.
inline constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace detail

// Owns bytes that begin on a 64-byte boundary, from half a megabyte on huge pages; null where the system had none to give.
// Movable, not copyable.
class aligned_buffer {
public:
    aligned_buffer() = default;
    HONE_INLINE explicit aligned_buffer(std::size_t bytes) {
        const std::size_t unit = HONE_LINUX && bytes >= detail::huge_page / 4 ? detail::huge_page : buffer_alignment;
        if (bytes == 0 || bytes > PTRDIFF_MAX - unit) return;  // no object is larger
        const std::size_t rounded = (bytes + unit - 1) / unit * unit;
        data_ = static_cast<std::byte*>(std::aligned_alloc(unit, rounded));
        size_ = data_ ? bytes : 0;
#if HONE_LINUX
        if (data_ && unit == detail::huge_page) (void)madvise(data_, rounded, MADV_HUGEPAGE);
#endif
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
