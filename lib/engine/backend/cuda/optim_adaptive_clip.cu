#include <algorithm>

#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

struct ClipRow {
  const float *gradient, *parameter, *unscale;  // unscale: null: 1
  float* clipped;
  int64_t columns;
  float clip_factor, epsilon;

  template <typename Threads>
  __device__ void operator()(Threads, int64_t row) const {
    const float* g = gradient + row * columns;
    const float* w = parameter + row * columns;
    const float scale = unscale ? *unscale : 1.0f;
    float squares = 0, weights = 0;
    for (int64_t i = Threads::first(); i < columns; i += threads_of(Threads())) {
      const float x = g[i] * scale;
      squares += x * x;
      weights += w[i] * w[i];
    }
    const float norm = sqrtf(Threads::sum(squares));
    const float bound = clip_factor * fmaxf(sqrtf(Threads::sum(weights)), epsilon);
    const float factor = norm < bound ? scale : scale * (bound / (norm > 1e-6f ? norm : 1e-6f));
    for (int64_t i = Threads::first(); i < columns; i += threads_of(Threads())) {
      clipped[row * columns + i] = g[i] * factor;
    }
  }
  template <int threads>
  __device__ static int threads_of(cuda::RowThreads<threads>) {
    return threads;
  }
};

}  // namespace

FLEET_KERNEL(cuda, adaptive_clip) {
  def.create = [](KernelContext& context) {
    const Shape& shape = context.inputs[0].shape;
    const int64_t rows = shape.rank() > 1 ? shape[0] : 1;
    const ClipRow clip{
        .gradient = context.inputs[0].as<const float>(),
        .parameter = context.inputs[1].as<const float>(),
        .unscale = context.inputs[2].as<const float>(),
        .clipped = context.outputs[0].as<float>(),
        .columns = shape.elements() / std::max<int64_t>(rows, 1),
        .clip_factor = static_cast<float>(context.attributes().number("clip_factor")),
        .epsilon = static_cast<float>(context.attributes().number("epsilon"))};
    return make_kernel([=](Stream& stream) {
      cuda::launch_rows(cuda::stream_of(stream), rows, clip.columns, clip);
    });
  };
}

}  // namespace fleet
