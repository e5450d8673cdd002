// SPDX-License-Identifier: BSL-1.0
// What a convolution says when an argument is wrong: code, argument, value, limit, and the exact words; that nothing is
// written then; and that no size, however absurd, overflows or crashes a plan.
#include "conv_reference.hpp"

using hone::argument;
using hone::code;
using hone::conv_desc;
using hone::index_t;
using hone::isa;
using hone::status;
using namespace test;

namespace {

constexpr index_t limit = index_t{1} << 40;  // of one extent
constexpr std::int64_t most_bytes = INT64_MAX / 4;

void check(const status& got, const status& want, std::string_view words) {
    CAPTURE(std::string(words));
    CHECK(got.code == want.code);
    CHECK(got.argument == want.argument);
    CHECK(got.value == want.value);
    CHECK(got.limit == want.limit);
    CHECK(std::string(got.message().view()) == std::string(words));
}

// 1x6x5x4 to 6 channels by 3x3, then what `change` does.
template <class F>
status planned(F change, const hone::policy& p = {}) {
    conv_desc d{.n = 1, .h = 6, .w = 5, .ic = 4, .oc = 6, .kh = 3, .kw = 3};
    change(d);
    return hone::plan(d, p).status();
}
status planned_by(const hone::policy& p) {
    return planned([](conv_desc&) {}, p);
}

// Operands of that convolution, the output filled with a value that no convolution gives.
struct operands {
    explicit operands(std::size_t more = 0)
        : in(6 * 5 * 4 + more, 1.0f),
          filter(6 * 4 * 9, 2.0f),
          out(4 * 3 * 6, 77.0f),
          vi(hone::nhwc<const float>(in.data(), 1, 6, 5, 4)),
          vf(hone::oihw<const float>(filter.data(), 6, 4, 3, 3)),
          vo(hone::nhwc(out.data(), 1, 4, 3, 6)) {}
    bool untouched() const {
        return std::all_of(in.begin(), in.end(), [](float x) { return x == 1.0f; }) &&
               std::all_of(filter.begin(), filter.end(), [](float x) { return x == 2.0f; }) &&
               std::all_of(out.begin(), out.end(), [](float x) { return x == 77.0f; });
    }
    bool computed() const {
        return std::all_of(out.begin(), out.end(), [](float x) { return x == 72.0f; });
    }
    std::vector<float> in, filter, out;
    hone::image_view<const float> vi;
    hone::filter_view<const float> vf;
    hone::image_view<float> vo;
};

const char* best() { return hone::isa_name(hone::explain().best); }

}  // namespace

TEST_CASE("convolution errors: least values") {
    check(planned([](conv_desc&) {}), {}, "ok");
    check(planned([](conv_desc& d) { d.n = -1; }), {code::negative, argument::input_n, -1, 0},
          "input.n = -1 must be at least 0");
    check(planned([](conv_desc& d) { d.h = -6; }), {code::negative, argument::input_h, -6, 0},
          "input.h = -6 must be at least 0");
    check(planned([](conv_desc& d) { d.w = INT64_MIN; }), {code::negative, argument::input_w, INT64_MIN, 0},
          "input.w = -9223372036854775808 must be at least 0");
    check(planned([](conv_desc& d) { d.ic = -4; }), {code::negative, argument::input_c, -4, 0},
          "input.c = -4 must be at least 0");
    check(planned([](conv_desc& d) { d.oc = -1; }), {code::negative, argument::filter_oc, -1, 0},
          "filter.oc = -1 must be at least 0");
    check(planned([](conv_desc& d) { d.kh = 0; }), {code::negative, argument::filter_kh, 0, 1},
          "filter.kh = 0 must be at least 1");
    check(planned([](conv_desc& d) { d.kw = -3; }), {code::negative, argument::filter_kw, -3, 1},
          "filter.kw = -3 must be at least 1");
    check(planned([](conv_desc& d) { d.groups = 0; }), {code::negative, argument::conv_groups, 0, 1},
          "conv.groups = 0 must be at least 1");
    check(planned([](conv_desc& d) { d.window.stride_h = 0; }), {code::negative, argument::conv_stride, 0, 1},
          "conv.stride = 0 must be at least 1");
    check(planned([](conv_desc& d) { d.window.stride_w = -2; }), {code::negative, argument::conv_stride, -2, 1},
          "conv.stride = -2 must be at least 1");
    check(planned([](conv_desc& d) { d.window.dilation_h = 0; }), {code::negative, argument::conv_dilation, 0, 1},
          "conv.dilation = 0 must be at least 1");
    check(planned([](conv_desc& d) { d.window.dilation_w = -1; }), {code::negative, argument::conv_dilation, -1, 1},
          "conv.dilation = -1 must be at least 1");
    check(planned([](conv_desc& d) { d.window.pad.top = -1; }), {code::negative, argument::conv_padding, -1, 0},
          "conv.padding = -1 must be at least 0");
    check(planned([](conv_desc& d) { d.window.pad.left = -2; }), {code::negative, argument::conv_padding, -2, 0},
          "conv.padding = -2 must be at least 0");
    check(planned([](conv_desc& d) { d.window.pad.bottom = -3; }), {code::negative, argument::conv_padding, -3, 0},
          "conv.padding = -3 must be at least 0");
    check(planned([](conv_desc& d) { d.window.pad.right = -4; }), {code::negative, argument::conv_padding, -4, 0},
          "conv.padding = -4 must be at least 0");
    check(planned([](conv_desc& d) { d.window.output_padding_h = -1; }),
          {code::negative, argument::conv_output_padding, -1, 0}, "conv.output_padding = -1 must be at least 0");
    check(planned([](conv_desc& d) { d.window.output_padding_w = -1; }),
          {code::negative, argument::conv_output_padding, -1, 0}, "conv.output_padding = -1 must be at least 0");
}

TEST_CASE("convolution errors: groups divide the channels") {
    check(planned([](conv_desc& d) { d.groups = 3; }), {code::unsupported, argument::input_c, 4, 3},
          "input.c = 4 is not supported; the nearest that is 3");
    check(planned([](conv_desc& d) { d.groups = 4; }), {code::unsupported, argument::output_c, 6, 4},
          "output.c = 6 is not supported; the nearest that is 4");
    check(planned([](conv_desc& d) { d.groups = 2; }), {}, "ok");
}

