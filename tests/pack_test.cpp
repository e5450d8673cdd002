// SPDX-License-Identifier: BSL-1.0
// Packed weights: what a plan writes can be kept, mapped, shared between instruction sets of one layout, and is refused
// where anything about it is not what the plan wants.
#include "conv_reference.hpp"

#include <fcntl.h>
#include <sys/stat.h>

using hone::argument;
using hone::code;
using hone::index_t;
using hone::isa;
using hone::packed_header;
using hone::packed_view;
using hone::status;
using namespace test;

namespace {

// The bytes of packed weights on a 64-byte boundary, with room to put them off it.
class bytes_of_weights {
public:
    template <class Plan, class Weights>
    bytes_of_weights(const Plan& plan, const Weights& weights, int fill = 0xFF)
        : size_(static_cast<std::size_t>(plan.packed_bytes())), memory_(size_ + 64) {
        std::memset(memory_.data(), fill, size_ + 64);
        REQUIRE(plan.pack(weights, span()).ok());
        for (std::size_t i = size_; i < size_ + 64; ++i) REQUIRE(memory_.data()[i] == static_cast<std::byte>(fill));
    }
    std::span<std::byte> span() { return {memory_.data(), size_}; }
    hone::expected<packed_view> open() { return packed_view::open(span()); }
    packed_view view() {
        const auto v = open();
        REQUIRE(v);
        return *v;
    }
    std::byte& operator[](std::size_t i) { return memory_.data()[i]; }
    std::size_t size() const { return size_; }
    std::byte* room() { return memory_.data(); }

    // Changes the header and signs it again, as a file made by another program would be.
    template <class F>
    packed_view with(F change) {
        packed_header h = view().header();
        change(h);
        h.header_checksum = hone::detail::header_checksum(h);
        std::memcpy(memory_.data(), &h, sizeof h);
        return view();
    }

private:
    std::size_t size_;
    hone::aligned_buffer memory_;
};

// C = A * B with 5 x 23 elements over 11, and what packing has to do with it.
struct product {
    static constexpr index_t m = 5, n = 23, k = 11;
    explicit product(isa id = isa::dynamic)
        : plan(*hone::plan(hone::gemm_desc{.m = m, .n = n, .k = k}, hone::policy{.isa = id, .packing = hone::packing::b})) {
        random_source source(1);
        for (float& x : a) x = source.value();
        for (float& x : b) x = source.value();
        REQUIRE(plan.run(va(), vb(), hone::row_major(want, m, n)).ok());
    }
    hone::matrix_view<const float> va() const { return hone::row_major(a, m, k); }
    hone::matrix_view<const float> vb() const { return hone::row_major(b, k, n); }
    // Runs with packed weights; an error must leave C as it was.
    status run(const packed_view& packed) {
        for (float& x : c) x = gap<float>();
        const status s = plan.run(va(), packed, hone::row_major(c, m, n));
        if (!s.ok()) {
            for (float x : c) REQUIRE(same(x, gap<float>()));
        }
        return s;
    }
    bool right() const { return std::memcmp(c, want, sizeof c) == 0; }
    hone::gemm_plan<> plan;
    float a[m * k], b[k * n], c[m * n], want[m * n];
};

// A convolution of two groups; `depthwise`: of 21.
struct convolution {
    explicit convolution(bool depthwise = false, isa id = isa::dynamic)
        : desc(describe(depthwise)),
          plan(*hone::plan(desc, hone::policy{.isa = id})),
          in(static_cast<std::size_t>(6 * 5 * desc.ic)),
          filter(static_cast<std::size_t>(desc.oc * desc.ic / desc.groups * 6)),
          c(static_cast<std::size_t>(5 * 3 * desc.oc)),
          want(c.size()) {
        random_source source(2);
        for (float& x : in) x = source.value();
        for (float& x : filter) x = source.value();
        REQUIRE(plan.run(vi(), vf(), hone::nhwc(want.data(), 1, 5, 3, desc.oc)).ok());
    }
    static hone::conv_desc describe(bool depthwise) {
        return {.n = 1,
                .h = 6,
                .w = 5,
                .ic = depthwise ? 21 : 10,
                .oc = depthwise ? 21 : 38,
                .kh = 2,
                .kw = 3,
                .groups = depthwise ? 21 : 2};
    }
    hone::image_view<const float> vi() const { return hone::nhwc(in.data(), 1, 6, 5, desc.ic); }
    hone::filter_view<const float> vf() const {
        return hone::oihw(filter.data(), desc.oc / desc.groups, desc.ic / desc.groups, 2, 3, desc.groups);
    }
    status run(const packed_view& packed) {
        std::fill(c.begin(), c.end(), gap<float>());
        const status s = plan.run(vi(), packed, hone::nhwc(c.data(), 1, 5, 3, desc.oc));
        if (!s.ok()) {
            for (float x : c) REQUIRE(same(x, gap<float>()));
        }
        return s;
    }
    bool right() const { return std::memcmp(c.data(), want.data(), c.size() * sizeof(float)) == 0; }
    hone::conv_desc desc;
    hone::conv_plan<> plan;
    std::vector<float> in, filter, c, want;
};

template <class F>
void with_each(F f) {
    product p;
    f(p, p.vb(), "gemm");
    convolution c;
    f(c, c.vf(), "conv");
    convolution d(true);
    f(d, d.vf(), "depthwise");
}

void check(const status& got, const status& want, std::string_view words) {
    CAPTURE(std::string(words));
    CHECK(got.code == want.code);
    CHECK(got.argument == want.argument);
    CHECK(got.value == want.value);
    CHECK(got.limit == want.limit);
    if (!words.empty()) CHECK(std::string(got.message().view()) == std::string(words));
}

}  // namespace

