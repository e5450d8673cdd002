// SPDX-License-Identifier: BSL-1.0
// libxsmm compiles one kernel for one shape at run time; timed is the call of that kernel, so it is compared with
// kernels that are fixed to a shape, and enters no mean over the others. 1.17 and 2.x name their calls differently.
#if defined(HONE_BENCH_LIBXSMM_SOURCE)
#include <libxsmm_source.h>
#else
#include <libxsmm.h>
#endif

#include "peer.hpp"

namespace bench {
namespace {

constexpr long largest = 256;  // in m n k's cube root; above it one kernel without blocking is not what libxsmm is for

std::vector<entry> gemm(const gemm_problem& p) {
    if (p.m * p.n * p.k > largest * largest * largest) return {};
    const std::vector<operand_set> sets = p.sets.empty() ? std::vector<operand_set>{{p.a, p.b, p.c}} : p.sets;
        // Column-major: c' = b' a'.
#if LIBXSMM_VERSION_MAJOR >= 2
    const auto m = static_cast<libxsmm_blasint>(p.m), n = static_cast<libxsmm_blasint>(p.n),
               k = static_cast<libxsmm_blasint>(p.k);
    const libxsmm_gemm_shape shape = libxsmm_create_gemm_shape(
        n, m, k, n, k, n, LIBXSMM_DATATYPE_F32, LIBXSMM_DATATYPE_F32, LIBXSMM_DATATYPE_F32, LIBXSMM_DATATYPE_F32);
    const libxsmm_gemmfunction kernel =
        libxsmm_dispatch_gemm(shape, LIBXSMM_GEMM_FLAG_BETA_0, LIBXSMM_GEMM_PREFETCH_NONE);
    if (kernel == nullptr) return {};
    return {{"libxsmm",
             "fixed",
             in_turn(sets,
                     [kernel](const float* a, const float* b, float* c) {
                         libxsmm_gemm_param args{};
                         args.a.primary = const_cast<float*>(b);
                         args.b.primary = const_cast<float*>(a);
                         args.c.primary = c;
                         kernel(&args);
                     }),
             {},
             nullptr,
             0}};
#else
    const auto m = static_cast<libxsmm_blasint>(p.m), n = static_cast<libxsmm_blasint>(p.n),
               k = static_cast<libxsmm_blasint>(p.k);
    const float one = 1, zero = 0;
    const int flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    const libxsmm_smmfunction kernel = libxsmm_smmdispatch(n, m, k, &n, &k, &n, &one, &zero, &flags, &prefetch);
    if (kernel == nullptr) return {};
    return {{"libxsmm", "fixed", in_turn(sets, [kernel](const float* a, const float* b, float* c) { kernel(b, a, c); }), {},
             nullptr, 0}};
#endif
}

}  // namespace

std::vector<peer> libxsmm() {
    libxsmm_init();
    const char* arch = libxsmm_get_target_arch();
    return {{"libxsmm", std::string("libxsmm ") + LIBXSMM_VERSION + ", " + (arch != nullptr ? arch : "no JIT"), gemm,
             nullptr}};
}

}  // namespace bench
