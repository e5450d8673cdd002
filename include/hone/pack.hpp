// SPDX-License-Identifier: BSL-1.0
// Packed weights describe themselves: a header says what they are, so that a file made on one machine is either right on
// another or refused, never garbage. The key is the layout, not the ISA: instruction sets that share a layout share the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "config.hpp"
#include "core/buffer.hpp"
#include "core/status.hpp"
#include "core/view.hpp"

namespace hone::inline HONE_ABI {

// What the panels hold. (groups, panel order, then as kernel/tile.hpp draws it.)
// winograd: the elements of transformed filters, one matrix (ic, oc) after the other.
// gemm_b_halves: panels of columns [0, n / 2) and [n / 2, n) in turn, for epilogues that combine the halves.
enum class packed_kind : std::uint32_t { gemm_b = 1, conv = 2, depthwise = 3, gemm_b_halves = 4, winograd_2x2 = 5, winograd_4x4 = 6 };

// The first 128 bytes of packed weights, little-endian. The payload follows.
struct packed_header {
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    packed_kind kind{};
    std::uint32_t element = 0;          // bytes of an element
    std::uint32_t panel = 0;            // columns of a panel; depthwise: 0
    std::int64_t groups = 0;            // independent products
    std::int64_t k = 0, n = 0;          // rows and columns of B of one group; depthwise: taps and channels
    std::int64_t kh = 0, kw = 0;        // convolution: k = kh * kw * ic in this order
    std::uint64_t finite = 0;           // 1: no infinity and no NaN among the weights
    std::uint64_t payload_bytes = 0;
    std::uint64_t payload_checksum = 0;
    std::uint64_t reserved[4] = {};
    std::uint64_t header_checksum = 0;  // over everything before it
};
static_assert(sizeof(packed_header) == 128);

inline constexpr std::uint64_t packed_magic = 0x4B434150454E4F48ull;  // "HONEPACK"
inline constexpr std::uint32_t packed_version = 1;

namespace detail::inline HONE_UNIT {

// 64-bit checksum of whole words, the tail padded with zeros: multiply and fold, four lanes so that reading bounds it.
inline std::uint64_t checksum(const std::byte* p, std::size_t bytes) {
    constexpr std::uint64_t prime = 0x9E3779B97F4A7C15ull;
    std::uint64_t lane[4] = {1, 2, 3, 4};
    std::size_t i = 0;
    const auto mix = [](std::uint64_t h, std::uint64_t w) {
        h = (h ^ w) * prime;
        return h ^ (h >> 29);
    };
    for (; i + 32 <= bytes; i += 32) {
        std::uint64_t w[4];
        std::memcpy(w, p + i, 32);
        for (int j = 0; j < 4; ++j) lane[j] = mix(lane[j], w[j]);
    }
    for (int j = 0; i < bytes; i += 8, j = (j + 1) % 4) {
        std::uint64_t w = 0;
        std::memcpy(&w, p + i, bytes - i < 8 ? bytes - i : 8);
        lane[j] = mix(lane[j], w);
    }
    return mix(mix(mix(mix(bytes, lane[0]), lane[1]), lane[2]), lane[3]);
}

inline std::uint64_t header_checksum(const packed_header& h) {
    std::byte raw[sizeof h];
    std::memcpy(raw, &h, sizeof h);
    return checksum(raw, offsetof(packed_header, header_checksum));
}

}  // namespace detail::inline HONE_UNIT

// Packed weights in memory that somebody else owns: written by a plan's pack(), or mapped from a file. Copies refer to the
// same bytes. Safe to read from any number of threads.
class packed_view {
public:
    packed_view() = default;

    // Checks the header: alignment, length, magic, version and its checksum. O(1). The payload is checked by verify().
    HONE_INLINE static expected<packed_view> open(std::span<const std::byte> bytes) {
        const auto size = static_cast<std::int64_t>(bytes.size());
        if (bytes.size() < sizeof(packed_header)) {
            return status{code::too_small, argument::packed_bytes, size, static_cast<std::int64_t>(sizeof(packed_header))};
        }
        const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
        if (address % buffer_alignment != 0) {
            return status{code::misaligned, argument::packed_bytes, static_cast<std::int64_t>(address % buffer_alignment),
                          static_cast<std::int64_t>(buffer_alignment)};
        }
        packed_view v;
        v.data_ = bytes.data();
        const packed_header h = v.header();
        if (h.magic != packed_magic) {
            return status{code::corrupt, argument::packed_magic, static_cast<std::int64_t>(h.magic),
                          static_cast<std::int64_t>(packed_magic)};
        }
        if (h.version != packed_version) {
            return status{code::corrupt, argument::packed_version, h.version, packed_version};
        }
        if (h.header_checksum != detail::header_checksum(h)) {
            return status{code::corrupt, argument::packed_header, static_cast<std::int64_t>(h.header_checksum),
                          static_cast<std::int64_t>(detail::header_checksum(h))};
        }
        if (h.payload_bytes > bytes.size() - sizeof(packed_header)) {
            return status{code::too_small, argument::packed_bytes, size,
                          static_cast<std::int64_t>(h.payload_bytes + sizeof(packed_header))};
        }
        return v;
    }

