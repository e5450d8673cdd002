// SPDX-License-Identifier: BSL-1.0
// The one interface behind which every opponent stands, hone's own adapter included. All run on one thread.
#pragma once

#include <string>
#include <vector>

#include "../harness.hpp"

namespace bench {

// Operands of one product.
template <class T>
struct operand_set_of {
    const T* a = nullptr;
    const T* b = nullptr;
    T* c = nullptr;
};
using operand_set = operand_set_of<float>;

// c = a b, row-major and dense: a (m, k), b (k, n), c (m, n).
template <class T>
struct gemm_problem_of {
    long m = 0, n = 0, k = 0;
    const T* a = nullptr;
    const T* b = nullptr;
    T* c = nullptr;
    // For kernels fixed to the shape, which a call of takes few nanoseconds: they are called with each of these in turn,
    // so that no call finds the operands of the last. The first is a, b, c. Empty where the shape is not small.
    std::vector<operand_set_of<T>> sets{};
};
using gemm_problem = gemm_problem_of<float>;
using gemm_f64_problem = gemm_problem_of<double>;

// Products that one call may compute together. Of equal ones the operands lie end to end.
struct gemm_list {
    std::vector<gemm_problem> all;
    bool equal = false;
};

// out = relu(in * weights + bias), one image: in (h, w, ic), out (oh, ow, oc), weights (oc, ic / groups, kh, kw),
// dense.
struct conv_problem {
    long h = 0, w = 0, ic = 0, oc = 0, kh = 0, kw = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, groups = 1;
    bool transposed = false;
    bool relaxed = false;  // hone shows its relaxed sums beside the others
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

// Calls f(a, b, c) with one set after the other; where they lie is nothing the compiler knows.
template <class F>
std::function<void(long)> in_turn(std::vector<operand_set> sets, F f) {
    return [sets = std::move(sets), f = std::move(f)](long times) {
        const operand_set* first = sets.data();
        asm volatile("" : "+r"(first) : : "memory");
        const operand_set *last = first + sets.size(), *at = first;
        for (long i = 0; i < times; ++i) {
            f(at->a, at->b, at->c);
            if (++at == last) at = first;
        }
        asm volatile("" : : : "memory");
    };
}

struct peer {
    std::string name;
    std::string what;  // version and, where the library tells, the kernels it chose
    std::vector<entry> (*gemm)(const gemm_problem&) = nullptr;
    std::vector<entry> (*conv)(const conv_problem&) = nullptr;
    std::vector<entry> (*gemm_f64)(const gemm_f64_problem&) = nullptr;
    std::vector<entry> (*gemms)(const gemm_list&) = nullptr;
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
