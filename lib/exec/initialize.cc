#include "exec/initialize.h"

#include <cmath>
#include <numbers>

namespace fleet {
namespace {

uint64_t next(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double uniform(uint64_t& state) {  // in (0, 1)
  return (static_cast<double>(next(state) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

std::vector<float> initial_values(const Var& var, uint64_t seed) {
  uint64_t state = seed ^ 14695981039346656037ull;
  for (unsigned char c : var.name) state = (state ^ c) * 1099511628211ull;
  std::vector<float> values(var.shape.elements());
  for (float& value : values) {
    switch (var.init.kind) {
      case Init::kConstant:
        value = static_cast<float>(var.init.a);
        break;
      case Init::kUniform:
        value = static_cast<float>(var.init.a + (var.init.b - var.init.a) * uniform(state));
        break;
      case Init::kNormal: {
        const double radius = std::sqrt(-2 * std::log(uniform(state)));
        const double angle = 2 * std::numbers::pi * uniform(state);
        value = static_cast<float>(var.init.a + var.init.b * radius * std::cos(angle));
        break;
      }
    }
  }
  return values;
}

}  // namespace fleet
