// Channel counts of scaled networks (MobileNets 2 and 3, EfficientNets).
#pragma once

#include <algorithm>
#include <cstdint>

namespace fleet {

// The multiple of `divisor` nearest to `channels`, but at least 0.9 x channels and at least
// `divisor` (torchvision's _make_divisible).
inline int64_t round_channels(double channels, int64_t divisor = 8) {
  const auto half = static_cast<double>(divisor) / 2;
  const int64_t nearest = static_cast<int64_t>(channels + half) / divisor * divisor;
  const int64_t rounded = std::max(divisor, nearest);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + divisor : rounded;
}

}  // namespace fleet
