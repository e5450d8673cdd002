// SPDX-License-Identifier: BSL-1.0
// Eigen has no run-time dispatch: this unit is compiled with -march=native, so that it is at its best here. Nothing
// else in the benches includes Eigen, whose functions would otherwise be merged with weaker copies.
#include <Eigen/Core>

#include "peer.hpp"

namespace bench {
namespace {

template <class T>
std::vector<entry> gemm(const gemm_problem_of<T>& p) {
    using row_major = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    return {{"eigen",
             "plain",
             repeated([p] {
                 Eigen::Map<row_major>(p.c, p.m, p.n).noalias() =
                     Eigen::Map<const row_major>(p.a, p.m, p.k) * Eigen::Map<const row_major>(p.b, p.k, p.n);
             }),
             {},
             p.b,
             static_cast<std::size_t>(p.k * p.n) * sizeof(T)}};
}

}  // namespace

std::vector<peer> eigen() {
    // "AVX512, FMA, AVX2, AVX, SSE, …": the first two say it.
    const std::string all = Eigen::SimdInstructionSetsInUse();
#if defined(EIGEN_VERSION_STRING)
    const std::string version = EIGEN_VERSION_STRING;
#else
    const std::string version = std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                                std::to_string(EIGEN_MINOR_VERSION);
#endif
    const std::string isa = all.substr(0, all.find(", ", all.find(',') + 1));
    return {{"eigen", "Eigen " + version + ", " + isa, gemm<float>, nullptr, gemm<double>}};
}

}  // namespace bench
