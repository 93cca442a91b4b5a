// Batch normalisation by loops of our own, with an addition and a relu behind it, which oneDNN 2.6
// has not. x lies in runs of channels (backend/cpu/channel_runs.h).
#pragma once

#include <vector>

#include "backend/cpu/channel_runs.h"

namespace fleet::cpu {

// Bytes of the workspace of either direction.
size_t norm_workspace(const Shape& x, const Layout& layout);
// The form of the mask: a bit an element, by runs.
Layout norm_mask(const Shape& x, const Layout& layout);

// Null where there is no such argument. What is void is of x's type, one of kLoopTypes.
struct NormForwardArguments {
  Argument x;
  const float *scale, *bias, *mean, *variance;
  const void* z;                   // added before the activation
  void* y;                         // may be z, not x
  float *mean_out, *variance_out;  // the running ones; may be mean and variance
  float *saved_mean, *saved_variance;
  uint16_t* mask;  // which elements the activation passed on
  bool is_test;
  double epsilon, momentum;
  void* workspace;
};
// y = max(batch_norm(x) + z, 0)
std::unique_ptr<Kernel> norm_forward_kernel(const NormForwardArguments& arguments);

struct NormBackwardArguments {
  Argument x;
  const float *scale, *mean, *variance;
  const uint16_t* mask;
  std::vector<const void*> dy;  // whose sum is the gradient of y
  void* dx;                     // may be one of dy
  void* dz;                     // may be dy[0]
  float *dscale, *dbias;
  bool is_test;
  double epsilon;
  void* workspace;
};
std::unique_ptr<Kernel> norm_backward_kernel(const NormBackwardArguments& arguments);

}  // namespace fleet::cpu
