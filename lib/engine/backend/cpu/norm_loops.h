// Batch normalization with our own loops. oneDNN 2.6 cannot add anything before the activation, and
// takes ten times as long for plain layouts as for blocked ones. x consists of runs of channels
// (backend/cpu/channel_runs.h).
#pragma once

#include <vector>

#include "backend/cpu/channel_runs.h"
#include "backend/cpu/norm_runs.h"

namespace fleet::cpu {

// Bytes of the workspace, for either direction.
size_t norm_workspace(const Shape& x, const Layout& layout);
// The form of the mask: one bit per element, by runs.
Layout norm_mask(const Shape& x, const Layout& layout);

// Null: no such argument. void pointers have x's type, one of kLoopTypes.
struct NormForwardArguments {
  Argument x;
  const float *scale, *bias, *mean, *variance;
  const void* z;                   // added before the activation; may be null
  void* y;                         // may equal z, but not x
  float *mean_out, *variance_out;  // running statistics; may equal mean and variance
  float *saved_mean, *saved_variance;
  uint16_t* mask;  // the elements that the activation passed
  bool is_test;
  bool relu = true;
  double epsilon, momentum;
  void* workspace;
  norm_runs::Recomputed activation = norm_runs::Recomputed::kNone;  // else no relu, z or mask
};
// y = max(batch_norm(x) + z, 0); without relu batch_norm(x) + z; or activation(batch_norm(x))
std::unique_ptr<Kernel> norm_forward_kernel(const NormForwardArguments& arguments);

struct NormBackwardArguments {
  Argument x;
  const float *scale, *mean, *variance;
  const uint16_t* mask;         // null: no activation
  std::vector<const void*> dy;  // their sum is the gradient of y
  void* dx;                     // may be one of dy
  void* dz;                     // may be dy[0]
  float *dscale, *dbias;
  bool is_test;
  double epsilon;
  void* workspace;
  norm_runs::Recomputed activation = norm_runs::Recomputed::kNone;  // else no mask or dz
  const float* bias = nullptr;                                      // with an activation
};
std::unique_ptr<Kernel> norm_backward_kernel(const NormBackwardArguments& arguments);

}  // namespace fleet::cpu
