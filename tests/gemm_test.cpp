// SPDX-License-Identifier: BSL-1.0
// gemm.hpp: the numbers of every kernel, bit for bit, and the memory it touches. Case names begin with the number of
// the public report they come from.
#include "gemm_harness.hpp"

#include <memory>

using test::around;
using test::bitwise;
using test::edge;
using test::guarded;
using test::index_t;
using test::kernel;
using test::layout;
using test::matrix;
using test::random_source;
using test::spoil_c_with_nan;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

using problem = test::gemm_problem<float>;

}  // namespace

TEST_CASE("B68 every line of kernels.def is a kernel with a body for each edge") { test::check_registry<float>(); }

TEST_CASE("B20 B31 B68 all small shapes of every kernel, in guarded memory, to the bit") {
    test::check_small_shapes<float>();
}

TEST_CASE("all four transposes, with and without gaps") { test::check_transposes<float>(); }

TEST_CASE("any strides: negative, repeated, columns of C not contiguous") { test::check_any_strides<float>(); }

TEST_CASE("B19 row stride 3 and column stride 1000 for A, B and C") {
    for (hone::isa id : test::isas()) {
        const index_t last = test::quick() ? 200 : 300;
        for (index_t size = 200; size <= last; size += 25) {
            const index_t m = test::quick() ? 5 : size;
            REQUIRE_RIGHT({.m = m,
                           .n = size,
                           .k = 8,
                           .a = layout{3, 1000},
                           .b = layout{3, 1000},
                           .c = layout{3, 1000},
                           .policy = {.isa = id}});
            REQUIRE_RIGHT({.m = m,
                           .n = size,
                           .k = 8,
                           .beta = 1,
                           .a = layout{1000, 3},
                           .b = layout{1000, 3},
                           .c = layout{1000, 3},
                           .policy = {.isa = id}});
        }
    }
}

TEST_CASE("B01 B02 beta = 0 must not read C, in full tiles and at edges") {
    for (const kernel& kn : test::kernels()) {
        for (float left : {nan_value, inf, -inf}) {
            for (double beta : {0.0, -0.0}) {
                for (index_t m : {index_t{5}, index_t{kn.mr + 1}}) {
                    for (index_t n : {index_t{5}, index_t{kn.nr + 1}}) {
                        for (double alpha : {1.0, 2.0, 0.0}) {
                            std::vector<float> a(static_cast<std::size_t>(m * 5), 0.0f),
                                b(static_cast<std::size_t>(5 * n), 0.0f), c(static_cast<std::size_t>(m * n), left);
                            const auto va = hone::row_major<const float>(a.data(), m, 5);
                            const auto vb = hone::row_major<const float>(b.data(), 5, n);
                            const auto vc = hone::row_major(c.data(), m, n);
                            hone::gemm_desc desc = hone::describe(va, vb, vc);
                            desc.alpha = alpha;
                            desc.beta = beta;
                            const auto plan = hone::plan(desc, kn.policy());
                            REQUIRE(plan.status() == hone::status{});
                            REQUIRE(plan->run(va, vb, vc) == hone::status{});
                            INFO(kn.text() << " left " << left << " alpha " << alpha);
                            CHECK(std::all_of(c.begin(), c.end(), [](float x) { return test::same(x, 0.0f); }));
                        }
                        REQUIRE_RIGHT(
                            {.m = m, .n = n, .k = 5, .beta = beta, .policy = kn.policy(), .spoil = spoil_c_with_nan});
                        REQUIRE_RIGHT({.m = m,
                                       .n = n,
                                       .k = 5,
                                       .alpha = 3,
                                       .beta = beta,
                                       .policy = kn.policy(),
                                       .spoil = spoil_c_with_nan});
                    }
                }
            }
        }
    }
}

TEST_CASE("B01 beta = 0 and columns of C not contiguous, several k blocks, epilogues") {
    for (const kernel& kn : test::kernels()) {
        hone::policy blocked = kn.policy();
        blocked.block.kc = 2;
        for (const layout& c : {layout{kn.nr + 1, 1}, layout{1, kn.mr + 1}, layout{2 * kn.nr + 2, 2}}) {
            REQUIRE_RIGHT(
                {.m = kn.mr + 1, .n = kn.nr + 1, .k = 5, .c = c, .policy = kn.policy(), .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT(
                {.m = kn.mr + 1, .n = kn.nr + 1, .k = 5, .c = c, .policy = blocked, .spoil = spoil_c_with_nan});
        }
        std::vector<float> a(25, 0.0f), b(25, 0.0f), c(25, nan_value);
        const auto va = hone::row_major<const float>(a.data(), 5, 5), vb = hone::row_major<const float>(b.data(), 5, 5);
        const auto vc = hone::row_major(c.data(), 5, 5);
        const auto stages = hone::scale(2.0) | hone::relu;
        const auto plan = hone::plan(hone::describe(va, vb, vc), blocked, stages);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(va, vb, vc, stages) == hone::status{});
        CHECK(std::all_of(c.begin(), c.end(), [](float x) { return test::same(x, 0.0f); }));
    }
}

TEST_CASE("B04 alpha = 0 reads neither A nor B") {
    for (hone::isa id : test::isas()) {
        const auto product = [id](double alpha, double beta) {
            std::vector<float> a(16, 1.0f), b(16, 1.0f), c(16, 3.0f);
            a[0] = nan_value;
            const auto va = hone::row_major<const float>(a.data(), 4, 4),
                       vb = hone::row_major<const float>(b.data(), 4, 4);
            const auto vc = hone::row_major(c.data(), 4, 4);
            hone::gemm_desc desc = hone::describe(va, vb, vc);
            desc.alpha = alpha;
            desc.beta = beta;
            const auto plan = hone::plan(desc, {.isa = id});
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(va, vb, vc) == hone::status{});
            return c;
        };
        CHECK(product(0, 1) == std::vector<float>(16, 3.0f));
        CHECK(product(0, 0) == std::vector<float>(16, 0.0f));
        CHECK(product(0, 2) == std::vector<float>(16, 6.0f));
        CHECK(product(-0.0, 2) == std::vector<float>(16, 6.0f));
        const std::vector<float> c = product(1, 0);
        for (std::size_t i = 0; i < 16; ++i) CHECK((i < 4 ? std::isnan(c[i]) : c[i] == 4.0f));

        // Neither is touched: both point at a protected page.
        guarded<float> none(1, edge::begin);
        float* beyond = none.data() - 64;
        std::vector<float> kept(12, 2.0f);
#if HONE_TEST_GUARD_PAGES
        hone::gemm_desc desc{.m = 3, .n = 4, .k = 5, .alpha = 0, .beta = 0.5};
        const auto plan = hone::plan(desc, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(beyond, 3, 5), hone::row_major<const float>(beyond, 5, 4),
                          hone::row_major(kept.data(), 3, 4)) == hone::status{});
        CHECK(kept == std::vector<float>(12, 1.0f));
        const hone::packed_view absent{};
        REQUIRE(plan->run(hone::row_major<const float>(nullptr, 3, 5), absent, hone::row_major(kept.data(), 3, 4)) ==
                hone::status{});
        CHECK(kept == std::vector<float>(12, 0.5f));
#else
        static_cast<void>(beyond);
#endif
    }
}

