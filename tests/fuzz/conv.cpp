// SPDX-License-Identifier: BSL-1.0
// Any description of a convolution, policy and executor: a plan or a refusal. What is small is run in memory of exact
// size and compared with a plain loop, and run again with one field of a view wrong.
#include "fuzz.hpp"

namespace {

using desc = hone::conv_desc;

// Of an image (n, h, w, c).
hone::image_strides any_strides(bytes_in& in, index_t h, index_t w, index_t c) {
    const auto times = [](index_t x, index_t y) {
        return static_cast<index_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
    };
    const auto pixel = static_cast<index_t>(static_cast<std::uint64_t>(c) + static_cast<std::uint64_t>(in.below(3)));
    switch (in.below(8)) {
        case 0: case 1: return {};
        case 2: return {times(times(h, w), pixel), times(w, pixel), pixel, 1};
        case 3: return {times(c, times(h, w)), w, 1, times(h, w)};                               // NCHW
        case 4: return {times(times(h, w), pixel), pixel, times(h, pixel), 1};                   // h and w exchanged
        case 5: return {pixel, times(w, pixel), times(times(h, w), pixel), in.flag() ? 1 : 0};
        case 6: return {in.raw<std::int8_t>(), in.raw<std::int8_t>(), in.raw<std::int8_t>(), in.raw<std::int8_t>()};
        default: return {in.wild(), in.wild(), in.wild(), in.wild()};
    }
}

hone::image_strides resolved(hone::image_strides s, index_t h, index_t w, index_t c) {
    return s == hone::image_strides{} ? hone::image_strides{h * w * c, w * c, c, 1} : s;
}

struct image {
    hone::image_view<float> view;
    exact_memory memory;
    std::vector<float> before;