static_assert(sizeof(packed_header) == 128);
static_assert(std::is_trivially_copyable_v<packed_header>);

TEST_CASE("packed weights give the bits that unpacked ones give") {
    with_each([](auto& p, const auto& weights, const char* name) {
        CAPTURE(name);
        bytes_of_weights packed(p.plan, weights);
        const auto view = packed.open();
        REQUIRE(view);
        CHECK(view->verify().ok());
        CHECK(p.run(*view).ok());
        CHECK(p.right());
        // No byte is left as it was found: the same weights are the same file.
        bytes_of_weights again(p.plan, weights, 0x00);
        REQUIRE(again.size() == packed.size());
        CHECK(std::memcmp(again.room(), packed.room(), packed.size()) == 0);
        CHECK(p.plan.scratch_bytes(1, true) < p.plan.scratch_bytes(1, false));
    });
}

TEST_CASE("the header says what was packed") {
    product p;
    bytes_of_weights g(p.plan, p.vb());
    const packed_header h = g.view().header();
    CHECK(std::memcmp(g.room(), "HONEPACK", 8) == 0);
    CHECK(h.version == 1);
    CHECK(h.kind == hone::packed_kind::gemm_b);
    CHECK(h.element == 4);
    CHECK(h.panel > 0);
    CHECK(h.groups == 1);
    CHECK(h.k == p.k);
    CHECK(h.n == p.n);
    CHECK(h.payload_bytes == g.size() - 128);
    CHECK(h.payload_bytes == static_cast<std::uint64_t>(hone::detail::round_up(p.n, h.panel) * p.k * 4));
    CHECK(h.finite == 1);

    convolution c;
    const packed_header hc = bytes_of_weights(c.plan, c.vf()).view().header();
    CHECK(hc.kind == hone::packed_kind::conv);
    CHECK(hc.groups == 2);
    CHECK(hc.k == 2 * 3 * 5);
    CHECK(hc.n == 19);
    CHECK(hc.kh == 2);
    CHECK(hc.kw == 3);
    convolution d(true);
    const packed_header hd = bytes_of_weights(d.plan, d.vf()).view().header();
    CHECK(hd.kind == hone::packed_kind::depthwise);
    CHECK(hd.panel == 0);
    CHECK(hd.k == 6);
    CHECK(hd.n == 21);
    CHECK(hd.payload_bytes == 6 * 21 * 4);
}

