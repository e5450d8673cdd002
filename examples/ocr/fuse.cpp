// SPDX-License-Identifier: BSL-1.0
// Patterns of several nodes that are one operator, and operators that a kernel can apply to its own result.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "passes.hpp"

namespace ocr {

namespace {

std::optional<float> scalar(const graph& g, int id) {
    if (!g.is_constant(id) || g.at(id).type != dtype::f32 || g.at(id).data->f.size() != 1 || g.at(id).dims.size() > 1)
        return std::nullopt;
    return g.at(id).data->f[0];
}

bool near(std::optional<float> x, double wanted) {
    return x && std::abs(static_cast<double>(*x) - wanted) <= 1e-6 * std::max(1.0, std::abs(wanted));
}

// The node that makes `id` if it is of this kind and nobody else reads its result.
const node* only_maker(const graph& g, const usage& u, int id, op kind) {
    const int p = u.producer_of(id);
    if (p < 0 || u.readers_of(id) != 1) return nullptr;
    const node& n = g.nodes[static_cast<std::size_t>(p)];
    return n.kind == kind ? &n : nullptr;
}

// x and the constant of a commutative node with one scalar operand.
std::optional<std::pair<int, float>> with_scalar(const graph& g, const node& n) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
        if (const auto c = scalar(g, n.in[i])) return std::pair{n.in[1 - i], *c};
    return std::nullopt;
}

bool is_relu6(const graph& g, const node& n) {
    const auto low = n.has_input(1) ? scalar(g, n.in[1]) : std::optional(n.number("min", -1));
    const auto high = n.has_input(2) ? scalar(g, n.in[2]) : std::optional(n.number("max", -1));
    return near(low, 0) && near(high, 6);
}

// x * clip(x + 3, 0, 6) / 6, in either order of each product and sum. Returns x.
int match_hard_swish(const graph& g, const usage& u, const node& n) {
    int product = -1;
    if (n.kind == op::div && near(scalar(g, n.in[1]), 6)) product = n.in[0];
    if (n.kind == op::mul) {
        const auto m = with_scalar(g, n);
        if (m && near(m->second, 1.0 / 6)) product = m->first;
    }
    const node* mul = only_maker(g, u, product, op::mul);
    if (mul == nullptr) return -1;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        const node* clip = only_maker(g, u, mul->in[1 - i], op::clip);
        if (clip == nullptr || !is_relu6(g, *clip)) continue;
        const node* add = only_maker(g, u, clip->in[0], op::add);
        const auto sum = add != nullptr ? with_scalar(g, *add) : std::nullopt;
        if (sum && sum->first == mul->in[i] && near(sum->second, 3)) return mul->in[i];
    }
    return -1;
}

// x * sigmoid(x). Returns x.
int match_silu(const graph& g, const usage& u, const node& n) {
    if (n.kind != op::mul) return -1;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        const node* s = only_maker(g, u, n.in[1 - i], op::sigmoid);
        if (s != nullptr && s->in[0] == n.in[i]) return n.in[i];
    }
    return -1;
}

// x * 1, x / 1, x + 0, x - 0. Returns x.
int match_neutral(const graph& g, const node& n) {
    switch (n.kind) {
        case op::identity:
            return n.in[0];
        case op::mul:
        case op::add: {
            const auto m = with_scalar(g, n);
            return m && m->second == (n.kind == op::mul ? 1.0F : 0.0F) ? m->first : -1;
        }
        case op::div:
        case op::sub:
            return scalar(g, n.in[1]) == (n.kind == op::div ? 1.0F : 0.0F) ? n.in[0] : -1;
        default:
            return -1;
    }
}

// A transpose of the last two dimensions and nothing else.
bool swaps_last_two(const node& n) {
    const dims_t perm = n.integers("perm", {});
    if (perm.size() < 2) return false;
    dims_t expected(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) expected[i] = static_cast<std::int64_t>(i);
    std::swap(expected[perm.size() - 1], expected[perm.size() - 2]);
    return perm == expected;
}

constant_ptr make_vector(std::vector<float> v) {
    auto c = std::make_shared<constant>();
    c->dims = {static_cast<std::int64_t>(v.size())};
    c->f = std::move(v);
    return c;
}

int add_constant(graph& g, std::string name, constant_ptr data) {
    value v;
    v.name = std::move(name);
    v.dims = data->dims;
    v.data = std::move(data);
    return g.add_value(std::move(v));
}

