// Versions of the backend's libraries, for the log.
#include <cudnn.h>

#include "backend/cuda/device.h"

namespace fleet::cuda {
namespace {

std::string cudnn_line() {
  const size_t version = cudnnGetVersion();  // 91900: 9.19
  return "cuDNN Version: " + std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + ".";
}

}  // namespace

FLEET_CUDA_LIBRARY(cudnn) { def.line = cudnn_line; }

}  // namespace fleet::cuda
