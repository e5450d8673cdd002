// SPDX-License-Identifier: BSL-1.0
#include "ops_hone.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <utility>

#include <hone/hone.hpp>

#include "shapes.hpp"

namespace ocr {

// The same weights may be wanted in two layouts when plans for different sizes choose different tiles, so the tile is
// part of the key; packings that turn out equal (the header holds the payload's checksum) share their memory.
struct weight_cache::storage {
    struct key {
        const constant* weights;
        hone::index_t groups, columns;
        int mr, nr;
        bool transposed;
        friend auto operator<=>(const key&, const key&) = default;
    };
    std::map<key, hone::packed_view> packed;
    std::list<hone::aligned_buffer> memory;
};

weight_cache::weight_cache() : storage_(std::make_unique<storage>()) {}
weight_cache::~weight_cache() = default;

std::size_t weight_cache::bytes() const {
    std::size_t sum = 0;
    for (const auto& m : storage_->memory) sum += m.size();
    return sum;
}

namespace {

void check(const node& n, const hone::status& s) {
    if (!s.ok()) n.fail(std::string("hone: ") + s.message().c_str());
}

// plan.pack(filter) once per key.
template <class Plan, class Filter>
hone::packed_view pack_once(const node& n, weight_cache& cache, const Plan& plan, const Filter& filter,
                            weight_cache::storage::key key) {
    auto& store = cache.data();
    const hone::tile tile = plan.explain(true).tile;
    key.mr = tile.mr;
    key.nr = tile.nr;
    if (const auto it = store.packed.find(key); it != store.packed.end()) return it->second;
    hone::aligned_buffer memory(static_cast<std::size_t>(plan.packed_bytes()));
    if (memory.data() == nullptr) n.fail("memory for packed weights could not be allocated");
    check(n, plan.pack(filter, {memory.data(), memory.size()}));
    const auto view = hone::packed_view::open({memory.data(), memory.size()});
    check(n, view.status());
    for (const auto& [other, packing] : store.packed) {
        const hone::packed_header a = packing.header(), b = view->header();
        if (other.weights == key.weights && std::memcmp(&a, &b, sizeof a) == 0) return store.packed[key] = packing;
    }
    store.memory.push_back(std::move(memory));
    return store.packed[key] = *view;
}

// x * scale + shift, the same for every channel. A stage of this engine's own, fused into hone's kernels like hone's.
struct affine_stage : hone::stage {
    float scale, shift;
    affine_stage(float a, float b) : scale(a), shift(b) {}

    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At&) const {
        x = x * V::set(scale) + V::set(shift);
    }
};

// Stages that no chain below spells out: one stage that walks through the list. Slower by a few instructions a vector.
template <class View>
struct listed_stages : hone::stage {
    const ocr::stage* first = nullptr;
    std::size_t count = 0;
    const View* views = nullptr;  // views[i] belongs to stage i where that is an add

