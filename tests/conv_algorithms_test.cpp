// SPDX-License-Identifier: BSL-1.0
// Every algorithm of a convolution gives the same bits as the definition, and says by itself what it cannot compute.
#include "conv_reference.hpp"

#include <hone/nest/window.hpp>

namespace {

using hone::algorithm;
using hone::code;
using hone::index_t;
using hone::isa;
using namespace test;

constexpr hone::blocking block_list[] = {{}, {.mc = 6, .kc = 150, .nc = 16}, {.mc = 1, .nc = 48}, {.mc = 12, .nc = 16}};

// One problem on every instruction set by the algorithm of this name, which is what `dynamic` takes as well.
void run_as(const char* name, algorithm a, const conv_problem& p, std::uint64_t i, random_source& source) {
    conv_data d(buffers(i % 2 ? edge::begin : edge::end), p, source);
    d.in.remember();
    for (isa id : here()) {
        const hone::policy policy{.isa = id, .block = block_list[i % 4], .algorithm = i % 3 == 0 ? algorithm::dynamic : a};
        const auto plan = hone::plan(d.desc(strides_of(p.out, d.oh, d.ow, p.oc)), policy);
        REQUIRE(plan);
        CHECK(std::string_view(plan->explain().kernel) == name);
        const std::string why = run_conv(d, policy, i % 7 == 0, static_cast<int>(i / 3));
        if (!why.empty()) FAIL_CHECK(hone::isa_name(id) << " " << name << ": " << why);
    }
    if (!d.in.unchanged()) FAIL_CHECK("the input was written: " << p.text());
}

// Windows of all kinds over images of some width.
conv_problem draw_window(random_source& source) {
    const auto below = [&](index_t n) { return source.between(0, n - 1); };
    conv_problem p;
    p.n = 1 + below(2);
    p.kh = 1 + below(5);
    p.kw = 1 + below(7);
    p.window.stride_h = 1 + below(3);
    p.window.stride_w = 1 + below(3);
    p.window.pad = {below(4), below(5), below(4), below(5)};
    p.h = 1 + below(7);
    p.w = 1 + below(40);
    p.finite = below(4) != 0;
    p.filter = static_cast<filter_layout>(below(filter_layouts));
    return p;
}

}  // namespace

TEST_CASE("depthwise: rows of pixels of every length, edges of every width") {
    random_source source(31);
    for (std::uint64_t i = 0, done = 0; done < (quick() ? 40u : 600u); ++i) {
        conv_problem p = draw_window(source);
        p.window.transposed = i % 3 == 2;
        p.window.dilation_h = 1 + source.between(0, 1);
        p.window.dilation_w = 1 + source.between(0, 2);
        p.ic = p.oc = p.groups = 1 + source.between(0, (i % 4 == 0 ? 70 : 20) - 1);
        p.in = static_cast<image_layout>(source.between(0, image_layouts - 1));
        p.out = static_cast<image_layout>(source.between(0, image_layouts - 1));
        if (p.oh() < 1 || p.ow() < 1) continue;
        ++done;
        run_as("depthwise", algorithm::depthwise, p, i, source);
    }
}

TEST_CASE("first layer: rows of taps are one run, also where they begin or end in the padding") {
    random_source source(32);
    for (std::uint64_t i = 0, done = 0; done < (quick() ? 40u : 400u); ++i) {
        conv_problem p = draw_window(source);
        p.kw = 2 + source.between(0, 5);
        p.ic = 1 + source.between(0, (i % 3 == 0 ? 18 : 4) - 1);
        p.oc = 2 + source.between(0, 39);
        p.in = source.between(0, 1) ? image_layout::nhwc : image_layout::nchw;
        p.out = static_cast<image_layout>(source.between(0, image_layouts - 1));
        if (p.oh() < 1 || p.ow() < 1 || p.h * p.w == 1) continue;
        ++done;
        run_as("first_layer", algorithm::first_layer, p, i, source);
    }
}

TEST_CASE("pointwise: pixels of a batch as rows of one matrix, or image by image") {
    random_source source(33);
    for (std::uint64_t i = 0; i < (quick() ? 40u : 400u); ++i) {
        conv_problem p = draw_window(source);
        p.window = {};
        p.kh = p.kw = 1;
        p.ic = source.between(0, (i % 4 == 0 ? 400 : 30) - 1);
        p.oc = 1 + source.between(0, 69);
        constexpr image_layout flat[] = {image_layout::nhwc, image_layout::nchw, image_layout::nhwc_slice};
        p.in = flat[source.between(0, 2)];
        p.out = flat[source.between(0, 2)];
        run_as("pointwise", algorithm::pointwise, p, i, source);
    }
}

