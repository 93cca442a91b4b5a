// The angles of rotary position embeddings by type, as transformers computes them
// (modeling_rope_utils.py): position p turns pair i by the angle p * frequency[i]. Numbers that it
// keeps in float32 are float here, so that long contexts get the same angles.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

// 1 / base^(2 i / dim)
FLEET_INLINE float rope_frequency(double base, int64_t i, int64_t dim) {
  const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
  return 1.0f / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
}

// Type "dynamic" raises the base for sequences that are longer than `original`, the length that the
// model was trained with: theta ((factor length / original) - (factor - 1))^(dim / (dim - 2)).
struct DynamicRope {
  double theta, factor;
  int64_t original, dim;
  FLEET_INLINE double base(int64_t length) const {
    if (length <= original) return theta;
    const auto times = static_cast<float>(factor), over = static_cast<float>(factor - 1);
    const float stretched =
        times * static_cast<float>(length) / static_cast<float>(original) - over;
    const double power = static_cast<double>(dim) / static_cast<double>(dim - 2);
    return static_cast<float>(theta) *
           static_cast<float>(std::pow(static_cast<double>(stretched), power));
  }
};

// The attributes of rope_table that are frequencies, checked: kUsage for an unknown type or a
// number out of its range.
struct RopeSettings {
  explicit RopeSettings(const Attributes& attributes);

  bool is_dynamic() const { return type == "dynamic"; }
  DynamicRope dynamic() const { return {theta, factor, original, dim}; }
  // [dim / 2]; of "dynamic" for sequences up to the original length.
  std::vector<float> frequencies() const;
  // The factor of cos and sin: 1 except for "yarn".
  float attention_factor() const;

  std::string type;
  int64_t dim, original;
  double theta, factor, low_freq_factor, high_freq_factor;           // llama3
  double given_attention, beta_fast, beta_slow, mscale, mscale_all;  // yarn
  bool truncate;

 private:
  void check() const;
  float llama3(float frequency) const;
  void interpolate(std::vector<float>& frequencies) const;
};

}  // namespace fleet
