// SPDX-License-Identifier: BSL-1.0
// What page.md does not quote.
int forgotten(int x);
