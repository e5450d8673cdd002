// SPDX-License-Identifier: BSL-1.0
// What convolutions are measured against: naive loops written from the definition, images and filters of any strides in
// memory that faults one element too far, and one check that runs a problem through every door.
#pragma once

#include <hone/conv.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "reference.hpp"

namespace test {

// ---- memory
// ----------------------------------------------------------------------------------------------------------

// Guarded buffers by size, so that a small problem does not pay for the memory of a large one.
template <class T>
class pool {
public:
    explicit pool(edge side = edge::end) : side_(side) {}
    guarded<T>& of(index_t count) {
        const auto size =
            static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<index_t>(count, 512) - 1)));
        if (!by_size_[size]) by_size_[size] = std::make_unique<guarded<T>>(index_t{1} << size, side_);
        return *by_size_[size];
    }

private:
    edge side_;
    std::array<std::unique_ptr<guarded<T>>, 48> by_size_;
};

// ---- layouts
// ---------------------------------------------------------------------------------------------------------

// How an image of (n, h, w, c) lies. Slices are what a concatenation or a split of channels makes of a larger tensor.
enum class image_layout {
    nhwc,
    nchw,
    nhwc_slice,
    nchw_slice,
    padded_rows,
    every_second_channel,
    upside_down,
    columns_first
};
inline constexpr int image_layouts = 8;

inline hone::image_strides strides_of(image_layout l, index_t h, index_t w, index_t c) {
    switch (l) {
        case image_layout::nhwc:
            return {h * w * c, w * c, c, 1};
        case image_layout::nchw:
            return {c * h * w, w, 1, h * w};
        case image_layout::nhwc_slice:
            return {h * w * (c + 3), w * (c + 3), c + 3, 1};
        case image_layout::nchw_slice:
            return {(c + 2) * h * w, w, 1, h * w};
        case image_layout::padded_rows:
            return {h * (w * c + 5) + 7, w * c + 5, c, 1};
        case image_layout::every_second_channel:
            return {h * w * (2 * c + 1), w * (2 * c + 1), 2 * c + 1, 2};
        case image_layout::upside_down:
            return {h * w * c, -w * c, -c, 1};
        case image_layout::columns_first:
            return {w * h * c, c, h * c, 1};
    }
    return {};
}

// An image whose first and last element in memory are the first and last of its guarded buffer; what the view does not
// describe in between is a gap.
template <class T>
class image {
public:
    image(pool<T>& memory, index_t n, index_t h, index_t w, index_t c, const hone::image_strides& s) {
        const index_t extent[4] = {n, h, w, c}, stride[4] = {s.n, s.h, s.w, s.c};
        index_t low = 0, high = 1;
        for (int i = 0; i < 4; ++i) {
            const index_t far = (extent[i] - 1) * stride[i];
            low += std::min<index_t>(far, 0);
            high += std::max<index_t>(far, 0);
        }
        if (n <= 0 || h <= 0 || w <= 0 || c <= 0) low = high = 0;
        memory_ = &memory.of(high - low);
        T* first = memory_->place(high - low);
        std::fill(first, first + (high - low), gap<T>());
        view_ = {first - low, n, h, w, c, s.n, s.h, s.w, s.c};
    }
    const hone::image_view<T>& view() const { return view_; }
    hone::image_view<const T> in() const { return view_; }
    T& operator()(index_t n, index_t h, index_t w, index_t c) const { return *view_.at(n, h, w, c); }

