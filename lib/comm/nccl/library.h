// NCCL and the CUDA runtime as the communicator uses them: errors and types.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "base/error.h"
#include "comm/communicator.h"

namespace fleet::nccl {

// Makes this the calling thread's current device. It stays that: a rank has one, and going back to
// the one before, which is device 0 where nobody chose, would make a context on it.
void use_device(int index);

// Throws kInternal "cudaEventRecord failed: ..." unless it succeeded.
void check(cudaError_t result, const char* what);

// What NCCL's result means to a user: kPeerLost where another rank or the network failed,
// kUnsupported where this machine cannot do it, else kInternal.
//   comm  for NCCL's own words; may be null
Error error_of(ncclResult_t result, const char* what, ncclComm_t comm);

ncclDataType_t type_of(DType dtype);
ncclRedOp_t operation_of(ReduceOp op);
inline cudaStream_t stream_of(Stream& stream) {
  return static_cast<cudaStream_t>(stream.native_handle());
}
// Whether work issued to the stream is recorded instead of run.
bool is_capturing(cudaStream_t stream);

// "2.28.9", of the library that was loaded.
std::string version();

}  // namespace fleet::nccl
