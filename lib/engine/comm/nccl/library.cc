#include "comm/nccl/library.h"

namespace fleet::nccl {
namespace {

const char* const kHint = "NCCL_DEBUG=INFO shows more";

}  // namespace

void use_device(int index) { check(cudaSetDevice(index), "cudaSetDevice"); }

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // reported here: clears it for the next call
  throw Error(ErrorCode::kInternal, std::string(what) + " failed: " + cudaGetErrorString(result),
              "communicator");
}

Error error_of(ncclResult_t result, std::string_view what, ncclComm_t comm) {
  const char* details = ncclGetLastError(comm);
  std::string failure = std::string(what) + " failed: " + ncclGetErrorString(result);
  if (details && *details) failure += std::string(": ") + details;
  switch (result) {
    case ncclRemoteError:
      return Error(ErrorCode::kPeerLost, failure, "communicator",
                   std::string("look at the other ranks' logs; ") + kHint);
    case ncclSystemError:
    case ncclInvalidUsage:
      // Missing interfaces, and two ranks on one GPU, are reported as these codes.
      return Error(ErrorCode::kUnsupported, failure, "communicator",
                   std::string("give each rank a GPU of its own, and NCCL_SOCKET_IFNAME an "
                               "interface that all nodes reach; ") +
                       kHint);
    default:
      return Error(ErrorCode::kInternal, failure, "communicator", kHint);
  }
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kInt64:
      return ncclInt64;
    case DType::kInt32:
      return ncclInt32;
    case DType::kUInt8:
      return ncclUint8;
  }
  throw Error(ErrorCode::kInternal, std::string("no NCCL type for ") + name_of(dtype));
}

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
  }
  throw Error(ErrorCode::kInternal, "no NCCL operation for this reduction");
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusActive;
}

std::string version() {
  int code = 0;
  if (ncclGetVersion(&code) != ncclSuccess) return "?";
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

}  // namespace fleet::nccl