// Output channels of a kernel node; 0 where its weights are not constant or not of a supported kind.
std::int64_t channels_of(const graph& g, const node& n) {
    const value& weights = g.input(n, 1);
    const dims_t& w = weights.dims;
    if (weights.data == nullptr || weights.type != dtype::f32 || w.size() != (n.kind == op::matmul ? 2 : 4)) return 0;
    if (n.kind == op::matmul) return w[n.integer("transB", 0) != 0 ? 0 : 1];
    const std::int64_t groups = n.integer("group", 1);
    if (groups < 1 || groups > w[0]) return 0;
    return n.kind == op::conv ? w[0] : w[1] * groups;
}

// The constant as one element, or one per channel of kernel node p; empty where it is neither.
std::vector<float> per_channel(const graph& g, const node& p, const value& c) {
    const std::size_t behind = p.kind == op::matmul ? 0 : 2;  // dimensions after the channels
    if (c.data == nullptr || c.type != dtype::f32 || c.dims.size() > behind + 2) return {};
    if (c.data->f.size() == 1) return c.data->f;
    const std::int64_t channels = channels_of(g, p);
    if (c.data->size() != channels || c.dims.size() <= behind || c.dims[c.dims.size() - 1 - behind] != channels)
        return {};
    return c.data->f;
}

stage affine(std::vector<float> scale, std::vector<float> shift) {
    stage s;
    s.what = stage::kind::affine;
    s.scale = std::move(scale);
    s.shift = std::move(shift);
    return s;
}

std::vector<float> map_each(std::vector<float> v, float (*f)(float)) {
    std::transform(v.begin(), v.end(), v.begin(), f);
    return v;
}

// scale and shift of a batch norm, in f64 until the end.
std::optional<stage> batch_norm_stage(const graph& g, const node& n) {
    for (std::size_t i = 1; i <= 4; ++i)
        if (!n.has_input(i) || !g.is_constant(n.in[i]) || g.input(n, i).data->f.size() != g.input(n, 1).data->f.size())
            n.fail("parameters must be constant and of one length");
    const auto &gamma = g.input(n, 1).data->f, &beta = g.input(n, 2).data->f;
    const auto &mean = g.input(n, 3).data->f, &variance = g.input(n, 4).data->f;
    const double epsilon = static_cast<double>(n.number("epsilon", 1e-5F));
    std::vector<float> scale, shift;
    for (std::size_t c = 0; c < gamma.size(); ++c) {
        const double s = static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon);
        scale.push_back(static_cast<float>(s));
        shift.push_back(static_cast<float>(static_cast<double>(beta[c]) - static_cast<double>(mean[c]) * s));
    }
    return affine(std::move(scale), std::move(shift));
}

// The stage that node n is when it follows kernel node p through value x; nothing where it is not one.
std::optional<stage> as_stage(const graph& g, const node& n, const node& p, int x) {
    stage s;
    switch (n.kind) {
        case op::relu:
            s.what = stage::kind::relu;
            return s;
        case op::hard_swish:
            s.what = stage::kind::hard_swish;
            return s;
        case op::sigmoid:
            s.what = stage::kind::sigmoid;
            return s;
        case op::silu:
            s.what = stage::kind::silu;
            return s;
        case op::tanh:
            s.what = stage::kind::tanh;
            return s;
        case op::hard_sigmoid:
            s.what = stage::kind::hard_sigmoid;
            s.a = n.number("alpha", 0.2F);
            s.b = n.number("beta", 0.5F);
            return s;
        case op::clip: {
            const auto low = n.has_input(1) ? scalar(g, n.in[1])
                                            : std::optional(n.number("min", std::numeric_limits<float>::lowest()));
            const auto high =
                n.has_input(2) ? scalar(g, n.in[2]) : std::optional(n.number("max", std::numeric_limits<float>::max()));
            if (!low || !high || !(*low <= *high)) return std::nullopt;
            s.what = stage::kind::clip;
            s.a = *low;
            s.b = *high;
            return s;
        }
        case op::batch_normalization: {
            auto bn = batch_norm_stage(g, n);
            return p.kind != op::matmul && static_cast<std::int64_t>(bn->scale.size()) == channels_of(g, p)
                       ? bn
                       : std::nullopt;
        }
        case op::add:
        case op::sub:
        case op::mul:
        case op::div: {
            const bool first = n.in[0] == x;
            auto c = per_channel(g, p, g.at(n.in[first ? 1 : 0]));
            if (c.empty()) return std::nullopt;
            if (n.kind == op::add) return affine({1.0F}, std::move(c));
            if (n.kind == op::mul) return affine(std::move(c), {0.0F});
            if (n.kind == op::sub)
                return first ? affine({1.0F}, map_each(std::move(c), [](float v) { return -v; }))
                             : affine({-1.0F}, std::move(c));
            if (first) return affine(map_each(std::move(c), [](float v) { return 1 / v; }), {0.0F});
            return std::nullopt;
        }
        default:
            return std::nullopt;
    }
}

