#include "exec/backend.h"

#include "backend/cuda/device.h"

namespace fleet::cuda {
namespace {

int device_count(std::string* why) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    cudaGetLastError();
    int driver = 0;
    const bool none = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    *why = none ? "no NVIDIA driver is running here" : cudaGetErrorString(result);
    return 0;
  }
  if (count == 0) *why = "no GPU is visible to this process";
  return count;
}

[[maybe_unused]] const bool registered = register_backend(
    "cuda", {.device_count = device_count,
             .make_device = [](int index, const DeviceOptions& options) -> std::unique_ptr<Device> {
               return std::make_unique<CudaDevice>(index, options);
             }});

}  // namespace
}  // namespace fleet::cuda
