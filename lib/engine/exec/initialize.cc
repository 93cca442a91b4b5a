#include "exec/initialize.h"

#include <algorithm>
#include <numbers>

namespace fleet {
namespace {

void fill(const Init& init, SplitMix64 draws, std::span<float> values) {
  switch (init.kind) {
    case Init::kConstant:
      std::fill(values.begin(), values.end(), static_cast<float>(init.a));
      break;
    case Init::kUniform:
      for (float& value : values) {
        value = static_cast<float>(init.a + (init.b - init.a) * draws.uniform());
      }
      break;
    case Init::kNormal:
      draw_normal(init.a, init.b, draws, values);
      break;
  }
}

}  // namespace

void draw_initial_values(const Var& var, uint64_t seed, std::span<float> values) {
  uint64_t state = seed ^ 14695981039346656037ull;
  for (unsigned char c : var.name) state = (state ^ c) * 1099511628211ull;
  fill(var.init, SplitMix64(state), values);
}

}  // namespace fleet
