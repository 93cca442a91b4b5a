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

std::unique_ptr<Device> make_device(int index, const DeviceOptions& options, const Settings& own) {
  return std::make_unique<CudaDevice>(index, options_from(own), options);
}

// float16 first: with loss scaling, its 11 bits of mantissa lose less than bfloat16's 8. Without a
// device (a Plan that is only printed), assumes current GPUs.
std::vector<DType> low_precision(std::string* why) {
  int index = 0;
  cudaDeviceProp properties{};
  const bool known = cudaGetDevice(&index) == cudaSuccess &&
                     cudaGetDeviceProperties(&properties, index) == cudaSuccess;
  if (!known) cudaGetLastError();
  if (!known || properties.major >= 8) return {DType::kFloat16, DType::kBFloat16};
  if (properties.major == 7) return {DType::kFloat16};
  *why = std::string(properties.name) + " has no tensor cores";
  return {};
}

}  // namespace

FLEET_BACKEND(cuda) {
  def.device_count = device_count;
  def.options = options_schema();
  def.make_device = make_device;
  def.low_precision = low_precision;
  def.passes = {"fuse_fc_gelu", "fuse_bn_recomputed_act", "fuse_depthwise_norm"};
  def.false_notes = {
      {"winograd", "model.winograd has no effect on a GPU: cuDNN decides"},
      {"use_cudnn",
       "model.use_cudnn is false: depthwise and transposed convolutions run in fleetrun's own "
       "kernels, pooling does anyway; other convolutions always use cuDNN"}};
}

}  // namespace fleet::cuda
