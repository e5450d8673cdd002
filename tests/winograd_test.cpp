// SPDX-License-Identifier: BSL-1.0
// Winograd convolutions against the definition in double precision: their error is bounded, and they run only where asked for.
#include "conv_reference.hpp"

#include <cmath>

namespace {

using hone::algorithm;
using hone::code;
using hone::index_t;
using hone::isa;
using namespace test;

// Images of values in [-1, 1), 3 x 3 filters, in double precision what a convolution with bias and ReLU should be.
struct problem {
    problem(index_t n, index_t h, index_t w, index_t ic, index_t oc, hone::padding pad, random_source& source)
        : desc{.n = n, .h = h, .w = w, .ic = ic, .oc = oc, .kh = 3, .kw = 3, .window = {.pad = pad}},
          oh(h + pad.top + pad.bottom - 2), ow(w + pad.left + pad.right - 2),
          in(random(n * h * w * ic, source)), filter(random(oc * ic * 9, source)), bias(random(oc, source)),
          want(static_cast<std::size_t>(n * oh * ow * oc)) {
        for (index_t b = 0; b < n; ++b)
            for (index_t y = 0; y < oh; ++y)
                for (index_t x = 0; x < ow; ++x)
                    for (index_t o = 0; o < oc; ++o) {
                        double sum = 0;
                        for (index_t t = 0; t < 9; ++t) {
                            const index_t iy = y + t / 3 - pad.top, ix = x + t % 3 - pad.left;
                            if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
                            for (index_t i = 0; i < ic; ++i) {
                                sum += static_cast<double>(in[at(((b * h + iy) * w + ix) * ic + i)]) *
                                       static_cast<double>(filter[at((o * ic + i) * 9 + t)]);
                            }
                        }
                        const double biased = sum + static_cast<double>(bias[at(o)]);
                        want[at(((b * oh + y) * ow + x) * oc + o)] = biased > 0 ? biased : 0;
                    }
        for (index_t o = 0; o < oc; ++o) {
            double weights = 0;
            for (index_t i = 0; i < ic * 9; ++i) weights += std::abs(static_cast<double>(filter[at(o * ic * 9 + i)]));
            largest = std::max(largest, weights);
        }
    }
    static std::size_t at(index_t i) { return static_cast<std::size_t>(i); }
    static std::vector<float> random(index_t count, random_source& source) {
        std::vector<float> v(at(count));
        for (float& x : v) x = source.value();
        return v;
    }
    hone::image_view<const float> input() const { return hone::nhwc(in.data(), desc.n, desc.h, desc.w, desc.ic); }
    hone::filter_view<const float> weights() const { return hone::oihw(filter.data(), desc.oc, desc.ic, 3, 3); }
    auto stages() const { return hone::bias(bias) | hone::relu; }

    // The largest error over 2^-24 times the largest sum of a filter's magnitudes (inputs are at most 1); NaN where there is one.
    double error(const std::vector<float>& got) const {
        double worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double e = std::abs(static_cast<double>(got[i]) - want[i]);
            if (!(e <= worst)) worst = e;
        }
        return worst / (largest * 0x1p-24);
    }

    hone::conv_desc desc;
    index_t oh, ow;
    std::vector<float> in, filter, bias;
    std::vector<double> want;
    double largest = 0;
};

// What the page says of the error, in the same units.
constexpr double bound_of(algorithm a, index_t ic) {
    if (a == algorithm::winograd_2x2) return ic < 32 ? 2.5 : 1.25;
    return ic < 32 ? 60 : 30;
}

}  // namespace

