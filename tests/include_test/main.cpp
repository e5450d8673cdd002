// SPDX-License-Identifier: BSL-1.0
// Two units with flags of their own in one program: each computes, and both compute the same bits. With an argument
// only the first runs: on a CPU that the second was not compiled for, nothing of the second may be reached.
#include <cstdio>

unsigned long long first_unit();
unsigned long long second_unit();

int main(int count, char**) {
    if (count > 1) {
        const unsigned long long alone = first_unit();
        std::printf("%016llx\n", alone);
        return alone != 0 ? 0 : 1;
    }
#if defined(__x86_64__)
    // The second may be compiled for a Haswell.
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        std::puts("skipped: this CPU is older than what the second unit is compiled for");
        return 0;
    }
#endif
    const unsigned long long first = first_unit(), second = second_unit();
    std::printf("%016llx %016llx\n", first, second);
    return first != 0 && first == second ? 0 : 1;
}
