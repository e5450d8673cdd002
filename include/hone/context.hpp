// SPDX-License-Identifier: BSL-1.0
// What a call may use: threads and memory. Cheap to make; one per concurrent call. Plans and packed weights are immutable
// and shared by all of them.
#pragma once

#include <cstddef>
#include <span>

#include "config.hpp"
#include "core/buffer.hpp"
#include "core/status.hpp"
#include "parallel/executor.hpp"

namespace hone::inline HONE_ABI {

// Without a context a call is serial and takes its scratch from a buffer of the calling thread that grows and is kept
// (release_scratch() frees it).
struct context {
    executor_ref executor{};
    std::span<std::byte> scratch{};  // empty: the calling thread's buffer; else at least scratch_bytes(), 64-byte aligned
};

namespace detail::inline HONE_UNIT {

// `bytes` of scratch from the context, or from the calling thread.
inline expected<std::byte*> scratch_from(const context& ctx, index_t bytes) {
    if (!ctx.scratch.empty()) {
        const auto size = static_cast<index_t>(ctx.scratch.size());
        if (size < bytes) return hone::status{code::too_small, argument::scratch, size, bytes};
        const auto address = reinterpret_cast<std::uintptr_t>(ctx.scratch.data());
        if (address % buffer_alignment != 0) {
            return hone::status{code::misaligned, argument::scratch, static_cast<index_t>(address % buffer_alignment),
                                static_cast<index_t>(buffer_alignment)};
        }
        return ctx.scratch.data();
    }
    aligned_buffer& own = hone::detail::thread_scratch();
    if (static_cast<index_t>(own.size()) < bytes) {
        own = aligned_buffer();
        own = aligned_buffer(static_cast<std::size_t>(bytes));
        if (own.data() == nullptr) return hone::status{code::out_of_memory, argument::scratch, bytes, bytes};
    }
    return own.data();
}

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
