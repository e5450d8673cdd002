// SPDX-License-Identifier: BSL-1.0
// For callers who want exceptions: or_throw() turns a status that is not ok into one.
#pragma once

#include "config.hpp"
#include "core/status.hpp"

#if HONE_EXCEPTIONS
#include <exception>

namespace hone::inline HONE_ABI {

class error : public std::exception {
public:
    explicit error(const hone::status& s) : status_(s), text_(s.message()) {}
    const char* what() const noexcept override { return text_.c_str(); }
    hone::status status() const { return status_; }

private:
    hone::status status_;
    text_line text_;
};

// hone::or_throw(hone::gemm(a, b, c));
HONE_INLINE void or_throw(const status& s) {
    if (!s.ok()) throw error(s);
}

// auto plan = hone::or_throw(hone::plan(desc));
template <class T>
HONE_INLINE T or_throw(const expected<T>& e) {
    if (!e) throw error(e.status());
    return *e;
}

}  // namespace hone::inline HONE_ABI
#endif