TEST_CASE("convolution errors: output padding stays below the stride or the dilation") {
    check(planned([](conv_desc& d) { d.window.output_padding_h = 1; }),
          {code::too_large, argument::conv_output_padding, 1, 0}, "conv.output_padding = 1 must be at most 0");
    check(planned([](conv_desc& d) { d.window.output_padding_w = 1; }),
          {code::too_large, argument::conv_output_padding, 1, 0}, "conv.output_padding = 1 must be at most 0");
    // Without transposition even where a stride would leave room.
    check(planned([](conv_desc& d) {
              d.window.stride_h = 2;
              d.window.output_padding_h = 1;
          }),
          {code::too_large, argument::conv_output_padding, 1, 0}, "conv.output_padding = 1 must be at most 0");
    for (index_t stride : {1, 2, 5}) {
        const std::string words =
            "conv.output_padding = " + std::to_string(stride) + " must be at most " + std::to_string(stride - 1);
        const status want{code::too_large, argument::conv_output_padding, stride, stride - 1};
        check(planned([=](conv_desc& d) {
                  d.window = {.stride_h = stride, .transposed = true, .output_padding_h = stride};
              }),
              want, words);
        check(planned([=](conv_desc& d) {
                  d.window = {.stride_w = stride, .transposed = true, .output_padding_w = stride};
              }),
              want, words);
        check(planned([=](conv_desc& d) {
                  d.window = {.dilation_w = stride, .transposed = true, .output_padding_w = stride};
              }),
              want, words);
        check(planned([=](conv_desc& d) {
                  d.window = {.stride_h = stride, .transposed = true, .output_padding_h = stride - 1};
              }),
              {}, "ok");
    }
}

TEST_CASE("B25 convolution errors: sizes that 64 bits do not hold") {
    const auto wide = [](const char* what, index_t value, index_t most) {
        return std::string(what) + " = " + std::to_string(value) + " must be at most " + std::to_string(most);
    };
    const index_t huge = INT64_MAX;
    check(planned([=](conv_desc& d) { d.n = huge; }), {code::too_large, argument::input_n, huge, limit},
          wide("input.n", huge, limit));
    check(planned([=](conv_desc& d) { d.h = limit + 1; }), {code::too_large, argument::input_h, limit + 1, limit},
          wide("input.h", limit + 1, limit));
    check(planned([=](conv_desc& d) { d.w = huge; }), {code::too_large, argument::input_w, huge, limit},
          wide("input.w", huge, limit));
    check(planned([=](conv_desc& d) { d.ic = huge; }), {code::too_large, argument::input_c, huge, limit},
          wide("input.c", huge, limit));
    check(planned([=](conv_desc& d) { d.oc = huge; }), {code::too_large, argument::filter_oc, huge, limit},
          wide("filter.oc", huge, limit));
    check(planned([=](conv_desc& d) { d.kh = huge; }), {code::too_large, argument::filter_kh, huge, limit},
          wide("filter.kh", huge, limit));
    check(planned([=](conv_desc& d) { d.kw = huge; }), {code::too_large, argument::filter_kw, huge, limit},
          wide("filter.kw", huge, limit));
    check(planned([=](conv_desc& d) { d.groups = huge; }), {code::too_large, argument::conv_groups, huge, limit},
          wide("conv.groups", huge, limit));
    check(planned([=](conv_desc& d) { d.window.stride_h = huge; }),
          {code::too_large, argument::conv_stride, huge, limit}, wide("conv.stride", huge, limit));
    check(planned([=](conv_desc& d) { d.window.dilation_w = huge; }),
          {code::too_large, argument::conv_dilation, huge, limit}, wide("conv.dilation", huge, limit));
    check(planned([=](conv_desc& d) { d.window.pad.right = huge; }),
          {code::too_large, argument::conv_padding, huge, limit}, wide("conv.padding", huge, limit));
    check(planned([=](conv_desc& d) { d.window.output_padding_h = huge; }),
          {code::too_large, argument::conv_output_padding, huge, limit}, wide("conv.output_padding", huge, limit));
    // Products.
    check(planned([=](conv_desc& d) { d.window.dilation_h = limit / 3 + 1; }),
          {code::too_large, argument::conv_dilation, limit / 3 + 1, limit / 3},
          wide("conv.dilation", limit / 3 + 1, limit / 3));
    check(planned([=](conv_desc& d) { d.window.stride_w = limit / 5 + 1; }),
          {code::too_large, argument::conv_stride, limit / 5 + 1, limit / 5},
          wide("conv.stride", limit / 5 + 1, limit / 5));
    const index_t m2 = index_t{1} << 21, m20 = index_t{1} << 20;
    check(planned([=](conv_desc& d) { d.kh = d.kw = m2; }), {code::too_large, argument::filter_kh, m2, limit},
          wide("filter.kh", m2, limit));
    check(planned([=](conv_desc& d) {
              d.h = limit;
              d.w = 3;
              d.window.pad.top = limit;
          }),
          {code::too_large, argument::output_h, 2 * limit - 2, limit}, wide("output.h", 2 * limit - 2, limit));
    check(planned([=](conv_desc& d) {
              d.h = d.w = m2;
              d.kh = d.kw = 1;
          }),
          {code::too_large, argument::output_w, m2, limit / m2}, wide("output.w", m2, limit / m2));
    check(planned([=](conv_desc& d) {
              d.n = m2;
              d.h = d.w = m20;
              d.kh = d.kw = 1;
          }),
          {code::too_large, argument::output_n, m2, 1}, wide("output.n", m2, 1));
    // Any number of images that have no pixel.
    CHECK(planned([=](conv_desc& d) {
              d.n = limit;
              d.h = index_t{1} << 30;
              d.w = 0;
              d.kh = d.kw = 1;
          }) == hone::status{});
    check(planned([=](conv_desc& d) {
              d.h = d.w = m20;
              d.ic = index_t{1} << 30;
              d.oc = d.kh = d.kw = 1;
              d.window.stride_h = d.window.stride_w = m20;
          }),
          {code::too_large, argument::input_h, m20, limit}, wide("input.h", m20, limit));
    const index_t elements = (index_t{1} << 60) - 1;
    check(planned([=](conv_desc& d) {
              d.h = d.w = d.ic = m20;
              d.oc = d.kh = d.kw = 1;
              d.window.stride_h = d.window.stride_w = m20;
          }),
          {code::too_large, argument::input_stride, 4 * elements, most_bytes},
          wide("input strides", 4 * elements, most_bytes));
    check(planned([=](conv_desc& d) {
              d.input = {1, INT64_MAX / 2, 4, 1};
          }),
          {code::too_large, argument::input_stride, INT64_MAX / 2, most_bytes},
          wide("input strides", INT64_MAX / 2, most_bytes));
    check(planned([=](conv_desc& d) {
              d.output = {1, 18, -(INT64_MAX / 3 * 2), 1};
          }),
          {code::too_large, argument::output_stride, -(INT64_MAX / 3 * 2), most_bytes},
          wide("output strides", -(INT64_MAX / 3 * 2), most_bytes));
    // Strides given in part: the others are unset, not guessed.
    CHECK(planned([=](conv_desc& d) { d.input = {.w = 4, .c = 1}; }).code == code::too_large);
    CHECK(planned([=](conv_desc& d) { d.output = {.w = 6, .c = 1}; }).code == code::too_large);
}