    template <class V, class At>
    HONE_INLINE void operator()(V& x, const At& at) const {
        for (std::size_t i = 0; i < count; ++i) {
            const ocr::stage& s = first[i];
            switch (s.what) {
                case ocr::stage::kind::affine:
                    x = x * (s.scale.size() == 1 ? V::set(*s.scale.data()) : at.cols(s.scale.data()));
                    x = x + (s.shift.size() == 1 ? V::set(*s.shift.data()) : at.cols(s.shift.data()));
                    break;
                case ocr::stage::kind::relu:
                    hone::relu(x, at);
                    break;
                case ocr::stage::kind::clip:
                    hone::clip(static_cast<double>(s.a), static_cast<double>(s.b))(x, at);
                    break;
                case ocr::stage::kind::hard_sigmoid:
                    hone::hard_sigmoid(static_cast<double>(s.a), static_cast<double>(s.b))(x, at);
                    break;
                case ocr::stage::kind::hard_swish:
                    hone::hard_swish(x, at);
                    break;
                case ocr::stage::kind::sigmoid:
                    hone::sigmoid(x, at);
                    break;
                case ocr::stage::kind::silu:
                    hone::silu(x, at);
                    break;
                case ocr::stage::kind::tanh:
                    hone::tanh(x, at);
                    break;
                case ocr::stage::kind::add:
                    hone::add(views[i])(x, at);
                    break;
            }
        }
    }
};

// Calls then(make) where make(in) is the epilogue of node n for the input pointers `in`: bias and stages as one chain
// of a type of its own, so that the compiler sees all of it. view_of(pointer) describes an operand that is added.
template <class ViewOf, class Then>
kernel with_epilogue(const graph& g, const node& n, std::int64_t channels, ViewOf view_of, Then then) {
    using inputs = const float* const*;
    // The list and the bias belong to the kernel: graphs are moved about.
    const auto stages = std::make_shared<const std::vector<stage>>(n.stages);
    auto bias_vector = std::make_shared<std::vector<float>>(static_cast<std::size_t>(channels), 0.0F);
    if (n.has_input(2)) {
        const auto& given = g.input(n, 2).data;
        if (given == nullptr || given->f.size() != bias_vector->size())
            n.fail("bias must be constant, one element per channel");
        *bias_vector = given->f;
    }
    const std::shared_ptr<const std::vector<float>> b = bias_vector;
    if (stages->empty()) {
        if (!n.has_input(2)) return then([](inputs) { return hone::identity; });
        return then([b](inputs) { return hone::bias(*b); });
    }
    const stage& s = stages->front();
    if (stages->size() == 1) {
        switch (s.what) {
            case stage::kind::relu:
                return then([b](inputs) { return hone::bias(*b) | hone::relu; });
            case stage::kind::hard_swish:
                return then([b](inputs) { return hone::bias(*b) | hone::hard_swish; });
            case stage::kind::sigmoid:
                return then([b](inputs) { return hone::bias(*b) | hone::sigmoid; });
            case stage::kind::silu:
                return then([b](inputs) { return hone::bias(*b) | hone::silu; });
            case stage::kind::clip:
                return then([b, low = static_cast<double>(s.a), high = static_cast<double>(s.b)](inputs) {
                    return hone::bias(*b) | hone::clip(low, high);
                });
            case stage::kind::hard_sigmoid:
                return then([b, alpha = static_cast<double>(s.a), beta = static_cast<double>(s.b)](inputs) {
                    return hone::bias(*b) | hone::hard_sigmoid(alpha, beta);
                });
            case stage::kind::add:
                return then([b, view_of, at = s.operand](inputs in) {
                    return hone::bias(*b) | hone::add(view_of(in == nullptr ? nullptr : in[at]));
                });
            case stage::kind::affine:
            case stage::kind::tanh:
                break;
        }
    }
    if (stages->size() == 2 &&
        s.what == stage::kind::hard_swish) {  // the learnable scale and shift of PP-LCNetV3 behind it
        const stage& t = (*stages)[1];
        if (t.what == stage::kind::affine && t.scale.size() == 1 && t.shift.size() == 1)
            return then([b, scale = t.scale[0], shift = t.shift[0]](inputs) {
                return hone::bias(*b) | hone::hard_swish | affine_stage(scale, shift);
            });
    }
    using view = decltype(view_of(nullptr));
    const auto views = std::make_shared<std::vector<view>>(stages->size());
    return then([b, stages, views, view_of](inputs in) {
        for (std::size_t i = 0; i < stages->size() && in != nullptr; ++i)
            if ((*stages)[i].what == stage::kind::add) (*views)[i] = view_of(in[(*stages)[i].operand]);
        listed_stages<view> listed;
        listed.first = stages->data();
        listed.count = stages->size();
        listed.views = views->data();
        return hone::bias(*b) | listed;
    });
}

template <class Plan>
void describe_plan(kernel& k, const Plan& plan, bool packed) {
    const hone::explanation e = plan.explain(packed);
    k.name = std::string(e.kernel) + " " + e.element + " " + hone::isa_name(e.isa);
    if (e.tile.mr != 0) k.name += " " + std::to_string(e.tile.mr) + "x" + std::to_string(e.tile.nr);
    k.chosen = k.name;
    if (e.block.mc != 0)
        k.chosen += ", mc " + std::to_string(e.block.mc) + " kc " + std::to_string(e.block.kc) + " nc " +
                    std::to_string(e.block.nc);
    k.scratch_bytes = static_cast<std::size_t>(plan.scratch_bytes(1, packed));
}

kernel make_conv(const graph& g, const node& n, weight_cache& weights) {
    const dims_t x = g.input(n, 0).dims, y = g.at(n.out).dims, w = g.input(n, 1).dims;
    const window win = window_of(g, n, x[1], x[2]);
    const bool transposed = n.kind == op::conv_transpose;
    const hone::conv_desc desc{.n = x[0],
                               .h = x[1],
                               .w = x[2],
                               .ic = x[3],
                               .oc = y[3],
                               .kh = win.kernel_h,
                               .kw = win.kernel_w,
                               .groups = win.groups,
                               .window = {.stride_h = win.stride_h,
                                          .stride_w = win.stride_w,
                                          .dilation_h = win.dilation_h,
                                          .dilation_w = win.dilation_w,
                                          .pad = {win.top, win.left, win.bottom, win.right},
                                          .transposed = transposed,
                                          .output_padding_h = win.extra_h,
                                          .output_padding_w = win.extra_w}};
    const constant_ptr data = g.input(n, 1).data;
    const hone::index_t icg = x[3] / win.groups, ocg = y[3] / win.groups;
    const auto filter = transposed ? hone::iohw(data->f.data(), icg, ocg, win.kernel_h, win.kernel_w, win.groups)
                                   : hone::oihw(data->f.data(), ocg, icg, win.kernel_h, win.kernel_w, win.groups);
    const auto view_of = [y](const float* p) { return hone::nhwc(p, y[0], y[1], y[2], y[3]); };
    return with_epilogue(g, n, y[3], view_of, [&](auto make) {
        const auto planned = hone::plan(desc, hone::policy{}, make(nullptr));
        check(n, planned.status());
        const auto plan = *planned;
        if (plan.output_h() != y[1] || plan.output_w() != y[2])
            n.fail("hone and ONNX disagree about the extents of the output");
        const auto packed = pack_once(n, weights, plan, filter, {data.get(), win.groups, y[3], 0, 0, transposed});
        kernel k;
        describe_plan(k, plan, true);
        // Each pixel of the output (transposed: of the input) meets every weight once.
        k.flops = 2.0 * static_cast<double>(transposed ? x[0] * x[1] * x[2] : y[0] * y[1] * y[2]) *
                  static_cast<double>(data->size());
        k.run = [=, name = n.name, bytes = k.scratch_bytes](const float* const* in, float* out, std::byte* scratch) {
            hone::context ctx;
            ctx.scratch = {scratch, bytes};
            const auto status = plan.run(hone::nhwc(in[0], x[0], x[1], x[2], x[3]), packed,
                                         hone::nhwc(out, y[0], y[1], y[2], y[3]), make(in), ctx);
            if (!status.ok()) throw error("node " + name + ": hone: " + status.message().c_str());
        };
        return k;
    });
}

// Element offset of each matrix of an operand in the batch `out` (leading dimensions broadcast).
std::vector<hone::index_t> batch_offsets(const dims_t& operand, const dims_t& out, hone::index_t matrix) {
    std::vector<hone::index_t> offsets{0};
    for (std::size_t i = 0; i + 2 < out.size(); ++i) {
        const std::size_t missing = out.size() - operand.size();
        const hone::index_t own = i < missing ? 1 : operand[i - missing];
        hone::index_t stride = own == 1 ? 0 : matrix;
        if (own != 1)
            for (std::size_t j = i - missing + 1; j + 2 < operand.size(); ++j) stride *= operand[j];
        std::vector<hone::index_t> next;
        for (const auto o : offsets)
            for (hone::index_t k = 0; k < out[i]; ++k) next.push_back(o + k * stride);
        offsets = std::move(next);
    }
    return offsets;
}

kernel make_matmul(const graph& g, const node& n, weight_cache& weights) {
    const dims_t a = g.input(n, 0).dims, b = g.input(n, 1).dims, c = g.at(n.out).dims;
    const bool ta = n.integer("transA", 0) != 0, tb = n.integer("transB", 0) != 0;
    const hone::index_t columns = c[c.size() - 1], inner = a[a.size() - (ta ? 2 : 1)];
    hone::index_t rows = c[c.size() - 2];
    auto a_at = batch_offsets(a, c, rows * inner), b_at = batch_offsets(b, c, inner * columns);
    const bool one_b = b_at.back() == 0;
    if (one_b && !ta && a_at.size() > 1 && a.size() == c.size()) {  // one tall product instead of a batch of them
        bool dense = true;
        for (std::size_t i = 0; i < a_at.size(); ++i)
            dense = dense && a_at[i] == static_cast<hone::index_t>(i) * rows * inner;
        if (dense) {
            rows *= static_cast<hone::index_t>(a_at.size());
            a_at = b_at = {0};
        }
    }
    const auto batch = static_cast<hone::index_t>(a_at.size());
    const auto a_view = [=](const float* p) {
        return ta ? hone::transposed(hone::row_major(p, inner, rows)) : hone::row_major(p, rows, inner);
    };
    const auto b_view = [=](const float* p) {
        return tb ? hone::transposed(hone::row_major(p, columns, inner)) : hone::row_major(p, inner, columns);
    };
    const auto view_of = [=](const float* p) { return hone::row_major(p, rows, columns); };
    const hone::gemm_desc desc = hone::describe(a_view(nullptr), b_view(nullptr), view_of(nullptr));
    const constant_ptr data = g.input(n, 1).data;
    const bool packs = data != nullptr && one_b;
    if (batch > 1)
        for (const stage& s : n.stages)
            if (s.what == stage::kind::add) n.fail("a sum behind a batch of matrix products is not supported");
    return with_epilogue(g, n, columns, view_of, [&](auto make) {
        const auto planned = hone::plan(desc, hone::policy{}, make(nullptr));
        check(n, planned.status());
        const auto plan = *planned;
        hone::packed_view packed;
        if (packs) packed = pack_once(n, weights, plan, b_view(data->f.data()), {data.get(), 1, columns, 0, 0, tb});
        kernel k;
        describe_plan(k, plan, packs);
        k.flops = 2.0 * static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(columns) *
                  static_cast<double>(inner);
        k.run = [=, name = n.name, bytes = k.scratch_bytes](const float* const* in, float* out, std::byte* scratch) {
            hone::context ctx;
            ctx.scratch = {scratch, bytes};
            const auto epilogue = make(in);
            for (std::size_t i = 0; i < a_at.size(); ++i) {
                const auto to = hone::row_major(out + static_cast<hone::index_t>(i) * rows * columns, rows, columns);
                const auto status = packs
                                        ? plan.run(a_view(in[0] + a_at[i]), packed, to, epilogue, ctx)
                                        : plan.run(a_view(in[0] + a_at[i]), b_view(in[1] + b_at[i]), to, epilogue, ctx);
                if (!status.ok()) throw error("node " + name + ": hone: " + status.message().c_str());
            }
        };
        return k;
    });
}

}  // namespace