    template <class F>
    void each(F f) const {
        for (index_t n = 0; n < view_.n; ++n) {
            for (index_t h = 0; h < view_.h; ++h) {
                for (index_t w = 0; w < view_.w; ++w) {
                    for (index_t c = 0; c < view_.c; ++c) f(n, h, w, c);
                }
            }
        }
    }
    void fill(random_source& source) {
        each([&](index_t n, index_t h, index_t w, index_t c) {
            *view_.at(n, h, w, c) = static_cast<T>(source.value());
        });
    }
    // Every described element a NaN, every gap another: what is left of the first was not written.
    void poison() {
        each([&](index_t n, index_t h, index_t w, index_t c) { *view_.at(n, h, w, c) = gap<T>(); });
        before_.assign(memory_->data(), memory_->data() + memory_->size());
    }
    void remember() { before_.assign(memory_->data(), memory_->data() + memory_->size()); }
    bool unchanged() const { return memory_->intact() && equal(before_); }
    bool gaps_unchanged() const {
        std::vector<T> want = before_;
        each([&](index_t n, index_t h, index_t w, index_t c) {
            const T* p = view_.at(n, h, w, c);
            want[static_cast<std::size_t>(p - memory_->data())] = *p;
        });
        return memory_->intact() && equal(want);
    }
    std::vector<T> elements() const {
        std::vector<T> list;
        each([&](index_t n, index_t h, index_t w, index_t c) { list.push_back(*view_.at(n, h, w, c)); });
        return list;
    }

private:
    bool equal(const std::vector<T>& want) const {
        return want.empty() || std::memcmp(want.data(), memory_->data(), want.size() * sizeof(T)) == 0;
    }
    guarded<T>* memory_ = nullptr;
    hone::image_view<T> view_;
    std::vector<T> before_;
};

enum class filter_layout { oihw, iohw, ohwi, gaps };
inline constexpr int filter_layouts = 4;

inline hone::filter_view<float> filter_of(pool<float>& memory, filter_layout l, index_t groups, index_t oc, index_t ic,
                                          index_t kh, index_t kw) {
    const index_t count = groups * oc * ic * kh * kw;
    if (l == filter_layout::gaps && count > 0) {
        // Taps backwards, every third element, groups innermost.
        hone::filter_view<float> f{
            nullptr,          groups,     oc, ic, kh, kw, 3, 3 * groups * ic * kh * kw, 3 * groups * kh * kw,
            -3 * groups * kw, -3 * groups};
        float* first = memory.of(3 * count).place(3 * (count - 1) + 1);
        std::fill(first, first + 3 * (count - 1) + 1, gap<float>());
        f.data = first + (kh - 1) * 3 * groups * kw + (kw - 1) * 3 * groups;
        return f;
    }
    float* first = memory.of(count).place(count);
    switch (l) {
        case filter_layout::iohw:
            return hone::iohw(first, ic, oc, kh, kw, groups);
        case filter_layout::ohwi:
            return hone::ohwi(first, oc, kh, kw, ic, groups);
        default:
            return hone::oihw(first, oc, ic, kh, kw, groups);
    }
}

template <class F>
void each_weight(const hone::filter_view<float>& f, F visit) {
    for (index_t g = 0; g < f.groups; ++g) {
        for (index_t o = 0; o < f.oc; ++o) {
            for (index_t i = 0; i < f.ic; ++i) {
                for (index_t y = 0; y < f.kh; ++y) {
                    for (index_t x = 0; x < f.kw; ++x) visit(*f.at(g, o, i, y, x));
                }
            }
        }
    }
}

// ---- the definition
// --------------------------------------------------------------------------------------------------

// ONNX Conv and ConvTranspose, one axis. Not the library's own formula: an output exists where the window lies inside
// the padded input, and is counted.
inline index_t output_count(index_t in, index_t k, index_t stride, index_t dilation, index_t before, index_t after,
                            bool transposed, index_t output_padding) {
    if (transposed)
        return std::max<index_t>((in - 1) * stride + (k - 1) * dilation + 1 - before - after + output_padding, 0);
    index_t count = 0;
    for (index_t first = -before; first + dilation * (k - 1) < in + after; first += stride) ++count;
    return count;
}

// One chain of fused multiply-adds from +0 over the taps (kh, kw) inside the image and the channels of the group.
inline float strict_tap_chain(const hone::image_view<const float>& in, const hone::filter_view<const float>& f,
                              const hone::conv_window& v, index_t n, index_t y, index_t x, index_t channel) {
    const index_t g = channel / f.oc, o = channel % f.oc;
    float t = 0.0f;
    for (index_t ky = 0; ky < f.kh; ++ky) {
        for (index_t kx = 0; kx < f.kw; ++kx) {
            index_t iy = y * v.stride_h + ky * v.dilation_h - v.pad.top,
                    ix = x * v.stride_w + kx * v.dilation_w - v.pad.left;
            if (v.transposed) {
                iy = y + v.pad.top - ky * v.dilation_h;
                ix = x + v.pad.left - kx * v.dilation_w;
                if (iy < 0 || ix < 0 || iy % v.stride_h != 0 || ix % v.stride_w != 0) continue;
                iy /= v.stride_h;
                ix /= v.stride_w;
            }
            if (iy < 0 || iy >= in.h || ix < 0 || ix >= in.w) continue;
            for (index_t c = 0; c < f.ic; ++c) t = std::fma(*in.at(n, iy, ix, g * f.ic + c), *f.at(g, o, c, ky, kx), t);
        }
    }
    return t;
}

