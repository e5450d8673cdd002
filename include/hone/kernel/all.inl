// Every body that an ISA whose registers are ordinary types compiles, in order.
#ifdef HONE_REGION_OF_UNIT  // its tile fills the registers of SSE2 to the last: there the passes save spills
#include "gemm_micro.inl"
#else
HONE_TILES_BEGIN
#include "gemm_micro.inl"
HONE_TILES_END
#endif
#include "packing_micro.inl"
#include "tiny_micro.inl"
#include "fixed_micro.inl"
#include "narrow_micro.inl"
#include "small.inl"
#include "common.inl"