TEST_CASE("B100 convolution errors: elements of the output that coincide") {
    check(planned([](conv_desc& d) {
              d.output = {72, 18, 6, 0};
          }),
          {code::bad_stride, argument::output_stride, 0, 1},
          "output strides = 0 makes elements of C coincide; it must be at least 1");
    check(planned([](conv_desc& d) {
              d.output = {72, 18, 5, 1};
          }),
          {code::bad_stride, argument::output_stride, 5, 6},
          "output strides = 5 makes elements of C coincide; it must be at least 6");
    check(planned([](conv_desc& d) {
              d.output = {72, 12, 6, 1};
          }),
          {code::bad_stride, argument::output_stride, 12, 18},
          "output strides = 12 makes elements of C coincide; it must be at least 18");
    check(planned([](conv_desc& d) {
              d.n = 2;
              d.output = {0, 18, 6, 1};
          }),
          {code::bad_stride, argument::output_stride, 0, 1},
          "output strides = 0 makes elements of C coincide; it must be at least 1");
    // Channels first: planes that are too close name the distance of planes.
    check(planned([](conv_desc& d) {
              d.output = {72, 3, 1, 11};
          }),
          {code::bad_stride, argument::output_stride, 11, 12},
          "output strides = 11 makes elements of C coincide; it must be at least 12");
    operands o;
    const hone::image_view<float> close{o.out.data(), 1, 4, 3, 6, 72, 3, 1, 11};
    CHECK(hone::conv(o.vi, o.vf, close).code == code::bad_stride);
    CHECK(o.untouched());
    // Of one extent the stride means nothing; an empty output has no elements; an input may repeat itself.
    check(planned([](conv_desc& d) { d.output = {0, 18, 6, 1}; }), {}, "ok");
    check(planned([](conv_desc& d) {
              d.oc = 0;
              d.output = {0, 0, 0, 0};
          }),
          {}, "ok");
    check(planned([](conv_desc& d) { d.input = {0, 0, 0, 0}; }), {}, "ok");
    // Interleaved, without coinciding.
    check(planned([](conv_desc& d) { d.output = {1, 6 * 3, 6, 1}; }), {}, "ok");
    check(planned([](conv_desc& d) { d.output = {72, 3, 1, 12}; }), {}, "ok");
}

TEST_CASE("B29 convolution errors: extents are not narrowed to 32 bits") {
    constexpr index_t wide = index_t{1} << 32;
    operands o;
    const auto plan = hone::plan(hone::describe(o.vi, o.vf, o.vo));
    REQUIRE(plan);
    const auto with = [&](auto change) {
        auto in = o.vi;
        auto f = o.vf;
        auto out = o.vo;
        change(in, f, out);
        return plan->run(in, f, out);
    };
    CHECK(with([](auto& in, auto&, auto&) { in.n += wide; }) ==
          status{code::mismatch, argument::input_n, wide + 1, 1});
    CHECK(with([](auto& in, auto&, auto&) { in.h += wide; }) ==
          status{code::mismatch, argument::input_h, wide + 6, 6});
    CHECK(with([](auto& in, auto&, auto&) { in.w += wide; }) ==
          status{code::mismatch, argument::input_w, wide + 5, 5});
    CHECK(with([](auto& in, auto&, auto&) { in.c += wide; }) ==
          status{code::mismatch, argument::input_c, wide + 4, 4});
    CHECK(with([](auto& in, auto&, auto&) { in.w_stride += wide; }).argument == argument::input_stride);
    CHECK(with([](auto&, auto& f, auto&) { f.groups += wide; }) ==
          status{code::mismatch, argument::filter_groups, wide + 1, 1});
    CHECK(with([](auto&, auto& f, auto&) { f.oc += wide; }) ==
          status{code::mismatch, argument::filter_oc, wide + 6, 6});
    CHECK(with([](auto&, auto& f, auto&) { f.ic += wide; }) ==
          status{code::mismatch, argument::filter_ic, wide + 4, 4});
    CHECK(with([](auto&, auto& f, auto&) { f.kh += wide; }) ==
          status{code::mismatch, argument::filter_kh, wide + 3, 3});
    CHECK(with([](auto&, auto& f, auto&) { f.kw += wide; }) ==
          status{code::mismatch, argument::filter_kw, wide + 3, 3});
    CHECK(with([](auto&, auto&, auto& out) { out.n += wide; }) ==
          status{code::mismatch, argument::output_n, wide + 1, 1});
    CHECK(with([](auto&, auto&, auto& out) { out.h += wide; }) ==
          status{code::mismatch, argument::output_h, wide + 4, 4});
    CHECK(with([](auto&, auto&, auto& out) { out.w += wide; }) ==
          status{code::mismatch, argument::output_w, wide + 3, 3});
    CHECK(with([](auto&, auto&, auto& out) { out.c += wide; }) ==
          status{code::mismatch, argument::output_c, wide + 6, 6});
    CHECK(o.untouched());
    CHECK(hone::output_extent(wide + 6, 3, 1, 1, 0, 0, false, 0) == wide + 4);
    CHECK(hone::output_extent(wide + 6, 3, 2, 1, 0, 0, true, 0) == 2 * (wide + 5) + 3);
}

TEST_CASE("B101 convolution errors: a plan that was never made is an error, not a crash") {
    const hone::conv_plan<> empty{};
    operands o;
    check(empty.run(o.vi, o.vf, o.vo), {code::mismatch, argument::output_h, 4, 0}, "output.h = 4 must equal 0");
    CHECK_FALSE(empty.run(o.vi, hone::packed_view{}, o.vo).ok());
    CHECK(o.untouched());
    CHECK(empty.scratch_bytes() >= 0);
    CHECK(empty.scratch_bytes(8) >= 0);
    CHECK(empty.packed_bytes() >= 0);
    CHECK(empty.explain().workers >= 0);
    std::byte none[1];
    CHECK_FALSE(empty.pack(o.vf, {none, 1}).ok());
    const auto refused = hone::plan(conv_desc{.n = -1});
    CHECK_FALSE(refused.has_value());
    CHECK(refused->scratch_bytes() >= 0);
}

