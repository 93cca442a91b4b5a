// The functions behind reduce_elements(), one family per instruction set, each in its own file:
// they take long to compile.
#pragma once

#include <cstddef>

#include "comm/communicator.h"

namespace fleet {

// Reduces `count` elements, see reduce_elements().
using ReduceKernel = void (*)(void* const* out, int n_out, const void* const* in, int n_in,
                              size_t count);

// By instruction set. Null if fleetrun was not compiled for a processor that has it.
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
