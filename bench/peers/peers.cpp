// SPDX-License-Identifier: BSL-1.0
#include "peer.hpp"

namespace bench {

const std::vector<peer>& peers() {
    static const std::vector<peer> all = [] {
        std::vector<peer> found;
        const auto add = [&](std::vector<peer> some) { found.insert(found.end(), some.begin(), some.end()); };
        add(hone_itself());
        add(eigen());
#if defined(HONE_BENCH_OPENBLAS)
        add(openblas());
#endif
#if defined(HONE_BENCH_BLIS)
        add(blis());
#endif
#if defined(HONE_BENCH_ONEDNN)
        add(onednn());
#endif
#if defined(HONE_BENCH_XNNPACK)
        add(xnnpack());
#endif
#if defined(HONE_BENCH_LIBXSMM)
        add(libxsmm());
#endif
        return found;
    }();
    return all;
}

}  // namespace bench
