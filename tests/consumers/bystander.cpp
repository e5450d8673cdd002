// SPDX-License-Identifier: BSL-1.0
// A program of the consumer that has nothing to do with hone: it is compiled with what the consumer asked for, nothing.
int main() { return 0; }
