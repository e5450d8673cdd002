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

// Scratch for one call: the context's, or the calling thread's buffer, taken from it until the call ends. A call inside a
// stage, or on a thread that takes other work while it waits in an executor, finds it gone and makes one of its own; the
// larger of the two is kept.
class borrowed_scratch {
public:
    borrowed_scratch(const context& ctx, index_t bytes) {
        if (!ctx.scratch.empty()) {
            const auto size = static_cast<index_t>(ctx.scratch.size());
            const auto off = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(ctx.scratch.data()) % buffer_alignment);
            if (size < bytes) status_ = {code::too_small, argument::scratch, size, bytes};
            else if (off != 0) status_ = {code::misaligned, argument::scratch, off, static_cast<index_t>(buffer_alignment)};
            else data_ = ctx.scratch.data();
            return;
        }
        own_ = std::move(hone::detail::thread_scratch());
        if (static_cast<index_t>(own_.size()) < bytes) {
            own_ = aligned_buffer();
            own_ = aligned_buffer(static_cast<std::size_t>(bytes));
            if (own_.data() == nullptr) status_ = {code::out_of_memory, argument::scratch, bytes, bytes};
        }
        data_ = own_.data();
    }
    borrowed_scratch(const borrowed_scratch&) = delete;
    borrowed_scratch& operator=(const borrowed_scratch&) = delete;
    ~borrowed_scratch() {
        if (own_.data() == nullptr) return;
        aligned_buffer& kept = hone::detail::thread_scratch();
        if (own_.size() > kept.size()) kept = std::move(own_);
    }

    explicit operator bool() const { return status_.ok(); }
    hone::status status() const { return status_; }
    std::byte* operator*() const { return data_; }

private:
    std::byte* data_ = nullptr;
    aligned_buffer own_;
    hone::status status_{};
};

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
