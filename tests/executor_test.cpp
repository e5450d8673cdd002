// SPDX-License-Identifier: BSL-1.0
// Threads: first use at once, many callers, executors of any kind and size, and what is allocated. Case names begin
// with the number of the public report they come from.
#include "reference.hpp"

#include "allocations.hpp"

#include <memory>
#include <mutex>
#include <set>

using test::index_t;

namespace {

struct product {
    product(index_t rows, index_t columns, index_t depth, std::uint64_t seed = 1)
        : m(rows),
          n(columns),
          k(depth),
          a(static_cast<std::size_t>(m * k)),
          b(static_cast<std::size_t>(k * n)),
          c(static_cast<std::size_t>(m * n), std::numeric_limits<float>::quiet_NaN()) {
        test::random_source source(seed);
        for (float& x : a) x = source.value();
        for (float& x : b) x = source.value();
    }
    hone::matrix_view<const float> va() const { return hone::row_major<const float>(a.data(), m, k); }
    hone::matrix_view<const float> vb() const { return hone::row_major<const float>(b.data(), k, n); }
    hone::matrix_view<float> vc() { return hone::row_major(c.data(), m, n); }
    hone::gemm_desc desc() const { return {.m = m, .n = n, .k = k}; }
    bool right(bool exact = test::reproducible(hone::active_isa())) const {
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) {
                const float got = c[static_cast<std::size_t>(i * n + j)];
                if (exact && !test::same(got, test::strict_dot(1, va(), vb(), i, j))) return false;
                const test::near_value v = test::dot(1, va(), vb(), 0, 0, i, j);
                if (!test::near(static_cast<double>(got), v.value, v.bound)) return false;
            }
        }
        return true;
    }
    index_t m, n, k;
    std::vector<float> a, b, c;
};

// Out of line: a stage's calls are else compiled into the kernel.
HONE_NOINLINE hone::status multiply(product& p, const hone::context& ctx) {
    return hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, ctx);
}

// Starts all threads, lets none go before all are there, and joins them.
template <class F>
void at_once(int threads, F f) {
    std::atomic<int> waiting{0};
    std::vector<std::thread> list;
    for (int t = 0; t < threads; ++t) {
        list.emplace_back([&, t] {
            waiting.fetch_add(1);
            while (waiting.load() < threads) std::this_thread::yield();
            f(t);
        });
    }
    for (std::thread& t : list) t.join();
}

}  // namespace

// The first case: nothing of hone has run in this process.
TEST_CASE("B85 the first use on 64 threads at once") {
    const int threads = test::quick() ? 8 : 64;
    std::vector<hone::isa> chosen(static_cast<std::size_t>(threads), hone::isa::dynamic);
    std::vector<std::unique_ptr<product>> work;
    for (int t = 0; t < threads; ++t)
        work.push_back(std::make_unique<product>(17, 33, 9, static_cast<std::uint64_t>(t)));
    std::vector<hone::status> results(static_cast<std::size_t>(threads), hone::status{hone::code::corrupt});
    at_once(threads, [&](int t) {
        const auto i = static_cast<std::size_t>(t);
        product& p = *work[i];
        if (t % 2) chosen[i] = hone::active_isa();
        results[i] = hone::gemm(p.va(), p.vb(), p.vc());
        if (t % 2 == 0) chosen[i] = hone::explain().isa;
    });
    for (std::size_t i = 0; i < work.size(); ++i) {
        CHECK(results[i] == hone::status{});
        CHECK(chosen[i] == hone::active_isa());
        CHECK(work[i]->right());
    }
}

TEST_CASE("B82 300 threads with a product of 50x50 each") {
    const int threads = test::quick() ? 12 : 300;
    std::vector<std::unique_ptr<product>> work;
    for (int t = 0; t < threads; ++t)
        work.push_back(std::make_unique<product>(50, 50, 50, static_cast<std::uint64_t>(t)));
    std::vector<hone::status> results(static_cast<std::size_t>(threads), hone::status{hone::code::corrupt});
    at_once(threads, [&](int t) {
        product& p = *work[static_cast<std::size_t>(t)];
        for (int i = 0; i < 3; ++i) results[static_cast<std::size_t>(t)] = hone::gemm(p.va(), p.vb(), p.vc());
    });
    for (std::size_t i = 0; i < work.size(); ++i) {
        CHECK(results[i] == hone::status{});
        CHECK(work[i]->right());
    }
}

