// Labels, as kernels of losses read them.
#pragma once

#include "backend/cuda/launch.h"
#include "exec/kernel.h"

namespace fleet::cuda {

// Unlike on the CPU, a label outside the classes cannot stop the step. Its sample's loss is NaN,
// which makes it visible, and its gradient is 0.
struct Labels {
  const int64_t* label = nullptr;
  int64_t samples = 0, classes = 0, ignore_index = 0;

  // x: [..., classes]
  Labels(const KernelContext& context, const Argument& x, const Argument& labels)
      : label(labels.as<const int64_t>()),
        samples(labels.shape.elements()),
        classes(x.shape[x.shape.rank() - 1]),
        ignore_index(context.attributes().integer("ignore_index")) {}

  __device__ bool ignored(int64_t sample) const { return label[sample] == ignore_index; }
  __device__ bool is_class(int64_t sample) const {
    return label[sample] >= 0 && label[sample] < classes;
  }
};

}  // namespace fleet::cuda