TEST_CASE("alpha and beta, -0 and values that float rounds") { test::check_alpha_and_beta<float>(); }

TEST_CASE("a chain begins at +0: a product of -0 gives +0") {
    for (const kernel& kn : test::kernels()) {
        for (index_t k : {1, 2, 5}) {
            std::vector<float> a(static_cast<std::size_t>(k), -0.0f), b(static_cast<std::size_t>(k), 1.0f), c(1, 7.0f);
            const auto va = hone::row_major<const float>(a.data(), 1, k),
                       vb = hone::row_major<const float>(b.data(), k, 1);
            const auto vc = hone::row_major(c.data(), 1, 1);
            const auto plan = hone::plan(hone::describe(va, vb, vc), kn.policy());
            REQUIRE(plan.status() == hone::status{});
            REQUIRE(plan->run(va, vb, vc) == hone::status{});
            INFO(kn.text());
            CHECK(test::same(c[0], 0.0f));
        }
        // u = alpha * +0 is -0 for a negative alpha.
        REQUIRE_RIGHT({.m = 3,
                       .n = 3,
                       .k = 2,
                       .alpha = -1,
                       .policy = kn.policy(),
                       .spoil = [](matrix<float>& a, matrix<float>&, matrix<float>&) {
                           a.fill([](index_t, index_t) { return 0.0f; });
                       }});
    }
}

TEST_CASE("B13 k = 0 gives beta * C through the epilogue") {
    for (const kernel& kn : test::kernels()) {
        for (double alpha : {1.0, 2.0}) {
            REQUIRE_RIGHT({.m = 1,
                           .n = 1,
                           .k = 0,
                           .alpha = alpha,
                           .a = layout{2, 1},
                           .b = layout{1, 1},
                           .c = layout{2, 1},
                           .policy = kn.policy(),
                           .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 9,
                           .n = 2,
                           .k = 0,
                           .alpha = alpha,
                           .a = layout{1, 10},
                           .b = layout{1, 1},
                           .c = layout{1, 10},
                           .policy = kn.policy(),
                           .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 4, .n = 4, .k = 0, .alpha = alpha, .policy = kn.policy(), .spoil = spoil_c_with_nan});
            REQUIRE_RIGHT({.m = 4, .n = 4, .k = 0, .alpha = alpha, .beta = 1, .policy = kn.policy()});
            REQUIRE_RIGHT(
                {.m = 2 * kn.mr + 1, .n = 2 * kn.nr + 1, .k = 0, .alpha = alpha, .beta = -0.5, .policy = kn.policy()});
            REQUIRE_RIGHT({.m = kn.mr, .n = kn.nr, .k = 0, .beta = 1, .policy = kn.policy(), .packed = true});
        }
        // With null operands, a bias and ReLU: max(7 + b, 0).
        std::vector<float> c(16, 7.0f);
        const std::vector<float> b = {1, -8, -7, 0.5f};
        const auto stages = hone::bias(b) | hone::relu;
        const auto plan = hone::plan({.m = 4, .n = 4, .k = 0, .beta = 1}, kn.policy(), stages);
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(nullptr, 4, 0), hone::row_major<const float>(nullptr, 0, 4),
                          hone::row_major(c.data(), 4, 4), stages) == hone::status{});
        for (std::size_t i = 0; i < 16; ++i) CHECK(c[i] == std::vector<float>{8, 0, 0, 7.5f}[i % 4]);
    }
}

TEST_CASE("B14 m = 0 or n = 0 touches nothing") {
    for (hone::isa id : test::isas()) {
        const index_t shapes[][3] = {{0, 5, 3}, {5, 0, 3}, {0, 0, 0}, {0, 5, 0}, {0, 0, 4}};
        for (const auto& s : shapes) {
            const hone::matrix_view<const float> a{nullptr, s[0], s[2], 0, 0}, b{nullptr, s[2], s[1], 0, 0};
            const hone::matrix_view<float> c{nullptr, s[0], s[1], 0, 0};
            const auto plan = hone::plan(hone::describe(a, b, c), {.isa = id});
            REQUIRE(plan.status() == hone::status{});
            CHECK(plan->run(a, b, c) == hone::status{});
            CHECK(plan->run(a, hone::packed_view{}, c) == hone::status{});
            CHECK(plan->scratch_bytes() >= 0);
            CHECK(hone::gemm(2.0, a, b, 3.0, c, hone::gelu) == hone::status{});
            test::reverse_executor many(8);
            CHECK(hone::gemm(a, b, c, hone::identity, {.executor = many}) == hone::status{});
        }
    }
    // A leading dimension of 0 where there is one row.
    float a[] = {1, 2}, b[] = {3, 4}, c[] = {0};
    CHECK(hone::gemm(hone::row_major<const float>(a, 1, 2, 0), hone::row_major<const float>(b, 2, 1, 1),
                     hone::row_major(c, 1, 1, 0)) == hone::status{});
    CHECK(c[0] == 11.0f);
}

