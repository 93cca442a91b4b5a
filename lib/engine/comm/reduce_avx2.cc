#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx2")]]
#define FLEET_ISA avx2
#include "comm/reduce_kernels.inc"

#else

#include "comm/reduce.h"

namespace fleet::avx2 {
ReduceKernel reduce_kernel(DType, ReduceOp) { return nullptr; }
}  // namespace fleet::avx2

#endif
