// SPDX-License-Identifier: BSL-1.0
// What this machine can do at most, measured beside what is timed: f32 fused multiply-adds, and reads of one buffer.
//
// The instruction sets are found here by the compiler's own detection, not by hone's: a mistake in hone's must not
// lower the ceiling it is held against. Needs no -m flags; every loop is a function with a target attribute.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__linux__) && ((!defined(__clang__) && __GNUC__ >= 12) || (defined(__clang__) && __clang_major__ >= 16))
#include <arm_sve.h>
#define HONE_BENCH_SVE 1
#endif
#endif

namespace bench {

// Chains have names and are no array: sizeless SVE vectors have no arrays, and nothing is left to the unroller.
// 16 chains hide a latency of 4 on 4 ports; 24 where there are 32 registers.
#define HONE_BENCH_CHAINS_16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define HONE_BENCH_CHAINS_24(X) HONE_BENCH_CHAINS_16(X) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

namespace detail {

inline double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void keep(float value) { asm volatile("" : : "r"(&value) : "memory"); }

// x = x * x + x needs one register a chain and no operand in memory. It runs from -seed towards 0 like -1 / steps:
// never denormal, never constant from the start. Seeds differ, or the compiler would compute one chain for all.
inline float seed(int chain) { return -0.25f - 0.01f * static_cast<float>(chain); }

struct fma_loop {
    const char* isa;
    double flops_per_step;
    void (*run)(std::int64_t steps);
};

#if defined(__x86_64__)
#define HONE_BENCH_INIT(i) __m512 x##i = _mm512_set1_ps(seed(i));
#define HONE_BENCH_STEP(i) x##i = _mm512_fmadd_ps(x##i, x##i, x##i);
#define HONE_BENCH_SUM(i) sum = _mm512_add_ps(sum, x##i);
// VL is named although nothing uses it: without it Clang 14 allocates 16 registers and spills 8 of the chains.
__attribute__((target("avx512f,avx512vl"), noinline)) inline void fma_avx512(std::int64_t steps) {
    HONE_BENCH_CHAINS_24(HONE_BENCH_INIT)
    for (std::int64_t s = 0; s < steps; ++s) {
        HONE_BENCH_CHAINS_24(HONE_BENCH_STEP)
    }
    __m512 sum = _mm512_setzero_ps();
    HONE_BENCH_CHAINS_24(HONE_BENCH_SUM)
    keep(_mm512_cvtss_f32(sum));
}
#undef HONE_BENCH_INIT
#undef HONE_BENCH_STEP
#undef HONE_BENCH_SUM
#define HONE_BENCH_INIT(i) __m256 x##i = _mm256_set1_ps(seed(i));
#define HONE_BENCH_STEP(i) x##i = _mm256_fmadd_ps(x##i, x##i, x##i);
#define HONE_BENCH_SUM(i) sum = _mm256_add_ps(sum, x##i);
__attribute__((target("avx2,fma"), noinline)) inline void fma_avx2(std::int64_t steps) {
    HONE_BENCH_CHAINS_16(HONE_BENCH_INIT)
    for (std::int64_t s = 0; s < steps; ++s) {
        HONE_BENCH_CHAINS_16(HONE_BENCH_STEP)
    }
    __m256 sum = _mm256_setzero_ps();
    HONE_BENCH_CHAINS_16(HONE_BENCH_SUM)
    keep(_mm256_cvtss_f32(sum));
}
#undef HONE_BENCH_INIT
#undef HONE_BENCH_STEP
#undef HONE_BENCH_SUM
// Without FMA: a multiply and an add, half of the chains each, as their ports are not always the same.
#define HONE_BENCH_INIT(i) __m128 x##i = _mm_set1_ps(seed(i));
#define HONE_BENCH_STEP(i) x##i = (i) % 2 == 0 ? _mm_add_ps(x##i, x##i) : _mm_mul_ps(x##i, x##i);
#define HONE_BENCH_SUM(i) sum = _mm_add_ps(sum, x##i);
__attribute__((noinline)) inline void muladd_sse2(std::int64_t steps) {
    HONE_BENCH_CHAINS_16(HONE_BENCH_INIT)
    for (std::int64_t s = 0; s < steps; ++s) {
        HONE_BENCH_CHAINS_16(HONE_BENCH_STEP)
    }
    __m128 sum = _mm_setzero_ps();
    HONE_BENCH_CHAINS_16(HONE_BENCH_SUM)
    keep(_mm_cvtss_f32(sum));
}
#undef HONE_BENCH_INIT
#undef HONE_BENCH_STEP
#undef HONE_BENCH_SUM
#elif defined(__aarch64__)
#define HONE_BENCH_INIT(i) float32x4_t x##i = vdupq_n_f32(seed(i));
#define HONE_BENCH_STEP(i) x##i = vfmaq_f32(x##i, x##i, x##i);
#define HONE_BENCH_SUM(i) sum = vaddq_f32(sum, x##i);
__attribute__((noinline)) inline void fma_neon(std::int64_t steps) {
    HONE_BENCH_CHAINS_24(HONE_BENCH_INIT)
    for (std::int64_t s = 0; s < steps; ++s) {
        HONE_BENCH_CHAINS_24(HONE_BENCH_STEP)
    }
    float32x4_t sum = vdupq_n_f32(0);
    HONE_BENCH_CHAINS_24(HONE_BENCH_SUM)
    keep(vgetq_lane_f32(sum, 0));
}
#undef HONE_BENCH_INIT
#undef HONE_BENCH_STEP
#undef HONE_BENCH_SUM
#if defined(HONE_BENCH_SVE)
#if defined(__clang__)
#define HONE_BENCH_TARGET_SVE __attribute__((target("sve"), noinline))
#else
#define HONE_BENCH_TARGET_SVE __attribute__((target("+sve"), noinline))
#endif
#define HONE_BENCH_INIT(i) svfloat32_t x##i = svdup_n_f32(seed(i));
#define HONE_BENCH_STEP(i) x##i = svmla_f32_x(all, x##i, x##i, x##i);
#define HONE_BENCH_SUM(i) sum = svadd_f32_x(all, sum, x##i);
HONE_BENCH_TARGET_SVE inline void fma_sve(std::int64_t steps) {
    const svbool_t all = svptrue_b32();
    HONE_BENCH_CHAINS_24(HONE_BENCH_INIT)
    for (std::int64_t s = 0; s < steps; ++s) {
        HONE_BENCH_CHAINS_24(HONE_BENCH_STEP)
    }
    svfloat32_t sum = svdup_n_f32(0);
    HONE_BENCH_CHAINS_24(HONE_BENCH_SUM)
    keep(svaddv_f32(all, sum));
}
HONE_BENCH_TARGET_SVE inline std::uint64_t sve_lanes() { return svcntw(); }
#undef HONE_BENCH_INIT
#undef HONE_BENCH_STEP
#undef HONE_BENCH_SUM
#endif
#endif

// What this machine can run, widest first.
inline int fma_loops(fma_loop (&out)[2]) {
    int n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        out[n++] = {"avx512", 2.0 * 16 * 24, fma_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = {"avx2", 2.0 * 8 * 16, fma_avx2};
    if (n == 0) out[n++] = {"sse2 multiply and add", 1.0 * 4 * 16, muladd_sse2};
#elif defined(__aarch64__)
#if defined(HONE_BENCH_SVE)
    constexpr unsigned long hwcap_sve = 1ul << 22;
    if (getauxval(AT_HWCAP) & hwcap_sve) out[n++] = {"sve", 2.0 * 24 * static_cast<double>(sve_lanes()), fma_sve};
#endif
    out[n++] = {"neon", 2.0 * 4 * 24, fma_neon};
#endif
    return n;
}

// XOR of all that is read: one instruction a load, latency 1. The best of several numbers of streams is the bandwidth:
// few suit the prefetcher, many the open pages and the banks.
using word = std::uint64_t;
#define HONE_BENCH_READ(name, attribute, vector_bytes)                                             \
    template <std::size_t Streams>                                                                 \
    attribute inline void name(const std::byte* p, std::size_t bytes, std::int64_t times) {        \
        using vector = word __attribute__((vector_size(vector_bytes)));                            \
        constexpr std::size_t each = Streams == 1 ? 4 : 1; /* vectors a step of one stream */      \
        const std::size_t chunk = bytes / Streams / (each * vector_bytes) * (each * vector_bytes); \
        vector acc[Streams * each] = {};                                                           \
        for (std::int64_t t = 0; t < times; ++t)                                                   \
            for (std::size_t i = 0; i < chunk; i += each * vector_bytes)                           \
                for (std::size_t s = 0; s < Streams; ++s)                                          \
                    for (std::size_t v = 0; v < each; ++v) {                                       \
                        vector x;                                                                  \
                        __builtin_memcpy(&x, p + s * chunk + i + v * vector_bytes, vector_bytes);  \
                        acc[s * each + v] ^= x;                                                    \
                    }                                                                              \
        vector all = acc[0];                                                                       \
        for (std::size_t s = 1; s < Streams * each; ++s) all ^= acc[s];                            \
        keep(static_cast<float>(all[0]));                                                          \
        keep(static_cast<float>(all[vector_bytes / 8 - 1]));                                       \
    }
#if defined(__x86_64__)
HONE_BENCH_READ(read_avx512, __attribute__((target("avx512f"), noinline)), 64)
HONE_BENCH_READ(read_avx2, __attribute__((target("avx2"), noinline)), 32)
#endif
HONE_BENCH_READ(read_baseline, __attribute__((noinline)), 16)
#undef HONE_BENCH_READ

template <std::size_t Streams>
inline double read_rate(const std::byte* p, std::size_t bytes, double at_least) {
    void (*read)(const std::byte*, std::size_t, std::int64_t) = read_baseline<Streams>;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        read = read_avx512<Streams>;
    else if (__builtin_cpu_supports("avx2"))
        read = read_avx2<Streams>;
#endif
    const std::int64_t batch =
        1 + (1 << 20) / static_cast<std::int64_t>(bytes + 1);  // reading the clock costs 4 KiB of reads
    std::int64_t times = 0;
    const double begin = seconds();
    double now = begin;
    do {
        read(p, bytes, batch);
        times += batch;
        now = seconds();
    } while (now - begin < at_least);
    return static_cast<double>(bytes) * static_cast<double>(times) / (now - begin);
}

}  // namespace detail

// GFLOP/s of one thread's fused multiply-adds now: the best of three bursts of about half a millisecond on each of the
// two widest instruction sets (some machines lower the clock for the widest).
inline double fma_ceiling() {
    detail::fma_loop loops[2];
    const int n = detail::fma_loops(loops);
    double best = 0;
    for (int i = 0; i < n; ++i) {
        std::int64_t steps = 40000;
        for (int burst = 0; burst < 3; ++burst) {
            const double begin = detail::seconds();
            loops[i].run(steps);
            const double took = detail::seconds() - begin;
            if (took < 3e-4) {  // too short to trust the clock: longer, and again
                steps *= 2;
                --burst;
                continue;
            }
            best = (std::max)(best, static_cast<double>(steps) * loops[i].flops_per_step / took * 1e-9);
        }
    }
    return best;
}

// The instruction set that the ceiling is measured on.
inline std::string ceiling_isa() {
    detail::fma_loop loops[2];
    return detail::fma_loops(loops) > 0 ? loops[0].isa : "none";
}

// GB/s (10^9 bytes) at which one thread reads `bytes` bytes at p over and over: the best of 1, 4 and 16 streams.
inline double read_ceiling(const void* p, std::size_t bytes) {
    const std::byte* at = static_cast<const std::byte*>(p);
    const double best = (std::max)({detail::read_rate<1>(at, bytes, 1e-3), detail::read_rate<4>(at, bytes, 1e-3),
                                    detail::read_rate<16>(at, bytes, 1e-3)});
    return best * 1e-9;
}

}  // namespace bench
