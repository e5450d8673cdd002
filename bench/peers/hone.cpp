// SPDX-License-Identifier: BSL-1.0
// hone behind the same interface as its peers: the only place in the benches that calls it.
#include <hone/hone.hpp>

#include <cstdio>
#include <memory>
#include <span>

#include "peer.hpp"

namespace bench {
namespace {

std::string text(const hone::text_line& line) { return std::string(line.view()); }

// A case that hone refuses is left out with the reason; the run is then short of it, which shows.
void refused(const char* what, const hone::status& s) {
    std::fprintf(stderr, "hone refuses a %s: %s\n", what, text(s.message()).c_str());
}

struct packed_weights {
    explicit packed_weights(std::int64_t bytes) : memory(static_cast<std::size_t>(bytes)) {}
    std::span<std::byte> bytes() const { return {memory.data(), memory.size()}; }
    hone::aligned_buffer memory;
    hone::packed_view view;
};

template <hone::shape S>
void add_fixed(const gemm_problem& p, std::vector<entry>& result) {
    if (p.m != S.m || p.n != S.n || p.k != S.k || p.sets.empty()) return;
    const hone::fixed_gemm<S, hone::rows::dense> multiply;
    result.push_back({"hone", "fixed", in_turn(p.sets, multiply), {}, nullptr, 0});
}

template <class T>
std::vector<entry> gemm(const gemm_problem_of<T>& p) {
    std::vector<entry> result;
    const auto a = hone::row_major(p.a, p.m, p.k);
    const auto b = hone::row_major(p.b, p.k, p.n);
    const auto c = hone::row_major(p.c, p.m, p.n);
    if (const hone::status s = hone::gemm(a, b, c); !s.ok()) {
        refused("product", s);
        return result;
    }
    result.push_back({"hone",
                      "plain",
                      repeated([=] { (void)hone::gemm(a, b, c); }),
                      {},
                      p.b,
                      static_cast<std::size_t>(p.k * p.n) * sizeof(T)});

    if constexpr (std::is_same_v<T, float>) {
        add_fixed<hone::shape{4, 4, 4}>(p, result);
        add_fixed<hone::shape{8, 8, 8}>(p, result);
        add_fixed<hone::shape{16, 16, 16}>(p, result);
        add_fixed<hone::shape{23, 23, 23}>(p, result);
        add_fixed<hone::shape{32, 32, 32}>(p, result);
        add_fixed<hone::shape{7, 13, 17}>(p, result);
    }

    const auto plan = hone::plan<T>(hone::gemm_desc{.m = p.m, .n = p.n, .k = p.k});
    if (!plan) {
        refused("plan", plan.status());
        return result;
    }
    auto weights = std::make_shared<packed_weights>(plan->packed_bytes());
    if (const hone::status s = plan->pack(b, weights->bytes()); !s.ok()) {
        refused("packing", s);
        return result;
    }
    weights->view = *hone::packed_view::open(weights->bytes());
    result.push_back({"hone",
                      "packed",
                      repeated([=, plan = *plan] { (void)plan.run(a, weights->view, c); }),
                      {},
                      weights->memory.data(),
                      weights->memory.size()});
    if (p.m == 1) {  // the same B by columns: what a layer's weights are where rows are outputs
        auto columns = std::make_shared<hone::aligned_buffer>(static_cast<std::size_t>(p.k * p.n) * sizeof(T));
        auto* t = reinterpret_cast<T*>(columns->data());
        for (long i = 0; i < p.k; ++i) {
            for (long j = 0; j < p.n; ++j) t[j * p.k + i] = p.b[i * p.n + j];
        }
        const auto bt = hone::col_major<const T>(t, p.k, p.n);
        result.push_back({"hone",
                          "transposed",
                          repeated([=, keep = columns] { (void)hone::gemm(a, bt, c); }),
                          {},
                          columns->data(),
                          columns->size()});
        constexpr hone::policy relaxed{.numerics = hone::numerics::relaxed};
        result.push_back({"hone",
                          "transposed.relaxed",
                          repeated([=, keep = columns] { (void)hone::gemm<relaxed>(a, bt, c); }),
                          {},
                          columns->data(),
                          columns->size()});
    }
    return result;
}

// Many products in one call, beside a call for each ("single"), and beside one of them again and again, its operands in L1
// ("one"), which is what a batch of small ones would reach if its operands cost nothing.
std::vector<entry> gemms(const gemm_list& list) {
    const auto one = [](const gemm_problem& p) {
        (void)hone::gemm(hone::row_major(p.a, p.m, p.k), hone::row_major(p.b, p.k, p.n), hone::row_major(p.c, p.m, p.n));
    };
    const auto from = [all = list.all, one](std::size_t first) {
        for (std::size_t i = first; i < all.size(); ++i) one(all[i]);
    };
    const auto single = repeated([from] { from(0); });
    std::vector<entry> result;
    if (!list.equal) {
        std::vector<hone::gemm_group<>> groups;
        for (const gemm_problem& p : list.all)
            groups.push_back({hone::row_major(p.a, p.m, p.k), hone::row_major(p.b, p.k, p.n), hone::row_major(p.c, p.m, p.n)});
        if (const hone::status s = hone::gemm_grouped(groups); !s.ok()) {
            refused("group of products", s);
            return result;
        }
        result.push_back({"hone", "grouped", repeated([groups] { (void)hone::gemm_grouped(groups); }), {}, nullptr, 0});
        result.push_back({"single", "grouped", single, {}, nullptr, 0});
        return result;
    }
    const gemm_problem p = list.all.front();
    const auto count = static_cast<hone::index_t>(list.all.size());
    const auto a = hone::batch(hone::row_major(p.a, p.m, p.k), count), b = hone::batch(hone::row_major(p.b, p.k, p.n), count);
    const auto c = hone::batch(hone::row_major(p.c, p.m, p.n), count);
    if (const hone::status s = hone::gemm_batched(a, b, c); !s.ok()) {
        refused("batch of products", s);
        return result;
    }
    const auto batched = repeated([=] { (void)hone::gemm_batched(a, b, c); });
    result.push_back({"hone", "batched", batched, {}, nullptr, 0});
    result.push_back({"single", "batched", single, {}, nullptr, 0});
    result.push_back({"hone", "warm", batched, {}, nullptr, 0});
    result.push_back({"one", "warm", repeated([=] {
                          for (hone::index_t i = 0; i < count; ++i) one(p);
                      }),
                      [from] { from(1); }, nullptr, 0});
    return result;
}

// Adds a contender under a policy; false where hone refuses.
bool add_conv(const conv_problem& p, const hone::policy& policy, const std::string& group, std::vector<entry>& result) {
    const auto in = hone::nhwc(p.in, 1, p.h, p.w, p.ic);
    const auto out = hone::nhwc(p.out, 1, p.oh, p.ow, p.oc);
    const auto filter = hone::oihw(p.weights, p.oc / p.groups, p.ic / p.groups, p.kh, p.kw, p.groups);
    const hone::conv_desc desc{
        .n = 1,
        .h = p.h,
        .w = p.w,
        .ic = p.ic,
        .oc = p.oc,
        .kh = p.kh,
        .kw = p.kw,
        .groups = p.groups,
        .window = {.stride_h = p.stride_h,
                   .stride_w = p.stride_w,
                   .pad = {p.pad_h, p.pad_w, p.pad_h, p.pad_w},
                   .transposed = p.transposed}};
    const auto stages = hone::bias(std::span(p.bias, static_cast<std::size_t>(p.oc))) | hone::relu;
    const auto plan = hone::plan(desc, policy, stages);
    if (!plan) {
        refused("convolution", plan.status());
        return false;
    }
    auto weights = std::make_shared<packed_weights>(plan->packed_bytes());
    if (const hone::status s = plan->pack(filter, weights->bytes()); !s.ok()) {
        refused("packing", s);
        return false;
    }
    weights->view = *hone::packed_view::open(weights->bytes());
    result.push_back({"hone",
                      group,
                      repeated([=, plan = *plan] { (void)plan.run(in, weights->view, out, stages); }),
                      {},
                      weights->memory.data(),
                      weights->memory.size()});
    return true;
}

std::vector<entry> conv(const conv_problem& p) {
    std::vector<entry> result;
    if (!add_conv(p, {}, "", result)) return result;
    if (p.relaxed) (void)add_conv(p, {.numerics = hone::numerics::relaxed}, "relaxed", result);
    return result;
}

}  // namespace

std::vector<peer> hone_itself() { return {{"hone", text(hone::explain().text()), gemm<float>, conv, gemm<double>, gemms}}; }

}  // namespace bench
