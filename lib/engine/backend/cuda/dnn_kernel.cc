#include "backend/cuda/dnn_kernel.h"

#include "backend/cuda/device.h"
#include "backend/cuda/dnn.h"
#include "base/error.h"

namespace fleet::cuda::dnn {
namespace {

std::shared_ptr<const Plan> plan_of(Device& device, const Convolution& conv) {
  std::vector<Tensor> tensors = {{kConvX, conv.x, conv.dtype},
                                 {kConvWeight, conv.weight, conv.dtype},
                                 {kConvY, conv.y, conv.dtype}};
  if (conv.bias) tensors.push_back({kConvBias, {1, conv.y[1], 1, 1}, conv.dtype});
  return find_plan(
      cuda_device(device), conv.text(), [&] { return make_graph(conv); }, tensors);
}

// Names each limit that leaves algorithms out.
Error no_algorithm(Device& device, const Convolution& conv) {
  const CudaOptions& options = cuda_device(device).cuda_options();
  std::string what = "cuDNN has no algorithm within conv_workspace_size_limit = " +
                     std::to_string(options.conv_workspace_size_limit) + " MiB";
  std::string next = "raise the limit";
  if (device.options().deterministic) {
    what += " among the deterministic ones";
    next += ", set train.deterministic to false";
  }
  if (conv.dtype == DType::kFloat32 && !options.tensor_op_math) {
    what += " without TF32";
    next += ", set train.enable_cublas_tensor_op_math to true";
  }
  return Error(ErrorCode::kUnsupported, what, conv.text(), next + ", or use another type");
}

std::shared_ptr<const Plan> need_plan(Device& device, const Convolution& conv) {
  if (auto plan = plan_of(device, conv)) return plan;
  throw no_algorithm(device, conv);
}

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(CudaDevice& device, const std::shared_ptr<const Plan>& plan,
                    std::span<const Execution::Binding> bindings, void* workspace)
      : handle_(dnn_handle(device)), execution_(plan, bindings, workspace) {}
  void run(Stream& stream) override { execution_.run(handle_, stream); }

 private:
  cudnnHandle_t handle_;
  Execution execution_;
};

}  // namespace

bool is_supported(Device* device, const Convolution& conv) {
  return !device || plan_of(*device, conv) != nullptr;
}

size_t workspace_of(Device* device, const Convolution& conv) {
  return device ? need_plan(*device, conv)->workspace() : 0;
}

std::unique_ptr<Kernel> make_kernel(Device& device, const Convolution& conv, void* x, void* weight,
                                    void* y, void* bias, void* workspace) {
  std::vector<Execution::Binding> bindings = {{kConvX, x}, {kConvWeight, weight}, {kConvY, y}};
  if (conv.bias) bindings.push_back({kConvBias, bias});
  return std::make_unique<ConvolutionKernel>(cuda_device(device), need_plan(device, conv), bindings,
                                             workspace);
}

}  // namespace fleet::cuda::dnn