// The same sums in f64, every input pixel scattered to the outputs it reaches, with how far a float chain may be off:
// dot() of reference.hpp says why.
inline std::vector<near_value> scattered(const hone::image_view<const float>& in,
                                         const hone::filter_view<const float>& f, const hone::conv_window& v,
                                         index_t oh, index_t ow) {
    const index_t oc = f.groups * f.oc;
    std::vector<near_value> out(static_cast<std::size_t>(std::max<index_t>(in.n * oh * ow * oc, 0)));
    const auto reach = [](index_t i, index_t k, index_t stride, index_t dilation, index_t pad, bool transposed) {
        if (transposed) return i * stride + k * dilation - pad;
        const index_t o = i + pad - k * dilation;
        return o % stride == 0 ? o / stride : index_t{-1};
    };
    for (index_t n = 0; n < in.n; ++n) {
        for (index_t iy = 0; iy < in.h; ++iy) {
            for (index_t ky = 0; ky < f.kh; ++ky) {
                const index_t y = reach(iy, ky, v.stride_h, v.dilation_h, v.pad.top, v.transposed);
                if (y < 0 || y >= oh) continue;
                for (index_t ix = 0; ix < in.w; ++ix) {
                    for (index_t kx = 0; kx < f.kw; ++kx) {
                        const index_t x = reach(ix, kx, v.stride_w, v.dilation_w, v.pad.left, v.transposed);
                        if (x < 0 || x >= ow) continue;
                        for (index_t channel = 0; channel < oc; ++channel) {
                            const index_t g = channel / f.oc;
                            near_value& r = out[static_cast<std::size_t>(((n * oh + y) * ow + x) * oc + channel)];
                            for (index_t c = 0; c < f.ic; ++c) {
                                const double product = static_cast<double>(*in.at(n, iy, ix, g * f.ic + c)) *
                                                       static_cast<double>(*f.at(g, channel % f.oc, c, ky, kx));
                                r.value += product;
                                r.bound += std::abs(product);
                            }
                        }
                    }
                }
            }
        }
    }
    const double k = static_cast<double>(f.kh * f.kw * f.ic);
    for (near_value& r : out) r.bound = (2 * k + 4) * eps * r.bound + (k + 2) * 0x1p-149;
    return out;
}

// -0 and +0 are one number where a padded tap may have been a product with zero.
inline bool same_number(float x, float y) { return same(x, y) || (x == 0.0f && y == 0.0f); }

// ---- one problem
// -----------------------------------------------------------------------------------------------------

struct conv_problem {
    index_t n = 1, h = 1, w = 1, ic = 1, oc = 1, groups = 1, kh = 1, kw = 1;  // channels of all groups together
    hone::conv_window window{};
    image_layout in = image_layout::nhwc, out = image_layout::nhwc;
    filter_layout filter = filter_layout::oihw;
    bool finite = true;  // no: infinities and NaN among the weights

    index_t oh() const {
        return output_count(h, kh, window.stride_h, window.dilation_h, window.pad.top, window.pad.bottom,
                            window.transposed, window.output_padding_h);
    }
    index_t ow() const {
        return output_count(w, kw, window.stride_w, window.dilation_w, window.pad.left, window.pad.right,
                            window.transposed, window.output_padding_w);
    }
    std::string text() const {
        std::ostringstream t;
        const hone::conv_window& v = window;
        t << (v.transposed ? "transposed, " : "") << "input " << n << "x" << h << "x" << w << "x" << ic << " (layout "
          << static_cast<int>(in) << "), filter " << oc << "x" << kh << "x" << kw << " (layout "
          << static_cast<int>(filter) << ")" << (finite ? "" : " not finite") << ", groups " << groups << ", output "
          << oh() << "x" << ow() << " (layout " << static_cast<int>(out) << "), stride " << v.stride_h << ","
          << v.stride_w << ", dilation " << v.dilation_h << "," << v.dilation_w << ", pad " << v.pad.top << ","
          << v.pad.left << "," << v.pad.bottom << "," << v.pad.right << ", output padding " << v.output_padding_h << ","
          << v.output_padding_w;
        return t.str();
    }
};

