// SPDX-License-Identifier: BSL-1.0
// Convolutions against their definition: every combination of what a convolution can be, on every instruction set here.
#include "conv_reference.hpp"

#include <tuple>

namespace {

using hone::index_t;
using hone::isa;
using namespace test;

// Counts through the combinations of several lists: the first runs fastest.
class combinations {
public:
    explicit combinations(std::uint64_t i) : i_(i) {}
    template <class T, std::size_t N>
    const T& of(const T (&list)[N]) {
        return list[next(N)];
    }
    int below(int n) { return static_cast<int>(next(static_cast<std::uint64_t>(n))); }

private:
    std::uint64_t next(std::uint64_t n) {
        const std::uint64_t digit = i_ % n;
        i_ /= n;
        return digit;
    }
    std::uint64_t i_;
};

struct taps {
    index_t h, w;
};
struct channels {
    index_t groups, ic, oc;  // of all groups together
};

// Blocks that cut k between taps and inside them, channels and pixels at once. Zero: the model's.
constexpr hone::blocking block_list[] = {
    {}, {.mc = 6, .kc = 5, .nc = 16}, {.mc = 8, .kc = 1, .nc = 48}, {.kc = 12}, {.mc = 12, .nc = 16}};

// One problem on every instruction set. Returns how many runs that were.
int run_everywhere(const conv_problem& p, const hone::blocking& block, int stages, bool executors,
                   random_source& source, edge side) {
    conv_data d(buffers(side), p, source);
    d.in.remember();
    for (isa id : here()) {
        const std::string why = run_conv(d, hone::policy{.isa = id, .block = block}, executors, stages);
        if (!why.empty())
            FAIL_CHECK(hone::isa_name(id) << ", block " << block.mc << "," << block.kc << "," << block.nc << ", stages "
                                          << stages << ": " << why);
    }
    if (!d.in.unchanged()) FAIL_CHECK("the input was written: " << p.text());
    return static_cast<int>(here().size());
}

}  // namespace

TEST_CASE("convolution: every window with every kind of channels") {
    constexpr taps tap_list[] = {{1, 1}, {2, 3}, {3, 3}, {1, 4}, {5, 2}};
    constexpr taps stride_list[] = {{1, 1}, {2, 1}, {3, 2}};
    constexpr taps dilation_list[] = {{1, 1}, {2, 1}, {1, 3}};
    constexpr hone::padding pad_list[] = {{}, {1, 1, 1, 1}, {0, 1, 0, 2}, {2, 0, 3, 1}, {5, 6, 4, 7}};
    constexpr channels channel_list[] = {{1, 3, 5}, {1, 8, 17}, {2, 4, 6}, {19, 19, 19}, {3, 3, 6}, {1, 1, 1}};
    constexpr std::uint64_t count = 5 * 3 * 3 * 5 * 6 * 2;
    random_source source(1);
    int runs = 0;
    for (std::uint64_t i = 0; i < count; i += quick() ? 23u : 1u) {
        combinations c(i);
        conv_problem p;
        const taps k = c.of(tap_list);
        const channels ch = c.of(channel_list);
        p.window.pad = c.of(pad_list);
        const taps stride = c.of(stride_list), dilation = c.of(dilation_list);
        p.window.transposed = c.below(2) == 1;
        p.kh = k.h;
        p.kw = k.w;
        p.groups = ch.groups;
        p.ic = ch.ic;
        p.oc = ch.oc;
        p.window.stride_h = stride.h;
        p.window.stride_w = stride.w;
        p.window.dilation_h = dilation.h;
        p.window.dilation_w = dilation.w;
        // What is left runs through its values alongside. 23 steps, and 29 below, share no factor with any period.
        p.n = 1 + static_cast<index_t>(i % 11 == 0);
        p.h = 4 + static_cast<index_t>(i % 3);
        p.w = 7 - static_cast<index_t>(i % 4);
        p.in = static_cast<image_layout>(i % 13 % image_layouts);
        p.out = static_cast<image_layout>(i / 7 % 13 % image_layouts);
        p.filter = static_cast<filter_layout>(i / 3 % filter_layouts);
        p.finite = i % 17 != 0;
        if (p.window.transposed) {
            const index_t room_h = std::max(stride.h, dilation.h), room_w = std::max(stride.w, dilation.w);
            p.window.output_padding_h = static_cast<index_t>(i) % room_h;
            p.window.output_padding_w = static_cast<index_t>(i / 5) % room_w;
        }
        runs += run_everywhere(p, block_list[i % 5], static_cast<int>(i / 11), i % 7 == 0, source,
                               i % 2 ? edge::begin : edge::end);
    }
    CHECK(runs >= static_cast<int>(here().size()) * (quick() ? 100 : 2700));
}