TEST_CASE("B16 4x4x4 of 0 to 15") {
    for (const kernel& kn : test::kernels()) {
        float a[16], c[16];
        for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i);
        const auto v = hone::row_major<const float>(a, 4, 4);
        const auto plan = hone::plan({.m = 4, .n = 4, .k = 4}, kn.policy());
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(v, v, hone::row_major(c, 4, 4)) == hone::status{});
        CHECK(std::vector<float>(c, c + 16) ==
              std::vector<float>{56, 62, 68, 74, 152, 174, 196, 218, 248, 286, 324, 362, 344, 398, 452, 506});
    }
}

TEST_CASE("B17 the smallest product, B packed and not") {
    for (const kernel& kn : test::kernels()) {
        float a[] = {1, 2, 3, 4}, b[] = {5, 7, 6, 8}, c[4];
        const auto va = hone::row_major<const float>(a, 2, 2), vb = hone::row_major<const float>(b, 2, 2);
        const auto plan = hone::plan({.m = 2, .n = 2, .k = 2}, kn.policy());
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(va, vb, hone::row_major(c, 2, 2)) == hone::status{});
        CHECK(std::vector<float>(c, c + 4) == std::vector<float>{17, 23, 39, 53});
        const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
        const std::span<std::byte> bytes(memory.data(), memory.size());
        REQUIRE(plan->pack(vb, bytes) == hone::status{});
        std::fill(c, c + 4, nan_value);
        REQUIRE(plan->run(va, *hone::packed_view::open(bytes), hone::row_major(c, 2, 2)) == hone::status{});
        CHECK(std::vector<float>(c, c + 4) == std::vector<float>{17, 23, 39, 53});
    }
}

TEST_CASE("k blocks: partial sums in C and in scratch, mc and nc small") { test::check_k_blocks<float>(); }

TEST_CASE("packed B: from any strides, and from the plan of another instruction set with the same panels") {
    test::check_packed<float>();
}

TEST_CASE("dynamic m: any number of rows up to the bound, with the scratch of the bound") {
    test::check_dynamic_m<float>();
}

TEST_CASE("one plan, many runs: other operands, other threads") {
    const index_t m = 13, n = 37, k = 21;
    const auto plan = hone::plan({.m = m, .n = n, .k = k});
    REQUIRE(plan.status() == hone::status{});
    const auto copy = *plan;
    static_assert(std::is_trivially_copyable_v<std::remove_cv_t<decltype(copy)>>);
    const auto once = [&](std::uint64_t seed) -> std::string {
        std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n));
        random_source source(seed);
        for (float& x : a) x = source.value();
        for (float& x : b) x = source.value();
        const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
        const hone::status s = copy.run(va, vb, hone::row_major(c.data(), m, n));
        if (!s.ok()) return std::string(s.message().view());
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < n; ++j) {
                const test::near_value v = test::dot(1, va, vb, 0, 0, i, j);
                const float got = c[static_cast<std::size_t>(i * n + j)];
                if (!test::near(static_cast<double>(got), v.value, v.bound)) return "differs";
                if (bitwise(hone::isa::dynamic) && !test::same(got, test::strict_dot(1, va, vb, i, j)))
                    return "differs in a bit";
            }
        }
        return "";
    };
    for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(once(seed) == "");
    std::vector<std::string> wrong(8);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < 20; ++i) wrong[t] += once(t * 100 + i);
        });
    }
    for (std::thread& t : threads) t.join();
    for (const std::string& w : wrong) CHECK(w == "");
}

TEST_CASE("B88 executors: 1 to 8 std::threads and tasks in reverse order give the same bits") {
    test::check_executors<float>();
}

TEST_CASE("policy.threads bounds the workers") {
    for (int limit : {1, 2, 3}) {
        test::reverse_executor eight(8);
        const index_t size = 300;
        const auto plan =
            hone::plan({.m = size, .n = size, .k = 2}, {.threads = limit}, hone::identity, {.executor = eight});
        REQUIRE(plan.status() == hone::status{});
        CHECK(plan->explain().workers <= limit);
        REQUIRE_RIGHT({.m = size, .n = size, .k = 2, .policy = {.threads = limit}, .executor = eight});
        CHECK(eight.most_tasks <= limit);
    }
}

TEST_CASE("B88 row 0 does not depend on m, workers, pointer offsets or blocks") {
    const index_t k = 4097, n = test::quick() ? 5 : 33;
    std::vector<float> a(static_cast<std::size_t>(64 * k + 16)), b(static_cast<std::size_t>(k * n + 16));
    random_source source(5);
    std::vector<float> a_values(static_cast<std::size_t>(64 * k)), b_values(static_cast<std::size_t>(k * n));
    for (float& x : a_values) x = source.value();
    for (float& x : b_values) x = source.value();
    std::vector<float> want;
    for (index_t j = 0; j < n; ++j) {
        want.push_back(test::strict_dot(1, hone::row_major<const float>(a_values.data(), 64, k),
                                        hone::row_major<const float>(b_values.data(), k, n), 0, j));
    }
    for (hone::isa id : test::isas()) {
        std::vector<float> first = want;
        bool have_first = test::reproducible(id);
        std::vector<hone::blocking> blocks = {{}, {.kc = 100}, {.mc = 64, .kc = 4096, .nc = 64}};
        // What machines with other caches would take.
        const auto& kn = hone::detail::gemm_kernels<float>(id).row[0];
        for (std::int64_t l1 : {16, 32, 128, 1024}) {
            hone::machine::cache_info caches;
            caches.l1d.bytes = l1 << 10;
            caches.l1d.ways = 8;
            caches.l2.bytes = caches.l3.bytes = std::max<std::int64_t>(caches.l1d.bytes, l1 << 13);
            blocks.push_back(hone::detail::model_blocks(caches, kn.mr, kn.nr, 64, 4));
        }
        CHECK_FALSE(blocks[3] == blocks[6]);
        for (index_t m : {1, 2, 7, 64}) {
            if (test::quick() && m > 7) continue;
            for (std::ptrdiff_t offset = 0; offset < 16; offset += test::quick() ? 5 : 1) {
                for (const hone::blocking& block : blocks) {
                    std::copy(a_values.begin(), a_values.begin() + m * k, a.begin() + offset);
                    std::copy(b_values.begin(), b_values.end(), b.begin() + offset);
                    std::vector<float> c(static_cast<std::size_t>(m * n + 16));
                    test::reverse_executor workers(static_cast<int>(offset) + 1);
                    const hone::context ctx{.executor = workers};
                    const auto plan =
                        hone::plan({.m = m, .n = n, .k = k}, {.isa = id, .block = block}, hone::identity, ctx);
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(hone::row_major<const float>(a.data() + offset, m, k),
                                      hone::row_major<const float>(b.data() + offset, k, n),
                                      hone::row_major(c.data() + offset, m, n), hone::identity, ctx) == hone::status{});
                    if (!have_first) {
                        first.assign(c.begin() + offset, c.begin() + offset + n);
                        have_first = true;
                    }
                    INFO(hone::isa_name(id) << " m " << m << " offset " << offset << " kc " << block.kc);
                    CHECK(std::memcmp(c.data() + offset, first.data(), first.size() * sizeof(float)) == 0);
                }
            }
        }
    }
}

