// SPDX-License-Identifier: BSL-1.0
// The same layer with Eigen.
#include <Eigen/Core>

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void layer(const float* a, const float* b, float* c, const float* v, Eigen::Index m, Eigen::Index n, Eigen::Index k) {
    Eigen::Map<matrix> out(c, m, n);
    out.noalias() = Eigen::Map<const matrix>(a, m, k) * Eigen::Map<const matrix>(b, k, n);
    out = (out.rowwise() + Eigen::Map<const Eigen::RowVectorXf>(v, n)).cwiseMax(0.0f);
}
