// Element-wise reductions of host memory.
#pragma once

#include <cstddef>

#include "comm/communicator.h"

namespace fleet {

// For each i < count: every out[j][i] = in[0][i] op in[1][i] op ... op in[n_in - 1][i], applied
// from left to right, so that the bits do not depend on which rank computes which part. float16 and
// bfloat16 are reduced in float32 and rounded once (to nearest even). Integer sums wrap. For a NaN
// and a number, min and max may return either. An out may be one of the ins; partial overlap is not
// allowed. Any thread.
void reduce_elements(DType dtype, ReduceOp op, void* const* out, int n_out, const void* const* in,
                     int n_in, size_t count);

// For tests: the same with the instruction set "avx512", "avx2" or "baseline"; false if this
// machine lacks it.
bool reduce_elements_with(const char* isa, DType dtype, ReduceOp op, void* const* out, int n_out,
                          const void* const* in, int n_in, size_t count);

// The functions behind reduce_elements() by instruction set, each in its own file: they take long
// to compile. Null if fleetrun was not compiled for a processor that has it.
using ReduceKernel = void (*)(void* const* out, int n_out, const void* const* in, int n_in,
                              size_t count);
namespace baseline {
ReduceKernel reduce_kernel(DType dtype, ReduceOp op);
}
namespace avx2 {
ReduceKernel reduce_kernel(DType dtype, ReduceOp op);
}
namespace avx512 {
ReduceKernel reduce_kernel(DType dtype, ReduceOp op);
}

}  // namespace fleet
