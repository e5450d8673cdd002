// SPDX-License-Identifier: BSL-1.0
// The steady state: after one call with a given context the next ones allocate nothing, take no lock and make no system
// call. Each operation runs in a process of its own, which after its first call installs a filter that traps system
// calls: none is missed, whichever library makes it, and none is carried out.
#include <hone/hone.hpp>

#include "reference.hpp"

#include "allocations.hpp"

#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>

#if defined(__linux__) && __has_include(<linux/seccomp.h>) && __has_include(<linux/filter.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <cerrno>
#define HONE_TEST_TRAPS 1
#else
#define HONE_TEST_TRAPS 0
#endif

// Locks of the C library are counted where it is glibc, whose functions stay reachable behind those below; a loop around
// an atomic is not. Sanitizers have such functions, and make system calls, of their own.
#if defined(__GLIBC__) && !defined(HONE_TEST_SANITIZED)
#include <dlfcn.h>
#include <pthread.h>
#define HONE_TEST_COUNTS_LOCKS 1
#else
#define HONE_TEST_COUNTS_LOCKS 0
#endif

namespace test {

inline std::atomic<long> locks_taken{0};

}  // namespace test

#if HONE_TEST_COUNTS_LOCKS

// Replaces a function of the C library by one that counts its calls.
#define COUNTED(name, type)                                                                              \
    int name(type* p) noexcept {                                                                         \
        static std::atomic<int (*)(type*)> behind{nullptr};                                              \
        int (*f)(type*) = behind.load(std::memory_order_relaxed);                                        \
        if (f == nullptr) behind = f = reinterpret_cast<int (*)(type*)>(dlsym(RTLD_NEXT, #name));        \
        test::locks_taken.fetch_add(1, std::memory_order_relaxed);                                       \
        return f(p);                                                                                     \
    }
extern "C" {
COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNTED(pthread_spin_lock, pthread_spinlock_t)
}
#undef COUNTED

#endif

using test::index_t;

namespace {

// ---- what a call does beside its work

using call = std::function<bool()>;  // one call; whether it did what it was asked for

struct report {
    bool ended = false;       // the process came to its end
    bool right = false;       // every call did what it was asked for
    bool trapped = false;     // system calls were counted
    long allocations = 0, locks = 0, system_calls = 0;
    long which = -1;          // the number of the first system call
};

// `calls` calls, counted.
void count_calls(const call& f, int calls, report& r) {
    const long made = test::allocations.made.load(), locks = test::locks_taken.load();
    bool right = true;
    for (int i = 0; i < calls; ++i) right = f() && right;
    r.allocations = test::allocations.made.load() - made;
    r.locks = test::locks_taken.load() - locks;
    r.right = right;
}

#if HONE_TEST_TRAPS

report* shared_report = nullptr;

// The call is not carried out: it fails as one that the system does not have.
[[maybe_unused]] void trapped(int, siginfo_t* info, void* context) {
    if (shared_report->system_calls++ == 0) shared_report->which = info->si_syscall;
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    machine.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
    machine.regs[0] = static_cast<unsigned long long>(-ENOSYS);
#else
    static_cast<void>(machine);
#endif
}

// From here on a system call other than the return from a signal and the end of the process raises SIGSYS.
bool trap_system_calls() {
#if defined(HONE_TEST_SANITIZED)
    return false;
#else
    struct sigaction action {};
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_rt_sigreturn},
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_exit_group},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
#endif
}

// In a process of its own: makes the operation, calls it once, and counts what three more calls do.
template <class Make>
report watch(const Make& make) {
    void* memory = mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    shared_report = new (memory) report;
    const pid_t child = fork();
    if (child == 0) {
        alarm(300);  // for whoever waits for a system call that never succeeds
        hone::release_scratch();
        const call f = make();
        if (f()) {
            shared_report->trapped = trap_system_calls();
            count_calls(f, 3, *shared_report);
            shared_report->ended = true;
        }
        _exit(0);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    report r = *shared_report;
    r.ended = r.ended && WIFEXITED(status);
    munmap(memory, sizeof(report));
    return r;
}

#else

template <class Make>
report watch(const Make& make) {
    report r;
    hone::release_scratch();
    const call f = make();
    if (!f()) return r;
    count_calls(f, 3, r);
    r.ended = true;
    return r;
}

#endif

bool traps() {
    static const bool can = watch([] { return call([] { return true; }); }).trapped;
    return can;
}

// What is not counted here, by name.
void tell_what_is_skipped() {
    if (!traps()) WARN("skipped: system calls are not counted, without a seccomp filter or with a sanitizer");
    if (!HONE_TEST_COUNTS_MALLOC) WARN("skipped: malloc is not counted here, operator new alone is");
    if (!HONE_TEST_COUNTS_LOCKS) WARN("skipped: locks are not counted here");
}

template <class Make>
void check_steady(const std::string& name, const Make& make) {
    const report r = watch(make);
    INFO(name << ": the first system call has number " << r.which);
    CHECK(r.ended);
    CHECK(r.right);
    CHECK(r.allocations == 0);
    CHECK(r.locks == 0);
    CHECK(r.system_calls == 0);
    CHECK(r.trapped == traps());
}

// ---- operands

template <class T>
std::vector<T> numbers(index_t count, std::uint64_t seed) {
    test::random_source source(seed);
    std::vector<T> list(static_cast<std::size_t>(count));
    for (T& x : list) x = source.of<T>();
    return list;
}

template <class T, class C = T>
struct product {
    index_t m, n, k;
    std::vector<T> a, b;
    std::vector<C> c;
    product(index_t rows, index_t cols, index_t depth)
        : m(rows),
          n(cols),
          k(depth),
          a(numbers<T>(m * k, 1)),
          b(numbers<T>(k * n, 2)),
          c(static_cast<std::size_t>(m * n)) {}
    hone::matrix_view<const T> va() const { return hone::row_major<const T>(a.data(), m, k); }
    hone::matrix_view<const T> vb() const { return hone::row_major<const T>(b.data(), k, n); }
    hone::matrix_view<C> vc() { return hone::row_major(c.data(), m, n); }
    hone::gemm_desc desc() const { return {.m = m, .n = n, .k = k}; }

    // Whether f, which gives a status, wrote all of C.
    template <class F>
    bool written(const F& f) {
        std::fill(c.begin(), c.end(), C(std::numeric_limits<float>::quiet_NaN()));
        return f().ok() && std::none_of(c.begin(), c.end(), [](C x) { return std::isnan(static_cast<float>(x)); });
    }
};

std::shared_ptr<hone::aligned_buffer> memory_of(index_t bytes) {
    return std::make_shared<hone::aligned_buffer>(static_cast<std::size_t>(bytes));
}
std::span<std::byte> span_of(const std::shared_ptr<hone::aligned_buffer>& memory) {
    return {memory->data(), memory->size()};
}

// A call that fails, for what cannot be made.
call cannot() {
    return [] { return false; };
}

// One product by hone::gemm, whose stages and context do not matter to the caller.
template <class T, class... More>
auto plainly(index_t m, index_t n, index_t k, const More&... more) {
    return [=] {
        return call([=, p = product<T>(m, n, k)]() mutable {
            return p.written([&] { return hone::gemm(p.va(), p.vb(), p.vc(), more...); });
        });
    };
}

// One product of a plan, made for that kernel, or not made at all where `kernel` names another.
template <class T>
auto planned(const product<T>& p, const hone::gemm_desc& desc, const hone::policy& how, const char* kernel = nullptr) {
    return [=] {
        const auto plan = hone::plan<T>(desc, how);
        if (!plan) return cannot();
        if (kernel != nullptr && std::string_view(plan->explain().kernel) != kernel) return cannot();
        const auto placed = [](hone::strides s, index_t cols) {
            return s == hone::strides{} ? hone::strides{cols, 1} : s;
        };
        return call([plan = *plan, sa = placed(desc.a, p.k), sb = placed(desc.b, p.n), q = p]() mutable {
            const hone::matrix_view<const T> a{q.a.data(), q.m, q.k, sa.row, sa.col};
            const hone::matrix_view<const T> b{q.b.data(), q.k, q.n, sb.row, sb.col};
            return q.written([&] { return plan.run(a, b, q.vc()); });
        });
    };
}

}  // namespace

TEST_CASE("the watch sees system calls, allocations and locks, and what is done once only it does not") {
    tell_what_is_skipped();
    const report idle = watch([] { return call([] { return true; }); });
    CHECK((idle.ended && idle.right));
    CHECK(idle.allocations + idle.locks + idle.system_calls == 0);

    const report fails = watch([] {
        return call([first = true]() mutable { return std::exchange(first, false); });
    });
    CHECK((fails.ended && !fails.right));

    const report allocates = watch([] {
        return call([] {
            void* volatile p = ::operator new(1);
            ::operator delete(p);
            return true;
        });
    });
    CHECK(allocates.ended);
    CHECK(allocates.allocations == 3);

    // Scratch given back after each call is allocated again by the next one.
    const report scratch = watch([] {
        return call([p = product<float>(70, 300, 90)]() mutable {
            const bool ok = hone::gemm(p.va(), p.vb(), p.vc()).ok();
            hone::release_scratch();
            return ok;
        });
    });
    CHECK(scratch.ended);
#if HONE_TEST_COUNTS_MALLOC
    CHECK(scratch.allocations == 3);
#endif

#if HONE_TEST_COUNTS_LOCKS
    const report locks = watch([] {
        const auto m = std::make_shared<std::mutex>();
        const auto s = std::make_shared<std::shared_mutex>();
        return call([m, s] {
            const std::lock_guard one(*m);
            const std::shared_lock shared(*s);
            return true;
        });
    });
    CHECK((locks.ended && locks.right));
    CHECK(locks.locks == 6);
    CHECK(locks.allocations + locks.system_calls == 0);
#endif

#if HONE_TEST_TRAPS
    if (!traps()) return;
    const report asks = watch([] {
        return call([] {
            syscall(SYS_getppid);
            return true;
        });
    });
    CHECK((asks.ended && asks.trapped));
    CHECK(asks.system_calls == 3);
    CHECK(asks.which == SYS_getppid);

    const report maps = watch([] {
        return call([] {
            void* p = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (p != MAP_FAILED) munmap(p, 1 << 20);
            return true;
        });
    });
    CHECK((maps.ended && maps.trapped));
    CHECK(maps.system_calls == 3);
    CHECK(maps.which == SYS_mmap);

    const report once = watch([] {
        return call([first = true]() mutable {
            if (std::exchange(first, false)) syscall(SYS_getppid);
            return true;
        });
    });
    CHECK((once.ended && once.trapped));
    CHECK(once.system_calls == 0);
#endif
}

namespace {

// Everything that GEMM has for sums of T.
template <class T>
void check_gemm() {
    tell_what_is_skipped();
    const hone::detail::gemm_kernel<T>& kn = hone::detail::gemm_kernels<T>(hone::active_isa()).row[0];
    for (const index_t size : {4, 16, 23, 64}) {
        check_steady("small " + std::to_string(size), plainly<T>(size, size, size));
    }
    check_steady("medium", plainly<T>(70, 300, 90));
    check_steady("few rows of a long B", plainly<T>(12, 200, 300));
    check_steady("one column", plainly<T>(150, 1, 200));

    // Blocks of k as the machine's caches give them.
    const auto model = hone::plan<T>({.m = 20, .n = 200, .k = 1 << 20});
    REQUIRE(model.status() == hone::status{});
    const index_t deep = 2 * index_t{model->explain().block.kc} + 1;
    check_steady("three blocks of k", plainly<T>(20, 200, deep));
    check_steady("three blocks of k and stages", plainly<T>(20, 200, deep, hone::scale(0.5) | hone::relu));

    // So much scratch that it lies on pages the system is asked for.
    const hone::policy blocked{.block = {64, 256, 1024}};
    const hone::gemm_desc large{.m = 130, .n = 700, .k = 300};
    const auto in_blocks = hone::plan<T>(large, blocked);
    REQUIRE(in_blocks.status() == hone::status{});
    CHECK(in_blocks->scratch_bytes() > 600000);
    check_steady("a block of B in scratch", planned(product<T>(130, 700, 300), large, blocked));

    product<T> wide(40, 90, 50);
    check_steady("alpha and beta", [&] {
        return call([p = wide]() mutable { return hone::gemm(2.0, p.va(), p.vb(), 0.5, p.vc()).ok(); });
    });
    check_steady("A and B by columns", planned(wide, {.m = 40, .n = 90, .k = 50, .a = {1, 40}, .b = {1, 50}}, {}));
    check_steady("C by columns", [&] {
        return call([p = wide]() mutable {
            return p.written([&] { return hone::gemm(p.va(), p.vb(), hone::col_major(p.c.data(), p.m, p.n)); });
        });
    });

    const char* const ranks = kn.rank[0][0] != nullptr ? "gemm by rank updates" : "gemm";
    check_steady("rank updates", planned(product<T>(1, 300, 500), {.m = 1, .n = 300, .k = 500}, {}, ranks));
    check_steady("rank updates of two rows", planned(product<T>(2, 300, 500), {.m = 2, .n = 300, .k = 500}, {}, ranks));
    check_steady("rank updates and stages", plainly<T>(1, 300, 500, hone::scale(0.5) | hone::relu));
    const char* const narrow = kn.narrow != nullptr ? "gemm of few columns" : "gemm";
    check_steady("few columns", planned(product<T>(300, 3, 500), {.m = 300, .n = 3, .k = 500}, {}, narrow));
    const hone::gemm_desc by_columns{.m = 4, .n = 300, .k = 500, .b = {1, 500}};
    check_steady("few rows, B by columns", planned(product<T>(4, 300, 500), by_columns, {}, narrow));

    const auto offsets = numbers<T>(90, 3);
    check_steady("bias and gelu", [&] {
        return call([p = wide, offsets]() mutable {
            return p.written([&] { return hone::gemm(p.va(), p.vb(), p.vc(), hone::bias(offsets) | hone::gelu); });
        });
    });
    check_steady("gated", [&] {
        return call([p = wide]() mutable {
            return hone::gemm(p.va(), p.vb(), hone::row_major(p.c.data(), p.m, p.n / 2), hone::gated(hone::silu)).ok();
        });
    });
    check_steady("row_max and a lambda", [&] {
        return call([p = wide, most = std::vector<T>(40)]() mutable {
            const auto stages = hone::row_max(most.data()) | hone::map([](auto& x, auto) { x = x * x; });
            return p.written([&] { return hone::gemm(p.va(), p.vb(), p.vc(), stages); });
        });
    });
    check_steady("store_as<bf16>", [&] {
        return call([p = product<T, hone::bf16>(40, 90, 50)]() mutable {
            const auto stages = hone::relu | hone::store_as<hone::bf16>();
            return p.written([&] { return hone::gemm(p.va(), p.vb(), p.vc(), stages); });
        });
    });

    // With the caller's scratch, and with B packed beforehand.
    for (const index_t depth : {index_t{50}, deep}) {
        for (const bool packed : {false, true}) {
            for (const bool own : {false, true}) {
                const std::string name = std::string(packed ? "packed" : "plain") + (own ? ", scratch of its own" : "");
                check_steady(name + ", k " + std::to_string(depth), [=] {
                    product<T> p(40, 90, depth);
                    const auto plan = hone::plan<T>(p.desc());
                    const auto scratch = memory_of(std::max<index_t>(plan->scratch_bytes(1, packed), 1));
                    const auto weights = memory_of(plan->packed_bytes());
                    if (!plan->pack(p.vb(), span_of(weights)).ok()) return cannot();
                    const auto view = *hone::packed_view::open(span_of(weights));
                    return call([=, plan = *plan]() mutable {
                        const hone::context ctx = own ? hone::context{.scratch = span_of(scratch)} : hone::context{};
                        const bool done = p.written([&] {
                            if (packed) return plan.run(p.va(), view, p.vc(), hone::identity, ctx);
                            return plan.run(p.va(), p.vb(), p.vc(), hone::identity, ctx);
                        });
                        return done && weights->size() > 0;  // held as long as the view
                    });
                });
            }
        }
    }

    // Tasks of an executor; what the executor itself does is its own affair, and this one does nothing.
    for (const bool own : {false, true}) {
        check_steady(own ? "four workers, scratch of its own" : "four workers", [=] {
            product<T> p(130, 300, 70);
            test::reverse_executor four(4);
            const auto plan = hone::plan<T>(p.desc(), {}, hone::identity, {.executor = four});
            if (plan->explain().workers < 2) return cannot();
            const auto scratch = memory_of(plan->scratch_bytes(4));
            return call([=, plan = *plan]() mutable {
                hone::context ctx{.executor = four};
                if (own) ctx.scratch = span_of(scratch);
                const auto run = [&] { return plan.run(p.va(), p.vb(), p.vc(), hone::identity, ctx); };
                return p.written(run) && four.most_tasks > 1;
            });
        });
    }

    // Decisions, packing and refusals.
    check_steady("planning and explaining", [] {
        return call([] {
            const auto plan = hone::plan<T>({.m = 100, .n = 200, .k = 300});
            if (!plan || plan->scratch_bytes() <= 0 || plan->packed_bytes() <= 0) return false;
            return !plan->explain().text().view().empty() && !hone::explain().text().view().empty() &&
                   hone::available(hone::isa::scalar);
        });
    });
    check_steady("packing, opening, verifying", [] {
        product<T> p(40, 90, 50);
        const auto plan = hone::plan<T>(p.desc());
        const auto weights = memory_of(plan->packed_bytes());
        return call([=, plan = *plan] {
            if (!plan.pack(p.vb(), span_of(weights)).ok()) return false;
            const auto view = hone::packed_view::open(span_of(weights));
            return view && view->verify().ok();
        });
    });
    check_steady("refusing", [&] {
        return call([p = wide]() mutable {
            const hone::status s = hone::gemm(p.va(), p.vb(), hone::row_major(p.c.data(), p.m, p.n - 1));
            return !s.ok() && !s.message().view().empty() && !hone::plan<T>({.m = -1, .n = 2, .k = 3});
        });
    });
}

}  // namespace

TEST_CASE("B103 the steady state of GEMM: no allocation, no lock, no system call") { check_gemm<float>(); }

TEST_CASE("B103 f64: the steady state of GEMM: no allocation, no lock, no system call") { check_gemm<double>(); }

namespace {

template <class T>
void check_every_kernel() {
    for (const test::kernel& kn : test::kernels<T>()) {
        hone::policy blocked = kn.policy();
        blocked.block.kc = 20;
        const hone::policy any{.isa = kn.isa};
        const product<T> p(2 * kn.mr + 1, 2 * kn.nr + 3, 50);
        check_steady(kn.text(), planned(p, p.desc(), kn.policy()));
        check_steady(kn.text() + ", k blocks", planned(p, p.desc(), blocked));
        check_steady(kn.text() + ", a row", planned(product<T>(1, 100, 300), {.m = 1, .n = 100, .k = 300}, any));
        check_steady(kn.text() + ", a column", planned(product<T>(100, 1, 300), {.m = 100, .n = 1, .k = 300}, any));
        hone::gemm_desc apart = p.desc();
        apart.a = {1, p.m};
        check_steady(kn.text() + ", A by columns", planned(p, apart, kn.policy()));
    }
}

}  // namespace

TEST_CASE("B103 the steady state of every registered kernel") {
    tell_what_is_skipped();
    check_every_kernel<float>();
    check_every_kernel<double>();
}

namespace {

constexpr hone::shape odd_shape{7, 13, 17};
constexpr hone::policy fixed_policy{.isa = hone::isa::scalar, .block = {.kc = 16}};

}  // namespace

TEST_CASE("B103 the steady state of products of a fixed shape and of a fixed policy") {
    tell_what_is_skipped();
    constexpr hone::shape s = odd_shape;
    check_steady("checked", [&] {
        return call([p = product<float>(s.m, s.n, s.k)]() mutable {
            return p.written([&] { return hone::gemm<odd_shape>(p.va(), p.vb(), p.vc()); });
        });
    });
    check_steady("strided", [&] {
        return call([p = product<float>(s.m, s.n, s.k)]() mutable {
            return p.written([&] {
                hone::fixed_gemm<odd_shape>()(p.a.data(), p.k, p.b.data(), p.n, p.c.data(), p.n);
                return hone::status{};
            });
        });
    });
    check_steady("dense", [&] {
        const hone::fixed_gemm<odd_shape, hone::rows::dense> multiply;
        return call([multiply, p = product<float>(s.m, s.n, s.k)]() mutable {
            return p.written([&] {
                multiply(p.a.data(), p.b.data(), p.c.data());
                return hone::status{};
            });
        });
    });
    check_steady("a policy fixed at compile time", [] {
        return call([p = product<float>(20, 30, 40)]() mutable {
            return p.written([&] { return hone::gemm<fixed_policy>(p.va(), p.vb(), p.vc()); });
        });
    });
}

namespace {

struct convolution {
    const char* name;
    hone::conv_desc desc;
    bool planes = false;  // NCHW: channels are copied
};

std::vector<convolution> convolutions() {
    const hone::conv_desc same{.h = 12, .w = 13, .ic = 20, .oc = 37, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
    std::vector<convolution> list = {{"3 x 3", same}, {"3 x 3 of planes", same, true}};
    hone::conv_desc d = same;
    d.kh = d.kw = 1;
    d.window = {};
    list.push_back({"1 x 1", d});
    d = same;
    d.oc = 40;
    d.groups = 4;
    list.push_back({"groups", d});
    d = same;
    d.ic = d.oc = d.groups = 37;
    list.push_back({"depthwise", d});
    list.push_back({"depthwise of planes", d, true});
    d = same;
    d.window.transposed = true;
    d.window.stride_h = d.window.stride_w = 2;
    list.push_back({"transposed", d});
    d = same;
    d.ic = 600;  // several blocks of k
    list.push_back({"many channels", d});
    return list;
}

template <class F>
auto convolved(const convolution& c, bool packed, bool own, hone::isa id, const F& stages) {
    return [=] {
        hone::conv_desc d = c.desc;
        const index_t oh = hone::output_h(d), ow = hone::output_w(d);
        if (c.planes) {
            d.input = {d.ic * d.h * d.w, d.w, 1, d.h * d.w};
            d.output = {d.oc * oh * ow, ow, 1, oh * ow};
        }
        const auto in = numbers<float>(d.n * d.h * d.w * d.ic, 4);
        const auto weights = numbers<float>(d.oc * (d.ic / d.groups) * d.kh * d.kw, 5);
        const auto plan = hone::plan(d, {.isa = id}, stages);
        if (!plan) return cannot();
        const auto scratch = memory_of(std::max<index_t>(plan->scratch_bytes(1, packed), 1));
        const auto held = memory_of(plan->packed_bytes());
        const auto filter_of = [d](const std::vector<float>& w) {
            return hone::oihw<const float>(w.data(), d.oc / d.groups, d.ic / d.groups, d.kh, d.kw, d.groups);
        };
        if (!plan->pack(filter_of(weights), span_of(held)).ok()) return cannot();
        const std::vector<float> empty(static_cast<std::size_t>(d.n * oh * ow * d.oc));
        return call([=, plan = *plan, out = empty]() mutable {
            std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
            auto vi = hone::nhwc<const float>(in.data(), d.n, d.h, d.w, d.ic);
            auto vo = hone::nhwc(out.data(), d.n, oh, ow, d.oc);
            if (c.planes) {
                vi = hone::nchw<const float>(in.data(), d.n, d.ic, d.h, d.w);
                vo = hone::nchw(out.data(), d.n, d.oc, oh, ow);
            }
            const hone::context ctx = own ? hone::context{.scratch = span_of(scratch)} : hone::context{};
            const hone::status s = packed ? plan.run(vi, *hone::packed_view::open(span_of(held)), vo, stages, ctx)
                                          : plan.run(vi, filter_of(weights), vo, stages, ctx);
            return s.ok() && std::none_of(out.begin(), out.end(), [](float x) { return std::isnan(x); });
        });
    };
}

}  // namespace

TEST_CASE("B103 the steady state of convolutions") {
    tell_what_is_skipped();
    for (hone::isa id : test::isas()) {
        for (const convolution& c : convolutions()) {
            for (const bool packed : {false, true}) {
                const std::string name = std::string(hone::isa_name(id)) + " " + c.name + (packed ? ", packed" : "");
                check_steady(name, convolved(c, packed, false, id, hone::identity));
                const auto stages = hone::scale(0.5) | hone::hard_swish;
                check_steady(name + ", scratch of its own", convolved(c, packed, true, id, stages));
            }
        }
    }
    check_steady("hone::conv", [] {
        const auto in = numbers<float>(10 * 10 * 8, 6), weights = numbers<float>(16 * 8 * 9, 7);
        return call([=, out = std::vector<float>(8 * 8 * 16)]() mutable {
            const auto filter = hone::oihw<const float>(weights.data(), 16, 8, 3, 3);
            const auto input = hone::nhwc<const float>(in.data(), 1, 10, 10, 8);
            return hone::conv(input, filter, hone::nhwc(out.data(), 1, 8, 8, 16)).ok();
        });
    });
}