// Outputs of small extents and any strides: refused where two elements lie on one address, and nowhere else.
TEST_CASE("B100 convolution errors: elements of the output that coincide, against every element") {
    random_source source(41);
    int refused = 0, planned_all = 0;
    for (int round = 0; round < (quick() ? 4000 : 60000); ++round) {
        conv_desc d{.n = source.between(1, 3), .h = source.between(1, 4), .w = source.between(1, 4), .ic = 1,
                    .oc = source.between(1, 4)};
        const bool near_dense = round % 2 == 0;
        d.output = {d.h * d.w * d.oc, d.w * d.oc, d.oc, 1};
        if (near_dense && source.bits() % 2) d.output = {d.h * d.w * d.oc, d.w, 1, d.h * d.w};
        for (index_t* s : {&d.output.n, &d.output.h, &d.output.w, &d.output.c}) {
            *s = near_dense ? *s + source.between(-1, 1) : source.between(-20, 20);
            if (source.bits() % 4 == 0) *s = -*s;
        }
        std::vector<index_t> at;
        for (index_t n = 0; n < d.n; ++n) {
            for (index_t h = 0; h < d.h; ++h) {
                for (index_t w = 0; w < d.w; ++w) {
                    for (index_t c = 0; c < d.oc; ++c)
                        at.push_back(n * d.output.n + h * d.output.h + w * d.output.w + c * d.output.c);
                }
            }
        }
        std::sort(at.begin(), at.end());
        const bool twice = std::adjacent_find(at.begin(), at.end()) != at.end();
        const status s = hone::plan(d).status();
        INFO(d.n << "x" << d.h << "x" << d.w << "x" << d.oc << " strides " << d.output.n << ", " << d.output.h << ", "
                 << d.output.w << ", " << d.output.c << ": " << s.message().c_str());
        REQUIRE((s.code == code::bad_stride) == twice);
        REQUIRE((s.ok() || twice));
        refused += twice;
        planned_all += s.ok();
    }
    CHECK(refused > 100);
    CHECK(planned_all > 100);
}

// As in gemm_errors_test: elements that are not aligned are refused, not read.
TEST_CASE("B37 convolution errors: images, filters and what stages view at odd addresses") {
    for (isa id : isas()) {
        operands o;
        std::vector<float> spare(256, 1.0f);
        for (index_t by : {1, 2, 3}) {
            float* const odd = reinterpret_cast<float*>(reinterpret_cast<char*>(spare.data()) + by);
            const auto run = [&](const auto& in, const auto& f, const auto& out, const auto& stages) {
                const auto plan = hone::plan(hone::describe(o.vi, o.vf, o.vo), hone::policy{.isa = id}, stages);
                REQUIRE(plan);
                return plan->run(in, f, out, stages);
            };
            const auto refused = [&](const status& s, argument which, const char* what) {
                check(s, {code::misaligned, which, by, 4},
                      std::string(what) + " = " + std::to_string(by) + " must be aligned to bytes 4");
            };
            refused(run(hone::nhwc<const float>(odd, 1, 6, 5, 4), o.vf, o.vo, hone::identity), argument::input_data,
                    "input.data");
            refused(run(o.vi, hone::oihw<const float>(odd, 6, 4, 3, 3), o.vo, hone::identity), argument::filter_data,
                    "filter.data");
            refused(run(o.vi, o.vf, hone::nhwc(odd, 1, 4, 3, 6), hone::identity), argument::output_data, "output.data");
            refused(run(o.vi, o.vf, o.vo, hone::add(hone::nhwc<const float>(odd, 1, 4, 3, 6))), argument::epilogue_view,
                    "epilogue view");
            refused(run(o.vi, o.vf, o.vo, hone::bias(odd)), argument::epilogue_vector, "epilogue vector");
            const auto plan = hone::plan(hone::describe(o.vi, o.vf, o.vo), hone::policy{.isa = id});
            REQUIRE(plan);
            hone::aligned_buffer memory(static_cast<std::size_t>(plan->packed_bytes()));
            refused(plan->pack(hone::oihw<const float>(odd, 6, 4, 3, 3), {memory.data(), memory.size()}),
                    argument::filter_data, "filter.data");
        }
        CHECK(o.untouched());
        CHECK(spare == std::vector<float>(256, 1.0f));
    }
}

TEST_CASE("convolution errors: policies") {
    check(planned_by({.isa = static_cast<isa>(99)}), {code::bad_policy, argument::policy_isa, 99, hone::isa_count - 1},
          "policy.isa = 99 breaks the rule of validate<P>(); the limit is 7");
    for (int i = 1; i < hone::isa_count; ++i) {
        const isa id = static_cast<isa>(i);
        if (hone::available(id)) continue;
        check(
            planned_by({.isa = id}),
            {code::isa_unavailable, argument::policy_isa, i, static_cast<int>(hone::explain().best)},
            std::string("policy.isa = ") + hone::isa_name(id) + " cannot run here; the best that can is isa " + best());
    }
    const isa s = isa::scalar;
    check(planned_by({.isa = s, .tile = {5, 4}}), {code::bad_policy, argument::policy_tile, 5, 16},
          "policy.tile = 5 breaks the rule of validate<P>(); the limit is 16");
    check(planned_by({.isa = s, .tile = {4, -4}}), {code::bad_policy, argument::policy_tile, -4, 0},
          "policy.tile = -4 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.isa = s, .tile = {4, 0}}), {code::bad_policy, argument::policy_tile, 4, 0},
          "policy.tile = 4 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.isa = s, .tile = {0, 4}}), {code::bad_policy, argument::policy_tile, 4, 0},
          "policy.tile = 4 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.isa = s, .tile = {8, 4}}), {code::unsupported, argument::policy_tile, 4, 1},
          "policy.tile = 4 is not supported; the nearest that is 1");
    check(planned_by({.isa = s, .tile = {4, 4}, .block = {.mc = 6}}), {code::bad_policy, argument::policy_mc, 6, 4},
          "policy.block.mc = 6 breaks the rule of validate<P>(); the limit is 4");
    check(planned_by({.isa = s, .tile = {4, 4}, .block = {.nc = 6}}), {code::bad_policy, argument::policy_nc, 6, 4},
          "policy.block.nc = 6 breaks the rule of validate<P>(); the limit is 4");
    check(planned_by({.block = {.mc = -1}}), {code::bad_policy, argument::policy_mc, -1, 0},
          "policy.block.mc = -1 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.block = {.kc = -1}}), {code::bad_policy, argument::policy_kc, -1, 0},
          "policy.block.kc = -1 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.block = {.nc = -1}}), {code::bad_policy, argument::policy_nc, -1, 0},
          "policy.block.nc = -1 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.threads = -1}), {code::bad_policy, argument::policy_threads, -1, 0},
          "policy.threads = -1 breaks the rule of validate<P>(); the limit is 0");
    check(planned_by({.algorithm = hone::algorithm::depthwise}), {code::unsupported, argument::policy_algorithm, 2, 1},
          "policy.algorithm = 2 is not supported; the nearest that is 1");
    check(planned_by({.algorithm = static_cast<hone::algorithm>(9)}),
          {code::bad_policy, argument::policy_algorithm, 9, 6},
          "policy.algorithm = 9 breaks the rule of validate<P>(); the limit is 6");
    CHECK(planned_by({.precision = {.a = hone::dtype::u8}}).argument == argument::policy_precision);
}

