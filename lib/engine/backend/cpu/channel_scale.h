// Products of an image with one factor per channel of each image (squeeze and excitation), in the
// blocked layouts of convolutions, so that the image needs no reorder to a plain layout.
#pragma once

#include "backend/cpu/channel_runs.h"
#include "ops/broadcast.h"

namespace fleet::cpu {

class ChannelScale {
 public:
  // The image's layout if this class is for it: blocks of channels, and factors [N, C].
  static std::optional<Layout> layout_for(const LayoutQuery& query, const Broadcast& broadcast);
  static bool is_for(const Argument& x, const Broadcast& broadcast);

  explicit ChannelScale(const Argument& x) : runs_(x.shape, x.layout) {}

  // y = x * factors; padding stays zero.
  template <typename T>
  void multiply(const T* x, const T* factors, T* y) const;
  // dx = dy * factors, dfactors[n, c] = sum of dy * x. dx may be null. The sums do not depend on
  // the number of threads.
  template <typename T>
  void gradient(const T* x, const T* factors, const T* dy, T* dx, T* dfactors) const;

 private:
  ChannelRuns runs_;
};

}  // namespace fleet::cpu
