// SPDX-License-Identifier: BSL-1.0
// program LIBRARY NUMBER LIBRARY NUMBER: loads both for all to see, then calls each.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
    if (count != 5) return 2;
    int (*packed[2])() = {};
    for (int i = 0; i < 2; ++i) {
        void* library = dlopen(arguments[1 + 2 * i], RTLD_NOW | RTLD_GLOBAL);
        void* function = library != nullptr ? dlsym(library, "packed_by_library") : nullptr;
        if (function == nullptr) {
            std::puts(dlerror());
            return 2;
        }
        packed[i] = reinterpret_cast<int (*)()>(function);
    }
    int wrong = 0;
    for (int i = 0; i < 2; ++i) {
        const int number = packed[i]();
        if (number != std::atoi(arguments[2 + 2 * i])) ++wrong;
        std::printf("%s packs with number %d\n", arguments[1 + 2 * i], number);
    }
    return wrong;
}