TEST_CASE("the layout of a file does not change unnoticed") {
    // B (2, 3) = 1 .. 6: one panel, rows of it one after another, padded with zeros. Numbers from the first version.
    const auto plan = *hone::plan(hone::gemm_desc{.m = 1, .n = 3, .k = 2});
    const float b[] = {1, 2, 3, 4, 5, 6};
    bytes_of_weights packed(plan, hone::row_major(b, 2, 3));
    const packed_header h = packed.view().header();
    const float* payload = reinterpret_cast<const float*>(packed.view().payload());
    for (index_t row = 0; row < 2; ++row) {
        for (index_t col = 0; col < h.panel; ++col)
            CHECK(payload[row * h.panel + col] == (col < 3 ? b[row * 3 + col] : 0.0f));
    }
    if (h.panel == 16) {
        CHECK(h.payload_bytes == 128);
        CHECK(h.payload_checksum == 0x4265E8B0F34FFCA4ull);
        CHECK(h.header_checksum == 0x03BEA0D70912DFC2ull);
    }
}

TEST_CASE("no bit of a header can change unnoticed") {
    with_each([](auto& p, const auto& weights, const char* name) {
        CAPTURE(name);
        bytes_of_weights packed(p.plan, weights);
        const packed_view opened = packed.view();
        for (std::size_t i = 0; i < sizeof(packed_header); ++i) {
            for (int bit = 0; bit < 8; ++bit) {
                if (quick() && bit != static_cast<int>(i % 8)) continue;
                const std::byte flip{static_cast<unsigned char>(1 << bit)};
                packed[i] ^= flip;
                const auto view = packed.open();
                const status run = p.run(opened);  // what was opened before it changed
                packed[i] ^= flip;
                const argument want = i < 8    ? argument::packed_magic
                                      : i < 12 ? argument::packed_version
                                               : argument::packed_header;
                const bool good = !view.has_value() && view.status().code == code::corrupt &&
                                  view.status().argument == want && run.code == code::corrupt &&
                                  run.argument == argument::packed_header;
                if (!good)
                    FAIL_CHECK("byte " << i << " bit " << bit << ": open says " << view.status().message().c_str()
                                       << ", run says " << run.message().c_str());
            }
        }
        // Every byte replaced by all others of a few values.
        for (std::size_t i = 0; i < sizeof(packed_header); ++i) {
            for (int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
                const std::byte old = packed[i];
                if (old == static_cast<std::byte>(value)) continue;
                packed[i] = static_cast<std::byte>(value);
                if (packed.open().has_value()) FAIL_CHECK("byte " << i << " may be " << value);
                packed[i] = old;
            }
        }
        CHECK(p.run(packed.view()).ok());
        CHECK(p.right());
    });
}

TEST_CASE("no bit of the weights can change unnoticed by verify()") {
    with_each([](auto& p, const auto& weights, const char* name) {
        CAPTURE(name);
        bytes_of_weights packed(p.plan, weights);
        const std::uint64_t right = packed.view().header().payload_checksum;
        for (std::size_t i = sizeof(packed_header); i < packed.size(); i += quick() ? 13u : 1u) {
            const std::byte flip{static_cast<unsigned char>(1 << (i % 8))};
            packed[i] ^= flip;
            const auto view = packed.open();
            REQUIRE(view);  // the payload is not read
            const status s = view->verify();
            packed[i] ^= flip;
            if (s.code != code::corrupt || s.argument != argument::packed_payload ||
                s.limit != static_cast<std::int64_t>(right) || s.value == s.limit) {
                FAIL_CHECK("byte " << i << ": " << s.message().c_str());
            }
        }
        // Words exchanged, and rows of zeros longer or shorter by nothing but their count.
        std::byte word[8];
        std::memcpy(word, packed.room() + 128, 8);
        std::memcpy(packed.room() + 128, packed.room() + 128 + 32, 8);
        std::memcpy(packed.room() + 128 + 32, word, 8);
        CHECK(packed.view().verify().code == code::corrupt);
    });
    check(packed_view{}.verify(), {code::null_pointer, argument::packed_payload, 0, 1},
          "packed payload = 0 must not be null: elements at stake are 1");
    CHECK(packed_view{}.empty());
}