TEST_CASE("Winograd: sums lie within their bound, for images of every size") {
    random_source source(41);
    constexpr hone::padding pads[] = {{1, 1, 1, 1}, {}, {0, 1, 2, 0}, {2, 2, 2, 2}};
    double worst[4] = {};
    for (int i = 0; i < (quick() ? 30 : 300); ++i) {
        const hone::padding pad = pads[source.between(0, 3)];
        const index_t h = 3 + source.between(0, 12), wide = 3 + source.between(0, 17);
        const problem p(1 + source.between(0, 1), h, wide, 1 + source.between(0, i % 5 == 0 ? 150 : 40), 1 + source.between(0, 70), pad, source);
        for (algorithm a : {algorithm::winograd_2x2, algorithm::winograd_4x4}) {
            for (isa id : here()) {
                if (i % 4 != 0 && id != here().back()) continue;
                hone::policy policy{.isa = id, .algorithm = a};
                if (i % 3 == 1) policy.block = {.mc = 24, .kc = 16, .nc = 96};
                const auto plan = hone::plan(p.desc, policy, p.stages());
                REQUIRE(plan);
                CHECK(std::string_view(plan->explain().kernel) == (a == algorithm::winograd_2x2 ? "winograd_2x2" : "winograd_4x4"));
                std::vector<float> got(p.want.size(), -1), again(p.want.size(), -1);
                REQUIRE(plan->run(p.input(), p.weights(), hone::nhwc(got.data(), p.desc.n, p.oh, p.ow, p.desc.oc), p.stages()).ok());
                const double error = p.error(got);
                double& w = worst[(a == algorithm::winograd_4x4) + 2 * (p.desc.ic >= 32)];
                w = std::max(w, error);
                CHECK(error <= bound_of(a, p.desc.ic));
                // Packed beforehand, by a plan for images of another size.
                hone::conv_desc other = p.desc;
                other.h += 5;
                const auto packer = hone::plan(other, policy, p.stages());
                REQUIRE(packer);
                hone::aligned_buffer memory(static_cast<std::size_t>(packer->packed_bytes()));
                REQUIRE(packer->pack(p.weights(), {memory.data(), memory.size()}).ok());
                const auto packed = hone::packed_view::open({memory.data(), memory.size()});
                REQUIRE(packed);
                REQUIRE(plan->run(p.input(), *packed, hone::nhwc(again.data(), p.desc.n, p.oh, p.ow, p.desc.oc), p.stages()).ok());
                CHECK(got == again);
            }
        }
    }
    INFO("worst errors " << worst[0] << " and " << worst[1] << ", of 32 channels and more " << worst[2] << " and " << worst[3]);
    CHECK(worst[0] > 0);
    CHECK(worst[1] > worst[0]);
}

TEST_CASE("Winograd: any layout, any number of workers, scratch to the byte") {
    random_source source(42);
    const problem p(2, 11, 14, 35, 50, {1, 1, 1, 1}, source);
    for (isa id : here()) {
        for (algorithm a : {algorithm::winograd_2x2, algorithm::winograd_4x4}) {
            std::vector<float> first;
            for (int layout = 0; layout < 4; ++layout) {
                const bool planes_in = layout % 2 == 1, planes_out = layout / 2 == 1;
                std::vector<float> in(p.in.size()), out(p.want.size()), got(p.want.size());
                for (index_t b = 0; b < 2; ++b)
                    for (index_t q = 0; q < 11 * 14; ++q)
                        for (index_t c = 0; c < 35; ++c) {
                            const index_t nhwc = (b * 11 * 14 + q) * 35 + c;
                            in[problem::at(planes_in ? (b * 35 + c) * 11 * 14 + q : nhwc)] = p.in[problem::at(nhwc)];
                        }
                hone::conv_desc d = p.desc;
                if (planes_in) d.input = {35 * 11 * 14, 14, 1, 11 * 14};
                if (planes_out) d.output = {50 * 11 * 14, 14, 1, 11 * 14};
                thread_executor three(3);
                for (int workers : {1, 3}) {
                    hone::context ctx;
                    if (workers > 1) ctx.executor = hone::executor_ref(three);
                    const auto plan = hone::plan(d, hone::policy{.isa = id, .algorithm = a}, p.stages(), ctx);
                    REQUIRE(plan);
                    pool<std::byte> memory(edge::end);
                    ctx.scratch = exact_scratch(memory, plan->scratch_bytes(workers));
                    const hone::image_view<const float> input =
                        planes_in ? hone::nchw(in.data(), 2, 35, 11, 14) : hone::nhwc(in.data(), 2, 11, 14, 35);
                    const hone::image_view<float> output =
                        planes_out ? hone::nchw(out.data(), 2, 50, 11, 14) : hone::nhwc(out.data(), 2, 11, 14, 50);
                    REQUIRE(plan->run(input, p.weights(), output, p.stages(), ctx).ok());
                    for (index_t b = 0; b < 2; ++b)
                        for (index_t q = 0; q < 11 * 14; ++q)
                            for (index_t c = 0; c < 50; ++c) {
                                const index_t nhwc = (b * 11 * 14 + q) * 50 + c;
                                got[problem::at(nhwc)] = out[problem::at(planes_out ? (b * 50 + c) * 11 * 14 + q : nhwc)];
                            }
                    CHECK(p.error(got) <= bound_of(a, p.desc.ic));
                    if (first.empty()) first = got;
                    CHECK(got == first);
                }
            }
        }
    }
}

