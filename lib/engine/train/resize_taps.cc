#include "train/resize_taps.h"

#include <algorithm>
#include <cmath>

#include "data/filter.h"

namespace fleet {
namespace {

Taps antialiased_tap(int64_t at, int64_t in, double scale) {
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

Taps cubic_tap(double source, int64_t in) {
  const auto first = static_cast<int64_t>(std::floor(source));
  Taps taps;
  for (int64_t place = first - 1; place <= first + 2; ++place) {
    taps.places.push_back(std::clamp(place, int64_t{0}, in - 1));
    taps.weights.push_back(cubic(source - static_cast<double>(place)));
  }
  return taps;
}

// Where timm puts the sources: 0 in the middle, and to each side 1, 1 + q, 1 + q + q^2...
std::vector<double> knots_of(int64_t in, int64_t out) {
  const int64_t half = in / 2;
  const auto reach = static_cast<double>(out / 2);
  double left = 1.01, right = 1.5, q = 0;
  while (right - left > 1e-6) {
    q = (left + right) / 2;
    const double sum = (1 - std::pow(q, static_cast<double>(half))) / (1 - q);
    (sum > reach ? right : left) = q;
  }
  std::vector<double> knots(static_cast<size_t>(in));
  double distance = 1;
  for (int64_t i = 0; i < half; ++i) {
    knots[static_cast<size_t>(half + 1 + i)] = distance;
    knots[static_cast<size_t>(half - 1 - i)] = -distance;
    distance += std::pow(q, static_cast<double>(i + 1));
  }
  return knots;
}

}  // namespace

std::vector<Taps> antialiased_taps(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  std::vector<Taps> all;
  for (int64_t at = 0; at < out; ++at) all.push_back(antialiased_tap(at, in, scale));
  return all;
}

std::vector<Taps> corner_taps(int64_t in, int64_t out) {
  const double scale = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  std::vector<Taps> all;
  for (int64_t at = 0; at < out; ++at) {
    all.push_back(cubic_tap(static_cast<double>(at) * scale, in));
  }
  return all;
}

std::vector<Taps> bicubic_taps(int64_t in, int64_t out, double scale) {
  std::vector<Taps> all;
  for (int64_t at = 0; at < out; ++at) {
    all.push_back(cubic_tap((static_cast<double>(at) + 0.5) * scale - 0.5, in));
  }
  return all;
}

std::vector<Taps> progression_taps(int64_t in, int64_t out) {
  const std::vector<double> knots = knots_of(in, out);
  std::vector<Taps> all;
  for (int64_t at = 0; at < out; ++at) {
    const auto x = static_cast<double>(at - out / 2);
    const int64_t right = std::lower_bound(knots.begin(), knots.end(), x) - knots.begin();
    if (right == 0 || right == in) {
      all.push_back({{std::min(right, in - 1)}, {1.0}});
      continue;
    }
    const double low = knots[static_cast<size_t>(right - 1)],
                 share = (x - low) / (knots[static_cast<size_t>(right)] - low);
    all.push_back({{right - 1, right}, {1 - share, share}});
  }
  return all;
}

}  // namespace fleet