// Buffers that many problems use one after another; each ends (or begins) at a protected page.
struct conv_memory {
    explicit conv_memory(edge side) : in(side), filter(side), out(side), other(side), bias(side), narrow(side) {}
    pool<float> in, filter, out, other, bias;
    pool<hone::bf16> narrow;
    pool<std::byte> scratch, packed;  // multiples of 64 bytes, so that they end at the page and are aligned
};

// What is done with the sums: an epilogue and what one number becomes under it.
struct conv_stages {
    const float* bias;
    hone::image_view<const float> other;
};

struct plain_sums {
    using stored = float;
    static auto epilogue(const conv_stages&) { return hone::identity; }
    static float want(float t, const conv_stages&, index_t, index_t, index_t, index_t) { return t; }
};
struct bias_relu {
    using stored = float;
    static auto epilogue(const conv_stages& s) { return hone::bias(s.bias) | hone::relu; }
    static float want(float t, const conv_stages& s, index_t, index_t, index_t, index_t o) {
        const float u = rounded(t + s.bias[o]);
        return u < 0.0f ? 0.0f : u;
    }
};
struct bias_to_bf16 {
    using stored = hone::bf16;
    static auto epilogue(const conv_stages& s) { return hone::bias(s.bias) | hone::store_as<hone::bf16>(); }
    static float want(float t, const conv_stages& s, index_t, index_t, index_t, index_t o) {
        return static_cast<float>(static_cast<hone::bf16>(rounded(t + s.bias[o])));
    }
};
struct add_other_relu {
    using stored = float;
    static auto epilogue(const conv_stages& s) { return hone::add(s.other) | hone::relu; }
    static float want(float t, const conv_stages& s, index_t n, index_t y, index_t x, index_t o) {
        const float u = rounded(t + *s.other.at(n, y, x, o));
        return u < 0.0f ? 0.0f : u;
    }
};
inline constexpr int conv_stage_kinds = 4;

// The operands of a problem and what the definition says of them.
class conv_data {
public:
    conv_data(conv_memory& m, const conv_problem& p, random_source& source)
        : memory(m),
          problem(p),
          oh(p.oh()),
          ow(p.ow()),
          in(m.in, p.n, p.h, p.w, p.ic, strides_of(p.in, p.h, p.w, p.ic)),
          filter(filter_of(m.filter, p.filter, p.groups, p.oc / p.groups, p.ic / p.groups, p.kh, p.kw)),
          other(m.other, p.n, oh, ow, p.oc, strides_of(image_layout::nchw_slice, oh, ow, p.oc)) {
        in.fill(source);
        other.fill(source);
        each_weight(filter, [&](float& x) { x = source.value(); });
        if (!p.finite) {
            constexpr float special[] = {std::numeric_limits<float>::infinity(),
                                         -std::numeric_limits<float>::infinity(),
                                         std::numeric_limits<float>::quiet_NaN()};
            each_weight(filter, [&](float& x) {
                if (source.between(0, 7) == 0) x = special[source.between(0, 2)];
            });
        }
        float* b = m.bias.of(p.oc).place(p.oc);
        for (index_t i = 0; i < p.oc; ++i) b[i] = source.value();
        stages = {b, other.in()};
        refresh();
    }

