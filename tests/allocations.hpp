// SPDX-License-Identifier: BSL-1.0
// Counts what a program allocates: replaces malloc and its kin where the C library is glibc, operator new and delete
// elsewhere. For one source file of an executable, linked dynamically.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// Sanitizers have an allocator of their own; there only operator new is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HONE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define HONE_TEST_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HONE_TEST_SANITIZED)
#define HONE_TEST_COUNTS_MALLOC 1
#else
#define HONE_TEST_COUNTS_MALLOC 0
#endif

namespace test {

struct allocation_counts {
    std::atomic<long> made{0}, freed{0};
    long live() const { return made.load() - freed.load(); }
};
inline allocation_counts allocations;

inline void* counted(void* p) {
    if (p != nullptr) allocations.made.fetch_add(1, std::memory_order_relaxed);
    return p;
}
inline void uncounted(void* p) {
    if (p != nullptr) allocations.freed.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace test

#if HONE_TEST_COUNTS_MALLOC

// The C library's own entry points, which stay when malloc is replaced.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t n) { return test::counted(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t size) { return test::counted(__libc_calloc(n, size)); }
void* realloc(void* p, std::size_t n) {
    test::uncounted(p);
    return test::counted(__libc_realloc(p, n));
}
void* memalign(std::size_t alignment, std::size_t n) { return test::counted(__libc_memalign(alignment, n)); }
void* aligned_alloc(std::size_t alignment, std::size_t n) { return test::counted(__libc_memalign(alignment, n)); }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
    *p = test::counted(__libc_memalign(alignment, n));
    return *p != nullptr ? 0 : 12;  // ENOMEM
}
void free(void* p) {
    test::uncounted(p);
    __libc_free(p);
}
}

#else

void* operator new(std::size_t n) {
    if (void* p = test::counted(std::malloc(n != 0 ? n : 1))) return p;
    throw std::bad_alloc();
}
void* operator new[](std::size_t n) { return operator new(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
    return test::counted(std::malloc(n != 0 ? n : 1));
}
void* operator new[](std::size_t n, const std::nothrow_t& t) noexcept { return operator new(n, t); }
void operator delete(void* p) noexcept {
    test::uncounted(p);
    std::free(p);
}
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete[](void* p, std::size_t) noexcept { operator delete(p); }

#endif