TEST_CASE("packed weights cut short, or not aligned") {
    product p;
    bytes_of_weights packed(p.plan, p.vb());
    const auto whole = static_cast<std::int64_t>(packed.size());
    for (std::size_t size = 0; size < packed.size(); ++size) {
        const auto view = packed_view::open({packed.room(), size});
        const std::int64_t want = size < 128 ? 128 : whole;
        if (view.status() != status{code::too_small, argument::packed_bytes, static_cast<std::int64_t>(size), want}) {
            FAIL_CHECK(size << " bytes: " << view.status().message().c_str());
        }
    }
    check(packed_view::open({}).status(), {code::too_small, argument::packed_bytes, 0, 128},
          "packed.bytes = 0 is too small; bytes or elements needed are 128");
    // More than it is: a file may go on.
    CHECK(packed_view::open({packed.room(), packed.size() + 64}).has_value());
    std::vector<std::byte> copy(packed.room(), packed.room() + packed.size());
    for (std::size_t by = 1; by < 64; ++by) {
        std::memcpy(packed.room() + by, copy.data(), copy.size());
        check(packed_view::open({packed.room() + by, copy.size()}).status(),
              {code::misaligned, argument::packed_bytes, static_cast<int>(by), 64},
              "packed.bytes = " + std::to_string(by) + " must be aligned to bytes 64");
    }
    // A header that claims more bytes than any memory has.
    std::memcpy(packed.room(), copy.data(), copy.size());
    for (std::uint64_t claim : {UINT64_MAX, UINT64_MAX - 127, std::uint64_t{1} << 63, packed.size() - 127}) {
        packed_header h;
        std::memcpy(&h, copy.data(), sizeof h);
        h.payload_bytes = claim;
        h.header_checksum = hone::detail::header_checksum(h);
        std::memcpy(packed.room(), &h, sizeof h);
        CHECK(packed.open().status().code == code::too_small);
        CHECK(packed.open().status().argument == argument::packed_bytes);
    }
}

TEST_CASE("another program's file") {
    product p;
    bytes_of_weights packed(p.plan, p.vb());
    packed_header h = packed.view().header();
    const std::uint64_t magic = h.magic;
    const auto open_with = [&](const packed_header& other) {
        packed_header signed_again = other;
        signed_again.header_checksum = hone::detail::header_checksum(signed_again);
        std::memcpy(packed.room(), &signed_again, sizeof signed_again);
        return packed.open().status();
    };
    h.magic = 0x1122334455667788ull;
    check(open_with(h), {code::corrupt, argument::packed_magic, 0x1122334455667788ll, static_cast<std::int64_t>(magic)},
          "packed.magic = 1234605616436508552 does not match what was packed; expected 5423250189300158280");
    h.magic = __builtin_bswap64(magic);  // written by a big-endian machine
    CHECK(open_with(h).argument == argument::packed_magic);
    h.magic = magic;
    h.version = 2;
    check(open_with(h), {code::corrupt, argument::packed_version, 2, 1},
          "packed.version = 2 does not match what was packed; expected 1");
    h.version = 0;
    check(open_with(h), {code::corrupt, argument::packed_version, 0, 1},
          "packed.version = 0 does not match what was packed; expected 1");
    std::memset(packed.room(), 0, packed.size());
    CHECK(packed.open().status().argument == argument::packed_magic);
}

