// Where bilinear interpolation reads, for every backend: PyTorch's interpolate() without
// align_corners.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fleet {

// An output is (1 - share) * x[low] + share * x[high] along one axis.
struct BilinearTap {
  int64_t low, high;
  float share;
};

// Of output i of `outputs`, from `inputs` values.
FLEET_INLINE BilinearTap bilinear_tap(int64_t i, int64_t inputs, int64_t outputs) {
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  float place = scale * (static_cast<float>(i) + 0.5f) - 0.5f;
  if (place < 0) place = 0;
  int64_t low = static_cast<int64_t>(place);
  if (low > inputs - 1) low = inputs - 1;
  const float share = place - static_cast<float>(low);
  return {low, low < inputs - 1 ? low + 1 : low, share < 1 ? share : 1.0f};
}

// The first output that may read value `at`, and the end: more than those that do.
FLEET_INLINE int64_t first_reader(int64_t at, int64_t inputs, int64_t outputs) {
  const float ratio = static_cast<float>(outputs) / static_cast<float>(inputs);
  const int64_t first = static_cast<int64_t>(ratio * (static_cast<float>(at) - 0.5f) - 0.5f) - 1;
  return at == 0 || first < 0 ? 0 : first;
}
FLEET_INLINE int64_t end_of_readers(int64_t at, int64_t inputs, int64_t outputs) {
  const float ratio = static_cast<float>(outputs) / static_cast<float>(inputs);
  const int64_t end = static_cast<int64_t>(ratio * (static_cast<float>(at) + 1.5f) - 0.5f) + 2;
  return at == inputs - 1 || end > outputs ? outputs : end;
}

}  // namespace fleet