    // Reads the whole payload and compares its checksum.
    HONE_INLINE status verify() const {
        if (data_ == nullptr) return {code::null_pointer, argument::packed_payload, 0, 1};
        const packed_header h = header();
        const std::uint64_t sum = detail::checksum(data_ + sizeof(packed_header), static_cast<std::size_t>(h.payload_bytes));
        if (sum != h.payload_checksum) {
            return {code::corrupt, argument::packed_payload, static_cast<std::int64_t>(sum),
                    static_cast<std::int64_t>(h.payload_checksum)};
        }
        return {};
    }

    HONE_INLINE bool empty() const { return data_ == nullptr; }
    HONE_INLINE packed_header header() const {
        packed_header h;
        if (data_ != nullptr) std::memcpy(static_cast<void*>(&h), data_, sizeof h);
        return h;
    }
    HONE_INLINE const std::byte* payload() const { return data_ + sizeof(packed_header); }

private:
    const std::byte* data_ = nullptr;
};

namespace detail::inline HONE_UNIT {

// Everything that makes two packings interchangeable, compared with what a plan wants. O(1).
inline status check_packed(const packed_view& v, const packed_header& want) {
    if (v.empty()) return {code::null_pointer, argument::packed_bytes, 0, 1};
    const packed_header h = v.header();
    if (h.header_checksum != header_checksum(h)) {
        return {code::corrupt, argument::packed_header, static_cast<std::int64_t>(h.header_checksum),
                static_cast<std::int64_t>(header_checksum(h))};
    }
    if (h.kind != want.kind) {
        return {code::corrupt, argument::packed_layout, static_cast<std::int64_t>(h.kind), static_cast<std::int64_t>(want.kind)};
    }
    if (h.element != want.element) return {code::corrupt, argument::packed_layout, h.element, want.element};
    if (h.panel != want.panel) return {code::corrupt, argument::packed_layout, h.panel, want.panel};
    if (h.groups != want.groups) return {code::corrupt, argument::packed_extent, h.groups, want.groups};
    if (h.k != want.k) return {code::corrupt, argument::packed_extent, h.k, want.k};
    if (h.n != want.n) return {code::corrupt, argument::packed_extent, h.n, want.n};
    if (h.kh != want.kh) return {code::corrupt, argument::packed_extent, h.kh, want.kh};
    if (h.kw != want.kw) return {code::corrupt, argument::packed_extent, h.kw, want.kw};
    if (h.payload_bytes != want.payload_bytes) {
        return {code::corrupt, argument::packed_extent, static_cast<std::int64_t>(h.payload_bytes),
                static_cast<std::int64_t>(want.payload_bytes)};
    }
    return {};
}

// Checks caller memory for `bytes` of packed weights.
inline status check_pack_memory(std::span<std::byte> memory, std::int64_t bytes) {
    const auto size = static_cast<std::int64_t>(memory.size());
    if (size < bytes) return {code::too_small, argument::memory, size, bytes};
    if (memory.data() == nullptr) return {code::null_pointer, argument::memory, 0, bytes};
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    if (address % buffer_alignment != 0) {
        return {code::misaligned, argument::memory, static_cast<std::int64_t>(address % buffer_alignment),
                static_cast<std::int64_t>(buffer_alignment)};
    }
    return {};
}

// Completes `h` for the payload that lies behind it and writes it in front.
template <class T>
inline void seal(std::byte* memory, packed_header h) {
    const std::byte* payload = memory + sizeof(packed_header);
    const T* w = reinterpret_cast<const T*>(payload);
    bool finite = true;
    for (std::size_t i = 0; i < h.payload_bytes / sizeof(T); ++i) finite = finite && (w[i] - w[i] == T(0));
    h.magic = packed_magic;
    h.version = packed_version;
    h.finite = finite ? 1 : 0;
    h.payload_checksum = checksum(payload, static_cast<std::size_t>(h.payload_bytes));
    h.header_checksum = header_checksum(h);
    std::memcpy(memory, &h, sizeof h);
}

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