TEST_CASE("weights that are whole, but not this plan's") {
    product p;
    convolution c;
    const auto refused = [](auto& problem, auto& packed, auto change, argument what) {
        const packed_header before = packed.view().header();
        const packed_view v = packed.with(change);
        const status s = problem.run(v);
        CHECK(s.code == code::corrupt);
        CHECK(s.argument == what);
        packed.with([&](packed_header& h) { h = before; });
        CHECK(problem.run(packed.view()).ok());
        CHECK(problem.right());
        return s;
    };
    bytes_of_weights g(p.plan, p.vb()), f(c.plan, c.vf());
    check(refused(
              p, g, [](packed_header& h) { h.kind = hone::packed_kind::conv; }, argument::packed_layout),
          {code::corrupt, argument::packed_layout, 2, 1},
          "packed.layout = 2 does not match what was packed; expected 1");
    CHECK(refused(
              p, g, [](packed_header& h) { h.element = 2; }, argument::packed_layout)
              .limit == 4);
    CHECK(refused(
              p, g, [](packed_header& h) { h.panel = 8; }, argument::packed_layout)
              .value == 8);
    CHECK(refused(
              p, g, [](packed_header& h) { h.groups = 2; }, argument::packed_extent)
              .value == 2);
    check(refused(
              p, g, [](packed_header& h) { h.k = 12; }, argument::packed_extent),
          {code::corrupt, argument::packed_extent, 12, 11},
          "packed extent = 12 does not match what was packed; expected 11");
    CHECK(refused(
              p, g, [](packed_header& h) { h.n = 24; }, argument::packed_extent)
              .value == 24);
    CHECK(refused(
              c, f, [](packed_header& h) { h.kh = 3; }, argument::packed_extent)
              .value == 3);
    CHECK(refused(
              c, f, [](packed_header& h) { h.kw = 2; }, argument::packed_extent)
              .value == 2);
    CHECK(refused(
              c, f, [](packed_header& h) { h.groups = 1; }, argument::packed_extent)
              .value == 1);
    CHECK(refused(
              c, f, [](packed_header& h) { h.kind = static_cast<hone::packed_kind>(7); }, argument::packed_layout)
              .value == 7);
    // Signed, of the right extents, and shorter than they need: reading on would leave the memory.
    CHECK(refused(
              p, g, [](packed_header& h) { h.payload_bytes = 0; }, argument::packed_extent)
              .value == 0);
    CHECK(refused(
              c, f, [](packed_header& h) { h.payload_bytes -= 4; }, argument::packed_extent)
              .code == code::corrupt);

    // Real ones of other plans.
    convolution d(true);
    bytes_of_weights depthwise(d.plan, d.vf());
    CHECK(p.run(f.view()).argument == argument::packed_layout);
    CHECK(c.run(g.view()).argument == argument::packed_layout);
    CHECK(c.run(depthwise.view()).argument == argument::packed_layout);
    CHECK(d.run(f.view()).argument == argument::packed_layout);
    CHECK(d.run(g.view()).argument == argument::packed_layout);
    hone::conv_desc turned = c.desc;
    turned.kh = 3;
    turned.kw = 2;
    const auto other = *hone::plan(turned);
    bytes_of_weights across(other, hone::oihw<const float>(c.filter.data(), 19, 5, 3, 2, 2));
    CHECK(c.run(across.view()) == status{code::corrupt, argument::packed_extent, 3, 2});
    const auto wide = *hone::plan(hone::gemm_desc{.m = 5, .n = 22, .k = 11});
    bytes_of_weights narrower(wide, hone::row_major<const float>(p.b, 11, 22));
    CHECK(p.run(narrower.view()) == status{code::corrupt, argument::packed_extent, 22, 23});
    // Depthwise weights for a plan that was told to use the general kernel.
    const auto general = *hone::plan(d.desc, hone::policy{.algorithm = hone::algorithm::implicit_gemm});
    CHECK(general.run(d.vi(), depthwise.view(), hone::nhwc(d.c.data(), 1, 5, 3, 21)).argument ==
          argument::packed_layout);
}

