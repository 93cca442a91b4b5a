// Errors and types of NCCL and the CUDA runtime, as the communicator uses them.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "comm/communicator.h"

namespace fleet::nccl {

// Makes this the calling thread's current device, permanently: a rank has one device. Restoring the
// previous one (device 0 by default) would create a context on it.
void use_device(int index);

// Throws kInternal "cudaEventRecord failed: ..." unless `result` is success.
void check(cudaError_t result, const char* what);

// Maps NCCL's result to an error: kPeerLost if another rank or the network failed, kUnsupported if
// this machine cannot do it, otherwise kInternal.
//   comm  adds NCCL's own message; may be null
Error error_of(ncclResult_t result, std::string_view what, ncclComm_t comm);

ncclDataType_t type_of(DType dtype);
ncclRedOp_t operation_of(ReduceOp op);
inline cudaStream_t stream_of(Stream& stream) {
  return static_cast<cudaStream_t>(stream.native_handle());
}
// Whether work issued to the stream is captured instead of run.
bool is_capturing(cudaStream_t stream);

// Version of the loaded library, for example "2.28.9".
std::string version();

}  // namespace fleet::nccl
