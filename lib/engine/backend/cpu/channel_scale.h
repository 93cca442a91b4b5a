// Products of an image with one factor per channel of each image (squeeze and excitation), in the
// layouts of convolutions, so that the image needs no reorder to a plain layout.
#pragma once

#include "backend/cpu/channel_runs.h"
#include "ops/broadcast.h"

namespace fleet::cpu {

class ChannelScale {
 public:
  // The image's layout if this class is for it: blocks of channels or channels last, and factors
  // [N, C].
  static std::optional<Layout> layout_for(const LayoutQuery& query, const Broadcast& broadcast);
  static bool is_for(const Argument& x, const Broadcast& broadcast);

  explicit ChannelScale(const Argument& x);
  // Bytes that gradient() needs.
  static size_t workspace(const Shape& x, const Layout& layout);

  // y = x * factors; padding stays zero.
  template <typename T>
  void multiply(const T* x, const T* factors, T* y) const;
  // dx = dy * factors, dfactors[n, c] = sum of dy * x. dx may be null. The sums do not depend on
  // the number of threads.
  template <typename T>
  void gradient(const T* x, const T* factors, const T* dy, T* dx, T* dfactors,
                void* workspace) const;

 private:
  // Calls body(image, part, group, factors by position, first element).
  template <typename T, typename Body>
  void for_each_run(const T* factors, Body body) const;

  int64_t images_, image_stride_;
  ChannelRuns runs_;  // in one image
};

}  // namespace fleet::cpu
