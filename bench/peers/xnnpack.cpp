// SPDX-License-Identifier: BSL-1.0
// XNNPACK without a thread pool. Three generations of its convolution interface are met in packages: 2022 (one step,
// no caches), then a cache argument, then two caches and a separate reshape step. The calls are written in a template,
// so that only the one that fits has to exist.
#include <xnnpack.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "peer.hpp"

namespace bench {
namespace {

// Weights in XNNPACK's order: (oc, kh, kw, ic / groups), or (kh, kw, oc) for depthwise, asked for by a flag.
std::vector<float> ordered(const conv_problem& p, bool depthwise) {
    const long gic = p.ic / p.groups;
    std::vector<float> w(static_cast<std::size_t>(p.oc * gic * p.kh * p.kw));
    for (long o = 0; o < p.oc; ++o)
        for (long i = 0; i < gic; ++i)
            for (long y = 0; y < p.kh; ++y)
                for (long x = 0; x < p.kw; ++x) {
                    const long to = depthwise ? (y * p.kw + x) * p.oc + o : ((o * p.kh + y) * p.kw + x) * gic + i;
                    w[static_cast<std::size_t>(to)] = p.weights[((o * gic + i) * p.kh + y) * p.kw + x];
                }
    return w;
}

template <class Create, class... Args>
xnn_status create(Create f, xnn_operator_t* op, Args... args) {
    if constexpr (std::is_invocable_v<Create, Args..., xnn_operator_t*>)
        return f(args..., op);
    else if constexpr (std::is_invocable_v<Create, Args..., std::nullptr_t, xnn_operator_t*>)
        return f(args..., nullptr, op);
    else
        return f(args..., nullptr, nullptr, op);
}

template <class Setup, class Size>
xnn_status prepare(Setup setup, xnn_operator_t op, const conv_problem& p, Size h, Size w,
                   std::shared_ptr<void>& workspace) {
    if constexpr (std::is_invocable_v<Setup, xnn_operator_t, void*, const float*, float*>) {
        Size bytes = 0, alignment = 0, oh = 0, ow = 0;
        const xnn_status s =
            xnn_reshape_convolution2d_nhwc_f32(op, Size{1}, h, w, &bytes, &alignment, &oh, &ow, nullptr);
        if (s != xnn_status_success) return s;
        // XNNPACK may read past the end of what it is given, by XNN_EXTRA_BYTES.
        workspace.reset(std::aligned_alloc(128, (bytes + XNN_EXTRA_BYTES + 255) / 128 * 128), std::free);
        return setup(op, workspace.get(), p.in, p.out);
    } else {
        return setup(op, 1, h, w, p.in, p.out, nullptr);
    }
}

template <class Setup>
xnn_status prepare_transposed(Setup setup, xnn_operator_t op, const conv_problem& p) {
    const auto h = static_cast<std::size_t>(p.h), w = static_cast<std::size_t>(p.w);
    if constexpr (std::is_invocable_v<Setup, xnn_operator_t, const float*, float*>) {
        std::size_t oh = 0, ow = 0;
        const xnn_status s = xnn_reshape_deconvolution2d_nhwc_f32(op, 1, h, w, 0, 0, &oh, &ow, nullptr);
        return s == xnn_status_success ? setup(op, p.in, p.out) : s;
    } else {
        return setup(op, 1, h, w, 0, 0, p.in, p.out, nullptr);
    }
}

std::vector<entry> conv(const conv_problem& p) {
    const bool depthwise = p.groups == p.ic && p.groups == p.oc;
    const std::vector<float> w = ordered(p, depthwise);
    const auto u = [](long v) { return static_cast<std::uint32_t>(v); };
    const auto z = [](long v) { return static_cast<std::size_t>(v); };
    xnn_operator_t op = nullptr;
    const auto created = [&](auto how, std::uint32_t flags) {
        return create(how, &op, u(p.pad_h), u(p.pad_w), u(p.pad_h), u(p.pad_w), u(p.kh), u(p.kw), u(p.stride_h), u(p.stride_w), u(1), u(1),
                      u(p.groups), z(p.ic / p.groups), z(p.oc / p.groups), z(p.ic), z(p.oc), w.data(), p.bias, 0.0f, HUGE_VALF, flags);
    };
    xnn_status s = p.transposed ? created(xnn_create_deconvolution2d_nhwc_f32, 0)
                                : created(xnn_create_convolution2d_nhwc_f32, depthwise ? std::uint32_t{XNN_FLAG_DEPTHWISE_CONVOLUTION} : 0);
    const std::shared_ptr<xnn_operator> owner(op, [](xnn_operator_t o) {
        if (o != nullptr) xnn_delete_operator(o);
    });
    std::shared_ptr<void> workspace;
    if (s == xnn_status_success) {
        s = p.transposed ? prepare_transposed(xnn_setup_deconvolution2d_nhwc_f32, op, p)
                         : prepare(xnn_setup_convolution2d_nhwc_f32, op, p, z(p.h), z(p.w), workspace);
    }
    if (s != xnn_status_success) {
        std::fprintf(stderr, "xnnpack: status %d for %ldx%ldx%ld%s\n", static_cast<int>(s), p.h, p.w, p.ic, p.transposed ? ", transposed" : "");
        return {};
    }
    return {{"xnnpack", "", repeated([owner, workspace] { xnn_run_operator(owner.get(), nullptr); }), {}, nullptr, 0}};
}

}  // namespace

std::vector<peer> xnnpack() {
    if (xnn_initialize(nullptr) != xnn_status_success) {
        std::fprintf(stderr, "peer left out: XNNPACK does not support this machine\n");
        return {};
    }
    return {{"xnnpack", HONE_BENCH_XNNPACK, nullptr, conv}};
}

}  // namespace bench
