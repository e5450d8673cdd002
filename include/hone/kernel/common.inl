// The bodies that never keep registers in arrays: sizeless registers compile them too.
#include "pack.inl"
#include "rank_micro.inl"
#include "depthwise_micro.inl"
#include "winograd.inl"
#include "finish.inl"
#include "registry.inl"
