// SPDX-License-Identifier: BSL-1.0
// The decisions of a GEMM: pure functions of shapes, kernels and caches. What they answer is held to the shapes on which
// each was measured, over caches and a kernel that are made up here.
#include "catch.hpp"

#include <hone/gemm.hpp>

#include <cstdint>

namespace {

using namespace hone::detail;
using hone::index_t;

hone::machine::cache_info caches(std::int64_t l1d, std::int64_t l2, std::int64_t l3) {
    hone::machine::cache_info c;
    c.l1d.bytes = l1d;
    c.l2.bytes = l2;
    c.l3.bytes = l3;
    return c;
}
const hone::machine::cache_info usual = caches(48 << 10, 1 << 20, 32 << 20);

template <class T>
gemm_kernel<T> kernel(bool masked) {
    gemm_kernel<T> k;
    k.lanes = 64 / static_cast<int>(sizeof(T));
    k.panel = k.lanes;
    k.mr = 8;
    k.nr = 3 * k.lanes;
    k.masked = masked;
    k.rank[0][0] = k.rank[1][0] = [](const rank_tile<T>&) {};
    k.narrow = [](const narrow_tile<T>&) {};
    return k;
}

template <class T>
bool in_place(index_t m, index_t n, index_t k, index_t row_stride, const hone::machine::cache_info& c = usual) {
    return place_b(c, kernel<T>(true), m, n, k, row_stride);
}

}  // namespace

TEST_CASE("B is read in place where few rows of A do not repay a copy") {
    CHECK(in_place<float>(128, 128, 128, 128));
    CHECK(in_place<float>(256, 256, 256, 256));
    CHECK(in_place<float>(127, 129, 131, 129));
    CHECK(in_place<float>(384, 384, 64, 384));
    CHECK(in_place<double>(256, 256, 256, 256));
    CHECK(!in_place<float>(512, 512, 128, 512));
    CHECK(!in_place<float>(3136, 256, 64, 256));
}
TEST_CASE("B beyond half of L2 is read in place for up to 96 rows, beyond a quarter of L3 for up to 24") {
    CHECK(in_place<float>(64, 768, 768, 768));
    CHECK(in_place<float>(96, 768, 768, 768));
    CHECK(!in_place<float>(97, 768, 768, 768));
    CHECK(in_place<float>(24, 11008, 4095, 11007));
    CHECK(!in_place<float>(25, 11008, 4095, 11007));
    CHECK(!in_place<double>(97, 384, 768, 384));
    // The same product on smaller and larger caches.
    CHECK(!in_place<float>(128, 128, 128, 128, caches(32 << 10, 96 << 10, 2 << 20)));
    CHECK(in_place<float>(200, 768, 768, 768, caches(48 << 10, 8 << 20, 64 << 20)));
}
TEST_CASE("B whose rows lie whole pages apart is copied sooner: they share a set of L1") {
    CHECK(in_place<float>(64, 1024, 256, 1024));
    CHECK(!in_place<float>(65, 1024, 256, 1024));
    CHECK(in_place<float>(65, 1024, 256, 1025));
    CHECK(in_place<double>(64, 512, 256, 512));
    CHECK(!in_place<double>(65, 512, 256, 512));
    CHECK(in_place<double>(65, 512, 128, 768));
    CHECK(in_place<float>(24, 1024, 1024, 1024));
    CHECK(!in_place<float>(32, 1024, 1024, 1024));
    CHECK(!in_place<float>(96, 64, 64, 2048));
    CHECK(in_place<float>(96, 64, 1, 2048));
}
TEST_CASE("B narrower than a panel is copied where no load can be masked") {
    const gemm_kernel<float> whole = kernel<float>(false);
    CHECK(!place_b(usual, whole, 4, whole.panel - 1, 64, 64));
    CHECK(place_b(usual, whole, 4, whole.panel, 64, 64));
    CHECK(in_place<float>(4, 3, 64, 64));
}
TEST_CASE("what explain() says of B is what the decision was") {
    const auto said = [](index_t m, index_t n, index_t k, index_t stride) {
        const auto plan = hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k, .b = {stride, 1}});
        REQUIRE(plan.status() == hone::status{});
        const bool place = place_b(this_machine().cache, plan->d_.kernel, m, n, k, stride);
        CHECK(std::string_view(plan->explain().b) == (place ? "in place" : "packed each call"));
        CHECK(plan->explain().packs_b == !place);
    };
    for (index_t m : {16, 40, 96, 97, 384, 385, 2000}) {
        said(m, 256, 256, 256);
        said(m, 256, 256, 1024);
        said(m, 1000, 1000, 1000);
        said(m, 4096, 4096, 4096);
    }
}

