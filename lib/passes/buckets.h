// Which gradients share an allreduce.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace fleet {

struct GradientSize {
  std::string parameter;  // its name: what stands before the last '.' is its layer
  size_t bytes = 0;
  DType dtype = DType::kFloat32;
};

struct BucketLimits {
  double megabytes = 32;  // a bucket is closed once it holds so much; <= 0: a bucket a layer
  int64_t count = 50;  // a bucket is closed once it holds more gradients than this; <= 1: no limit
  // > 0: so many gradients a bucket, whatever their size and layer; the other limits are not used.
  int64_t exact_count = 0;
  // > 0: the layers computed last, no more of them than reach so many megabytes, are a bucket of
  // their own: nothing is left to compute beside the last bucket, so a small one is waited for
  // least.
  double last_megabytes = 0;
};

// Buckets of indices into `gradients`, which are in the order in which they are computed; so are
// the buckets and what is in each. Whole layers are merged, in the order of their first gradient,
// until a limit is passed; buckets of mixed types are split by type (Paddle's
// coalesce_grad_tensor_pass, with the layer as torchvision's names have it).
std::vector<std::vector<int>> group_gradients(std::span<const GradientSize> gradients,
                                              const BucketLimits& limits);

}  // namespace fleet
