// SPDX-License-Identifier: BSL-1.0
// The one interface behind which every opponent stands, hone's own adapter included. All run on one thread.
#pragma once

#include <string>
#include <vector>

#include "../harness.hpp"

namespace bench {

// c = a b, row-major and dense: a (m, k), b (k, n), c (m, n).
struct gemm_problem {
    long m = 0, n = 0, k = 0;
    const float* a = nullptr;
    const float* b = nullptr;
    float* c = nullptr;
};

// out = relu(in * weights + bias), one image: in (h, w, ic), out (oh, ow, oc), weights (oc, ic / groups, kh, kw),
// dense.
struct conv_problem {
    long h = 0, w = 0, ic = 0, oc = 0, kh = 0, kw = 0, stride = 1, pad = 0, groups = 1;
    long oh = 0, ow = 0;
    const float* in = nullptr;
    const float* weights = nullptr;
    const float* bias = nullptr;
    float* out = nullptr;
};

// What a peer adds to a case: `run` computes, `read` (where it is not empty) copies the result to the problem's c or
// out.
struct entry {
    std::string name, group;
    std::function<void(long times)> run;
    std::function<void()> read;
    const void* weights = nullptr;
    std::size_t weight_bytes = 0;
};

struct peer {
    std::string name;
    std::string what;  // version and, where the library tells, the kernels it chose
    std::vector<entry> (*gemm)(const gemm_problem&) = nullptr;
    std::vector<entry> (*conv)(const conv_problem&) = nullptr;
};

// Each gives nothing when the library is not there. Only those that CMake found are compiled in.
std::vector<peer> hone_itself();
std::vector<peer> eigen();
std::vector<peer> openblas();
std::vector<peer> blis();
std::vector<peer> onednn();
std::vector<peer> xnnpack();
std::vector<peer> libxsmm();

// hone first, then what was compiled in and loads.
const std::vector<peer>& peers();

}  // namespace bench