TEST_CASE("B is fetched ahead where it lies beyond L2 and enough tiles wait for it") {
    const gemm_kernel<float> kn = kernel<float>(true);
    CHECK(!fetches_ahead(usual, kn, 256, 256, 256, false));
    CHECK(fetches_ahead(usual, kn, 256, 1024, 1024, false));
    CHECK(!fetches_ahead(usual, kn, 8, 1024, 1024, false));
    CHECK(fetches_ahead(usual, kn, 9, 1024, 1024, false));
    CHECK(!fetches_ahead(usual, kn, 24, 1024, 1024, true));
    CHECK(fetches_ahead(usual, kn, 25, 1024, 1024, true));
    CHECK(!fetches_ahead(usual, kn, 2, 4096, 4096, true));
    CHECK(fetches_ahead(usual, kn, 3, 4096, 4096, true));
}
TEST_CASE("one or two long rows are rank updates") {
    const gemm_kernel<float> kn = kernel<float>(true);
    CHECK(prefers_rank(kn, 1, 4096, 4096));
    CHECK(prefers_rank(kn, 2, 32, 4));
    CHECK(!prefers_rank(kn, 3, 4096, 4096));
    CHECK(!prefers_rank(kn, 1, 31, 4096));
    CHECK(!prefers_rank(kn, 1, 4096, 3));
}
TEST_CASE("up to four steps over long rows of C take no tiles") {
    const gemm_kernel<float> kn = kernel<float>(true);
    CHECK(has_few_steps(usual, kn, 1000, 1000, 3));
    CHECK(has_few_steps(usual, kn, 8, 256, 4));
    CHECK(!has_few_steps(usual, kn, 1000, 1000, 5));
    CHECK(!has_few_steps(usual, kn, 1000, 1000, 0));
    CHECK(!has_few_steps(usual, kn, 7, 1000, 3));
    CHECK(!has_few_steps(usual, kn, 1000, 255, 3));
    CHECK(!has_few_steps(usual, kn, 1000, 100000, 3));
}
TEST_CASE("up to four columns go through the kernel for narrow products") {
    const gemm_kernel<float> kn = kernel<float>(true);
    CHECK(narrow_way_of(kn, 1000, 3, 1000, true, false, false) == gemm_way::few_columns);
    CHECK(narrow_way_of(kn, 3, 1000, 1000, true, true, false) == gemm_way::few_rows);
    CHECK(narrow_way_of(kn, 3, 1000, 1000, true, true, true) == gemm_way::tiles);
    CHECK(narrow_way_of(kn, 1000, 5, 1000, true, false, false) == gemm_way::tiles);
    CHECK(narrow_way_of(kn, 1000, 3, 7, true, false, false) == gemm_way::tiles);
    CHECK(narrow_way_of(kn, 7, 3, 1000, true, false, false) == gemm_way::tiles);
    CHECK(narrow_way_of(kn, 1000, 3, 1000, false, false, false) == gemm_way::tiles);
    CHECK(narrow_way_of(gemm_kernel<float>{}, 1000, 3, 1000, true, false, false) == gemm_way::tiles);
}
TEST_CASE("parts: the fewest tiles in the largest, then the least repeated packing") {
    const auto split = [](index_t m, index_t n, int workers, bool packs) {
        const parts p = split_parts(m, n, 8, 48, workers, packs);
        return p.rows * 100 + p.cols;
    };
    CHECK(split(800, 480, 1, true) == 101);
    CHECK(split(800, 48, 4, true) == 401);
    CHECK(split(8, 480, 4, true) == 104);
    CHECK(split(800, 960, 4, true) == 104);
    CHECK(split(800, 960, 4, false) == 401);
    CHECK(split(8, 48, 64, true) == 101);
    CHECK(split(0, 0, 4, true) == 101);
}
TEST_CASE("blocks fill the share of each cache that is theirs") {
    for (const auto& c : {usual, caches(32 << 10, 512 << 10, 4 << 20), caches(64 << 10, 2 << 20, 64 << 20)}) {
        for (const int size : {4, 8}) {
            const int mr = 8, nr = 192 / size;
            const hone::blocking b = model_blocks(c, mr, nr, 1000, size);
            CHECK(b.kc * size <= 4096);
            CHECK(b.kc >= 256);
            CHECK(b.mc % mr == 0);
            CHECK(b.nc % nr == 0);
            CHECK(std::int64_t{b.mc} * b.kc * size <= c.l2.bytes / 2);
            CHECK(std::int64_t{b.nc} * b.kc * size <= c.l3.bytes / 2);
        }
    }
    CHECK(model_blocks(usual, 8, 48, 1, 4).kc == (48 << 10) / 2 / 4);
}