    // Computes the sums again after operands were changed.
    void refresh() {
        sums.clear();
        for (index_t n = 0; n < problem.n; ++n) {
            for (index_t y = 0; y < oh; ++y) {
                for (index_t x = 0; x < ow; ++x) {
                    for (index_t o = 0; o < problem.oc; ++o)
                        sums.push_back(strict_tap_chain(in.in(), filter, problem.window, n, y, x, o));
                }
            }
        }
        naive = scattered(in.in(), filter, problem.window, oh, ow);
        // The chain and the f64 sum are written independently: if they disagree, the test is wrong.
        REQUIRE(naive.size() == sums.size());
        for (std::size_t i = 0; i < sums.size(); ++i) {
            if (near(static_cast<double>(sums[i]), naive[i].value, naive[i].bound)) continue;
            INFO(problem.text());
            FAIL("the chain says " << sums[i] << ", f64 says " << naive[i].value);
        }
    }

    hone::conv_desc desc(const hone::image_strides& out) const {
        hone::conv_desc d{.n = problem.n,
                          .h = problem.h,
                          .w = problem.w,
                          .ic = problem.ic,
                          .oc = problem.oc,
                          .kh = problem.kh,
                          .kw = problem.kw,
                          .groups = problem.groups,
                          .window = problem.window};
        const auto& v = in.view();
        d.input = {v.n_stride, v.h_stride, v.w_stride, v.c_stride};
        d.output = out;
        return d;
    }

    // "" or the first element of `out` that is not what stages S make of the sums.
    template <class S>
    std::string wrong(const image<typename S::stored>& out, bool bitwise) const {
        std::string text;
        std::size_t i = 0;
        out.each([&](index_t n, index_t y, index_t x, index_t o) {
            const std::size_t at = i++;
            if (!text.empty()) return;
            const float got = static_cast<float>(out(n, y, x, o));
            const float exact = S::want(sums[at], stages, n, y, x, o);
            bool good = same_number(got, exact);
            if (!bitwise) {
                const double value =
                    static_cast<double>(S::want(static_cast<float>(naive[at].value), stages, n, y, x, o));
                const double store = std::is_same_v<typename S::stored, hone::bf16> ? 0x1p-7 : 0;
                good =
                    near(static_cast<double>(got), value, naive[at].bound + (4 * eps + store) * (std::abs(value) + 1));
            }
            if (good) return;
            std::ostringstream t;
            t.precision(9);
            t << "(" << n << ", " << y << ", " << x << ", " << o << ") is " << got << ", not " << exact;
            text = t.str();
        });
        return text;
    }

    conv_memory& memory;
    conv_problem problem;
    index_t oh, ow;
    image<float> in;
    hone::filter_view<float> filter;
    image<float> other;
    conv_stages stages{};
    std::vector<float> sums;
    std::vector<near_value> naive;
};

inline std::string bytes_differ(const void* x, const void* y, std::size_t bytes) {
    return bytes == 0 || std::memcmp(x, y, bytes) == 0 ? "" : "other bits";
}

// The instruction sets that run here, asked for once.
inline const std::vector<hone::isa>& here() {
    static const std::vector<hone::isa> list = isas();
    return list;
}

// Memory for operands that end, or begin, at a protected page.
inline conv_memory& buffers(edge side) {
    static conv_memory end(edge::end), begin(edge::begin);
    return side == edge::end ? end : begin;
}

// Scratch of exactly the size the plan asks for, filled with NaN, ending at the protected page.
inline std::span<std::byte> exact_scratch(pool<std::byte>& memory, index_t bytes) {
    std::byte* p = memory.of(bytes).place(bytes);
    if (bytes > 0) std::memset(p, 0xFF, static_cast<std::size_t>(bytes));
    return {p, static_cast<std::size_t>(bytes)};
}

template <class T>
pool<T>& output_memory(conv_memory& m) {
    if constexpr (std::is_same_v<T, float>) {
        return m.out;
    } else {
        return m.narrow;
    }
}