TEST_CASE("weights are shared by every plan of the same filter") {
    convolution c;
    bytes_of_weights packed(c.plan, c.vf());
    random_source source(3);
    // Other images, windows, layouts, batches, and the transposed direction.
    for (int i = 0; i < 6; ++i) {
        conv_problem p{.n = 1 + i % 2, .h = 3 + i, .w = 8 - i, .ic = 10, .oc = 38, .groups = 2, .kh = 2, .kw = 3};
        p.window.pad = {i % 3, 1, 0, i % 2};
        p.window.stride_h = 1 + i % 2;
        p.window.transposed = i >= 4;
        p.in = static_cast<image_layout>(i % 2);
        p.out = static_cast<image_layout>(i / 2 % 2);
        conv_memory memory(edge::end);
        conv_data d(memory, p, source);
        std::size_t at = 0;
        each_weight(d.filter, [&](float& x) { x = c.filter[at++]; });
        d.refresh();
        const hone::image_strides s = strides_of(p.out, d.oh, d.ow, p.oc);
        image<float> out(memory.out, p.n, d.oh, d.ow, p.oc, s);
        const auto plan = hone::plan(d.desc(s));
        REQUIRE(plan);
        CHECK(plan->run(d.in.in(), packed.view(), out.view()).ok());
        CHECK(d.wrong<plain_sums>(out, reproducible(hone::active_isa())) == "");
    }
    // A product with another m.
    product p;
    bytes_of_weights b(p.plan, p.vb());
    const auto one = *hone::plan(hone::gemm_desc{.m = 1, .n = p.n, .k = p.k});
    float c_row[product::n];
    CHECK(one.run(hone::row_major<const float>(p.a, 1, p.k), b.view(), hone::row_major(c_row, 1, p.n)).ok());
    CHECK(std::memcmp(c_row, p.want, sizeof c_row) == 0);
}

TEST_CASE("weights packed on one instruction set run on every other of the same layout") {
    int shared = 0;
    for (isa from : isas()) {
        product p(from);
        convolution c(false, from), d(true, from);
        bytes_of_weights b(p.plan, p.vb()), f(c.plan, c.vf()), e(d.plan, d.vf());
        for (isa to : isas()) {
            CAPTURE(hone::isa_name(from), hone::isa_name(to));
            product p2(to);
            convolution c2(false, to), d2(true, to);
            // Depthwise weights have one layout everywhere.
            CHECK(d2.run(e.view()).ok());
            CHECK(d2.right());
            bytes_of_weights b2(p2.plan, p2.vb()), f2(c2.plan, c2.vf());
            if (b2.view().header().panel == b.view().header().panel) {
                ++shared;
                CHECK(p2.run(b.view()).ok());
                CHECK(p2.right());
                CHECK(c2.run(f.view()).ok());
                CHECK(c2.right());
                REQUIRE(b2.size() == b.size());
                CHECK(std::memcmp(b2.room(), b.room(), b.size()) == 0);
                REQUIRE(f2.size() == f.size());
                CHECK(std::memcmp(f2.room(), f.room(), f.size()) == 0);
            } else {
                CHECK(p2.run(b.view()).argument == argument::packed_layout);
                CHECK(c2.run(f.view()).argument == argument::packed_layout);
            }
            if (reproducible(from) && reproducible(to)) {
                CHECK(std::memcmp(p.want, p2.want, sizeof p.want) == 0);
                CHECK(c.want == c2.want);
                CHECK(d.want == d2.want);
            }
        }
    }
    CHECK(shared >= 2);
}

TEST_CASE("the header knows whether all weights are finite") {
    const float big = std::numeric_limits<float>::max(), tiny = 0x1p-149f;
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const struct {
        float value;
        std::uint64_t finite;
    } rows[] = {{0.0f, 1},     {-0.0f, 1},     {big, 1}, {-big, 1}, {tiny, 1},
                {infinity, 0}, {-infinity, 0}, {nan, 0}, {-nan, 0}};
    for (const auto& row : rows) {
        CAPTURE(row.value);
        for (std::size_t at : {std::size_t{0}, std::size_t{100}, std::size_t{product::n * product::k - 1}}) {
            product p;
            p.b[at] = row.value;
            CHECK(bytes_of_weights(p.plan, p.vb()).view().header().finite == row.finite);
            for (bool depthwise : {false, true}) {
                convolution c(depthwise);
                c.filter[at % c.filter.size()] = row.value;
                CHECK(bytes_of_weights(c.plan, c.vf()).view().header().finite == row.finite);
            }
        }
    }
}

