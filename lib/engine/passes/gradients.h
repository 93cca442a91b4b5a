// The gradients of parameters, for passes that combine them over ranks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/program.h"
#include "tensor/dtype.h"

namespace fleet {

struct GradientSize {
  std::string parameter;  // the name up to the last '.' identifies the layer
  size_t bytes = 0;
  DType dtype = DType::kFloat32;
};

struct BucketLimits {
  double megabytes = 32;  // a bucket is closed once it holds this much; <= 0: one bucket per layer
  int64_t count = 50;  // a bucket is closed once it holds more gradients than this; <= 1: no limit
  // > 0: exactly this many gradients per bucket, whatever their size and layer; other limits are
  // ignored.
  int64_t exact_count = 0;
  // > 0: the layers computed last, up to this many megabytes, form a separate bucket. No
  // computation is left to overlap with the last bucket, so a small one costs the least waiting.
  double last_megabytes = 0;
};

// Groups indices into `gradients`, which must be in the order of computation; buckets and their
// contents keep that order. Whole layers are merged, in the order of their first gradient, until a
// limit is passed. Buckets of mixed types are split by type (Paddle's coalesce_grad_tensor_pass,
// with layers named as in torchvision).
std::vector<std::vector<int>> group_gradients(std::span<const GradientSize> gradients,
                                              const BucketLimits& limits);

struct Gradient {
  VarId parameter;
  VarId var;
  int computed_by;  // index of the backward operation that writes it last
};

// The gradients of trainable parameters for which `concerns` is true (null: all), in the order in
// which the backward pass completes them. A gradient that two parameters share is listed once.
// kInternal before the backward pass, and if the gradients are already summed over ranks.
std::vector<Gradient> find_gradients(const Program& program,
                                     const std::function<bool(const Var&)>& concerns = {});

// The input of group_gradients() for each gradient.
std::vector<GradientSize> sizes_of(const Program& program, const std::vector<Gradient>& gradients);

// Appends what adds a gradient of any floating type to a float32 sum. The gradient is the first
// input: the sum takes its layout.
void add_to_sum(Program& program, SectionId section, VarId gradient, VarId sum,
                std::vector<Op>* ops);

// The end of the names of states that sum gradients over several steps: 0 after each update.
inline constexpr char kMergedGradient[] = ".merged_gradient";

}  // namespace fleet
