#include "backend/cuda/types.h"
#include "exec/kernel.h"
#include "ops/bilinear.h"

namespace fleet {
namespace {

struct Size {
  int64_t height, width;
};

// One output a thread.
__global__ void enlarge(const float* x, float* y, int64_t count, Size in, Size out) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t line = cuda::quotient(at, out.width), column = at - line * out.width;
  const int64_t plane = cuda::quotient(line, out.height);
  const BilinearTap row = bilinear_tap(line - plane * out.height, in.height, out.height);
  const BilinearTap across = bilinear_tap(column, in.width, out.width);
  const float* low = x + (plane * in.height + row.low) * in.width;
  const float* high = x + (plane * in.height + row.high) * in.width;
  const float left = low[across.low] + row.share * (high[across.low] - low[across.low]);
  const float right = low[across.high] + row.share * (high[across.high] - low[across.high]);
  y[at] = left + across.share * (right - left);
}

__device__ float share_of(const BilinearTap& tap, int64_t at) {
  return (tap.low == at ? 1 - tap.share : 0.0f) + (tap.high == at ? tap.share : 0.0f);
}

// One value of dx a thread, which adds what its readers got, always in the same order.
__global__ void gather(const float* dy, float* dx, int64_t count, Size in, Size out) {
  const int64_t index = cuda::thread_index();
  if (index >= count) return;
  const int64_t line = cuda::quotient(index, in.width), column = index - line * in.width;
  const int64_t plane = cuda::quotient(line, in.height), row = line - plane * in.height;
  const int64_t end_row = end_of_readers(row, in.height, out.height);
  const int64_t first_column = first_reader(column, in.width, out.width);
  const int64_t end_column = end_of_readers(column, in.width, out.width);
  float sum = 0;
  for (int64_t i = first_reader(row, in.height, out.height); i < end_row; ++i) {
    const float down = share_of(bilinear_tap(i, in.height, out.height), row);
    if (down == 0) continue;
    const float* from = dy + (plane * out.height + i) * out.width;
    float of_row = 0;
    for (int64_t j = first_column; j < end_column; ++j) {
      of_row += share_of(bilinear_tap(j, in.width, out.width), column) * from[j];
    }
    sum += down * of_row;
  }
  dx[index] = sum;
}

Size size_of_planes(const Argument& image) { return {image.shape[2], image.shape[3]}; }

}  // namespace

FLEET_KERNEL(cuda, resize_bilinear) {
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const int64_t count = y.shape.elements();
    return make_kernel([=](Stream& stream) {
      cuda::launch(enlarge, cuda::blocks_for(count), cuda::kBlock, 0, cuda::stream_of(stream),
                   x.as<const float>(), y.as<float>(), count, size_of_planes(x), size_of_planes(y));
    });
  };
}

FLEET_KERNEL(cuda, resize_bilinear_grad) {
  def.create = [](KernelContext& context) {
    const Argument dy = context.inputs[0], dx = context.outputs[0];
    const int64_t count = dx.shape.elements();
    return make_kernel([=](Stream& stream) {
      cuda::launch(gather, cuda::blocks_for(count), cuda::kBlock, 0, cuda::stream_of(stream),
                   dy.as<const float>(), dx.as<float>(), count, size_of_planes(dx),
                   size_of_planes(dy));
    });
  };
}

}  // namespace fleet
