#include "data/filter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fleet::data {
namespace {

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0) return 1;
  if (x >= 1) return 0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
}

}  // namespace

const std::vector<std::string>& filter_names() {
  static const std::vector<std::string> names = {"float_bilinear", "box",     "bilinear",
                                                 "hamming",        "bicubic", "lanczos"};
  return names;
}

Filter filter_named(const std::string& name) {
  const auto& names = filter_names();
  const auto found = std::ranges::find(names, name);
  FLEET_CHECK(found != names.end(), "no filter of this name");
  return static_cast<Filter>(found - names.begin());
}

double filter_support(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return 0.5;
    case Filter::kBicubic:
      return 2;
    case Filter::kLanczos:
      return 3;
    case Filter::kFloatBilinear:
    case Filter::kBilinear:
    case Filter::kHamming:
      return 1;
  }
  return 1;
}

double filter_weight(Filter filter, double x) {
  switch (filter) {
    case Filter::kBox:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Filter::kHamming:
      return hamming(x);
    case Filter::kBicubic:
      return bicubic(x);
    case Filter::kLanczos:
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    case Filter::kFloatBilinear:
    case Filter::kBilinear:
      break;
  }
  return std::max(0.0, 1 - std::abs(x));
}

}  // namespace fleet::data
