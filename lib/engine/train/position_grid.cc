#include "train/position_grid.h"

#include <algorithm>
#include <cmath>

#include "data/filter.h"

namespace fleet {
namespace {

// The sources of one place along an axis.
struct Taps {
  std::vector<int64_t> places;
  std::vector<double> weights;
};

Taps timm_taps(int64_t at, int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double factor = std::max(scale, 1.0);
  const double support = data::filter_support(data::Filter::kBicubic) * factor;
  const double centre = (static_cast<double>(at) + 0.5) * scale;
  const auto first = std::max(static_cast<int64_t>(centre - support + 0.5), int64_t{0});
  const auto end = std::min(static_cast<int64_t>(centre + support + 0.5), in);
  Taps taps;
  double sum = 0;
  for (int64_t place = first; place < end; ++place) {
    const double distance = (static_cast<double>(place) - centre + 0.5) / factor;
    taps.places.push_back(place);
    taps.weights.push_back(data::filter_weight(data::Filter::kBicubic, distance));
    sum += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= sum;
  return taps;
}

double cubic(double distance) {
  constexpr double kA = -0.75;
  const double x = std::abs(distance);
  if (x <= 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
  return 0;
}

Taps torchvision_taps(int64_t at, int64_t in, int64_t out) {
  const double scale = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  const double source = static_cast<double>(at) * scale;
  const auto first = static_cast<int64_t>(std::floor(source));
  Taps taps;
  for (int64_t place = first - 1; place <= first + 2; ++place) {
    taps.places.push_back(std::clamp(place, int64_t{0}, in - 1));
    taps.weights.push_back(cubic(source - static_cast<double>(place)));
  }
  return taps;
}

std::vector<Taps> taps_along(int64_t in, int64_t out, PositionRule rule) {
  std::vector<Taps> all;
  for (int64_t at = 0; at < out; ++at) {
    all.push_back(rule == PositionRule::kTimm ? timm_taps(at, in, out)
                                              : torchvision_taps(at, in, out));
  }
  return all;
}

}  // namespace

std::vector<float> resized_positions(std::span<const float> table, int64_t prefix, int64_t width,
                                     const PositionGrid& from, const PositionGrid& to,
                                     PositionRule rule) {
  const auto columns = taps_along(from.width, to.width, rule);
  const auto rows = taps_along(from.height, to.height, rule);
  const auto count = static_cast<size_t>(width);
  std::vector<float> resized(table.begin(), table.begin() + prefix * width);
  const float* grid = table.data() + prefix * width;
  std::vector<double> across(static_cast<size_t>(from.height * to.width) * count);
  for (int64_t y = 0; y < from.height; ++y) {
    for (int64_t x = 0; x < to.width; ++x) {
      const Taps& taps = columns[static_cast<size_t>(x)];
      double* sum = &across[static_cast<size_t>(y * to.width + x) * count];
      for (size_t tap = 0; tap < taps.places.size(); ++tap) {
        const float* one = grid + (y * from.width + taps.places[tap]) * width;
        for (size_t i = 0; i < count; ++i) sum[i] += taps.weights[tap] * one[i];
      }
    }
  }
  std::vector<double> sum(count);
  for (int64_t y = 0; y < to.height; ++y) {
    const Taps& taps = rows[static_cast<size_t>(y)];
    for (int64_t x = 0; x < to.width; ++x) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (size_t tap = 0; tap < taps.places.size(); ++tap) {
        const double* one = &across[static_cast<size_t>(taps.places[tap] * to.width + x) * count];
        for (size_t i = 0; i < count; ++i) sum[i] += taps.weights[tap] * one[i];
      }
      for (const double value : sum) resized.push_back(static_cast<float>(value));
    }
  }
  return resized;
}

}  // namespace fleet