TEST_CASE("executor_ref: empty, of another's type, of silly sizes") {
    CHECK(hone::executor_ref().concurrency() == 1);
    struct odd {
        int n;
        int concurrency() const { return n; }
        void run(index_t tasks, void (*task)(void*, index_t), void* state) {
            for (index_t i = 0; i < tasks; ++i) task(state, i);
            ran += tasks;
        }
        index_t ran = 0;
    };
    static_assert(hone::executor<odd>);
    static_assert(hone::executor<test::thread_executor>);
    for (int n : {INT32_MIN, -1, 0, 1, 2, 7, 1000, 1 << 20}) {
        odd x{n};
        CHECK(hone::executor_ref(x).concurrency() == (n < 1 ? 1 : n));
        product p(37, 129, 20);
        CHECK(hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, {.executor = x}) == hone::status{});
        CHECK(p.right());
        CHECK(x.ran <= std::max(n, 1));
        if (n > 1) CHECK(x.ran > 1);
    }
    // A const executor, and the order of tasks without one.
    std::vector<index_t> order;
    hone::executor_ref().run(
        4, [](void* s, index_t i) { static_cast<std::vector<index_t>*>(s)->push_back(i); }, &order);
    CHECK(order == std::vector<index_t>{0, 1, 2, 3});
}

TEST_CASE("every task of a product runs once") {
    struct counter {
        std::vector<int> runs;
        int concurrency() const { return 6; }
        void run(index_t tasks, void (*task)(void*, index_t), void* state) {
            runs.assign(static_cast<std::size_t>(tasks), 0);
            for (index_t i = 0; i < tasks; i += 2) task(state, i), ++runs[static_cast<std::size_t>(i)];
            for (index_t i = 1; i < tasks; i += 2) task(state, i), ++runs[static_cast<std::size_t>(i)];
        }
    } x;
    product p(90, 200, 30);
    REQUIRE(hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, {.executor = x}) == hone::status{});
    CHECK(p.right());
    CHECK(x.runs.size() > 1);
    CHECK(x.runs.size() <= 6);
    const auto plan = hone::plan(p.desc(), {}, hone::identity, {.executor = x});
    REQUIRE(plan.status() == hone::status{});
    CHECK(plan->explain().workers == static_cast<int>(x.runs.size()));
    CHECK(plan->explain().row_parts * plan->explain().col_parts == plan->explain().workers);
}

TEST_CASE("B34 a plan made for one executor runs with another") {
    for (int made_for : {1, 3, 8}) {
        test::thread_executor planned(made_for);
        product p(100, 150, 40);
        const auto plan = hone::plan(p.desc(), {.block = {.kc = 16}}, hone::identity, {.executor = planned});
        REQUIRE(plan.status() == hone::status{});
        for (int run_with : {1, 2, 8, 32}) {
            test::thread_executor threads(run_with);
            test::reverse_executor reverse(run_with);
            for (const bool in_threads : {true, false}) {
                const hone::executor_ref x = in_threads ? hone::executor_ref(threads) : hone::executor_ref(reverse);
                INFO("made for " << made_for << ", run with " << run_with);
                std::fill(p.c.begin(), p.c.end(), std::numeric_limits<float>::quiet_NaN());
                REQUIRE(plan->run(p.va(), p.vb(), p.vc(), hone::identity, {.executor = x}) == hone::status{});
                CHECK(p.right());
                CHECK((in_threads ? threads.most_tasks : reverse.most_tasks) <= made_for);
                // With scratch of exactly what that executor needs.
                const index_t bytes = plan->scratch_bytes(run_with);
                const test::guarded<std::byte> memory(bytes);
                std::fill(p.c.begin(), p.c.end(), std::numeric_limits<float>::quiet_NaN());
                REQUIRE(plan->run(p.va(), p.vb(), p.vc(), hone::identity,
                                  {.executor = x, .scratch = {memory.data(), static_cast<std::size_t>(bytes)}}) ==
                        hone::status{});
                CHECK(p.right());
                CHECK(memory.intact());
            }
        }
        // Scratch does not grow with workers the plan was not made for.
        CHECK(plan->scratch_bytes(32 * made_for) == plan->scratch_bytes(made_for));
        CHECK(plan->scratch_bytes(1 << 30) == plan->scratch_bytes(made_for));
        CHECK(plan->scratch_bytes(0) == plan->scratch_bytes(1));
        CHECK(plan->scratch_bytes(-5) == plan->scratch_bytes(1));
    }
}