TEST_CASE("convolution errors: views that are not the plan's") {
    const auto plan = hone::plan(conv_desc{.n = 1, .h = 6, .w = 5, .ic = 4, .oc = 6, .kh = 3, .kw = 3});
    REQUIRE(plan);
    operands o;
    const auto in = [&](auto change, const status& want, const char* words) {
        auto v = o.vi;
        change(v);
        check(plan->run(v, o.vf, o.vo), want, words);
    };
    const auto out = [&](auto change, const status& want, const char* words) {
        auto v = o.vo;
        change(v);
        check(plan->run(o.vi, o.vf, v), want, words);
    };
    const auto filter = [&](auto change, const status& want, const char* words) {
        auto v = o.vf;
        change(v);
        check(plan->run(o.vi, v, o.vo), want, words);
        std::vector<std::byte> memory(static_cast<std::size_t>(plan->packed_bytes()) + 64, std::byte{7});
        check(plan->pack(v, memory), want, words);
        CHECK(std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{7}; }));
    };
    in([](auto& v) { v.n = 2; }, {code::mismatch, argument::input_n, 2, 1}, "input.n = 2 must equal 1");
    in([](auto& v) { v.h = 5; }, {code::mismatch, argument::input_h, 5, 6}, "input.h = 5 must equal 6");
    in([](auto& v) { v.w = 0; }, {code::mismatch, argument::input_w, 0, 5}, "input.w = 0 must equal 5");
    in([](auto& v) { v.c = -4; }, {code::mismatch, argument::input_c, -4, 4}, "input.c = -4 must equal 4");
    in([](auto& v) { v.h_stride = 21; }, {code::mismatch, argument::input_stride, 21, 20},
       "input strides = 21 must equal 20");
    in([](auto& v) { v.w_stride = 5; }, {code::mismatch, argument::input_stride, 5, 4},
       "input strides = 5 must equal 4");
    in([](auto& v) { v.c_stride = -1; }, {code::mismatch, argument::input_stride, -1, 1},
       "input strides = -1 must equal 1");
    in([](auto& v) { v.data = nullptr; }, {code::null_pointer, argument::input_data, 0, 120},
       "input.data = 0 must not be null: elements at stake are 120");
    out([](auto& v) { v.n = 0; }, {code::mismatch, argument::output_n, 0, 1}, "output.n = 0 must equal 1");
    out([](auto& v) { v.h = 6; }, {code::mismatch, argument::output_h, 6, 4}, "output.h = 6 must equal 4");
    out([](auto& v) { v.w = 5; }, {code::mismatch, argument::output_w, 5, 3}, "output.w = 5 must equal 3");
    out([](auto& v) { v.c = 4; }, {code::mismatch, argument::output_c, 4, 6}, "output.c = 4 must equal 6");
    out([](auto& v) { v.h_stride = 19; }, {code::mismatch, argument::output_stride, 19, 18},
        "output strides = 19 must equal 18");
    out([](auto& v) { v.w_stride = 7; }, {code::mismatch, argument::output_stride, 7, 6},
        "output strides = 7 must equal 6");
    out([](auto& v) { v.c_stride = 2; }, {code::mismatch, argument::output_stride, 2, 1},
        "output strides = 2 must equal 1");
    out([](auto& v) { v.data = nullptr; }, {code::null_pointer, argument::output_data, 0, 72},
        "output.data = 0 must not be null: elements at stake are 72");
    filter([](auto& v) { v.groups = 2; }, {code::mismatch, argument::filter_groups, 2, 1},
           "filter.groups = 2 must equal 1");
    filter([](auto& v) { v.oc = 5; }, {code::mismatch, argument::filter_oc, 5, 6}, "filter.oc = 5 must equal 6");
    filter([](auto& v) { v.ic = 6; }, {code::mismatch, argument::filter_ic, 6, 4}, "filter.ic = 6 must equal 4");
    filter([](auto& v) { v.kh = 1; }, {code::mismatch, argument::filter_kh, 1, 3}, "filter.kh = 1 must equal 3");
    filter([](auto& v) { v.kw = 5; }, {code::mismatch, argument::filter_kw, 5, 3}, "filter.kw = 5 must equal 3");
    filter([](auto& v) { v.data = nullptr; }, {code::null_pointer, argument::filter_data, 0, 216},
           "filter.data = 0 must not be null: elements at stake are 216");
    CHECK(o.untouched());
    // Of an extent of one the stride means nothing.
    auto v = o.vi;
    v.n_stride = 12345;
    auto w = o.vo;
    w.n_stride = -7;
    CHECK(plan->run(v, o.vf, w).ok());
    CHECK(o.computed());
}

