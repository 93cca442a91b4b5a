#include "data/beta_draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fleet::data {
namespace {

double normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// The logarithm of a draw from Gamma(shape, 1): a draw itself underflows for small shapes.
// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000.
double log_gamma_draw(double shape, RandomStream& random) {
  if (shape < 1) {
    return log_gamma_draw(shape + 1, random) + std::log(1 - random.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), root = 1 + c * x, v = root * root * root;
    const double u = 1 - random.uniform();
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d) + std::log(v);
    }
  }
}

}  // namespace

double draw_beta(double alpha, RandomStream& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

}  // namespace fleet::data