kernel make_hone_operator(const graph& g, const node& n, weight_cache& weights) {
    if (n.kind == op::matmul) return make_matmul(g, n, weights);
    return make_conv(g, n, weights);
}

double exponentials(const float* from, float shift, float* to, std::int64_t count) {
    constexpr int lanes = 4;             // every target has them, whatever this file is compiled for
    constexpr std::int64_t block = 256;  // elements: f32 sums stay short, f64 takes them up
    using V = hone::vec<float, lanes>;
    double sum = 0;
    for (std::int64_t start = 0; start < count; start += block) {
        const std::int64_t end = std::min(start + block, count);
        V partial = V::set(0.0F);
        std::int64_t i = start;
        for (; i + lanes <= end; i += lanes) {
            const V e = hone::exp(hone::load<float, lanes>(from + i) - V::set(shift));
            hone::store(to + i, e);
            partial = partial + e;
        }
        for (int k = 0; k < lanes; ++k) sum += static_cast<double>(partial[k]);
        if (i == end) continue;
        const int rest = static_cast<int>(end - i);
        const V e = hone::exp(hone::load<float, lanes>(from + i, rest) - V::set(shift));
        hone::store(to + i, e, rest);
        for (int k = 0; k < rest; ++k) sum += static_cast<double>(e[k]);
    }
    return sum;
}

std::string describe_isa() { return hone::explain().text().c_str(); }

}  // namespace ocr