TEST_CASE("convolution errors: one call checks what a plan checks") {
    operands o;
    check(hone::conv(o.vi, o.vf, o.vo, {.stride_h = 0}), {code::negative, argument::conv_stride, 0, 1},
          "conv.stride = 0 must be at least 1");
    check(hone::conv(o.vi, o.vf, o.vo, {.pad = {1, 1, 1, 1}}), {code::mismatch, argument::output_h, 4, 6},
          "output.h = 4 must equal 6");
    check(hone::conv(o.vi, hone::oihw<const float>(o.filter.data(), 6, 2, 3, 3), o.vo),
          {code::mismatch, argument::filter_ic, 2, 4}, "filter.ic = 2 must equal 4");
    check(hone::conv(o.vi, hone::oihw<const float>(o.filter.data(), 3, 4, 3, 3), o.vo),
          {code::mismatch, argument::output_c, 6, 3}, "output.c = 6 must equal 3");
    // Output written for another kind of convolution.
    check(hone::conv(o.vi, o.vf, o.vo, {.transposed = true}), {code::mismatch, argument::output_h, 4, 8},
          "output.h = 4 must equal 8");
    CHECK(o.untouched());
    CHECK(hone::conv(o.vi, o.vf, o.vo).ok());
    CHECK(o.computed());
}

TEST_CASE("B14 convolution errors: nothing to do needs no memory") {
    const float* const none = nullptr;
    float* const nowhere = nullptr;
    for (bool transposed : {false, true}) {
        const hone::conv_window w{.transposed = transposed};
        const auto f = hone::oihw(none, 0, 4, 1, 1);
        CHECK(hone::conv(hone::nhwc(none, 0, 6, 5, 4), hone::oihw(none, 0, 4, 1, 1), hone::nhwc(nowhere, 0, 6, 5, 0), w)
                  .ok());
        CHECK(hone::conv(hone::nhwc(none, 0, 6, 5, 0), hone::oihw(none, 3, 0, 1, 1), hone::nhwc(nowhere, 0, 6, 5, 3), w)
                  .ok());
        const float in[4] = {1, 2, 3, 4};
        CHECK(hone::conv(hone::nhwc(in, 1, 1, 1, 4), f, hone::nhwc(nowhere, 1, 1, 1, 0), w).ok());
    }
    // A window that does not fit: no outputs.
    const float in[4] = {1, 2, 3, 4}, filter[9] = {};
    CHECK(hone::conv(hone::nhwc(in, 1, 2, 2, 1), hone::oihw(filter, 1, 1, 3, 3), hone::nhwc(nowhere, 1, 0, 0, 1)).ok());
    // A transposed one whose padding eats all outputs; its queries answer too.
    conv_desc d{.n = 1, .h = 2, .w = 2, .ic = 1, .oc = 1, .kh = 2, .kw = 2};
    d.window = {.pad = {2, 2, 2, 2}, .transposed = true};
    const auto plan = hone::plan(d);
    REQUIRE(plan);
    CHECK(plan->output_h() == 0);
    CHECK(plan->output_w() == 0);
    CHECK(plan->scratch_bytes(4) >= 0);
    CHECK(plan->explain().workers == 1);
    CHECK(plan->run(hone::nhwc(in, 1, 2, 2, 1), hone::oihw(filter, 1, 1, 2, 2), hone::nhwc(nowhere, 1, 0, 0, 1)).ok());
    // No input: sums of nothing, through the epilogue; the input's and the filter's pointers are not looked at.
    float out[4] = {9, 9, 9, 9};
    const float bias[1] = {5};
    CHECK(hone::conv(hone::nhwc(none, 1, 2, 2, 0), hone::oihw(none, 1, 0, 1, 1), hone::nhwc(out, 1, 2, 2, 1), {},
                     hone::bias(bias))
              .ok());
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>(4, 5.0f));
    CHECK(hone::conv(hone::nhwc(none, 1, 0, 2, 1), hone::oihw(filter, 1, 1, 1, 1), hone::nhwc(out, 1, 2, 2, 1),
                     {.pad = {1, 0, 1, 0}})
              .ok());
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>(4, 0.0f));
}

TEST_CASE("convolution errors: scratch") {
    operands o;
    const auto plan = hone::plan(conv_desc{.n = 1, .h = 6, .w = 5, .ic = 4, .oc = 6, .kh = 3, .kw = 3});
    REQUIRE(plan);
    const index_t bytes = plan->scratch_bytes();
    REQUIRE(bytes > 64);
    CHECK(bytes == plan->explain().scratch_bytes);
    CHECK(plan->scratch_bytes(1, true) < bytes);
    hone::aligned_buffer memory(static_cast<std::size_t>(bytes) + 64);
    hone::context ctx;
    ctx.scratch = {memory.data(), static_cast<std::size_t>(bytes) - 1};
    check(plan->run(o.vi, o.vf, o.vo, hone::identity, ctx), {code::too_small, argument::scratch, bytes - 1, bytes},
          "scratch = " + std::to_string(bytes - 1) + " is too small; bytes or elements needed are " +
              std::to_string(bytes));
    ctx.scratch = {memory.data() + 8, static_cast<std::size_t>(bytes)};
    check(plan->run(o.vi, o.vf, o.vo, hone::identity, ctx), {code::misaligned, argument::scratch, 8, 64},
          "scratch = 8 must be aligned to bytes 64");
    CHECK(o.untouched());
    ctx.scratch = {memory.data(), static_cast<std::size_t>(bytes)};
    CHECK(plan->run(o.vi, o.vf, o.vo, hone::identity, ctx).ok());
    CHECK(o.computed());
}

TEST_CASE("convolution errors: memory to pack into") {
    operands o;
    const auto plan = hone::plan(conv_desc{.n = 1, .h = 6, .w = 5, .ic = 4, .oc = 6, .kh = 3, .kw = 3});
    REQUIRE(plan);
    const auto bytes = static_cast<std::size_t>(plan->packed_bytes());
    hone::aligned_buffer memory(bytes + 64);
    std::memset(memory.data(), 7, bytes + 64);
    check(plan->pack(o.vf, {memory.data(), bytes - 1}),
          {code::too_small, argument::memory, static_cast<index_t>(bytes) - 1, static_cast<index_t>(bytes)},
          "memory = " + std::to_string(bytes - 1) + " is too small; bytes or elements needed are " +
              std::to_string(bytes));
    check(plan->pack(o.vf, {memory.data() + 32, bytes}), {code::misaligned, argument::memory, 32, 64},
          "memory = 32 must be aligned to bytes 64");
    check(plan->pack(o.vf, {}), {code::too_small, argument::memory, 0, static_cast<index_t>(bytes)},
          "memory = 0 is too small; bytes or elements needed are " + std::to_string(bytes));
    CHECK(std::all_of(memory.data(), memory.data() + bytes + 64, [](std::byte b) { return b == std::byte{7}; }));
    CHECK(plan->pack(o.vf, {memory.data(), bytes}).ok());
    // An empty view of packed weights.
    check(plan->run(o.vi, hone::packed_view{}, o.vo), {code::null_pointer, argument::packed_bytes, 0, 1},
          "packed.bytes = 0 must not be null: elements at stake are 1");
    CHECK(o.untouched());
}