TEST_CASE("B89 a hundred repetitions give the same bits") {
    const index_t m = 65, n = 97, k = 130;
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), first,
        c(static_cast<std::size_t>(m * n));
    random_source source(6);
    for (float& x : a) x = source.value();
    for (float& x : b) x = source.value();
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto vc = hone::row_major(c.data(), m, n);
    test::thread_executor one(1), eight(8);
    for (hone::isa id : test::isas()) {
        first.clear();
        for (int i = 0; i < (test::quick() ? 3 : 100); ++i) {
            for (test::thread_executor* x : {&one, &eight}) {
                const hone::context ctx{.executor = *x};
                const auto plan = hone::plan(hone::describe(va, vb, vc), {.isa = id}, hone::identity, ctx);
                std::fill(c.begin(), c.end(), nan_value);
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(va, vb, vc, hone::identity, ctx) == hone::status{});
                if (first.empty()) {
                    first = c;
                    CHECK(std::none_of(first.begin(), first.end(), [](float v) { return std::isnan(v); }));
                }
                INFO(hone::isa_name(id) << " repetition " << i);
                REQUIRE(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0);
            }
        }
        CHECK(eight.most_tasks > 4);
    }
}

TEST_CASE("caller's scratch: the exact size is enough, nothing behind it is written") {
    for (const kernel& kn : test::kernels()) {
        const int unit = std::max(kn.nr, kn.panel);
        const hone::blocking blocks[] = {
            {}, {.kc = 3}, {.mc = kn.mr, .kc = 3, .nc = unit}, {.mc = 2 * kn.mr, .kc = 5, .nc = 2 * unit}};
        for (const hone::blocking& block : blocks) {
            for (int workers : {1, 2, 5}) {
                for (int form = 0; form < 4; ++form) {
                    const index_t m = 4 * kn.mr + 1, n = 2 * unit + 1, k = 8;
                    hone::policy p = kn.policy();
                    p.block = block;
                    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
                        c(static_cast<std::size_t>(m * n)), want(c.size());
                    random_source source(8);
                    for (float& x : a) x = source.value();
                    for (float& x : b) x = source.value();
                    const auto va = form & 1 ? hone::col_major<const float>(a.data(), m, k)
                                             : hone::row_major<const float>(a.data(), m, k);
                    const auto vb = hone::row_major<const float>(b.data(), k, n);
                    const auto vc = form & 2 ? hone::col_major(c.data(), m, n) : hone::row_major(c.data(), m, n);
                    const auto vw = form & 2 ? hone::col_major(want.data(), m, n) : hone::row_major(want.data(), m, n);
                    test::reverse_executor x(workers);
                    const auto plan = hone::plan(hone::describe(va, vb, vc), p, hone::identity, {.executor = x});
                    REQUIRE(plan.status() == hone::status{});
                    REQUIRE(plan->run(va, vb, vw) == hone::status{});
                    for (const bool packed : {false, true}) {
                        const index_t bytes = plan->scratch_bytes(workers, packed);
                        CHECK(plan->explain(packed).scratch_bytes == bytes);
                        INFO(kn.text() << " workers " << workers << " form " << form << " scratch " << bytes);
                        REQUIRE(bytes >= 0);
                        REQUIRE(bytes % 64 == 0);
                        guarded<std::byte> memory(bytes, edge::end);
                        const hone::context ctx{.executor = x,
                                                .scratch = {memory.data(), static_cast<std::size_t>(bytes)}};
                        std::fill(c.begin(), c.end(), nan_value);
                        if (packed) {
                            const hone::aligned_buffer held(static_cast<std::size_t>(plan->packed_bytes()));
                            const std::span<std::byte> span(held.data(), held.size());
                            REQUIRE(plan->pack(vb, span) == hone::status{});
                            REQUIRE(plan->run(va, *hone::packed_view::open(span), vc, hone::identity, ctx) ==
                                    hone::status{});
                        } else {
                            REQUIRE(plan->run(va, vb, vc, hone::identity, ctx) == hone::status{});
                        }
                        CHECK(memory.intact());
                        CHECK(std::memcmp(c.data(), want.data(), c.size() * sizeof(float)) == 0);
                        if (bytes == 0) continue;
                        // One byte too few.
                        std::fill(c.begin(), c.end(), 5.0f);
                        const hone::context small{.executor = x,
                                                  .scratch = {memory.data(), static_cast<std::size_t>(bytes - 1)}};
                        if (!packed) {
                            CHECK(plan->run(va, vb, vc, hone::identity, small) ==
                                  hone::status{hone::code::too_small, hone::argument::scratch, bytes - 1, bytes});
                        }
                        CHECK(std::all_of(c.begin(), c.end(), [&](float v) { return packed || v == 5.0f; }));
                    }
                }
            }
        }
    }
}

TEST_CASE("the stride of an extent of one means nothing") { test::check_strides_of_one<float>(); }

TEST_CASE("B20 B31 small products without a plan give the bits of planned ones, in guarded memory") {
    test::check_small_without_plan<float>();
}

