// Every body that an ISA whose registers are ordinary types compiles, in order.
#include "gemm_micro.inl"
#include "packing_micro.inl"
#include "tiny_micro.inl"
#include "fixed_micro.inl"
#include "narrow_micro.inl"
#include "small.inl"
#include "common.inl"