    image(index_t n, index_t h, index_t w, index_t c, const hone::image_strides& s, const span_of_view& span)
        : view{nullptr, n, h, w, c, s.n, s.h, s.w, s.c}, memory(span.bytes()) {
        for (index_t i = 0; i < span.count; ++i) memory.floats()[i] = std::numeric_limits<float>::quiet_NaN();
        view.data = memory.floats() + span.before;
    }
    void fill(values& next) {
        for (index_t i = 0; i < view.n; ++i) {
            for (index_t y = 0; y < view.h; ++y) {
                for (index_t x = 0; x < view.w; ++x) {
                    for (index_t k = 0; k < view.c; ++k) *view.at(i, y, x, k) = next();
                }
            }
        }
        before.assign(memory.floats(), memory.floats() + memory.size() / sizeof(float));
    }
    void restore() {
        if (!before.empty()) std::memcpy(memory.data(), before.data(), memory.size());
    }
    bool untouched() const { return before.empty() || std::memcmp(memory.data(), before.data(), memory.size()) == 0; }
};

// The tap of one axis: which input meets output `out` at tap `tap`; -1: the padding, or between strides.
index_t met(index_t out, index_t tap, index_t in, index_t stride, index_t dilation, index_t before, bool transposed) {
    index_t at = out * stride + tap * dilation - before;
    if (transposed) {
        at = out + before - tap * dilation;
        if (at < 0 || at % stride != 0) return -1;
        at /= stride;
    }
    return at >= 0 && at < in ? at : -1;
}

void expect(const desc& d, const image& input, const hone::filter_view<float>& f, const image& output,
            const float* bias) {
    const hone::conv_window& w = d.window;
    std::vector<float> expected = output.before;
    std::vector<bool> element(expected.size());
    const hone::image_view<float>& out = output.view;
    for (index_t n = 0; n < out.n; ++n) {
        for (index_t y = 0; y < out.h; ++y) {
            for (index_t x = 0; x < out.w; ++x) {
                for (index_t o = 0; o < out.c; ++o) {
                    const index_t g = o / f.oc;
                    float sum = 0;
                    for (index_t ky = 0; ky < f.kh; ++ky) {
                        const index_t iy = met(y, ky, d.h, w.stride_h, w.dilation_h, w.pad.top, w.transposed);
                        for (index_t kx = 0; kx < f.kw; ++kx) {
                            const index_t ix = met(x, kx, d.w, w.stride_w, w.dilation_w, w.pad.left, w.transposed);
                            if (iy < 0 || ix < 0) continue;
                            for (index_t i = 0; i < f.ic; ++i) {
                                const float x_in = *input.view.at(n, iy, ix, g * f.ic + i);
                                sum = std::fma(x_in, *f.at(g, o % f.oc, i, ky, kx), sum);
                            }
                        }
                    }
                    if (bias != nullptr) {
                        sum += bias[o];
                        sum = sum > 0 || std::isnan(sum) ? sum : 0.0f;
                    }
                    const auto at = static_cast<std::size_t>(out.at(n, y, x, o) - output.memory.floats());
                    // Strides are held against each other two by two: where only three coincide, no number is promised.
                    if (element[at]) return;
                    element[at] = true;
                    expected[at] = sum;
                }
            }
        }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const float got = output.memory.floats()[i];
        if (element[i] ? same(got, expected[i], false) : std::memcmp(&got, &expected[i], sizeof got) == 0) continue;
        std::fprintf(stderr, "element %zu of the output's memory%s: %a, expected %a\n", i,
                     element[i] ? "" : " (in a gap)", static_cast<double>(got), static_cast<double>(expected[i]));
        std::abort();
    }
}

template <class Plan, class E>
void run_wrong(bytes_in& in, const Plan& plan, const E& stages, const image& input, hone::filter_view<float> f,
               image& output) {
    auto vi = input.view, vo = output.view;
    const index_t other = in.flag() ? in.wild() : static_cast<index_t>(in.byte()) - 100;
    hone::image_view<float>& v = in.flag() ? vi : vo;
    index_t* const fields[] = {&v.n, &v.h, &v.w, &v.c, &v.n_stride, &v.h_stride, &v.w_stride, &v.c_stride,
                               &f.groups, &f.oc, &f.ic, &f.kh, &f.kw};
    const int which = in.below(15);
    if (which < 13) *fields[which] = other;
    else if (which == 13) v.data = nullptr;
    else f.data = nullptr;
    output.restore();
    const hone::status s = plan.run(vi, f, vo, stages);
    if (s.ok()) return;
    check_refusal(s);
    FUZZ_CHECK(output.untouched());
}

template <class E>
void fuzz(bytes_in& in, const desc& d, const hone::policy& p, const E& stages, const float* bias, bool sane) {
    backwards pool{in.below(8) == 0 ? in.raw<int>() : 1 + in.below(5)};
    hone::context context{.executor = pool};
    const auto plan = hone::plan(d, p, stages, context);
    if (!plan) {
        check_refusal(plan.status());
        FUZZ_CHECK(!(sane && p == hone::policy{}));
        return;
    }
    check_answers(*plan, in, pool.count);

    const index_t oh = plan->output_h(), ow = plan->output_w(), icg = d.ic / d.groups, ocg = d.oc / d.groups;
    FUZZ_CHECK(oh >= 0 && ow >= 0);
    for (const index_t x : {d.n, d.h, d.w, d.ic, d.oc, d.kh, d.kw, d.groups, oh, ow}) {
        if (x > 256) return;
    }
    const index_t weights = d.oc * icg * d.kh * d.kw;
    if (weights > 4000 || static_cast<double>(d.n * oh * ow) * static_cast<double>(weights + d.oc) > 60000) return;
    if (d.oc > 200) return;
    const hone::image_strides si = resolved(d.input, d.h, d.w, d.ic), so = resolved(d.output, oh, ow, d.oc);
    constexpr index_t most = 40000;
    const span_of_view span_i({{d.n, si.n}, {d.h, si.h}, {d.w, si.w}, {d.ic, si.c}}, most),
        span_o({{d.n, so.n}, {oh, so.h}, {ow, so.w}, {d.oc, so.c}}, most);
    if (!span_i.fits || !span_o.fits) return;
    const index_t scratch_bytes = plan->scratch_bytes(pool.count);
    if (scratch_bytes > 2000000) return;

    const bool native = plan->explain().isa == hone::isa::native && !HONE_NATIVE_FMA;
    values next(in.raw<std::uint16_t>(), native || in.flag());
    image input(d.n, d.h, d.w, d.ic, si, span_i), output(d.n, oh, ow, d.oc, so, span_o);
    input.fill(next);
    output.fill(next);
    exact_memory filter(static_cast<std::size_t>(weights) * sizeof(float));
    for (index_t i = 0; i < weights; ++i) filter.floats()[i] = next();
    const int order = in.below(3);
    const hone::filter_view<float> f = order == 0   ? hone::oihw(filter.floats(), ocg, icg, d.kh, d.kw, d.groups)
                                       : order == 1 ? hone::iohw(filter.floats(), icg, ocg, d.kh, d.kw, d.groups)
                                                    : hone::ohwi(filter.floats(), ocg, d.kh, d.kw, icg, d.groups);

    exact_memory scratch(static_cast<std::size_t>(scratch_bytes));
    if (in.flag() && scratch.size() > 0) context.scratch = scratch.span();
    check_done(plan->run(input.view, f, output.view, stages, context));
    FUZZ_CHECK(input.untouched());
    expect(d, input, f, output, bias);

    if (plan->packed_bytes() < 400000) {
        exact_memory memory(static_cast<std::size_t>(plan->packed_bytes()));
        check_done(plan->pack(f, memory.span()));
        const auto packed = hone::packed_view::open(memory.span());
        FUZZ_CHECK(packed && packed->verify().ok());
        exact_memory less(static_cast<std::size_t>(plan->scratch_bytes(pool.count, true)));
        context.scratch = less.size() > 0 ? less.span() : std::span<std::byte>{};
        output.restore();
        check_done(plan->run(input.view, *packed, output.view, stages, context));
        expect(d, input, f, output, bias);
    }
    run_wrong(in, *plan, stages, input, f, output);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bytes_in in(data, size);
    const bool wild = in.below(4) == 0, per_channel = in.below(4) == 0;
    const auto extent = [&](int small) { return wild ? in.extent(small) : in.below(small); };
    const auto positive = [&](int small) {
        const index_t x = extent(small);
        return x < INT64_MAX ? x + 1 : x;
    };
    desc d{.n = extent(4), .h = extent(14), .w = extent(14)};
    d.groups = in.flag() ? 1 : positive(6);
    d.ic = extent(40);
    d.oc = extent(40);
    if (!wild) {
        d.ic = per_channel ? d.groups : d.ic / d.groups * d.groups;
        d.oc = per_channel ? d.groups : d.oc / d.groups * d.groups;
    }
    d.kh = positive(4);
    d.kw = positive(4);
    hone::conv_window& w = d.window;
    if (in.flag()) {
        w.stride_h = positive(3);
        w.stride_w = positive(3);
        w.dilation_h = positive(3);
        w.dilation_w = positive(3);
    }
    if (in.flag()) w.pad = {extent(5), extent(5), extent(5), extent(5)};
    w.transposed = in.below(4) == 0;
    if (in.below(8) == 0) w.output_padding_h = extent(3), w.output_padding_w = extent(3);
    const bool dense = in.flag();
    if (!dense) {
        d.input = any_strides(in, d.h, d.w, d.ic);
        index_t oh = 7, ow = 7;
        if (!wild) oh = hone::output_h(d), ow = hone::output_w(d);
        d.output = any_strides(in, oh, ow, d.oc);
    }
    const hone::policy p = in.policy();
    const bool sane = !wild && dense && w.output_padding_h == 0 && w.output_padding_w == 0;
    std::vector<float> bias(200);
    values next(7, true);
    for (float& x : bias) x = next();
    if (in.flag()) fuzz(in, d, p, hone::identity, nullptr, sane);
    else fuzz(in, d, p, hone::bias(bias.data()) | hone::relu, bias.data(), sane);
    return 0;
}
