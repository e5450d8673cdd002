// SPDX-License-Identifier: BSL-1.0
// OpenBLAS and BLIS export the same symbols, so neither is linked: each is opened by itself and asked for its sgemm_.
#include <dlfcn.h>

#include <cstdio>

#include "peer.hpp"

namespace bench {
namespace {

using sgemm_function = void (*)(const char*, const char*, const int*, const int*, const int*, const float*,
                                const float*, const int*, const float*, const int*, const float*, float*, const int*);

template <class F>
F symbol(void* library, const char* name) {
    return reinterpret_cast<F>(dlsym(library, name));
}

// BLAS counts columns first: the row-major product is c' = b' a'.
std::vector<entry> blas_gemm(sgemm_function sgemm, const char* name, const gemm_problem& p) {
    return {{name,
             "plain",
             repeated([=] {
                 const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
                 const float one = 1, zero = 0;
                 sgemm("N", "N", &n, &m, &k, &one, p.b, &n, p.a, &k, &zero, p.c, &n);
             }),
             {},
             p.b,
             static_cast<std::size_t>(p.k * p.n) * sizeof(float)}};
}

void* open_library(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "peer left out: %s\n", dlerror());
    return library;
}

#if defined(HONE_BENCH_OPENBLAS)
sgemm_function openblas_sgemm = nullptr;
std::vector<entry> openblas_gemm(const gemm_problem& p) { return blas_gemm(openblas_sgemm, "openblas", p); }
#endif
#if defined(HONE_BENCH_BLIS)
sgemm_function blis_sgemm = nullptr;
std::vector<entry> blis_gemm(const gemm_problem& p) { return blas_gemm(blis_sgemm, "blis", p); }
#endif

}  // namespace

#if defined(HONE_BENCH_OPENBLAS)
std::vector<peer> openblas() {
    void* library = open_library(HONE_BENCH_OPENBLAS);
    if (library == nullptr) return {};
    openblas_sgemm = symbol<sgemm_function>(library, "sgemm_");
    if (openblas_sgemm == nullptr) return {};
    if (auto threads = symbol<void (*)(int)>(library, "openblas_set_num_threads")) threads(1);
    std::string what = "OpenBLAS";
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64": the version is the second word.
    if (auto config = symbol<char* (*)()>(library, "openblas_get_config")) {
        const std::string all = config();
        what = all.substr(0, all.find(' ', all.find(' ') + 1));
    }
    if (auto core = symbol<char* (*)()>(library, "openblas_get_corename")) what += std::string(", ") + core();
    return {{"openblas", what, openblas_gemm, nullptr}};
}
#endif

#if defined(HONE_BENCH_BLIS)
std::vector<peer> blis() {
    void* library = open_library(HONE_BENCH_BLIS);
    if (library == nullptr) return {};
    blis_sgemm = symbol<sgemm_function>(library, "sgemm_");
    if (blis_sgemm == nullptr) return {};
    if (auto threads = symbol<void (*)(long)>(library, "bli_thread_set_num_threads")) threads(1);
    std::string what = "BLIS";
    if (auto version = symbol<const char* (*)()>(library, "bli_info_get_version_str"))
        what += std::string(" ") + version();
    auto id = symbol<int (*)()>(library, "bli_arch_query_id");
    auto text = symbol<const char* (*)(int)>(library, "bli_arch_string");
    if (id != nullptr && text != nullptr) what += std::string(", ") + text(id());
    return {{"blis", what, blis_gemm, nullptr}};
}
#endif

}  // namespace bench