TEST_CASE("packed weights that are not finite keep out of the padding") {
    random_source source(4);
    conv_memory memory(edge::end);
    for (index_t groups : {1, 6}) {
        conv_problem p{.n = 1,
                       .h = 4,
                       .w = 4,
                       .ic = 6,
                       .oc = 6,
                       .groups = groups,
                       .kh = 3,
                       .kw = 3,
                       .window = {.pad = {1, 1, 1, 1}},
                       .finite = false};
        conv_data d(memory, p, source);
        for (isa id : isas()) CHECK(run_conv<plain_sums>(d, hone::policy{.isa = id}, true) == "");
    }
}

TEST_CASE("packed weights kept in a file and mapped") {
    char path[] = "/tmp/hone_pack_test_XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) {
        WARN("skipped: no file can be made in /tmp");
        return;
    }
    unlink(path);
    // Three sets of weights one after another, each on a 64-byte boundary.
    product p;
    convolution c, d(true);
    bytes_of_weights sets[] = {{p.plan, p.vb()}, {c.plan, c.vf()}, {d.plan, d.vf()}};
    std::vector<std::byte> whole;
    std::size_t at[3];
    for (int i = 0; i < 3; ++i) {
        whole.resize((whole.size() + 63) / 64 * 64);
        at[i] = whole.size();
        whole.insert(whole.end(), sets[i].room(), sets[i].room() + sets[i].size());
    }
    REQUIRE(write(file, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size()));
    void* mapped = mmap(nullptr, whole.size(), PROT_READ, MAP_PRIVATE, file, 0);
    REQUIRE(mapped != MAP_FAILED);
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(mapped), whole.size()};
    const auto open = [&](int i) { return packed_view::open(bytes.subspan(at[i])); };
    for (int i = 0; i < 3; ++i) {
        REQUIRE(open(i).has_value());
        CHECK(open(i)->verify().ok());
    }
    CHECK(p.run(*open(0)).ok());
    CHECK(p.right());
    CHECK(c.run(*open(1)).ok());
    CHECK(c.right());
    CHECK(d.run(*open(2)).ok());
    CHECK(d.right());
    // From many threads at once.
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            std::vector<float> out(c.want.size());
            for (int i = 0; i < 20; ++i) {
                wrong += !c.plan.run(c.vi(), *open(1), hone::nhwc(out.data(), 1, 5, 3, 38)).ok();
                wrong += std::memcmp(out.data(), c.want.data(), out.size() * sizeof(float)) != 0;
            }
            hone::release_scratch();
        });
    }
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
    munmap(mapped, whole.size());
    close(file);
}

TEST_CASE("weights of no elements") {
    const auto plan = *hone::plan(hone::gemm_desc{.m = 3, .n = 0, .k = 5});
    bytes_of_weights empty(plan, hone::row_major(static_cast<const float*>(nullptr), 5, 0));
    CHECK(empty.size() == 128);
    CHECK(empty.view().verify().ok());
    const float a[15] = {};
    CHECK(plan.run(hone::row_major(a, 3, 5), empty.view(), hone::row_major(static_cast<float*>(nullptr), 3, 0)).ok());
    const auto conv = *hone::plan(hone::conv_desc{.n = 1, .h = 2, .w = 2, .ic = 0, .oc = 3, .kh = 2, .kw = 2});
    bytes_of_weights none(conv, hone::oihw(static_cast<const float*>(nullptr), 3, 0, 2, 2));
    CHECK(none.view().header().finite == 1);
    float out[3] = {9, 9, 9};
    CHECK(conv.run(hone::nhwc(a, 1, 2, 2, 0), none.view(), hone::nhwc(out, 1, 1, 1, 3)).ok());
    CHECK(out[0] + out[1] + out[2] == 0);
}
