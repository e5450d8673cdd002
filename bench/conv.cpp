// SPDX-License-Identifier: BSL-1.0
// f32 convolution with bias and ReLU, one image in NHWC, one thread, weights packed beforehand. Multiply-adds are
// counted as the direct algorithm's. Peers that have a layout of their own may keep their images in it.
#include <algorithm>

#include "problem.hpp"

namespace bench {
namespace {

struct shape {
    std::vector<std::string> sets;
    long h, w, ic, oc, kh, kw, stride, pad, groups;
    bool quick = false, transposed = false;

    // Of one row of pixels the filter has one row as well.
    long stride_h() const { return h == 1 ? 1 : stride; }
    long pad_h() const { return h == 1 ? 0 : pad; }
    long oh() const { return output(h, kh, stride_h(), pad_h()); }
    long ow() const { return output(w, kw, stride, pad); }

private:
    long output(long in, long k, long step, long around) const {
        return transposed ? (in - 1) * step + k - 2 * around : (in + 2 * around - k) / step + 1;
    }
};

const std::vector<shape>& shapes() {
    static const std::vector<shape> all = {
        {{"resnet50", "misc"}, 224, 224, 3, 64, 7, 7, 2, 3, 1},
        {{"resnet50"}, 56, 56, 64, 64, 1, 1, 1, 0, 1},
        {{"resnet50", "winograd"}, 56, 56, 64, 64, 3, 3, 1, 1, 1},
        {{"resnet50"}, 56, 56, 64, 256, 1, 1, 1, 0, 1, true},
        {{"resnet50"}, 56, 56, 256, 128, 1, 1, 1, 0, 1},
        {{"resnet50"}, 56, 56, 128, 128, 3, 3, 2, 1, 1},
        {{"resnet50", "winograd"}, 28, 28, 128, 128, 3, 3, 1, 1, 1, true},
        {{"resnet50"}, 28, 28, 128, 512, 1, 1, 1, 0, 1},
        {{"resnet50", "winograd"}, 14, 14, 256, 256, 3, 3, 1, 1, 1},
        {{"resnet50"}, 14, 14, 1024, 256, 1, 1, 1, 0, 1},
        {{"resnet50"}, 7, 7, 512, 512, 3, 3, 1, 1, 1},
        {{"resnet50"}, 7, 7, 512, 2048, 1, 1, 1, 0, 1},
        {{"misc"}, 224, 224, 3, 32, 3, 3, 2, 1, 1, true},
        {{"depthwise"}, 112, 112, 32, 32, 3, 3, 1, 1, 32},
        {{"depthwise"}, 112, 112, 96, 96, 3, 3, 2, 1, 96},
        {{"depthwise"}, 56, 56, 144, 144, 3, 3, 1, 1, 144, true},
        {{"depthwise"}, 28, 28, 192, 192, 3, 3, 1, 1, 192},
        {{"depthwise"}, 14, 14, 384, 384, 3, 3, 1, 1, 384},
        {{"depthwise"}, 14, 14, 576, 576, 5, 5, 1, 2, 576},
        {{"depthwise"}, 7, 7, 960, 960, 3, 3, 1, 1, 960},
        {{"pointwise"}, 56, 56, 24, 144, 1, 1, 1, 0, 1},
        {{"pointwise"}, 14, 14, 576, 96, 1, 1, 1, 0, 1},
        {{"pointwise"}, 7, 7, 320, 1280, 1, 1, 1, 0, 1},
        {{"misc"}, 56, 56, 64, 64, 5, 5, 1, 2, 1},
        {{"misc"}, 28, 28, 256, 256, 3, 3, 1, 1, 32},
        {{"misc"}, 33, 35, 17, 19, 3, 3, 1, 1, 1},
        {{"transposed"}, 80, 80, 64, 64, 2, 2, 2, 0, 1, false, true},
        {{"transposed"}, 80, 80, 64, 64, 4, 4, 2, 1, 1, false, true},
        {{"1d"}, 1, 1500, 80, 384, 1, 3, 1, 1, 1},
        {{"1d"}, 1, 1500, 128, 128, 1, 5, 1, 2, 1},
    };
    return all;
}

// "28x28x128.3x3", with what is out of the ordinary: "56x56x128.3x3s2", "56x56x64-256.1x1", "112x112x32.3x3g32".
std::string label(const shape& s) {
    const auto t = [](long v) { return std::to_string(v); };
    std::string name = t(s.h) + "x" + t(s.w) + "x" + t(s.ic);
    if (s.oc != s.ic) name += "-" + t(s.oc);
    name += "." + t(s.kh) + "x" + t(s.kw);
    if (s.stride != 1) name += "s" + t(s.stride);
    if (s.groups != 1) name += "g" + t(s.groups);
    if (s.transposed) name += "t";
    return name;
}

struct operands {
    explicit operands(const shape& s)
        : in(s.h * s.w * s.ic),
          weights(s.oc * (s.ic / s.groups) * s.kh * s.kw),
          bias(s.oc),
          out(s.oh() * s.ow() * s.oc) {
        in.fill_random(1);
        weights.fill_random(2);
        bias.fill_random(3);
    }
    floats in, weights, bias, out;
};

std::vector<expectation> expect(const shape& s, operands& o) {
    std::vector<expectation> result;
    const long gic = s.ic / s.groups, goc = s.oc / s.groups;
    for (std::size_t at : sampled(o.out.size())) {
        const long c = static_cast<long>(at) % s.oc, x = static_cast<long>(at) / s.oc % s.ow(),
                   y = static_cast<long>(at) / s.oc / s.ow();
        double sum = static_cast<double>(o.bias.data()[c]), magnitude = std::abs(sum);
        for (long dy = 0; dy < s.kh; ++dy)
            for (long dx = 0; dx < s.kw; ++dx) {
                long iy = y * s.stride_h() - s.pad_h() + dy, ix = x * s.stride - s.pad + dx;
                if (s.transposed) {
                    iy = y + s.pad_h() - dy;
                    ix = x + s.pad - dx;
                    if (iy % s.stride_h() != 0 || ix % s.stride != 0) continue;
                    iy /= s.stride_h();
                    ix /= s.stride;
                }
                if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
                for (long i = 0; i < gic; ++i) {
                    const double term = static_cast<double>(o.in.data()[(iy * s.w + ix) * s.ic + c / goc * gic + i]) *
                                        static_cast<double>(o.weights.data()[((c * gic + i) * s.kh + dy) * s.kw + dx]);
                    sum += term;
                    magnitude += std::abs(term);
                }
            }
        result.push_back({at, sum > 0 ? sum : 0, f32_tolerance(static_cast<double>(gic * s.kh * s.kw), magnitude)});
    }
    return result;
}

// Taps inside the image, over all outputs along one axis.
long taps(long in, long out, long k, long stride, long pad) {
    long count = 0;
    for (long o = 0; o < out; ++o)
        for (long t = 0; t < k; ++t) count += o * stride - pad + t >= 0 && o * stride - pad + t < in ? 1 : 0;
    return count;
}

bench_case make_case(const shape& s) {
    const auto d = [](long v) { return static_cast<double>(v); };
    bench_case c;
    c.suite = "conv_f32";
    c.label = label(s);
    c.sets = s.sets;
    const long windows = s.transposed ? s.h * s.w : s.oh() * s.ow();
    c.flops = 2.0 * d(windows) * d(s.oc * (s.ic / s.groups) * s.kh * s.kw);
    // Taps in the padding may be skipped, and are: of 7x7 outputs of a 3x3 filter they are 18 %.
    const long high = s.transposed ? taps(s.oh(), s.h, s.kh, s.stride_h(), s.pad_h()) : taps(s.h, s.oh(), s.kh, s.stride_h(), s.pad_h());
    const long wide = s.transposed ? taps(s.ow(), s.w, s.kw, s.stride, s.pad) : taps(s.w, s.ow(), s.kw, s.stride, s.pad);
    c.needed_flops = 2.0 * d(high) * d(wide) * d(s.oc * (s.ic / s.groups));
    c.in_quick = s.quick;
    c.extents = {{"h", d(s.h)},   {"w", d(s.w)},   {"ic", d(s.ic)},         {"oc", d(s.oc)},
                 {"kh", d(s.kh)}, {"kw", d(s.kw)}, {"stride", d(s.stride)}, {"groups", d(s.groups)}};
    c.prepare = [s] {
        auto o = std::make_shared<operands>(s);
        conv_problem p{s.h, s.w, s.ic, s.oc, s.kh, s.kw, s.stride_h(), s.stride, s.pad_h(), s.pad, s.groups};
        p.transposed = s.transposed;
        p.relaxed = std::find(s.sets.begin(), s.sets.end(), "winograd") != s.sets.end();
        p.oh = s.oh();
        p.ow = s.ow();
        p.in = o->in.data();
        p.weights = o->weights.data();
        p.bias = o->bias.data();
        p.out = o->out.data();
        return contenders(&peer::conv, p, o, o->out.data(), o->out.size(),
                          std::make_shared<const std::vector<expectation>>(expect(s, *o)));
    };
    return c;
}

}  // namespace

suite conv_suite() {
    suite s;
    s.name = "conv";
    s.id = "conv_f32";
    s.needed_peers = {"onednn", "xnnpack"};
    for (const shape& one : shapes()) s.cases.push_back(make_case(one));
    s.summaries.push_back({s.id + ".winograd.vs_best_peer.min", s.id, "relaxed", {"winograd"}, summary::least_ratio, {}});
    for (const std::string set : {"resnet50", "depthwise", "pointwise", "misc", "transposed", "1d"}) {
        const std::string begin = s.id + "." + set + ".vs_best_peer.";
        s.summaries.push_back({begin + "geomean", s.id, "", {set}, summary::geomean_of_ratios, {}});
        s.summaries.push_back({begin + "min", s.id, "", {set}, summary::least_ratio, {}});
    }
    return s;
}

}  // namespace bench