TEST_CASE("an algorithm that cannot compute a convolution is refused") {
    const auto refused = [](const hone::conv_desc& d, algorithm a) {
        const auto plan = hone::plan(d, hone::policy{.algorithm = a});
        REQUIRE_FALSE(plan);
        CHECK(plan.status() == hone::status{code::unsupported, hone::argument::policy_algorithm, static_cast<index_t>(a), 1});
        const auto general = hone::plan(d, hone::policy{});
        REQUIRE(general);
        CHECK(std::string_view(general->explain().kernel) == "implicit_gemm");
    };
    const auto refused_with = [&](hone::conv_desc d, auto change, algorithm a) {
        change(d);
        refused(d, a);
    };
    const hone::conv_desc one{.h = 6, .w = 7, .ic = 200, .oc = 8};
    REQUIRE(hone::plan(one, hone::policy{.algorithm = algorithm::pointwise}));
    refused_with(one, [](hone::conv_desc& d) { d.window.stride_w = 2; }, algorithm::pointwise);
    refused_with(one, [](hone::conv_desc& d) { d.window.pad = {.left = 1}; }, algorithm::pointwise);
    refused_with(one, [](hone::conv_desc& d) { d.groups = 2; }, algorithm::pointwise);
    refused_with(one, [](hone::conv_desc& d) { d.kw = 2; }, algorithm::pointwise);
    refused_with(one, [](hone::conv_desc& d) { d.kw = 2; }, algorithm::depthwise);
    // A gap behind each row.
    refused_with(one, [](hone::conv_desc& d) { d.output = {6 * 7 * 8 + 6 * 8, 7 * 8 + 8, 8, 1}; }, algorithm::pointwise);

    const hone::conv_desc first{.h = 9, .w = 9, .ic = 3, .oc = 8, .kh = 3, .kw = 3};
    REQUIRE(hone::plan(first, hone::policy{.algorithm = algorithm::first_layer}));
    refused_with(first, [](hone::conv_desc& d) { d.window.dilation_w = 2; }, algorithm::first_layer);
    refused_with(first, [](hone::conv_desc& d) { d.window.transposed = true; }, algorithm::first_layer);
    refused_with(first, [](hone::conv_desc& d) { d.ic = 64; }, algorithm::first_layer);
    refused_with(first, [](hone::conv_desc& d) { d.kw = 1; }, algorithm::first_layer);
    // Pixels do not touch.
    refused_with(first, [](hone::conv_desc& d) { d.input = {9 * 9 * 4, 9 * 4, 4, 1}; }, algorithm::first_layer);
    const auto short_runs = hone::plan(first, hone::policy{.block = {.kc = 8}, .algorithm = algorithm::first_layer});
    CHECK(short_runs.status() == hone::status{code::unsupported, hone::argument::policy_algorithm, static_cast<index_t>(algorithm::first_layer), 1});
}

// Taps and inputs by their definition, phase by phase.
TEST_CASE("windows along an axis: which taps of an output lie inside") {
    using hone::detail::axis_phase;
    using hone::detail::conv_axis;
    for (int transposed = 0; transposed < 2; ++transposed) {
        for (index_t code = 0; code < 5 * 5 * 4 * 4 * 4; ++code) {
            const index_t in = 1 + code % 5, taps = 1 + code / 5 % 5, stride = 1 + code / 25 % 4, dilation = 1 + code / 100 % 4, pad = code / 400;
            const index_t span = dilation * (taps - 1) + 1;
            const index_t out = transposed ? (in - 1) * stride + span - pad : (in + 2 * pad - span) / stride + 1;
            if (out < 1 || (!transposed && in + 2 * pad < span)) continue;
            const conv_axis axis{in, out, taps, stride, dilation, pad, transposed == 1};
            std::vector<int> seen(static_cast<std::size_t>(out));
            for (index_t phase = 0; phase < axis.phases(); ++phase) {
                const axis_phase a(axis, phase);
                const auto whole = a.whole();
                for (index_t i = 0; i < a.outputs; ++i) {
                    const index_t o = a.first_output + i * a.output_step;
                    REQUIRE(o < out);
                    ++seen[static_cast<std::size_t>(o)];
                    std::vector<std::pair<index_t, index_t>> want, got;
                    bool padding = false;
                    for (index_t t = 0; t < taps; ++t) {
                        const index_t at = transposed ? o + pad - t * dilation : o * stride + t * dilation - pad;
                        if (transposed && at % stride != 0) continue;
                        const index_t source = transposed ? at / stride : at;
                        if (source >= 0 && source < in) want.emplace_back(t, source);
                        else padding = true;
                    }
                    const auto inside = a.inside(i);
                    for (index_t j = inside.begin; j < inside.end; ++j) {
                        got.emplace_back(a.first_tap + j * a.tap_step, a.begin + i * a.by_output + j * a.by_tap);
                    }
                    REQUIRE(got == want);
                    REQUIRE((i >= whole.begin && i < whole.end) == !padding);
                }
            }
            for (int n : seen) REQUIRE(n == 1);
        }
    }
}

// Groups of 4 and 8 channels share a register where one is wider; all others have tiles of their own.
TEST_CASE("groups of few channels: as many as a register holds, and more, and fewer") {
    random_source source(34);
    for (std::uint64_t i = 0, done = 0; done < (quick() ? 40u : 300u); ++i) {
        conv_problem p = draw_window(source);
        p.w = 1 + source.between(0, 12);
        p.window.transposed = i % 4 == 3;
        p.window.dilation_w = 1 + source.between(0, 1);
        p.groups = 2 + source.between(0, 6);
        constexpr index_t widths[] = {2, 3, 4, 8, 16};
        const index_t each = widths[source.between(0, 4)];
        p.ic = p.groups * each;
        p.oc = i % 5 == 4 ? p.ic * 2 : p.ic;
        p.in = static_cast<image_layout>(source.between(0, image_layouts - 1));
        p.out = static_cast<image_layout>(source.between(0, image_layouts - 1));
        if (p.oh() < 1 || p.ow() < 1) continue;
        ++done;
        run_as("implicit_gemm", algorithm::implicit_gemm, p, i, source);
    }
}