TEST_CASE("B83 a product inside a task of another executor") {
    std::mutex lock;
    std::set<std::thread::id> ids;
    struct recording {
        std::mutex* lock;
        std::set<std::thread::id>* ids;
        int concurrency() const { return 1; }
        void run(index_t tasks, void (*task)(void*, index_t), void* state) {
            for (index_t i = 0; i < tasks; ++i) task(state, i);
            const std::lock_guard hold(*lock);
            ids->insert(std::this_thread::get_id());
        }
    };
    constexpr int inner_count = 6;
    std::vector<std::unique_ptr<product>> work;
    for (int t = 0; t < inner_count; ++t)
        work.push_back(std::make_unique<product>(30, 70, 20, static_cast<std::uint64_t>(t)));
    std::vector<hone::status> results(inner_count, hone::status{hone::code::corrupt});
    struct shared {
        std::vector<std::unique_ptr<product>>* work;
        std::vector<hone::status>* results;
        std::mutex* lock;
        std::set<std::thread::id>* ids;
    } state{&work, &results, &lock, &ids};
    test::thread_executor outer(2);
    outer.run(
        inner_count,
        [](void* s, index_t i) {
            auto* sh = static_cast<shared*>(s);
            recording inner{sh->lock, sh->ids};
            product& p = *(*sh->work)[static_cast<std::size_t>(i)];
            test::thread_executor two(2);
            (*sh->results)[static_cast<std::size_t>(i)] =
                hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, {.executor = inner});
            if (p.right())
                (*sh->results)[static_cast<std::size_t>(i)] =
                    hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, {.executor = two});
            const std::lock_guard hold(*sh->lock);
            sh->ids->insert(std::this_thread::get_id());
        },
        &state);
    for (std::size_t i = 0; i < work.size(); ++i) {
        CHECK(results[i] == hone::status{});
        CHECK(work[i]->right());
    }
    CHECK(ids.size() <= 2);
}

TEST_CASE("B83 a product inside a stage of another, with scratch of its own and without") {
    for (const bool own : {true, false}) {
        product outside(40, 100, 5), inside(30, 130, 30);
        const hone::aligned_buffer memory(static_cast<std::size_t>(hone::plan(inside.desc())->scratch_bytes()));
        hone::release_scratch();
        hone::context ctx;
        if (own) ctx.scratch = {memory.data(), memory.size()};
        bool inner_ok = true;
        const auto nested = hone::map([&](auto&, auto) { inner_ok = inner_ok && multiply(inside, ctx).ok(); });
        REQUIRE(hone::gemm(outside.va(), outside.vb(), outside.vc(), nested) == hone::status{});
        INFO((own ? "own scratch" : "the thread's scratch"));
        CHECK(inner_ok);
        CHECK(inside.right());
        CHECK(outside.right());
    }
}

// What task arenas do: while it waits, the calling thread takes other work, here a product that needs more scratch.
TEST_CASE("B83 an executor whose thread does other products between the tasks of one") {
    struct stealing {
        product* other;
        bool ok = true;
        int concurrency() const { return 4; }
        void run(index_t tasks, void (*task)(void*, index_t), void* state) {
            for (index_t i = 0; i < tasks; ++i) {
                std::thread elsewhere([&] {
                    if (i % 2) task(state, i);
                });
                ok = ok && hone::gemm(other->va(), other->vb(), other->vc()).ok();
                elsewhere.join();
                if (i % 2 == 0) task(state, i);
            }
        }
    };
    for (int round = 0; round < (test::quick() ? 2 : 20); ++round) {
        hone::release_scratch();
        product other(60, 400, 200), p(100, 150, 120);
        stealing x{&other};
        REQUIRE(hone::gemm(p.va(), p.vb(), p.vc(), hone::identity, {.executor = x}) == hone::status{});
        CHECK(x.ok);
        CHECK(other.right());
        REQUIRE(p.right());
    }
}

