// SPDX-License-Identifier: BSL-1.0
// oneDNN 2.6 and 3.x: only the making of primitive descriptors differs.
#include <dnnl.hpp>

#include <cstring>
#include <memory>
#include <unordered_map>

#include "peer.hpp"

namespace bench {
namespace {

using dnnl::memory;
using tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

dnnl::engine& cpu() {
    static dnnl::engine e(dnnl::engine::kind::cpu, 0);
    return e;
}
dnnl::stream& queue() {
    static dnnl::stream s(cpu());
    return s;
}

memory reordered(memory from, const memory::desc& to) {
    if (from.get_desc() == to) return from;
    memory result(to, cpu());
    dnnl::reorder(from, result).execute(queue(), from, result);
    queue().wait();
    return result;
}

memory wrap(const memory::desc& d, const float* p) { return memory(d, cpu(), const_cast<float*>(p)); }

template <class Primitive>
std::function<void(long)> executing(Primitive primitive, std::unordered_map<int, memory> args) {
    return repeated([primitive, args] {
        primitive.execute(queue(), args);
        queue().wait();
    });
}

std::vector<entry> gemm(const gemm_problem& p) {
    std::vector<entry> result;
    for (const bool packed : {false, true}) {
        const memory::desc a({p.m, p.k}, f32, tag::ab), b({p.k, p.n}, f32, tag::ab), c({p.m, p.n}, f32, tag::ab);
        const memory::desc any_b({p.k, p.n}, f32, packed ? tag::any : tag::ab);
#if DNNL_VERSION_MAJOR >= 3
        const dnnl::matmul::primitive_desc pd(cpu(), a, any_b, c);
#else
        const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, any_b, c), cpu());
#endif
        const memory weights = reordered(wrap(b, p.b), pd.weights_desc());
        result.push_back(
            {packed ? "onednn_packed" : "onednn",
             packed ? "packed" : "plain",
             executing(dnnl::matmul(pd),
                       {{DNNL_ARG_SRC, wrap(a, p.a)}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, wrap(c, p.c)}}),
             {},
             weights.get_data_handle(),
             pd.weights_desc().get_size()});
    }
    return result;
}

// The primitive of a forward convolution, transposed or not, with bias and ReLU.
template <class Forward>
auto forward_of(dnnl::algorithm algorithm, const memory::desc& in, const memory::desc& weights, const memory::desc& bias,
                const memory::desc& out, const memory::dims& strides, const memory::dims& pads) {
    dnnl::primitive_attr relu;
    dnnl::post_ops stages;
    constexpr auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
    stages.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    relu.set_post_ops(stages);
    return typename Forward::primitive_desc(cpu(), inference, algorithm, in, weights, bias, out, strides, pads, pads, relu);
#else
    stages.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    relu.set_post_ops(stages);
    return typename Forward::primitive_desc(typename Forward::desc(inference, algorithm, in, weights, bias, out, strides, pads, pads), relu,
                                            cpu());
#endif
}

std::vector<entry> conv(const conv_problem& p) {
    std::vector<entry> result;
    for (const bool own_layout : {true, false}) {
        const auto layout = own_layout ? tag::any : tag::nhwc;
        const memory::desc in({1, p.ic, p.h, p.w}, f32, layout), out({1, p.oc, p.oh, p.ow}, f32, layout);
        const memory::desc dense_in({1, p.ic, p.h, p.w}, f32, tag::nhwc),
            dense_out({1, p.oc, p.oh, p.ow}, f32, tag::nhwc);
        const bool grouped = p.groups > 1;
        const memory::dims extents = grouped ? memory::dims{p.groups, p.oc / p.groups, p.ic / p.groups, p.kh, p.kw}
                                             : memory::dims{p.oc, p.ic, p.kh, p.kw};
        const memory::desc weights(extents, f32, tag::any),
            dense_weights(extents, f32, grouped ? tag::goihw : tag::oihw);
        const memory::desc bias({p.oc}, f32, tag::a);
        const memory::dims strides{p.stride_h, p.stride_w}, pads{p.pad_h, p.pad_w};
        const auto add = [&]<class Forward>(const typename Forward::primitive_desc& pd, Forward forward) {
            const memory to = own_layout ? memory(pd.dst_desc(), cpu()) : wrap(dense_out, p.out);
            const memory packed = reordered(wrap(dense_weights, p.weights), pd.weights_desc());
            const auto read = [to, dense_out, p] {
                memory from = to, dense = wrap(dense_out, p.out);
                dnnl::reorder(from, dense).execute(queue(), from, dense);
                queue().wait();
            };
            result.push_back({own_layout ? "onednn" : "onednn_nhwc", "",
                              executing(forward, {{DNNL_ARG_SRC, reordered(wrap(dense_in, p.in), pd.src_desc())},
                                                  {DNNL_ARG_WEIGHTS, packed},
                                                  {DNNL_ARG_BIAS, wrap(bias, p.bias)},
                                                  {DNNL_ARG_DST, to}}),
                              own_layout ? std::function<void()>(read) : std::function<void()>(), packed.get_data_handle(),
                              pd.weights_desc().get_size()});
        };
        if (p.transposed) {
            using forward = dnnl::deconvolution_forward;
            const auto pd = forward_of<forward>(dnnl::algorithm::deconvolution_direct, in, weights, bias, out, strides, pads);
            add(pd, forward(pd));
        } else {
            using forward = dnnl::convolution_forward;
            const auto pd = forward_of<forward>(dnnl::algorithm::convolution_direct, in, weights, bias, out, strides, pads);
            add(pd, forward(pd));
        }
    }
    return result;
}

}  // namespace

std::vector<peer> onednn() {
    const dnnl_version_t* v = dnnl_version();
    std::string isa = "unknown ISA";
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::sse41:
            isa = "sse41";
            break;
        case dnnl::cpu_isa::avx:
            isa = "avx";
            break;
        case dnnl::cpu_isa::avx2:
            isa = "avx2";
            break;
        case dnnl::cpu_isa::avx512_core:
            isa = "avx512_core";
            break;
        case dnnl::cpu_isa::avx512_core_vnni:
            isa = "avx512_core_vnni";
            break;
        case dnnl::cpu_isa::avx512_core_bf16:
            isa = "avx512_core_bf16";
            break;
        default:
            break;
    }
    return {{"onednn",
             "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) +
                 ", " + isa,
             gemm, conv}};
}

}  // namespace bench