TEST_CASE("convolution: every layout in, every layout out, batches, blocks, stages") {
    constexpr channels channel_list[] = {{1, 6, 18}, {2, 6, 10}, {17, 17, 17}};
    constexpr std::uint64_t count = 8 * 8 * 4 * 2 * 3 * 5;
    random_source source(2);
    int runs = 0;
    for (std::uint64_t i = 0; i < count; i += quick() ? 29u : 1u) {
        combinations c(i);
        conv_problem p;
        p.in = static_cast<image_layout>(c.below(image_layouts));
        p.out = static_cast<image_layout>(c.below(image_layouts));
        const int stages = c.below(conv_stage_kinds);
        p.n = 1 + c.below(2);
        const channels ch = c.of(channel_list);
        const hone::blocking block = c.of(block_list);
        p.groups = ch.groups;
        p.ic = ch.ic;
        p.oc = ch.oc;
        p.h = 4;
        p.w = 5;
        p.kh = 3;
        p.kw = 2;
        p.window.pad = {1, 0, 1, 1};
        p.window.transposed = i % 5 == 0;
        p.window.stride_h = p.window.transposed ? 2 : 1;
        p.finite = i % 19 != 0;
        p.filter = static_cast<filter_layout>(i % 7 % filter_layouts);
        runs += run_everywhere(p, block, stages, i % 9 == 0, source, i % 2 ? edge::begin : edge::end);
    }
    CHECK(runs >= static_cast<int>(here().size()) * (quick() ? 130 : 3800));
}

TEST_CASE("convolution: random problems") {
    random_source source(3);
    const int count = quick() ? 100 : 1200;
    for (int i = 0; i < count; ++i) {
        conv_problem p;
        const auto pick = [&](index_t low, index_t high) { return source.between(low, high); };
        p.n = pick(1, 3);
        p.h = pick(1, 12);
        p.w = pick(1, 12);
        p.kh = pick(1, 5);
        p.kw = pick(1, 5);
        p.groups = pick(0, 2) == 0 ? pick(1, 9) : 1;
        p.ic = p.groups * (pick(0, 2) == 0 ? 1 : pick(1, quick() ? 8 : 20));
        p.oc = p.groups * (pick(0, 2) == 0 ? 1 : pick(1, quick() ? 20 : 70));
        if (p.groups > 1) {
            p.ic = std::min<index_t>(p.ic, 36 / p.groups * p.groups);
            p.oc = std::min<index_t>(p.oc, 72 / p.groups * p.groups);
        }
        hone::conv_window& v = p.window;
        v.stride_h = pick(1, 3);
        v.stride_w = pick(1, 3);
        v.dilation_h = pick(1, 3);
        v.dilation_w = pick(1, 3);
        v.pad = {pick(0, 4), pick(0, 4), pick(0, 4), pick(0, 4)};
        v.transposed = pick(0, 2) == 0;
        if (v.transposed) {
            v.output_padding_h = pick(0, std::max(v.stride_h, v.dilation_h) - 1);
            v.output_padding_w = pick(0, std::max(v.stride_w, v.dilation_w) - 1);
        }
        p.in = static_cast<image_layout>(pick(0, image_layouts - 1));
        p.out = static_cast<image_layout>(pick(0, image_layouts - 1));
        p.filter = static_cast<filter_layout>(pick(0, filter_layouts - 1));
        p.finite = pick(0, 9) != 0;
        const hone::blocking block{.mc = static_cast<int>(pick(0, 40)),
                                   .kc = static_cast<int>(pick(0, 1) * pick(1, 60)),
                                   .nc = static_cast<int>(pick(0, 1) * pick(1, 64))};
        // A reference that takes a few milliseconds at most.
        if (p.n * p.oh() * p.ow() * p.oc * p.kh * p.kw * (p.ic / p.groups) > 2000000) continue;
        run_everywhere(p, block, static_cast<int>(pick(0, conv_stage_kinds - 1)), pick(0, 3) == 0, source,
                       pick(0, 1) == 0 ? edge::begin : edge::end);
    }
}