TEST_CASE("B103 nothing is allocated in the steady state") {
    if (!HONE_TEST_COUNTS_MALLOC) WARN("malloc is not counted here, operator new alone is");
    product small(16, 16, 16), large(70, 300, 90);
    test::reverse_executor four(4);
    const auto bias = std::vector<float>(300, 0.5f);
    const auto stages = hone::bias(bias) | hone::gelu;
    const hone::policy blocked{.block = {.kc = 32}};
    const auto plan = hone::plan(large.desc(), blocked, hone::identity, {.executor = four});
    REQUIRE(plan.status() == hone::status{});
    const auto round = [&] {
        bool ok = hone::gemm(small.va(), small.vb(), small.vc()).ok();
        ok &= hone::gemm(large.va(), large.vb(), large.vc(), stages, {.executor = four}).ok();
        ok &= hone::gemm(2.0, large.va(), large.vb(), 0.5, large.vc()).ok();
        ok &= plan->run(large.va(), large.vb(), large.vc(), hone::identity, {.executor = four}).ok();
        ok &= hone::plan(small.desc(), blocked).has_value();
        ok &= plan->explain().text().view().size() > 0;
        // Errors allocate nothing either.
        ok &= !hone::gemm(small.va(), large.vb(), small.vc()).ok();
        ok &= hone::gemm(small.va(), large.vb(), small.vc()).message().view().size() > 0;
        return ok;
    };
    REQUIRE(round());
    const long before = test::allocations.made.load(), freed = test::allocations.freed.load();
    bool ok = true;
    for (int i = 0; i < (test::quick() ? 20 : 1000); ++i) ok = ok && round();
    const long made = test::allocations.made.load() - before, given = test::allocations.freed.load() - freed;
    CHECK(ok);
    CHECK(made == 0);
    CHECK(given == 0);
    // The count counts.
    const long at = test::allocations.made.load();
    ::operator delete(::operator new(4));
    CHECK(test::allocations.made.load() > at);
#if HONE_TEST_COUNTS_MALLOC
    const long then = test::allocations.made.load();
    const hone::aligned_buffer buffer(100);
    CHECK(test::allocations.made.load() == then + 1);
    // release_scratch() gives back what the thread held, and the next call takes it again.
    const long live = test::allocations.live();
    hone::release_scratch();
    CHECK(test::allocations.live() == live - 1);
    REQUIRE(round());
    CHECK(test::allocations.live() == live);
#endif
}

TEST_CASE("B103 with the caller's scratch nothing is allocated at all, on a fresh thread too") {
    product p(70, 300, 90);
    const auto plan = hone::plan(p.desc());
    REQUIRE(plan.status() == hone::status{});
    const hone::aligned_buffer memory(static_cast<std::size_t>(plan->scratch_bytes()));
    long made = -1;
    hone::status s{hone::code::corrupt};
    std::thread([&] {
        const long before = test::allocations.made.load();
        s = plan->run(p.va(), p.vb(), p.vc(), hone::identity, {.scratch = {memory.data(), memory.size()}});
        made = test::allocations.made.load() - before;
    }).join();
    CHECK(s == hone::status{});
    CHECK(made == 0);
    CHECK(p.right());
}

TEST_CASE("threads that end give their scratch back") {
    if (!HONE_TEST_COUNTS_MALLOC) WARN("malloc is not counted here, operator new alone is");
    product p(50, 60, 70);
    const auto thread = [&] {
        std::thread([&] {
            if (!hone::gemm(p.va(), p.vb(), p.vc()).ok()) p.c[0] = std::numeric_limits<float>::quiet_NaN();
        }).join();
    };
    thread();
    const long live = test::allocations.live();
    for (int i = 0; i < 20; ++i) thread();
    CHECK(test::allocations.live() == live);
    CHECK(p.right());
}
