// How one axis of a learned grid is resampled: which sources each new place has, with their shares.
#pragma once

#include <cstdint>
#include <vector>

namespace fleet {

// The sources of one place along an axis. A place may be named twice.
struct Taps {
  std::vector<int64_t> places;
  std::vector<double> weights;
};

// One of each for the `out` places of an axis with `in` sources; both at least 1.

// PyTorch's bicubic with antialias: a = -0.5, wider where the axis shrinks.
std::vector<Taps> antialiased_taps(int64_t in, int64_t out);
// PyTorch's bicubic with align_corners: a = -0.75.
std::vector<Taps> corner_taps(int64_t in, int64_t out);
// PyTorch's bicubic of pixels' centres: a = -0.75. scale: sources per new place.
std::vector<Taps> bicubic_taps(int64_t in, int64_t out, double scale);
// timm's for tables of relative positions: linear between knots whose distance from the middle
// grows by a constant factor, so that the first and the last source lie near the new ends.
std::vector<Taps> progression_taps(int64_t in, int64_t out);

}  // namespace fleet
