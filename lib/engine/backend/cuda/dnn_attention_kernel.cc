#include "backend/cuda/device.h"
#include "backend/cuda/dnn.h"
#include "backend/cuda/dnn_attention.h"

namespace fleet::cuda::dnn {
namespace {

// Until 9.15 the gradient is wrong for numbers of tokens that are not multiples of 128
// (cudnn-frontend works around it with a mask of lengths).
constexpr size_t kLastWrong = 91500;

std::shared_ptr<const Plan> plan_of(Device& device, const Attention& attention) {
  return find_plan(
      cuda_device(device), attention.text(), [&] { return make_graph(attention); },
      tensors_of(attention));
}

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(CudaDevice& device, const Attention& attention, float scale,
                  const std::vector<std::pair<int64_t, void*>>& memory, void* workspace)
      : handle_(dnn_handle(device)),
        scale_(scale),
        execution_(plan_of(device, attention), bindings(attention, memory), workspace) {}
  void run(Stream& stream) override { execution_.run(handle_, stream); }

 private:
  std::vector<Execution::Binding> bindings(const Attention& attention,
                                           const std::vector<std::pair<int64_t, void*>>& memory) {
    std::vector<Execution::Binding> all = {{kAttentionScale, &scale_}};
    if (attention.causal || attention.documents) all.push_back({kAttentionHidden, &hidden_});
    if (attention.gradient) all.push_back({kAttentionOne, &one_});
    for (const auto& [id, data] : memory) all.push_back({id, data});
    return all;
  }

  cudnnHandle_t handle_;
  float scale_, hidden_ = kHiddenScore, one_ = 1;  // read when it runs
  Execution execution_;
};

}  // namespace

bool is_supported(Device* device, const Attention& attention) {
  if (!device || cudnnGetVersion() <= kLastWrong) return false;
  if (!cuda_device(*device).cuda_options().cudnn_attention) return false;
  if (attention.gradient && device->options().deterministic) return false;
  return plan_of(*device, attention) != nullptr;
}

size_t workspace_of(Device* device, const Attention& attention) {
  return plan_of(*device, attention)->workspace();
}

std::unique_ptr<Kernel> make_kernel(Device& device, const Attention& attention, float scale,
                                    const std::vector<std::pair<int64_t, void*>>& memory,
                                    void* workspace) {
  return std::make_unique<AttentionKernel>(cuda_device(device), attention, scale, memory,
                                           workspace);
}

}  // namespace fleet::cuda::dnn
