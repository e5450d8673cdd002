// SPDX-License-Identifier: BSL-1.0
// What page.md quotes, rightly and wrongly.
int doubled(int x);

int doubled(int x) {
    if (x < 0) {
        x = -x;

        x = 2 * x;
    }
    return x;
}
