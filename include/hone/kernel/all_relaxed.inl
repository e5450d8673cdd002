// The bodies of sums in any order, for registers of ordinary types. scalar has none: one element wins nothing by them.
#include "dot_micro.inl"
#include "split_micro.inl"
#include "relaxed.inl"
