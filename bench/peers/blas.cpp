// SPDX-License-Identifier: BSL-1.0
// OpenBLAS and BLIS export the same symbols, so neither is linked: each is opened by itself and asked for its sgemm_ and dgemm_.
#include <dlfcn.h>

#include <cstdio>

#include "peer.hpp"

namespace bench {
namespace {

template <class T>
using gemm_function = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*,
                               const int*, const T*, const int*, const T*, T*, const int*);

template <class F>
F symbol(void* library, const char* name) {
    return reinterpret_cast<F>(dlsym(library, name));
}

// BLAS counts columns first: the row-major product is c' = b' a'.
template <class T>
std::vector<entry> blas_gemm(gemm_function<T> gemm, const char* name, const gemm_problem_of<T>& p) {
    return {{name,
             "plain",
             repeated([=] {
                 const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
                 const T one = 1, zero = 0;
                 gemm("N", "N", &n, &m, &k, &one, p.b, &n, p.a, &k, &zero, p.c, &n);
             }),
             {},
             p.b,
             static_cast<std::size_t>(p.k * p.n) * sizeof(T)}};
}

void* open_library(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "peer left out: %s\n", dlerror());
    return library;
}

#if defined(HONE_BENCH_OPENBLAS)
gemm_function<float> openblas_sgemm = nullptr;
gemm_function<double> openblas_dgemm = nullptr;
std::vector<entry> openblas_gemm(const gemm_problem& p) { return blas_gemm(openblas_sgemm, "openblas", p); }
std::vector<entry> openblas_gemm_f64(const gemm_f64_problem& p) { return blas_gemm(openblas_dgemm, "openblas", p); }
#endif
#if defined(HONE_BENCH_BLIS)
gemm_function<float> blis_sgemm = nullptr;
gemm_function<double> blis_dgemm = nullptr;
std::vector<entry> blis_gemm(const gemm_problem& p) { return blas_gemm(blis_sgemm, "blis", p); }
std::vector<entry> blis_gemm_f64(const gemm_f64_problem& p) { return blas_gemm(blis_dgemm, "blis", p); }
#endif

}  // namespace

#if defined(HONE_BENCH_OPENBLAS)
std::vector<peer> openblas() {
    void* library = open_library(HONE_BENCH_OPENBLAS);
    if (library == nullptr) return {};
    openblas_sgemm = symbol<gemm_function<float>>(library, "sgemm_");
    openblas_dgemm = symbol<gemm_function<double>>(library, "dgemm_");
    if (openblas_sgemm == nullptr || openblas_dgemm == nullptr) return {};
    if (auto threads = symbol<void (*)(int)>(library, "openblas_set_num_threads")) threads(1);
    std::string what = "OpenBLAS";
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64": the version is the second word.
    if (auto config = symbol<char* (*)()>(library, "openblas_get_config")) {
        const std::string all = config();
        what = all.substr(0, all.find(' ', all.find(' ') + 1));
    }
    if (auto core = symbol<char* (*)()>(library, "openblas_get_corename")) what += std::string(", ") + core();
    return {{"openblas", what, openblas_gemm, nullptr, openblas_gemm_f64}};
}
#endif

#if defined(HONE_BENCH_BLIS)
std::vector<peer> blis() {
    void* library = open_library(HONE_BENCH_BLIS);
    if (library == nullptr) return {};
    blis_sgemm = symbol<gemm_function<float>>(library, "sgemm_");
    blis_dgemm = symbol<gemm_function<double>>(library, "dgemm_");
    if (blis_sgemm == nullptr || blis_dgemm == nullptr) return {};
    if (auto threads = symbol<void (*)(long)>(library, "bli_thread_set_num_threads")) threads(1);
    std::string what = "BLIS";
    if (auto version = symbol<const char* (*)()>(library, "bli_info_get_version_str"))
        what += std::string(" ") + version();
    auto id = symbol<int (*)()>(library, "bli_arch_query_id");
    auto text = symbol<const char* (*)(int)>(library, "bli_arch_string");
    if (id != nullptr && text != nullptr) what += std::string(", ") + text(id());
    return {{"blis", what, blis_gemm, nullptr, blis_gemm_f64}};
}
#endif

}  // namespace bench