// At most four steps of k go through rank updates of two rows at a time, B packed or copied.
TEST_CASE("few steps of k: every layout of B, packed and with stages, against one chain") {
    random_source source(17);
    for (const index_t k : {1, 2, 3, 4, 5}) {
        for (const index_t m : {8, 9, 37}) {
            for (const index_t n : {255, 256, 301, 1000}) {
                if (test::quick() && n == 1000) continue;
                std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), turned(b.size());
                std::vector<float> offsets(static_cast<std::size_t>(n)), want(static_cast<std::size_t>(m * n));
                for (float& x : a) x = source.value();
                for (float& x : b) x = source.value();
                for (float& x : offsets) x = source.value();
                for (index_t p = 0; p < k; ++p) {
                    for (index_t j = 0; j < n; ++j) turned[static_cast<std::size_t>(j * k + p)] = b[static_cast<std::size_t>(p * n + j)];
                }
                const auto chain = [&](index_t i, index_t j, bool staged) {
                    float t = 0;
                    for (index_t p = 0; p < k; ++p) t = std::fma(a[static_cast<std::size_t>(i * k + p)], b[static_cast<std::size_t>(p * n + j)], t);
                    if (!staged) return t;
                    const float x = t + offsets[static_cast<std::size_t>(j)];
                    return x > 0 ? x : 0.0f;
                };
                const auto va = hone::row_major<const float>(a.data(), m, k);
                for (hone::isa id : test::isas()) {
                    if (!test::reproducible(id)) continue;
                    const auto check = [&](const char* what, bool staged, auto&& run) {
                        INFO(hone::isa_name(id) << " " << m << "x" << n << "x" << k << " " << what << " staged " << staged);
                        guarded<float> held(m * n);
                        for (index_t i = 0; i < m * n; ++i) held.data()[i] = nan_value;
                        REQUIRE(run(hone::row_major(held.data(), m, n)) == hone::status{});
                        CHECK(held.intact());
                        index_t wrong = 0;
                        for (index_t i = 0; i < m * n; ++i) {
                            const float expected = chain(i / n, i % n, staged), got = held.data()[i];
                            if (std::memcmp(&expected, &got, sizeof got) != 0) ++wrong;
                        }
                        CHECK(wrong == 0);
                    };
                    const auto all = [&](bool staged, const auto& epilogue) {
                        for (const bool by_columns : {false, true}) {
                            const auto vb = by_columns ? hone::col_major<const float>(turned.data(), k, n) : hone::row_major<const float>(b.data(), k, n);
                            const auto desc = hone::describe(va, vb, hone::matrix_view<float>{nullptr, m, n, n, 1});
                            const auto plan = hone::plan(desc, {.isa = id}, epilogue);
                            REQUIRE(plan.status() == hone::status{});
                            const bool ranks = std::string_view(plan->explain().kernel) == "gemm of few steps";
                            if (id == hone::isa::avx512 || id == hone::isa::avx2) CHECK(ranks == (k <= 4 && n >= 256));
                            check(by_columns ? "B by columns" : "B by rows", staged, [&](const auto& c) { return plan->run(va, vb, c, epilogue); });
                            const hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
                            const std::span<std::byte> bytes{memory.data(), memory.size()};
                            REQUIRE(plan->pack(vb, bytes) == hone::status{});
                            const auto weights = hone::packed_view::open(bytes);
                            REQUIRE(weights.status() == hone::status{});
                            check("packed", staged, [&](const auto& c) { return plan->run(va, *weights, c, epilogue); });
                        }
                    };
                    all(false, hone::identity);
                    all(true, hone::bias(offsets) | hone::relu);
                }
            }
        }
    }
}

// Blocks of B that L1 does not hold are packed a tile of columns at a time, in whatever order the tiles come; few rows take
// rank updates where B lies in rows.
TEST_CASE("caller's scratch: the exact size is enough for B beyond L1, of few rows and of many") {
    const index_t n = 261, k = 700;
    std::vector<float> a_values(130 * 700), b_values(static_cast<std::size_t>(n * k)), offsets(static_cast<std::size_t>(n));
    random_source source(9);
    for (float& x : a_values) x = source.value();
    for (float& x : b_values) x = source.value();
    for (float& x : offsets) x = source.value();
    const auto stages = hone::bias(offsets) | hone::relu;
    const auto with = [&](hone::isa id, index_t m, bool by_columns, const auto& epilogue, std::vector<float>& c) {
        const auto va = hone::row_major<const float>(a_values.data(), m, k);
        const auto vb = by_columns ? hone::col_major<const float>(b_values.data(), k, n)
                                   : hone::row_major<const float>(b_values.data(), k, n);
        guarded<float> held(m * n);
        for (index_t i = 0; i < m * n; ++i) held.data()[i] = nan_value;
        const auto vc = hone::row_major(held.data(), m, n);
        const auto plan = hone::plan(hone::describe(va, vb, vc), {.isa = id}, epilogue);
        REQUIRE(plan.status() == hone::status{});
        const index_t bytes = plan->scratch_bytes();
        guarded<std::byte> memory(bytes, edge::end);
        std::byte none{};
        const hone::context ctx{.scratch = {bytes ? memory.data() : &none, static_cast<std::size_t>(bytes)}};
        REQUIRE(plan->run(va, vb, vc, epilogue, ctx) == hone::status{});
        CHECK(memory.intact());
        CHECK(held.intact());
        c.assign(held.data(), held.data() + m * n);
    };
    std::vector<float> want, c;
    for (const bool by_columns : {false, true}) {
        for (index_t m : {1, 2, 3, 5, 8, 9, 40, 130}) {
            if (test::quick() && m > 9) continue;
            for (const bool staged : {false, true}) {
                for (hone::isa id : test::isas()) {
                    INFO(hone::isa_name(id) << " m " << m << (by_columns ? " B by columns" : " B by rows") << " staged " << staged);
                    const bool first = id == test::isas().front();
                    std::vector<float>& out = first ? want : c;
                    if (staged) with(id, m, by_columns, stages, out);
                    else with(id, m, by_columns, hone::identity, out);
                    if (first || !test::reproducible(id) || !test::reproducible(test::isas().front())) continue;
                    CHECK(std::memcmp(want.data(), c.data(), want.size() * sizeof(float)) == 0);
                }
            }
        }
    }
}