#if defined(__SANITIZE_ADDRESS__)
#define HONE_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HONE_TEST_ASAN 1
#endif
#endif
#ifndef HONE_TEST_ASAN  // which ends the process where an allocator should say no
TEST_CASE("convolution errors: scratch that no machine has") {
    // 2^55 bytes of an NCHW image to copy. The pointers are never followed.
    conv_desc d{.n = 1, .h = index_t{1} << 26, .w = index_t{1} << 26, .ic = 2, .oc = 1};
    d.window.stride_h = d.window.stride_w = 1 << 14;
    d.input = {1, index_t{1} << 26, 1, index_t{1} << 52};
    const auto plan = hone::plan(d);
    INFO(plan.status().message().c_str());
    REQUIRE(plan);
    const index_t bytes = plan->scratch_bytes();
    CHECK(bytes > index_t{1} << 55);
    const hone::image_view<const float> in{reinterpret_cast<const float*>(std::uintptr_t{1} << 41),
                                           1,
                                           d.h,
                                           d.w,
                                           2,
                                           1,
                                           index_t{1} << 26,
                                           1,
                                           index_t{1} << 52};
    const float filter[2] = {1, 2};
    check(plan->run(in, hone::oihw(filter, 1, 2, 1, 1),
                    hone::nhwc(reinterpret_cast<float*>(std::uintptr_t{1} << 30), 1, 1 << 12, 1 << 12, 1)),
          {code::out_of_memory, argument::scratch, bytes, bytes},
          "scratch = " + std::to_string(bytes) + " could not be allocated; bytes asked were " + std::to_string(bytes));
    // The thread's own scratch works again afterwards.
    operands o;
    CHECK(hone::conv(o.vi, o.vf, o.vo).ok());
    CHECK(o.computed());
}
#endif

TEST_CASE("convolution errors: epilogues") {
    operands o;
    const conv_desc d{.n = 1, .h = 6, .w = 5, .ic = 4, .oc = 6, .kh = 3, .kw = 3};
    const auto run = [&](const auto& e) { return hone::plan(d, hone::policy{}, e)->run(o.vi, o.vf, o.vo, e); };
    const std::vector<float> five(5), six(6);
    check(run(hone::bias(five)), {code::mismatch, argument::epilogue_vector, 5, 6}, "epilogue vector = 5 must equal 6");
    check(run(hone::scale(five)), {code::mismatch, argument::epilogue_vector, 5, 6},
          "epilogue vector = 5 must equal 6");
    check(run(hone::bias(static_cast<const float*>(nullptr))), {code::null_pointer, argument::epilogue_vector, 0, 6},
          "epilogue vector = 0 must not be null: elements at stake are 6");
    check(run(hone::relu | hone::bias(six) | hone::bias(five)), {code::mismatch, argument::epilogue_vector, 5, 6},
          "epilogue vector = 5 must equal 6");
    check(run(hone::clip(1, -1)), {code::too_large, argument::epilogue_bounds, 1, -1},
          "epilogue bounds = 1 must be at most -1");
    const std::vector<float> other(100);
    check(run(hone::add(hone::nhwc(other.data(), 2, 4, 3, 6))), {code::mismatch, argument::epilogue_view, 2, 1},
          "epilogue view = 2 must equal 1");
    check(run(hone::add(hone::nhwc(other.data(), 1, 3, 3, 6))), {code::mismatch, argument::epilogue_view, 3, 4},
          "epilogue view = 3 must equal 4");
    check(run(hone::mul(hone::nhwc(other.data(), 1, 4, 4, 6))), {code::mismatch, argument::epilogue_view, 4, 3},
          "epilogue view = 4 must equal 3");
    check(run(hone::mul(hone::nhwc(other.data(), 1, 4, 3, 5))), {code::mismatch, argument::epilogue_view, 5, 6},
          "epilogue view = 5 must equal 6");
    check(run(hone::add(hone::row_major(other.data(), 11, 6))), {code::mismatch, argument::epilogue_view, 11, 12},
          "epilogue view = 11 must equal 12");
    CHECK(run(hone::add(hone::nhwc(static_cast<const float*>(nullptr), 1, 4, 3, 6))).code == code::null_pointer);
    CHECK(o.untouched());
    // A matrix of pixels by channels is an image too.
    CHECK(run(hone::add(hone::row_major(other.data(), 12, 6))).ok());
    CHECK(o.computed());
}

