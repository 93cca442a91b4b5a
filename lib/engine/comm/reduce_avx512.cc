#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#define FLEET_ISA avx512
#include "comm/reduce_kernels.inc"

#else

#include "comm/reduce.h"

namespace fleet::avx512 {
ReduceKernel reduce_kernel(DType, ReduceOp) { return nullptr; }
}  // namespace fleet::avx512

#endif