// At most four columns, or rows where B's columns are contiguous, have a kernel of their own on some ISAs.
TEST_CASE("B20 B31 few columns and few rows, in guarded memory, to the bit") {
    random_source source(12);
    const hone::isa front = test::isas().front();
    for (index_t few : {1, 2, 3, 4, 5}) {
        for (index_t wide : {7, 8, 9, 31, 32, 33, 130, 300}) {
            for (index_t k : {7, 8, 9, 10, 11, 12, 65, 1024}) {
                if (test::quick() && (few + wide + k) % 7 != 0) continue;
                guarded<float> tall(wide * k), narrow(k * few), c(wide * few);
                std::vector<float> offsets(static_cast<std::size_t>(wide)), first, again;
                for (index_t i = 0; i < wide * k; ++i) tall.data()[i] = source.value();
                for (index_t i = 0; i < k * few; ++i) narrow.data()[i] = source.value();
                for (float& x : offsets) x = source.value();
                for (const bool swap : {false, true}) {
                    const auto a = swap ? hone::row_major<const float>(narrow.data(), few, k) : hone::row_major<const float>(tall.data(), wide, k);
                    const auto b = swap ? hone::col_major<const float>(tall.data(), k, wide) : hone::row_major<const float>(narrow.data(), k, few);
                    const index_t m = swap ? few : wide, n = swap ? wide : few;
                    for (int form = 0; form < 4; ++form) {
                        const auto vc = form & 1 ? hone::col_major(c.data(), m, n) : hone::row_major(c.data(), m, n);
                        for (hone::isa id : test::isas()) {
                            INFO(hone::isa_name(id) << ' ' << m << 'x' << n << 'x' << k << " form " << form);
                            for (index_t i = 0; i < m * n; ++i) c.data()[i] = nan_value;
                            test::reverse_executor workers(form == 3 ? 3 : 1);
                            const hone::context ctx{.executor = workers};
                            const auto with = [&](const auto& epilogue) {
                                const auto plan = hone::plan(hone::describe(a, b, vc), {.isa = id}, epilogue, ctx);
                                REQUIRE(plan.status() == hone::status{});
                                REQUIRE(plan->run(a, b, vc, epilogue, ctx) == hone::status{});
                                again.assign(c.data(), c.data() + m * n);
                                const hone::aligned_buffer held(static_cast<std::size_t>(plan->packed_bytes()));
                                const std::span<std::byte> span(held.data(), held.size());
                                REQUIRE(plan->pack(b, span) == hone::status{});
                                REQUIRE(plan->run(a, *hone::packed_view::open(span), vc, epilogue, ctx) == hone::status{});
                            };
                            if (form & 2) with(hone::bias(std::span<const float>(offsets).first(static_cast<std::size_t>(n))) | hone::relu);
                            else with(hone::identity);
                            CHECK(tall.intact());
                            CHECK(narrow.intact());
                            CHECK(c.intact());
                            const std::vector<float> got(c.data(), c.data() + m * n);
                            CHECK(std::memcmp(got.data(), again.data(), got.size() * sizeof(float)) == 0);
                            if (id == front) first = got;
                            else if (test::reproducible(id) && test::reproducible(front)) {
                                CHECK(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)) == 0);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("random shapes, layouts, blocks and workers against f64") {
    test::check_random<float>(test::quick() ? 10 : 150, test::quick() ? 40 : 170);
}

// Blocks of one kernel with the tile of another leave terms out. tests/consumers/flags.sh compares what units of
// several flags decide.
TEST_CASE("B67 a large symmetric product, and its Cholesky factor") {
    for (hone::isa id : test::isas()) {
        // scalar: the same loops, a library call a step.
        const index_t n = test::quick() ? 67 : id == hone::isa::scalar ? 307 : 1107;
        const auto at = [n](index_t i, index_t j) { return static_cast<std::size_t>(i * n + j); };
        std::vector<float> l(at(n, 0), 0.0f), a(at(n, 0), nan_value);
        random_source source(static_cast<std::uint64_t>(n));
        for (index_t i = 0; i < n; ++i) {
            for (index_t j = 0; j < i; ++j) l[at(i, j)] = static_cast<float>(source.between(-3, 3)) / 4;
            l[at(i, i)] = 16;
        }
        const auto vl = hone::row_major<const float>(l.data(), n, n);
        const auto va = hone::row_major(a.data(), n, n);
        hone::gemm_desc desc = hone::describe(vl, hone::transposed(vl), va);
        const auto plan = hone::plan(desc, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(vl, hone::transposed(vl), va) == hone::status{});
        // Multiples of 1/16 below 2^10: exact in whatever order, and so is the factor.
        std::string wrong;
        for (index_t i = 0; i < n && wrong.empty(); ++i) {
            for (index_t j = 0; j < i && wrong.empty(); ++j) {
                if (!test::same(a[at(i, j)], a[at(j, i)])) wrong = "not symmetric at " + std::to_string(i);
            }
        }
        std::vector<double> d(at(n, 0), 0.0);
        for (index_t j = 0; j < n && wrong.empty(); ++j) {
            for (index_t i = j; i < n && wrong.empty(); ++i) {
                double s = static_cast<double>(a[at(i, j)]);
                for (index_t p = 0; p < j; ++p) s -= d[at(i, p)] * d[at(j, p)];
                d[at(i, j)] = i == j ? std::sqrt(s) : s / d[at(j, j)];
                if (!(d[at(i, j)] == static_cast<double>(l[at(i, j)])))
                    wrong = "factor(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                            std::to_string(d[at(i, j)]);
            }
        }
        INFO(hone::isa_name(id) << " n " << n);
        CHECK(wrong == "");
    }
}

TEST_CASE("B32 scratch follows the block, whatever the block and k are") {
    for (const kernel& kn : test::kernels()) {
        const index_t m = kn.mr + 1, n = std::max(kn.nr, kn.panel) + 1;
        const auto model = hone::plan({.m = m, .n = n, .k = 1 << 20}, kn.policy());
        REQUIRE(model.status() == hone::status{});
        const int kc = model->explain().block.kc;
        REQUIRE(kc > 1);
        for (int block : {kc, kc + 1, 4 * kc, 1000000}) {
            for (int k : {kc - 1, kc, kc + 1, 4 * kc + 1}) {
                if (test::quick() && k > kc + 1) continue;
                for (const bool by_columns : {false, true}) {
                    const layout la = by_columns ? test::cols_of(m) : test::rows_of(k),
                                 lb = by_columns ? test::cols_of(k) : test::rows_of(n);
                    guarded<float> am(m * k), bm(k * n), cm(m * n);
                    matrix<float> a(am, m, k, la), b(bm, k, n, lb), c(cm, m, n, test::rows_of(n));
                    random_source source(static_cast<std::uint64_t>(k));
                    a.fill(source);
                    b.fill(source);
                    c.fill([](index_t, index_t) { return nan_value; });
                    c.remember();
                    hone::policy p = kn.policy();
                    p.block.kc = block;
                    const auto plan = hone::plan(hone::describe(a.in(), b.in(), c.view()), p);
                    REQUIRE(plan.status() == hone::status{});
                    const index_t bytes = plan->scratch_bytes();
                    guarded<std::byte> memory(bytes, k % 2 ? edge::end : edge::begin);
                    INFO(kn.text() << " kc " << block << " k " << k << " scratch " << bytes);
                    REQUIRE(plan->run(a.in(), b.in(), c.view(), hone::identity,
                                      {.scratch = {memory.data(), static_cast<std::size_t>(bytes)}}) == hone::status{});
                    CHECK(memory.intact());
                    CHECK(c.gaps_unchanged());
                    std::string wrong;
                    for (index_t i = 0; i < m; i += kn.mr) {
                        for (index_t j = 0; j < n; ++j) {
                            const test::near_value v = test::dot(1, a.in(), b.in(), 0, 0, i, j);
                            const float got = c(i, j);
                            if (!test::near(static_cast<double>(got), v.value, v.bound) ||
                                (bitwise(kn.isa) && !test::same(got, test::strict_dot(1, a.in(), b.in(), i, j))))
                                wrong = "C(" + std::to_string(i) + ", " + std::to_string(j) + ")";
                        }
                    }
                    CHECK(wrong == "");
                }
            }
        }
    }
}

#if HONE_TEST_GUARD_PAGES
TEST_CASE("B23 B25 rows gigabytes apart, of either sign") {
    // The byte distance of the first overflows 32 bits with sign, the element distance of the second with (rows - 1).
    for (index_t stride : {(index_t{1} << 29) + 4096, (index_t{1} << 30) + 1, -(index_t{1} << 30) - 1}) {
        const index_t m = 3, last = (m - 1) * stride;
        const index_t low = std::min<index_t>(last, 0), high = std::max<index_t>(last, 0) + m;
        const test::far_memory am(low, high), bm(low, high), cm(low, high);
        if (!am || !bm || !cm) {
            WARN("skipped: no address space for " << last << " elements");
            continue;
        }
        const hone::matrix_view<const float> a{am.origin(), m, m, stride, 1}, b{bm.origin(), m, 1, stride, 1};
        const hone::matrix_view<float> c{cm.origin(), m, 1, stride, 1};
        CHECK(reinterpret_cast<std::intptr_t>(a.at(1, 0)) - reinterpret_cast<std::intptr_t>(a.at(0, 0)) == 4 * stride);
        if (stride == (index_t{1} << 29) + 4096) {
            CHECK(reinterpret_cast<const char*>(a.at(1, 0)) - reinterpret_cast<const char*>(a.data) == 2147500032);
        }
        for (index_t i = 0; i < m; ++i) {
            for (index_t j = 0; j < m; ++j) am.open(i * stride + j) = static_cast<float>(10 * i + j);
            bm.open(i * stride) = static_cast<float>(i + 1);
        }
        for (hone::isa id : test::isas()) {
            for (double beta : {0.0, 2.0}) {
                for (index_t i = 0; i < m; ++i) cm.open(i * stride) = 100;
                hone::gemm_desc desc = hone::describe(a, b, c);
                desc.beta = beta;
                const auto plan = hone::plan(desc, {.isa = id});
                REQUIRE(plan.status() == hone::status{});
                REQUIRE(plan->run(a, b, c) == hone::status{});
                INFO(hone::isa_name(id) << " stride " << stride << " beta " << beta);
                for (index_t i = 0; i < m; ++i)
                    CHECK(cm.open(i * stride) == static_cast<float>(60 * i + 8) + static_cast<float>(beta) * 100);
            }
        }
    }
}
#endif

TEST_CASE("B28 tall and long products of one column") {
    const std::vector<float> ones(static_cast<std::size_t>(test::quick() ? 4 << 15 : 4 << 24), 1.0f);
    for (hone::isa id : test::isas()) {
        // scalar: the same loops, a library call a step.
        const bool few = test::quick() || id == hone::isa::scalar;
        const index_t tall = few ? (1 << 14) + 1 : (1 << 23) + 1, deep = few ? (1 << 13) + 1 : 4194305;
        std::vector<float> y(static_cast<std::size_t>(tall));
        auto plan = hone::plan({.m = tall, .n = 1, .k = 4}, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::row_major<const float>(ones.data(), tall, 4),
                          hone::row_major<const float>(ones.data(), 4, 1),
                          hone::row_major(y.data(), tall, 1)) == hone::status{});
        CHECK(std::all_of(y.begin(), y.end(), [](float x) { return x == 4.0f; }));
        plan = hone::plan({.m = 2, .n = 1, .k = deep, .a = {1, 2}}, {.isa = id});
        REQUIRE(plan.status() == hone::status{});
        REQUIRE(plan->run(hone::col_major<const float>(ones.data(), 2, deep),
                          hone::row_major<const float>(ones.data(), deep, 1),
                          hone::row_major(y.data(), 2, 1)) == hone::status{});
        CHECK(y[0] == static_cast<float>(deep));
        CHECK(y[1] == static_cast<float>(deep));
    }
}

TEST_CASE("B31 scaling C alone writes nothing around it") {
    for (hone::isa id : test::isas()) {
        for (index_t m = 1; m <= 9; ++m) {
            for (index_t n = 1; n <= 9; ++n) {
                for (edge side : {edge::end, edge::begin}) {
                    test::thread_executor twelve(test::quick() ? 2 : 12);
                    REQUIRE_RIGHT({.m = m,
                                   .n = n,
                                   .k = 3,
                                   .alpha = 0,
                                   .beta = 2,
                                   .c = test::rows_of(n, 1),
                                   .policy = {.isa = id},
                                   .executor = twelve,
                                   .side = side});
                }
            }
        }
    }
}

TEST_CASE("infinities and NaN where IEEE 754 gives them, nowhere else") { test::check_infinities<float>(); }

TEST_CASE("every instruction set with FMA gives the same bits, packed or not, whatever the tile") {
    const index_t m = 31, n = 75, k = 67;
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), first;
    random_source source(17);
    for (float& x : a) x = source.value() * std::exp2(static_cast<float>(source.between(-20, 20)));
    for (float& x : b) x = source.value() * std::exp2(static_cast<float>(source.between(-20, 20)));
    int compared = 0;
    for (const kernel& kn : test::kernels()) {
        if (!test::reproducible(kn.isa)) continue;
        using hone::packing;
        for (packing how : {packing::dynamic, packing::none, packing::a, packing::b, packing::both}) {
            std::vector<float> c(static_cast<std::size_t>(m * n));
            hone::policy p = kn.policy();
            p.packing = how;
            const auto plan = hone::plan({.m = m, .n = n, .k = k, .alpha = 1.1}, p);
            REQUIRE(plan.status() == hone::status{});
            CHECK(plan->explain().packs_a == (how == packing::a || how == packing::both));
            if (how != packing::dynamic) CHECK(plan->explain().packs_b == (how == packing::b || how == packing::both));
            REQUIRE(plan->run(hone::row_major<const float>(a.data(), m, k),
                              hone::row_major<const float>(b.data(), k, n),
                              hone::row_major(c.data(), m, n)) == hone::status{});
            if (first.empty()) first = c;
            INFO(kn.text());
            CHECK(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0);
            ++compared;
        }
    }
    CHECK(compared >= 2);
}

TEST_CASE("policies fixed at compile time, with tiles that are not registered") {
    using hone::isa;
    test::check_fixed_policy<float, hone::policy{.isa = isa::scalar}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::scalar, .tile = {1, 1}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::scalar, .tile = {8, 2}, .block = {8, 2, 16}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::native}>();
#if HONE_X86
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx2}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx2, .tile = {4, 16}, .block = {8, 2, 16}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx2, .tile = {14, 8}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx2, .tile = {2, 32}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx512, .tile = {14, 32}, .block = {14, 4, 32}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx512, .tile = {1, 64}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::avx512, .tile = {16, 16}}>();
#endif
#if HONE_ARM64
    test::check_fixed_policy<float, hone::policy{.isa = isa::neon, .tile = {6, 16}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::neon, .tile = {8, 8}}>();
    test::check_fixed_policy<float, hone::policy{.isa = isa::neon, .tile = {12, 4}}>();
#endif
}

TEST_CASE("a plan runs small products as gemm() does, where nothing asks for more") {
    const index_t m = 23, n = 45, k = 31;
    std::vector<float> a(23 * 31), b(31 * 45), want(23 * 45), got(want), other(want);
    test::random_source source(31);
    for (float& x : a) x = source.value();
    for (float& x : b) x = source.value();
    const auto va = hone::row_major<const float>(a.data(), m, k), vb = hone::row_major<const float>(b.data(), k, n);
    const auto small = hone::plan({.m = m, .n = n, .k = k});
    const auto general = hone::plan({.m = m, .n = n, .k = k}, {.block = {.kc = 16}});
    REQUIRE((small.status() == hone::status{} && general.status() == hone::status{}));
    const bool fits = hone::detail::fits_small(small->d_.kernel, n);
    CHECK(std::string_view(small->explain().kernel) == (fits ? "gemm of small operands" : "gemm"));
    CHECK(std::string_view(small->explain(true).kernel) == "gemm");
    CHECK(std::string_view(general->explain().kernel) == "gemm");
    CHECK(std::string_view(hone::plan({.m = 65, .n = n, .k = k})->explain().kernel) == "gemm");
    CHECK(std::string_view(hone::plan({.m = m, .n = n, .k = k, .beta = 1})->explain().kernel) == "gemm");
    REQUIRE(hone::gemm(va, vb, hone::row_major(want.data(), m, n)) == hone::status{});
    REQUIRE(small->run(va, vb, hone::row_major(got.data(), m, n)) == hone::status{});
    REQUIRE(general->run(va, vb, hone::row_major(other.data(), m, n)) == hone::status{});
    CHECK(got == want);
    CHECK((got == other || !test::reproducible(hone::active_isa())));
}

TEST_CASE("explain() says what was decided and why") {
    const auto plan = hone::plan({.m = 400, .n = 200, .k = 300});
    REQUIRE(plan.status() == hone::status{});
    const hone::explanation e = plan->explain();
    CHECK(e.isa == hone::active_isa());
    CHECK(std::string_view(e.kernel) == "gemm");
    CHECK(e.tile.mr > 0);
    CHECK(e.block.kc > 0);
    CHECK(e.packs_b);
    CHECK_FALSE(plan->explain(true).packs_b);
    CHECK(e.scratch_bytes == plan->scratch_bytes());
    const std::string text(e.text().view());
    INFO(text);
    CHECK(text.find(std::string("gemm f32 ") + hone::isa_name(e.isa) + " (") == 0);
    CHECK(text.find("tile " + std::to_string(e.tile.mr) + "x" + std::to_string(e.tile.nr)) != std::string::npos);
    CHECK(text.find("workers 1 = 1 x 1") != std::string::npos);
    CHECK(text.size() < hone::text_line::capacity);
    for (hone::isa id : test::isas()) {
        const auto fixed = hone::plan({.m = 100, .n = 200, .k = 300}, {.isa = id, .block = {.kc = 64}});
        REQUIRE(fixed.status() == hone::status{});
        CHECK(fixed->explain().isa == id);
        CHECK(fixed->explain().block.kc == 64);
        CHECK(std::string_view(fixed->explain().why_isa) == "policy");
        CHECK(std::string_view(fixed->explain().why_block) == "policy");
        CHECK(std::string_view(fixed->explain().sums) == "C");
    }
}