TEST_CASE("Winograd: only where it is named or numerics are relaxed, and only where it can") {
    const hone::conv_desc d{.h = 20, .w = 20, .ic = 64, .oc = 64, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
    const auto kernel = [](const hone::conv_desc& of, const hone::policy& p) { return std::string_view(hone::plan(of, p)->explain().kernel); };
    CHECK(kernel(d, {}) == "implicit_gemm");
    CHECK(kernel(d, {.numerics = hone::numerics::relaxed}) == "winograd_4x4");
    CHECK(kernel(d, {.numerics = hone::numerics::relaxed, .algorithm = algorithm::implicit_gemm}) == "implicit_gemm");
    CHECK(kernel(d, {.algorithm = algorithm::winograd_2x2}) == "winograd_2x2");
    hone::conv_desc few = d;
    few.ic = 24;
    CHECK(kernel(few, {.numerics = hone::numerics::relaxed}) == "first_layer");
    few = d;
    few.oc = 31;
    CHECK(kernel(few, {.numerics = hone::numerics::relaxed}) == "implicit_gemm");
    const auto refused = [&](auto change) {
        hone::conv_desc other = d;
        change(other);
        for (algorithm a : {algorithm::winograd_2x2, algorithm::winograd_4x4}) {
            CHECK(hone::plan(other, hone::policy{.algorithm = a}).status() ==
                  hone::status{code::unsupported, hone::argument::policy_algorithm, static_cast<index_t>(a), 1});
        }
        CHECK(kernel(other, {.numerics = hone::numerics::relaxed}) == "implicit_gemm");
    };
    refused([](hone::conv_desc& o) { o.window.stride_h = 2; });
    refused([](hone::conv_desc& o) { o.window.stride_w = 2; });
    refused([](hone::conv_desc& o) { o.window.dilation_h = 2; });
    refused([](hone::conv_desc& o) { o.window.dilation_w = 2; });
    refused([](hone::conv_desc& o) { o.window.transposed = true; });
    refused([](hone::conv_desc& o) { o.groups = 2; });
    refused([](hone::conv_desc& o) { o.kh = 5; });
    refused([](hone::conv_desc& o) { o.kw = 5; });
    // Weights packed for one algorithm are not another's.
    std::vector<float> filter(64 * 64 * 9, 0.5f), in(20 * 20 * 64), out(20 * 20 * 64);
    const auto two = *hone::plan(d, hone::policy{.algorithm = algorithm::winograd_2x2}), four = *hone::plan(d, hone::policy{.algorithm = algorithm::winograd_4x4});
    hone::aligned_buffer memory(static_cast<std::size_t>(two.packed_bytes()));
    REQUIRE(two.pack(hone::oihw(filter.data(), 64, 64, 3, 3), {memory.data(), memory.size()}).ok());
    const auto packed = *hone::packed_view::open({memory.data(), memory.size()});
    CHECK(four.run(hone::nhwc(in.data(), 1, 20, 20, 64), packed, hone::nhwc(out.data(), 1, 20, 20, 64)).argument == hone::argument::packed_layout);
}