// Runs the problem with stages S under `policy`: filter as given, packed, and on executors; in scratch of the very size
// that the plan asks for; all must give the same bits and leave everything else alone. "" or what went wrong.
template <class S>
HONE_NOINLINE std::string run_conv(conv_data& d, const hone::policy& policy, bool executors) {
    using C = typename S::stored;
    const conv_problem& p = d.problem;
    const hone::image_strides s = strides_of(p.out, d.oh, d.ow, p.oc);
    image<C> out(output_memory<C>(d.memory), p.n, d.oh, d.ow, p.oc, s);
    const auto epilogue = S::epilogue(d.stages);
    const auto text = [&](const char* what, std::string why) {
        return why.empty() ? why : std::string(what) + ": " + why + "; " + p.text();
    };
    const auto plan = hone::plan(d.desc(s), policy, epilogue);
    if (!plan) return text("plan", std::string(plan.status().message().view()));
    if (plan->output_h() != d.oh || plan->output_w() != d.ow) return text("plan", "other output extents");
    const bool bitwise = reproducible(plan->explain().isa);

    hone::context ctx;
    ctx.scratch = exact_scratch(d.memory.scratch, plan->scratch_bytes());
    out.poison();
    hone::status status = plan->run(d.in.in(), d.filter, out.view(), epilogue, ctx);
    if (!status.ok()) return text("run", std::string(status.message().view()));
    if (std::string why = d.wrong<S>(out, bitwise); !why.empty()) return text("run", why);
    if (!out.gaps_unchanged()) return text("run", "wrote outside the output");
    if (!d.memory.scratch.of(plan->scratch_bytes()).intact()) return text("run", "wrote outside the scratch");
    const std::vector<C> first = out.elements();
    const std::size_t bytes = first.size() * sizeof(C);

    const index_t packed_bytes = plan->packed_bytes();
    guarded<std::byte>& packed_memory = d.memory.packed.of((packed_bytes + 63) / 64 * 64);
    std::byte* memory = packed_memory.place((packed_bytes + 63) / 64 * 64);
    status = plan->pack(d.filter, {memory, static_cast<std::size_t>(packed_bytes)});
    if (!status.ok()) return text("pack", std::string(status.message().view()));
    if (!packed_memory.intact()) return text("pack", "wrote outside the memory");
    const auto packed = hone::packed_view::open({memory, static_cast<std::size_t>(packed_bytes)});
    if (!packed) return text("open", std::string(packed.status().message().view()));
    if (!packed->verify().ok()) return text("verify", std::string(packed->verify().message().view()));
    ctx.scratch = exact_scratch(d.memory.scratch, plan->scratch_bytes(1, true));
    out.poison();
    status = plan->run(d.in.in(), *packed, out.view(), epilogue, ctx);
    if (!status.ok()) return text("run packed", std::string(status.message().view()));
    if (std::string why = bytes_differ(out.elements().data(), first.data(), bytes); !why.empty())
        return text("run packed", why);
    if (!out.gaps_unchanged() || !d.memory.scratch.of(plan->scratch_bytes(1, true)).intact())
        return text("run packed", "wrote outside its memory");

    if (executors) {
        thread_executor threads(3);
        reverse_executor reverse(5);
        for (int i = 0; i < 2; ++i) {
            hone::context parallel;
            parallel.executor = i == 0 ? hone::executor_ref(threads) : hone::executor_ref(reverse);
            const int workers = parallel.executor.concurrency();
            const auto split = hone::plan(d.desc(s), policy, epilogue, parallel);
            if (!split) return text("plan for workers", std::string(split.status().message().view()));
            parallel.scratch = exact_scratch(d.memory.scratch, split->scratch_bytes(workers));
            out.poison();
            status = split->run(d.in.in(), d.filter, out.view(), epilogue, parallel);
            if (!status.ok()) return text("run on workers", std::string(status.message().view()));
            if (std::string why = bytes_differ(out.elements().data(), first.data(), bytes); !why.empty())
                return text("run on workers", why);
            if (!out.gaps_unchanged() || !d.memory.scratch.of(split->scratch_bytes(workers)).intact())
                return text("run on workers", "wrote outside its memory");
        }
    }
    return "";
}

// The same for stages chosen by number.
inline std::string run_conv(conv_data& d, const hone::policy& policy, bool executors, int stages) {
    switch (stages % conv_stage_kinds) {
        case 0:
            return run_conv<plain_sums>(d, policy, executors);
        case 1:
            return run_conv<bias_relu>(d, policy, executors);
        case 2:
            return run_conv<bias_to_bf16>(d, policy, executors);
        default:
            return run_conv<add_other_relu>(d, policy, executors);
    }
}

}  // namespace test