TEST_CASE("B13 B14 convolution: extents of 0 and 1") {
    random_source source(4);
    for (bool transposed : {false, true}) {
        for (index_t groups : {1, 3}) {
            for (index_t h : {0, 1, 2}) {
                for (index_t w : {0, 1}) {
                    for (index_t ic : {0, 1, 2}) {
                        for (index_t oc : {0, 1, 2}) {
                            for (index_t n : {0, 1, 2}) {
                                for (index_t k : {1, 3}) {
                                    for (index_t pad : {0, 1, 4}) {
                                        conv_problem p;
                                        p.n = n;
                                        p.h = h;
                                        p.w = w;
                                        p.ic = ic * groups;
                                        p.oc = oc * groups;
                                        p.groups = groups;
                                        p.kh = p.kw = k;
                                        p.window.pad = {pad, 0, pad, pad};
                                        p.window.transposed = transposed;
                                        const std::uint64_t i = source.bits();
                                        if (quick() && i % 31 != 0) continue;
                                        p.in = i & 1 ? image_layout::nhwc : image_layout::nchw_slice;
                                        p.out = i & 2 ? image_layout::nhwc : image_layout::nchw_slice;
                                        run_everywhere(p, block_list[i / 64 % 5], static_cast<int>(i / 1024 % 4),
                                                       i & 16, source, i & 8 ? edge::begin : edge::end);
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("convolution: blocks and tiles never change a bit") {
    random_source source(5);
    conv_problem p{.n = 2, .h = 7, .w = 6, .ic = 10, .oc = 37, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
    for (bool finite : {true, false}) {
        for (image_layout out : {image_layout::nhwc, image_layout::nchw}) {
            p.finite = finite;
            p.out = out;
            conv_data d(buffers(edge::end), p, source);
            for (const kernel& k : kernels()) {
                const bool fixed = k.isa != isa::native && k.isa != isa::sve && k.isa != isa::sve2;
                for (int mc : {0, k.mr, 3 * k.mr}) {
                    for (int kc : {0, 1, 3, 10, 11, 20, 89, 90, 91}) {
                        for (int nc : {0, k.nr, 2 * k.nr}) {
                            if (quick() && (mc + kc + nc) % 5 != 0) continue;
                            const hone::policy policy{.isa = k.isa,
                                                      .tile = fixed ? hone::tile{k.mr, k.nr} : hone::tile{},
                                                      .block = {.mc = mc, .kc = kc, .nc = nc}};
                            const std::string why = run_conv(d, policy, false, finite ? 1 : 0);
                            if (!why.empty())
                                FAIL_CHECK(k.text() << " block " << mc << "," << kc << "," << nc << ": " << why);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("convolution: the depthwise kernel and the general one agree") {
    random_source source(6);
    for (index_t c : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100}) {
        conv_problem p{
            .n = 1, .h = 5, .w = 6, .ic = c, .oc = c, .groups = c, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
        for (bool finite : {true, false}) {
            p.finite = finite;
            p.out = finite ? image_layout::nhwc_slice : image_layout::nchw;
            conv_data d(buffers(edge::end), p, source);
            for (isa id : here()) {
                for (hone::algorithm a :
                     {hone::algorithm::depthwise, hone::algorithm::implicit_gemm, hone::algorithm::dynamic}) {
                    const hone::policy policy{.isa = id, .algorithm = a};
                    const std::string why = run_conv(d, policy, true, finite ? 3 : 2);
                    if (!why.empty())
                        FAIL_CHECK(hone::isa_name(id) << " algorithm " << static_cast<int>(a) << ": " << why);
                    const auto plan = hone::plan(d.desc(strides_of(p.out, d.oh, d.ow, c)), policy);
                    REQUIRE(plan);
                    CHECK(std::string_view(plan->explain().kernel) ==
                          (a == hone::algorithm::implicit_gemm ? "implicit_gemm" : "depthwise"));
                }
            }
        }
    }
}

// ---- reports from elsewhere
// ------------------------------------------------------------------------------------------

namespace {

// One call through the one-line door, dense NHWC, on one instruction set.
std::vector<float> conv_nhwc(isa id, const std::vector<float>& in, index_t h, index_t w, index_t ic,
                             const hone::filter_view<const float>& f, const hone::conv_window& window, index_t oh,
                             index_t ow) {
    const index_t oc = f.groups * f.oc;
    std::vector<float> out(static_cast<std::size_t>(oh * ow * oc), gap<float>());
    const auto input = hone::nhwc(in.data(), 1, h, w, ic);
    const auto output = hone::nhwc(out.data(), 1, oh, ow, oc);
    const auto plan = hone::plan(hone::describe(input, f, output, window), hone::policy{.isa = id});
    REQUIRE(plan);
    const hone::status s = plan->run(input, f, output);
    INFO(s.message().c_str());
    REQUIRE(s.ok());
    return out;
}

std::vector<float> counting(std::size_t n, float first) {
    std::vector<float> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = first + static_cast<float>(i);
    return v;
}

}  // namespace

// oneDNN#5080: columns beside explicit padding of the width, 48 of 1024 elements wrong.
TEST_CASE("B52 convolution: columns next to padding of the width") {
    random_source source(7);
    conv_problem p{.n = 1, .h = 32, .w = 64, .ic = 1, .oc = 1, .kh = 2, .kw = 4};
    p.window.stride_h = 2;
    p.window.pad = {0, 1, 0, 2};
    REQUIRE(p.oh() == 16);
    REQUIRE(p.ow() == 64);
    for (index_t channels_out : {1, 3}) {
        p.oc = channels_out;
        run_everywhere(p, {}, 0, true, source, edge::end);
    }
}

// onnx#7721: pads on one axis only.
TEST_CASE("B53 convolution: asymmetric padding of one axis") {
    const std::vector<float> in = counting(35, 0), ones(9, 1.0f);
    hone::conv_window window{.stride_h = 2, .stride_w = 2, .pad = {1, 0, 1, 0}};
    for (isa id : here()) {
        CAPTURE(hone::isa_name(id));
        CHECK(conv_nhwc(id, in, 7, 5, 1, hone::oihw(ones.data(), 1, 1, 3, 3), window, 4, 2) ==
              std::vector<float>{21, 33, 99, 117, 189, 207, 171, 183});
    }
}

// XNNPACK#1951, oneDNN#352: grouped transposed convolution.
TEST_CASE("B55 convolution: grouped and transposed") {
    const std::vector<float> in = {1, 5, 2, 6, 3, 7, 4, 8};
    std::vector<float> filter = counting(9, 1);
    filter.insert(filter.end(), filter.begin(), filter.begin() + 9);
    const float first[] = {1, 4, 7, 6, 7, 23, 33, 24, 19, 53, 63, 42, 21, 52, 59, 36};
    const float second[] = {5, 16, 27, 18, 27, 71, 97, 60, 63, 149, 175, 102, 49, 112, 127, 72};
    hone::conv_window window;
    window.transposed = true;
    for (isa id : here()) {
        CAPTURE(hone::isa_name(id));
        const std::vector<float> out =
            conv_nhwc(id, in, 2, 2, 2, hone::iohw(filter.data(), 1, 1, 3, 3, 2), window, 4, 4);
        for (std::size_t i = 0; i < 16; ++i) {
            CHECK(out[2 * i] == first[i]);
            CHECK(out[2 * i + 1] == second[i]);
        }
    }
}

// onnxruntime PR 2688: extents of a transposed convolution's output.
TEST_CASE("B56 convolution: extents of outputs") {
    hone::conv_desc d{.n = 1, .h = 5, .w = 2, .ic = 1, .oc = 1, .kh = 3, .kw = 3};
    d.window.transposed = true;
    d.window.stride_h = 2;
    d.window.dilation_h = 2;
    d.window.output_padding_h = 1;
    d.window.pad = {.left = 1, .right = 1};
    CHECK(hone::output_h(d) == 14);
    CHECK(hone::output_w(d) == 2);
    const auto plan = hone::plan(d);
    REQUIRE(plan);
    CHECK(plan->output_h() == 14);
    CHECK(plan->output_w() == 2);
    random_source source(8);
    conv_problem p{.n = 1, .h = 5, .w = 2, .ic = 2, .oc = 3, .kh = 3, .kw = 3, .window = d.window};
    run_everywhere(p, {}, 0, true, source, edge::end);

    // The formula against counting windows.
    for (index_t in : {0, 1, 2, 5, 9}) {
        for (index_t k : {1, 2, 5}) {
            for (index_t stride : {1, 2, 3, 7}) {
                for (index_t dilation : {1, 3}) {
                    for (index_t before : {0, 1, 6}) {
                        for (index_t after : {0, 2}) {
                            CAPTURE(in, k, stride, dilation, before, after);
                            CHECK(hone::output_extent(in, k, stride, dilation, before, after, false, 0) ==
                                  output_count(in, k, stride, dilation, before, after, false, 0));
                        }
                    }
                }
            }
        }
    }
}

// ncnn#1384: 1x1 and depthwise at sizes where another code path begins.
TEST_CASE("B58 convolution: pointwise and depthwise at several sizes") {
    random_source source(9);
    for (index_t size : {13, 14, 15, 16}) {
        conv_problem point{.n = 1, .h = size, .w = size, .ic = 64, .oc = quick() ? 17 : 64};
        for (image_layout l : {image_layout::nhwc, image_layout::nchw}) {
            point.in = point.out = l;
            run_everywhere(point, {}, 1, size == 15, source, edge::end);
        }
    }
    conv_problem depth{.n = 1, .h = 16, .w = 16, .ic = 64, .oc = 64, .groups = 64, .kh = 3, .kw = 3};
    for (image_layout l : {image_layout::nhwc, image_layout::nchw}) {
        depth.in = depth.out = l;
        run_everywhere(depth, {}, 1, true, source, edge::end);
    }
}

// oneDNN PR 5494: a stride larger than the kernel.
TEST_CASE("B35 convolution: strides larger than the kernel") {
    random_source source(10);
    conv_problem p{.n = 1, .h = 67, .w = 4, .ic = 32, .oc = quick() ? 5 : 48, .kh = 1, .kw = 1};
    p.window.stride_h = 3;
    p.window.pad = {0, 1, 0, 0};
    REQUIRE(p.oh() == 23);
    REQUIRE(p.ow() == 5);
    for (int stages = 0; stages < conv_stage_kinds; ++stages) run_everywhere(p, {}, stages, true, source, edge::end);
    for (bool transposed : {false, true}) {
        conv_problem q{.n = 2, .h = 9, .w = 8, .ic = 6, .oc = 19, .kh = 2, .kw = 1};
        q.window.stride_h = 5;
        q.window.stride_w = 4;
        q.window.pad = {1, 2, 0, 3};
        q.window.transposed = transposed;
        if (transposed) q.window.output_padding_h = 4;
        for (const hone::blocking& block : block_list) run_everywhere(q, block, 0, true, source, edge::begin);
    }
}

// llama.cpp PR 27284: images, rows and pixels gigabytes apart.
#if HONE_TEST_GUARD_PAGES
TEST_CASE("B25 B29 convolution: images and taps gigabytes apart") {
    const index_t far = (index_t{1} << 29) + 4096, wide = index_t{1} << 32;
    const hone::filter_view<const float> f1 = [] {
        static const float two[] = {2};
        return hone::oihw(two, 1, 1, 1, 1);
    }();
    {
        const hone::image_view<const float> v = hone::nchw<const float>(nullptr, 2, 1, 1, far);
        CHECK(4 * v.n_stride == 2147500032);
        const far_memory in(0, 2 * far), out(0, 2 * far);
        if (!in || !out) {
            WARN("skipped: no address space for images gigabytes apart");
        } else {
            const auto* second = reinterpret_cast<const char*>(hone::nchw(in.origin(), 2, 1, 1, far).at(1, 0, 0));
            CHECK(second - reinterpret_cast<const char*>(in.origin()) == 2147500032);
            const hone::image_view<const float> i{in.origin(), 3, 1, 2, 1, far, 0, 1, 1};
            const hone::image_view<float> o{out.origin(), 3, 1, 2, 1, far, 0, 1, 1};
            for (index_t n = 0; n < 3; ++n) {
                for (index_t w = 0; w < 2; ++w) in.open(n * far + w) = static_cast<float>(10 * n + w);
            }
            for (isa id : here()) {
                for (index_t n = 0; n < 3; ++n) {
                    for (index_t w = 0; w < 2; ++w) out.open(n * far + w) = -1;
                }
                const auto plan = hone::plan(hone::describe(i, f1, o), hone::policy{.isa = id});
                REQUIRE(plan);
                REQUIRE(plan->run(i, f1, o).ok());
                CAPTURE(hone::isa_name(id));
                for (index_t n = 0; n < 3; ++n) {
                    for (index_t w = 0; w < 2; ++w)
                        CHECK(out.open(n * far + w) == static_cast<float>(20 * n + 2 * w));
                }
            }
        }
    }
    // Two taps, 2^32 elements apart, of an image as wide or as high.
    const far_memory in(0, wide);
    if (!in) {
        WARN("skipped: no address space for an image of 2^32 pixels");
        return;
    }
    in.open(0) = 5;
    in.open(wide) = 7;
    const float taps_of[] = {100, 1};
    for (bool by_rows : {false, true}) {
        const index_t h = by_rows ? wide + 1 : 1, w = by_rows ? 1 : wide + 1;
        const hone::image_view<const float> i{in.origin(), 1, h, w, 1, 0, 1, 1, 1};
        const auto f = by_rows ? hone::oihw(taps_of, 1, 1, 2, 1) : hone::oihw(taps_of, 1, 1, 1, 2);
        hone::conv_window window;
        (by_rows ? window.dilation_h : window.dilation_w) = wide;
        for (isa id : here()) {
            float out = -1;
            const auto o = hone::nhwc(&out, 1, 1, 1, 1);
            const auto plan = hone::plan(hone::describe(i, f, o, window), hone::policy{.isa = id});
            REQUIRE(plan);
            CHECK(plan->output_h() == 1);
            CHECK(plan->output_w() == 1);
            REQUIRE(plan->run(i, f, o).ok());
            CAPTURE(hone::isa_name(id), by_rows);
            CHECK(out == 507);
        }
    }
}
#endif

// oneDNN#789, llama.cpp#3014, #22956: bits follow the batch, the workers, the alignment, or nothing at all.
TEST_CASE("B88 B89 convolution: an image's bits do not depend on its batch, workers, addresses or repetition") {
    random_source source(11);
    const index_t h = 9, w = 7, ic = quick() ? 9 : 33, oc = 21;
    for (index_t groups : {index_t{1}, ic}) {
        const index_t channels_out = groups == 1 ? oc : ic;
        std::vector<float> image(static_cast<std::size_t>(h * w * ic));
        std::vector<float> filter(static_cast<std::size_t>(channels_out * 9 * (groups == 1 ? ic : 1)));
        for (float& x : image) x = source.value();
        for (float& x : filter) x = source.value();
        const auto f = hone::oihw<const float>(filter.data(), channels_out / groups, ic / groups, 3, 3, groups);
        const std::size_t pixels = static_cast<std::size_t>(h * w * channels_out);
        for (isa id : here()) {
            std::vector<float> first;
            for (index_t n : {1, 2, 5}) {
                for (int workers = 1; workers <= 16; workers += quick() ? 7 : 1) {
                    const auto offset = static_cast<std::size_t>(workers - 1);
                    for (const hone::blocking& block :
                         {hone::blocking{}, hone::blocking{.mc = 12, .kc = 20, .nc = 16}}) {
                        // Other images differ from the first.
                        std::vector<float> in(image.size() * static_cast<std::size_t>(n) + offset, 0.37f);
                        std::copy(image.begin(), image.end(), in.begin() + static_cast<std::ptrdiff_t>(offset));
                        std::vector<float> out(pixels * static_cast<std::size_t>(n) + offset, gap<float>());
                        thread_executor threads(workers);
                        hone::context ctx;
                        ctx.executor = threads;
                        const auto vi = hone::nhwc<const float>(in.data() + offset, n, h, w, ic);
                        const auto vo = hone::nhwc(out.data() + offset, n, h, w, channels_out);
                        const auto plan = hone::plan(hone::describe(vi, f, vo, {.pad = {1, 1, 1, 1}}),
                                                     hone::policy{.isa = id, .block = block}, hone::identity, ctx);
                        REQUIRE(plan);
                        REQUIRE(plan->run(vi, f, vo, hone::identity, ctx).ok());
                        const float* got = out.data() + offset;
                        if (first.empty()) {
                            first.assign(got, got + pixels);
                            CHECK(std::none_of(got, got + pixels, [](float x) { return std::isnan(x); }));
                        }
                        INFO(hone::isa_name(id) << " groups " << groups << " n " << n << " workers " << workers
                                                << " kc " << block.kc);
                        CHECK(std::memcmp(got, first.data(), pixels * sizeof(float)) == 0);
                    }
                }
            }
        }
    }
}

// oneDNN#971: the order of stages is the caller's.
TEST_CASE("B59 convolution: stages run in the caller's order") {
    const float in[] = {2, 2}, filter[] = {1, 1};
    for (isa id : here()) {
        CAPTURE(hone::isa_name(id));
        for (hone::algorithm a : {hone::algorithm::dynamic, hone::algorithm::implicit_gemm}) {
            const float residual[] = {-10};
            float out[] = {0};
            const auto input = hone::nhwc(in, 1, 1, 1, 2);
            const auto f = hone::oihw(filter, 1, 2, 1, 1);
            const auto output = hone::nhwc(out, 1, 1, 1, 1);
            const hone::policy policy{.isa = id, .algorithm = a};
            const auto first = hone::add(hone::nhwc(residual, 1, 1, 1, 1)) | hone::relu;
            const auto second = hone::relu | hone::add(hone::nhwc(residual, 1, 1, 1, 1));
            const auto d = hone::describe(input, f, output);
            CHECK(hone::plan(d, policy, first)->run(input, f, output, first).ok());
            CHECK(out[0] == 0);
            CHECK(hone::plan(d, policy, second)->run(input, f, output, second).ok());
            CHECK(out[0] == -6);
        }
    }
}

// ---- numbers
// ---------------------------------------------------------------------------------------------------------

TEST_CASE("convolution: padding never meets a weight that is not finite") {
    // 1x1 input, 3x3 window: only the weight in the middle counts.
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (index_t groups : {1, 2}) {  // 2: depthwise
        for (float outside : {infinity, -infinity, nan}) {
            std::vector<float> filter;
            for (index_t g = 0; g < groups; ++g) {
                for (int t = 0; t < 9; ++t) filter.push_back(t == 4 ? 3.0f : outside);
            }
            const std::vector<float> in(static_cast<std::size_t>(groups), 2.0f);
            for (isa id : here()) {
                CAPTURE(hone::isa_name(id), groups, outside);
                CHECK(conv_nhwc(id, in, 1, 1, groups, hone::oihw(filter.data(), 1, 1, 3, 3, groups),
                                {.pad = {1, 1, 1, 1}}, 1,
                                1) == std::vector<float>(static_cast<std::size_t>(groups), 6.0f));
            }
        }
    }
}

TEST_CASE("convolution: infinities and NaN of the input reach the outputs that see them, and no others") {
    random_source source(11);
    for (bool transposed : {false, true}) {
        for (index_t groups : {1, 5}) {
            conv_problem p{.n = 1,
                           .h = 6,
                           .w = 7,
                           .ic = 5,
                           .oc = 5,
                           .groups = groups,
                           .kh = 3,
                           .kw = 3,
                           .window = {.pad = {1, 2, 1, 0}}};
            p.window.transposed = transposed;
            if (transposed) p.window.stride_w = 2;
            conv_data d(buffers(edge::end), p, source);
            d.in(0, 0, 0, 1) = std::numeric_limits<float>::quiet_NaN();
            d.in(0, 3, 4, 2) = std::numeric_limits<float>::infinity();
            d.in(0, 5, 6, 4) = -std::numeric_limits<float>::infinity();
            d.in(0, 2, 2, 0) = 3e38f;
            d.in(0, 1, 1, 0) = 0x1p-149f;
            d.refresh();
            for (isa id : here()) {
                for (int stages : {0, 1}) {
                    const std::string why = run_conv(d, hone::policy{.isa = id}, false, stages);
                    if (!why.empty()) FAIL_CHECK(hone::isa_name(id) << ": " << why);
                }
            }
        }
    }
}

// ---- epilogues
// -------------------------------------------------------------------------------------------------------

namespace {

// Sums replaced by where they are: n, h, w and the channel as digits, and the row as a check.
struct where {
    index_t oh, ow;
    template <class V, class At>
    void operator()(V& x, const At& at) const {
        float lane[V::size] = {};
        const bool row = at.row == (at.n * oh + at.h) * ow + at.w;
        for (int i = 0; i < at.lanes; ++i) {
            lane[i] = row ? static_cast<float>(((at.n * 16 + at.h) * 16 + at.w) * 64 + at.col + i) : -1.0f;
        }
        x = hone::load<typename V::element, V::size>(lane);
    }
};

}  // namespace

TEST_CASE("convolution: a stage is told the pixel and the channel") {
    random_source source(12);
    for (index_t groups : {1, 2, 34}) {
        for (bool transposed : {false, true}) {
            for (image_layout in : {image_layout::nhwc, image_layout::nchw}) {
                for (image_layout out : {image_layout::nhwc, image_layout::nchw_slice}) {
                    conv_problem p{.n = 3,
                                   .h = 5,
                                   .w = 4,
                                   .ic = 34,
                                   .oc = 34,
                                   .groups = groups,
                                   .kh = 2,
                                   .kw = 3,
                                   .window = {.pad = {1, 1, 0, 2}},
                                   .in = in,
                                   .out = out};
                    p.window.transposed = transposed;
                    p.window.stride_h = 2;
                    conv_data d(buffers(edge::end), p, source);
                    for (isa id : here()) {
                        image<float> o(d.memory.out, p.n, d.oh, d.ow, p.oc, strides_of(out, d.oh, d.ow, p.oc));
                        o.poison();
                        const auto epilogue = hone::map(where{d.oh, d.ow});
                        reverse_executor workers(2);
                        hone::context ctx;
                        ctx.executor = workers;
                        const auto& v = o.view();
                        const auto plan = hone::plan(d.desc({v.n_stride, v.h_stride, v.w_stride, v.c_stride}),
                                                     hone::policy{.isa = id}, epilogue, ctx);
                        REQUIRE(plan);
                        REQUIRE(plan->run(d.in.in(), d.filter, v, epilogue, ctx).ok());
                        int wrong = 0;
                        o.each([&](index_t n, index_t y, index_t x, index_t c) {
                            wrong += o(n, y, x, c) != static_cast<float>(((n * 16 + y) * 16 + x) * 64 + c);
                        });
                        CAPTURE(p.text(), hone::isa_name(id));
                        CHECK(wrong == 0);
                        CHECK(o.gaps_unchanged());
                    }
                }
            }
        }
    }
}

TEST_CASE("convolution: add() of the output itself") {
    random_source source(13);
    for (const hone::blocking& block : block_list) {
        for (image_layout out : {image_layout::nhwc, image_layout::nhwc_slice, image_layout::nchw}) {
            for (index_t groups : {1, 21}) {
                conv_problem p{.n = 2,
                               .h = 5,
                               .w = 4,
                               .ic = 21,
                               .oc = 21,
                               .groups = groups,
                               .kh = 3,
                               .kw = 3,
                               .window = {.pad = {1, 1, 1, 1}},
                               .out = out};
                conv_data d(buffers(edge::end), p, source);
                const image_layout l = out;
                for (isa id : here()) {
                    image<float> o(d.memory.out, p.n, d.oh, d.ow, p.oc, strides_of(l, d.oh, d.ow, p.oc));
                    o.each([&](index_t n, index_t y, index_t x, index_t c) { o(n, y, x, c) = d.other(n, y, x, c); });
                    const auto& v = o.view();
                    const auto epilogue = hone::add(v) | hone::relu;
                    const auto plan = hone::plan(d.desc({v.n_stride, v.h_stride, v.w_stride, v.c_stride}),
                                                 hone::policy{.isa = id, .block = block}, epilogue);
                    REQUIRE(plan);
                    REQUIRE(plan->run(d.in.in(), d.filter, v, epilogue).ok());
                    const std::string why = d.wrong<add_other_relu>(o, reproducible(id));
                    if (!why.empty())
                        FAIL_CHECK(hone::isa_name(id) << " block " << block.mc << "," << block.kc << "," << block.nc
                                                      << ": " << why << "; " << p.text());
                }
            }
        }
    }
}

TEST_CASE("convolution: outputs side by side in one tensor") {
    // Two branches write their channels of one NHWC tensor; between them lie channels of nobody.
    random_source source(14);
    const index_t pixels = 6 * 5, whole = 9 + 4 + 13;
    for (isa id : here()) {
        conv_problem p{.n = 1, .h = 6, .w = 5, .ic = 7, .oc = 9, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
        conv_problem q{.n = 1, .h = 6, .w = 5, .ic = 7, .oc = 13};
        guarded<float> memory(pixels * whole);
        float* first = memory.place(pixels * whole);
        std::fill(first, first + pixels * whole, gap<float>());
        index_t at = 0;
        for (const conv_problem& branch : {p, q}) {
            conv_data d(buffers(edge::end), branch, source);
            const hone::image_view<float> slice{first + at, 1, 6, 5, branch.oc, pixels * whole, 5 * whole, whole, 1};
            CHECK(hone::plan(hone::describe(d.in.in(), d.filter, slice, branch.window), hone::policy{.isa = id})
                      ->run(d.in.in(), d.filter, slice)
                      .ok());
            std::size_t i = 0;
            int wrong = 0;
            for (index_t y = 0; y < 6; ++y) {
                for (index_t x = 0; x < 5; ++x) {
                    for (index_t c = 0; c < branch.oc; ++c, ++i) {
                        const float got = *slice.at(0, y, x, c);
                        wrong += reproducible(id) ? !same_number(got, d.sums[i])
                                                  : !near(static_cast<double>(got), d.naive[i].value, d.naive[i].bound);
                    }
                }
            }
            CHECK(wrong == 0);
            at += branch.oc + 4;
        }
        int gaps = 0;
        for (index_t i = 0; i < pixels; ++i) {
            for (index_t c = 9; c < 13; ++c) gaps += same(first[i * whole + c], gap<float>());
        }
        CHECK(gaps == pixels * 4);
        CHECK(memory.intact());
    }
}

// ---- doors
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("convolution: the one-line door, and a policy fixed at compile time") {
    random_source source(15);
    conv_problem p{.n = 1, .h = 6, .w = 5, .ic = 9, .oc = 20, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
    conv_data d(buffers(edge::end), p, source);
    image<float> o(d.memory.out, 1, d.oh, d.ow, p.oc, strides_of(image_layout::nhwc, d.oh, d.ow, p.oc));
    o.poison();
    CHECK(hone::conv(d.in.view(), d.filter, o.view(), p.window).ok());
    CHECK(d.wrong<plain_sums>(o, reproducible(hone::active_isa())) == "");
    o.poison();
    CHECK(hone::conv(d.in.in(), d.filter, o.view(), p.window, hone::bias(d.stages.bias) | hone::relu).ok());
    CHECK(d.wrong<bias_relu>(o, reproducible(hone::active_isa())) == "");
    o.poison();
    constexpr hone::policy fixed{.isa = isa::scalar, .tile = {4, 4}, .block = {.mc = 8, .kc = 10, .nc = 16}};
    CHECK(hone::conv<fixed>(d.in.in(), d.filter, o.view(), p.window, hone::bias(d.stages.bias) | hone::relu).ok());
    CHECK(d.wrong<bias_relu>(o, true) == "");
    o.poison();
    constexpr hone::policy one{.isa = isa::native, .threads = 1};
    const auto plan = hone::plan<one>(d.desc({}));
    REQUIRE(plan);
    CHECK(plan->run(d.in.in(), d.filter, o.view()).ok());
    CHECK(d.wrong<plain_sums>(o, reproducible(isa::native)) == "");
}

TEST_CASE("B34 convolution: workers, as many as policy, executor and plan allow") {
    random_source source(16);
    conv_problem p{.n = 2, .h = 9, .w = 9, .ic = 8, .oc = 40, .kh = 3, .kw = 3, .window = {.pad = {1, 1, 1, 1}}};
    conv_data d(buffers(edge::end), p, source);
    image<float> o(d.memory.out, p.n, d.oh, d.ow, p.oc, strides_of(p.out, d.oh, d.ow, p.oc));
    reverse_executor eight(8), two(2);
    hone::context for_eight, for_two;
    for_eight.executor = eight;
    for_two.executor = two;
    const auto plan = hone::plan(d.desc({}), hone::policy{}, hone::identity, for_eight);
    REQUIRE(plan);
    CHECK(plan->explain().workers > 1);
    CHECK(plan->explain().workers <= 8);
    CHECK(plan->explain().workers == plan->explain().row_parts * plan->explain().col_parts);
    CHECK(plan->scratch_bytes(8) >= plan->scratch_bytes(2));
    CHECK(plan->scratch_bytes(1000) == plan->scratch_bytes(8));
    // A plan for eight on an executor of two, and the reverse.
    o.poison();
    CHECK(plan->run(d.in.in(), d.filter, o.view(), hone::identity, for_two).ok());
    CHECK(two.most_tasks <= 2);
    CHECK(d.wrong<plain_sums>(o, reproducible(hone::active_isa())) == "");
    const auto serial = hone::plan(d.desc({}));
    REQUIRE(serial);
    o.poison();
    CHECK(serial->run(d.in.in(), d.filter, o.view(), hone::identity, for_eight).ok());
    CHECK(eight.most_tasks == 0);
    CHECK(d.wrong<plain_sums>(o, reproducible(hone::active_isa())) == "");
    const auto capped = hone::plan(d.desc({}), hone::policy{.threads = 3}, hone::identity, for_eight);
    REQUIRE(capped);
    o.poison();
    CHECK(capped->run(d.in.in(), d.filter, o.view(), hone::identity, for_eight).ok());
    CHECK(eight.most_tasks > 1);
    CHECK(eight.most_tasks <= 3);
    CHECK(d.wrong<plain_sums>(o, reproducible(hone::active_isa())) == "");
}

TEST_CASE("convolution: one plan on many threads at once") {
    random_source source(17);
    conv_problem p{.n = 2,
                   .h = 9,
                   .w = 8,
                   .ic = 11,
                   .oc = 21,
                   .kh = 3,
                   .kw = 3,
                   .window = {.pad = {1, 1, 1, 1}},
                   .in = image_layout::nchw};
    conv_data d(buffers(edge::end), p, source);
    const auto plan =
        hone::plan(d.desc(strides_of(image_layout::nhwc, d.oh, d.ow, p.oc)), hone::policy{.block = {.kc = 20}});
    REQUIRE(plan);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            std::vector<float> out(d.sums.size());
            for (int j = 0; j < 20; ++j) {
                std::fill(out.begin(), out.end(), gap<float>());
                const auto s = plan->run(d.in.in(), d.filter, hone::nhwc(out.data(), p.n, d.oh, d.ow, p.oc));
                if (!s.ok()) ++wrong;
                for (std::size_t e = 0; e < out.size(); ++e) {
                    if (reproducible(hone::active_isa())
                            ? !same_number(out[e], d.sums[e])
                            : !near(static_cast<double>(out[e]), d.naive[e].value, d.naive[e].bound)) {
                        ++wrong;
                    }
                }
            }
            hone::release_scratch();
        });
    }
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
}

TEST_CASE("convolution: the scalar chain is the same without its kernel") {
    // Numbers made by hand, so that the reference is not only compared with itself: 1 + 2^-12 squared minus one.
    const float x = 1.0f + 0x1p-12f;
    const float in[] = {1.0f, x}, filter[] = {-1.0f, x};
    float out = 0;
    for (isa id : here()) {
        if (!reproducible(id)) continue;
        const auto input = hone::nhwc(in, 1, 1, 1, 2);
        const auto f = hone::oihw(filter, 1, 2, 1, 1);
        const auto output = hone::nhwc(&out, 1, 1, 1, 1);
        CHECK(hone::plan(hone::describe(input, f, output), hone::policy{.isa = id})->run(input, f, output).ok());
        CHECK(out == 0x1p-11f + 0x1p-24f);  // a product rounded first would lose the last bit
    }
}
