// relu and its gradient: one element a thread, over memory order, whatever the layout.
#include "backend/cuda/device.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

constexpr int kBlock = 256;

__global__ void relu(const float* x, float* y, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) y[i] = x[i] > 0 ? x[i] : 0;
}

__global__ void relu_grad(const float* y, const float* dy, float* dx, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) dx[i] = y[i] > 0 ? dy[i] : 0;
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kBlock - 1) / kBlock); }

void keep_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/true); }

}  // namespace

FLEET_KERNEL(cuda, relu) {
  def.layouts = keep_layout;
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream& stream) {
      relu<<<blocks_for(count), kBlock, 0, cuda::stream_of(stream)>>>(x, y, count);
      cuda::check(cudaGetLastError(), "relu");
    });
  };
}

FLEET_KERNEL(cuda, relu_grad) {
  def.layouts = keep_layout;
  def.create = [](KernelContext& context) {
    const float* y = context.inputs[0].as<float>();
    const float* dy = context.inputs[1].as<float>();
    float* dx = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream& stream) {
      relu_grad<<<blocks_for(count), kBlock, 0, cuda::stream_of(stream)>>>(y, dy, dx, count);
      cuda::check(cudaGetLastError(), "relu_grad");
    });
  };
}

}  // namespace fleet