float at(const std::vector<float>& v, std::size_t i) { return v.size() == 1 ? v[0] : v[i]; }

// Two affine stages in a row are one.
void merge_affine(std::vector<stage>& stages) {
    for (std::size_t i = 1; i < stages.size();) {
        stage &a = stages[i - 1], &b = stages[i];
        if (a.what != stage::kind::affine || b.what != stage::kind::affine) {
            ++i;
            continue;
        }
        const std::size_t count = std::max({a.scale.size(), a.shift.size(), b.scale.size(), b.shift.size()});
        std::vector<float> scale(count), shift(count);
        for (std::size_t c = 0; c < count; ++c) {
            const double s = static_cast<double>(at(b.scale, c));
            scale[c] = static_cast<float>(static_cast<double>(at(a.scale, c)) * s);
            shift[c] =
                static_cast<float>(static_cast<double>(at(a.shift, c)) * s + static_cast<double>(at(b.shift, c)));
        }
        a = affine(std::move(scale), std::move(shift));
        stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

// Weights and bias of n absorb its first stage, an affine one.
void fold_into_weights(graph& g, node& n) {
    const auto channels = static_cast<std::size_t>(channels_of(g, n));
    if (channels == 0 || n.stages.empty() || n.stages[0].what != stage::kind::affine || !g.is_constant(n.in[1])) return;
    const stage s = n.stages[0];
    auto weights = std::make_shared<constant>(*g.input(n, 1).data);
    const dims_t& w = weights->dims;
    // Elements that follow one another and belong to the same channel.
    const bool rows = n.kind == op::conv || (n.kind == op::matmul && n.integer("transB", 0) != 0);
    const std::size_t run = rows                           ? weights->f.size() / channels
                            : n.kind == op::conv_transpose ? static_cast<std::size_t>(w[2] * w[3])
                                                           : 1;
    const auto per_group =
        static_cast<std::size_t>(n.kind == op::conv_transpose ? w[1] : static_cast<std::int64_t>(channels));
    const std::size_t group_size = weights->f.size() / (channels / per_group);
    for (std::size_t i = 0; i < weights->f.size(); ++i)
        weights->f[i] *= at(s.scale, i / group_size * per_group + i / run % per_group);
    std::vector<float> bias(channels, 0.0F);
    if (n.has_input(2)) {
        if (!g.is_constant(n.in[2]) || g.input(n, 2).data->f.size() != channels)
            n.fail("bias must be constant, one element per channel");
        bias = g.input(n, 2).data->f;
    }
    for (std::size_t c = 0; c < channels; ++c)
        bias[c] = static_cast<float>(static_cast<double>(bias[c]) * static_cast<double>(at(s.scale, c)) +
                                     static_cast<double>(at(s.shift, c)));
    n.in[1] = add_constant(g, g.input(n, 1).name + " (folded)", std::move(weights));
    const int bias_id = add_constant(g, n.name + " bias", make_vector(std::move(bias)));
    if (n.in.size() > 2)
        n.in[2] = bias_id;
    else
        n.in.push_back(bias_id);
    n.stages.erase(n.stages.begin());
}

void tidy_stages(graph& g, node& n) {
    merge_affine(n.stages);
    fold_into_weights(g, n);
    std::erase_if(n.stages, [](const stage& s) {
        return s.what == stage::kind::affine &&
               std::all_of(s.scale.begin(), s.scale.end(), [](float x) { return x == 1; }) &&
               std::all_of(s.shift.begin(), s.shift.end(), [](float x) { return x == 0; });
    });
}

// Gemm is a matrix product with attributes: alpha and C become stages.
void gemm_to_matmul(graph& g, node& n) {
    n.kind = op::matmul;
    const float alpha = n.number("alpha", 1), beta = n.number("beta", 1);
    const int c = n.has_input(2) ? n.in[2] : -1;
    n.in.resize(2);
    if (alpha != 1) n.stages.push_back(affine({alpha}, {0.0F}));
    if (c < 0) return;
    auto shift = per_channel(g, n, g.at(c));
    if (shift.empty()) n.fail("C must be constant, one element or one per column");
    for (auto& x : shift) x *= beta;
    n.stages.push_back(affine({1.0F}, std::move(shift)));
}

// A batch norm that no kernel took in: a product and a sum.
void expand_batch_norms(graph& g) {
    std::vector<node> nodes;
    for (auto& n : g.nodes) {
        if (n.kind != op::batch_normalization) {
            nodes.push_back(std::move(n));
            continue;
        }
        auto s = batch_norm_stage(g, n);
        const auto image_vector = [](std::vector<float> v) {
            auto c = std::make_shared<constant>(*make_vector(std::move(v)));
            c->dims = {c->dims[0], 1, 1};
            return c;
        };
        node mul = n, add = n;
        mul.kind = op::mul;
        add.kind = op::add;
        mul.attributes.clear();
        add.attributes.clear();
        mul.out = g.add_value({n.name + " scaled", dtype::f32, {}, nullptr});
        mul.in = {n.in[0], add_constant(g, n.name + " scale", image_vector(std::move(s->scale)))};
        add.in = {mul.out, add_constant(g, n.name + " shift", image_vector(std::move(s->shift)))};
        nodes.push_back(std::move(mul));
        nodes.push_back(std::move(add));
    }
    g.nodes = std::move(nodes);
}

}  // namespace

void find_patterns(graph& g) {
    for (std::size_t k = 0; k < g.nodes.size(); ++k)
        if (const int x = match_neutral(g, g.nodes[k]); x >= 0) {
            replace_value(g, g.nodes[k].out, x);
            g.nodes.erase(g.nodes.begin() + static_cast<std::ptrdiff_t>(k--));
        }
    const usage u(g);
    for (auto& n : g.nodes) {
        const auto become = [&](op kind, int x) {
            n.kind = kind;
            n.in = {x};
            n.attributes.clear();
        };
        if (const int x = match_hard_swish(g, u, n); x >= 0)
            become(op::hard_swish, x);
        else if (const int y = match_silu(g, u, n); y >= 0)
            become(op::silu, y);
        else if (n.kind == op::gemm)
            gemm_to_matmul(g, n);
        else if (n.kind == op::matmul)
            if (const node* t = only_maker(g, u, n.in[1], op::transpose); t != nullptr && swaps_last_two(*t)) {
                n.in[1] = t->in[0];
                n.attributes["transB"] = std::int64_t{1};
            }
    }
    remove_dead(g);
}

void absorb_into_kernels(graph& g) {
    usage u(g);
    std::vector<bool> gone(g.nodes.size(), false);
    for (std::size_t k = 0; k < g.nodes.size(); ++k) {
        const node& n = g.nodes[k];
        for (const int x : n.in) {
            const int p = u.producer_of(x);
            if (p < 0 || u.readers_of(x) != 1) continue;
            node& maker = g.nodes[static_cast<std::size_t>(p)];
            if (!is_kernel(maker.kind)) continue;
            auto s = as_stage(g, n, maker, x);
            if (!s) continue;
            maker.stages.push_back(std::move(*s));
            maker.out = n.out;
            u.producer[static_cast<std::size_t>(n.out)] = p;
            gone[k] = true;
            break;
        }
    }
    std::size_t k = 0;
    std::erase_if(g.nodes, [&](const node&) { return static_cast<bool>(gone[k++]); });
    for (auto& n : g.nodes)
        if (is_kernel(n.kind)) tidy_stages(g, n);
    expand_batch_norms(g);
}

// The kernel moves to where its sum stood: by then the other operand is there.
void absorb_sums(graph& g) {
    for (std::size_t k = 0; k < g.nodes.size(); ++k) {
        if (g.nodes[k].kind != op::add) continue;
        const usage u(g);
        const node sum = g.nodes[k];
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
            const int p = u.producer_of(sum.in[i]), other = sum.in[1 - i];
            if (p < 0 || u.readers_of(sum.in[i]) != 1 || g.is_constant(other) ||
                g.at(other).dims != g.at(sum.out).dims || g.at(sum.in[i]).dims != g.at(sum.out).dims ||
                !is_kernel(g.nodes[static_cast<std::size_t>(p)].kind))
                continue;
            node maker = std::move(g.nodes[static_cast<std::size_t>(p)]);
            stage s;
            s.what = stage::kind::add;
            if (maker.in.size() == 2) maker.in.push_back(-1);  // the bias's place
            s.operand = maker.in.size();
            maker.in.push_back(other);
            maker.stages.push_back(std::move(s));
            maker.out = sum.out;
            g.nodes[k] = std::move(maker);
            g.nodes.erase(g.nodes.begin() + p);
            --k;
            break;
        }
    }
}

}  // namespace ocr
