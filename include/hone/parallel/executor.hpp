// SPDX-License-Identifier: BSL-1.0
// How hone is given threads: it has none of its own and never makes one.
#pragma once

#include <concepts>
#include <type_traits>
#if defined(__cpp_exceptions)
#include <exception>
#endif

#include "../core/view.hpp"

namespace hone::inline HONE_ABI {

// Anything that can run n independent tasks: run(n, task, state) calls task(state, i) once for every i in 0 .. n - 1 and
// returns when all have returned. Tasks may run in any order, one after another, on any number of threads; no task waits
// for another. concurrency() is how many may usefully run at once, at least 1.
template <class X>
concept executor = requires(X& x, index_t n, void (*task)(void*, index_t), void* state) {
    { x.concurrency() } -> std::convertible_to<int>;
    x.run(n, task, state);
};

// A type-erased reference to an executor, which must outlive it. Empty: tasks run one after another on the caller.
class executor_ref {
public:
    constexpr executor_ref() = default;
    template <class X>
        requires(executor<X> && !std::same_as<std::remove_cv_t<X>, executor_ref>)
    HONE_INLINE constexpr executor_ref(X& x)
        : self_(const_cast<void*>(static_cast<const void*>(&x))),
          concurrency_([](void* s) { return static_cast<int>(static_cast<X*>(s)->concurrency()); }),
          run_([](void* s, index_t n, void (*task)(void*, index_t), void* state) { static_cast<X*>(s)->run(n, task, state); }) {}

    HONE_INLINE int concurrency() const {
        const int n = self_ ? concurrency_(self_) : 1;
        return n < 1 ? 1 : n;
    }
    HONE_INLINE void run(index_t n, void (*task)(void*, index_t), void* state) const {
        if (self_ && n > 1) return run_(self_, n, task, state);
        for (index_t i = 0; i < n; ++i) task(state, i);
    }

private:
    void* self_ = nullptr;
    int (*concurrency_)(void*) = nullptr;
    void (*run_)(void*, index_t, void (*)(void*, index_t), void*) = nullptr;
};

namespace detail::inline HONE_UNIT {

// Runs f(i) for i in 0 .. n - 1 through the executor. What f throws does not cross the executor: the first exception is
// kept and thrown again on the calling thread when all tasks have returned.
template <bool MayThrow, class F>
inline void run_tasks(const executor_ref& x, index_t n, F& f) {
    if (n == 1) return f(0);
#if HONE_EXCEPTIONS
    if constexpr (MayThrow) {
        struct guarded {
            F* f;
            bool thrown = false;  // only by __atomic_exchange_n: <atomic> is a twentieth of what a unit with one product costs
            std::exception_ptr first{};
        } g{&f};
        x.run(n, [](void* s, index_t i) {
            guarded* gs = static_cast<guarded*>(s);
            try {
                (*gs->f)(i);
            } catch (...) {
                if (!__atomic_exchange_n(&gs->thrown, true, __ATOMIC_RELAXED)) gs->first = std::current_exception();
            }
        }, &g);
        if (g.first) std::rethrow_exception(g.first);
        return;
    }
#endif
    x.run(n, [](void* s, index_t i) { (*static_cast<F*>(s))(i); }, &f);
}

}  // namespace detail::inline HONE_UNIT

}  // namespace hone::inline HONE_ABI