TEST_CASE("B22 convolution errors: an output that shares elements with what it is made of") {
    const conv_desc same{.n = 1, .h = 4, .w = 4, .ic = 4, .oc = 4};
    const float filter[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const auto f = hone::oihw(filter, 4, 4, 1, 1);
    const status input{code::overlap, argument::input_data, 1, 0};
    std::vector<float> memory(512);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
    const std::vector<float> before = memory;
    float* const p = memory.data();
    // In place, shifted by one image row, by one element, the output in front of the input.
    CHECK(hone::conv(hone::nhwc(p, 1, 4, 4, 4), f, hone::nhwc(p, 1, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nhwc(p, 1, 4, 4, 4), f, hone::nhwc(p + 16, 1, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nhwc(p, 1, 4, 4, 4), f, hone::nhwc(p + 1, 1, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nhwc(p + 63, 1, 4, 4, 4), f, hone::nhwc(p, 1, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nchw(p, 1, 4, 4, 4), f, hone::nchw(p, 1, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nchw(p, 2, 4, 4, 4), f, hone::nchw(p, 2, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nchw(p, 2, 4, 4, 4), f, hone::nchw(p + 127, 2, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nhwc(p, 2, 4, 4, 4), f, hone::nhwc(p + 127, 2, 4, 4, 4)) == input);
    CHECK(hone::conv(hone::nchw(p, 1, 4, 4, 4), f, hone::nhwc(p, 1, 4, 4, 4)) == input);
    const hone::image_view<float> rows{p, 2, 4, 4, 4, 170, 20, 4, 1};  // gaps between rows and between images
    CHECK(hone::conv(rows, f, rows) == input);
    // Packed weights see it as well.
    const auto plan = hone::plan(same);
    REQUIRE(plan);
    hone::aligned_buffer packed(static_cast<std::size_t>(plan->packed_bytes()));
    REQUIRE(plan->pack(f, {packed.data(), packed.size()}).ok());
    CHECK(plan->run(hone::nhwc<const float>(p, 1, 4, 4, 4), *hone::packed_view::open({packed.data(), packed.size()}),
                    hone::nhwc(p, 1, 4, 4, 4)) == input);
    // The filter.
    const status weights{code::overlap, argument::filter_data, 1, 0};
    CHECK(hone::conv(hone::nhwc(p + 256, 1, 4, 4, 4), hone::oihw(p, 4, 4, 1, 1), hone::nhwc(p, 1, 4, 4, 4)) == weights);
    CHECK(hone::conv(hone::nhwc(p + 256, 1, 4, 4, 4), hone::oihw(p + 60, 4, 4, 1, 1), hone::nhwc(p, 1, 4, 4, 4)) ==
          weights);
    CHECK(hone::conv(hone::nhwc(p + 256, 1, 4, 4, 4), hone::oihw(p, 4, 4, 1, 1), hone::nhwc(p + 15, 1, 4, 4, 4)) ==
          weights);
    CHECK(memory == before);
    check(input, input, "input.data = 1 or more elements shared with C; allowed are 0");

    // Side by side, and channels of one tensor: nothing coincides.
    CHECK(hone::conv(hone::nhwc(p, 1, 4, 4, 4), f, hone::nhwc(p + 64, 1, 4, 4, 4)).ok());
    CHECK(std::memcmp(p, p + 64, 64 * sizeof(float)) == 0);
    memory = before;
    const hone::image_view<float> left{p, 1, 4, 4, 4, 128, 32, 8, 1}, right{p + 4, 1, 4, 4, 4, 128, 32, 8, 1};
    CHECK(hone::conv(left, f, right).ok());
    for (std::size_t i = 0; i < 128; ++i) CHECK(memory[i] == (i % 8 < 4 ? before[i] : before[i - 4]));
}

// Sizes at every edge of what integers hold: a plan, or a status that says something; nothing else.
TEST_CASE("B26 convolution errors: no size overflows") {
    random_source source(1);
    const auto any = [&]() -> index_t {
        const index_t power = index_t{1} << source.between(0, 62);
        switch (source.between(0, 9)) {
            case 0:
                return source.between(-2, 0);
            case 1:
                return power;
            case 2:
                return power - 1;
            case 3:
                return power + 1;
            case 4:
                return source.between(0, 1) ? INT64_MAX : INT64_MIN;
            default:
                return source.between(1, 40);
        }
    };
    int plans = 0;
    const int count = quick() ? 20000 : 200000;
    for (int i = 0; i < count; ++i) {
        conv_desc d{.n = 1, .h = 9, .w = 8, .ic = 7, .oc = 6, .kh = 3, .kw = 2};
        hone::policy p;
        index_t* const fields[] = {&d.n,
                                   &d.h,
                                   &d.w,
                                   &d.ic,
                                   &d.oc,
                                   &d.kh,
                                   &d.kw,
                                   &d.groups,
                                   &d.window.stride_h,
                                   &d.window.stride_w,
                                   &d.window.dilation_h,
                                   &d.window.dilation_w,
                                   &d.window.pad.top,
                                   &d.window.pad.left,
                                   &d.window.pad.bottom,
                                   &d.window.pad.right,
                                   &d.window.output_padding_h,
                                   &d.window.output_padding_w,
                                   &d.input.n,
                                   &d.input.h,
                                   &d.input.w,
                                   &d.input.c,
                                   &d.output.n,
                                   &d.output.h,
                                   &d.output.w,
                                   &d.output.c};
        d.window.transposed = source.between(0, 1);
        const index_t changes = source.between(1, 6);
        for (index_t j = 0; j < changes; ++j) *fields[source.between(0, 25)] = any();
        if (source.between(0, 3) == 0) d.input = {any(), any(), any(), any()};
        if (source.between(0, 3) == 0) d.output = {any(), any(), any(), any()};
        if (source.between(0, 3) == 0) {
            p.block = {static_cast<int>(any()), static_cast<int>(any()), static_cast<int>(any())};
            p.threads = static_cast<int>(any());
        }
        reverse_executor workers(static_cast<int>(source.between(0, 100)));
        hone::context ctx;
        ctx.executor = workers;
        const auto plan = hone::plan(d, p, hone::identity, ctx);
        if (!plan) {
            if (plan.status().argument == argument::none || plan.status().message().view().size() < 10)
                FAIL_CHECK("no reason given");
            continue;
        }
        ++plans;
        bool sane = plan->output_h() >= 0 && plan->output_w() >= 0 && plan->packed_bytes() >= 128;
        for (int w : {-1, 0, 1, 2, 64, INT_MAX})
            sane = sane && plan->scratch_bytes(w) >= 0 && plan->scratch_bytes(w, true) >= 0;
        const hone::explanation e = plan->explain();
        sane = sane && e.workers >= 1 && e.workers <= 100 && e.row_parts * e.col_parts == e.workers &&
               e.block.mc >= 0 && e.block.kc >= 0 && e.block.nc >= 0;
        if (!sane) FAIL_CHECK("a plan that makes no sense: " << e.text().c_str());
    }
    CHECK(plans > count / 50);
}

// A block far larger than any problem: scratch follows the problem, not the block.
TEST_CASE("B32 convolution errors: absurd blocks") {
    random_source source(2);
    static conv_memory memory(edge::end);
    for (image_layout out : {image_layout::nhwc, image_layout::nchw}) {
        conv_problem p{.n = 1, .h = 9, .w = 9, .ic = 6, .oc = 40, .kh = 3, .kw = 3, .out = out};
        conv_data d(memory, p, source);
        for (hone::blocking b : {hone::blocking{INT_MAX, 5, INT_MAX}, hone::blocking{1 << 30, 1, 1 << 30},
                                 hone::blocking{1, INT_MAX, 1}, hone::blocking{1000000, 1000000, 1000000}}) {
            const auto plan = hone::plan(d.desc(strides_of(out, d.oh, d.ow, p.oc)), hone::policy{.block = b});
            REQUIRE(plan);
            CHECK(plan->scratch_bytes() < 1 << 20);
            const std::string why = run_conv(d, hone::policy{.block = b}, true, 1);
            CHECK(why == "");
        }
    }
}
