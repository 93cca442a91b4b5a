// The trait that the pass amp reads: how an operation runs under mixed precision.
#pragma once

#include <vector>

#include "graph/op.h"

namespace fleet {

// The lists of Paddle's AMP: white runs in the low type, black in float32, gray follows its inputs.
enum class Precision { kWhite, kBlack, kGray };

struct MixedPrecision {
  Precision precision = Precision::kBlack;
  // Inputs that stay float32 even if the operation runs in a low type (statistics, scale, bias).
  std::vector<int> float32_inputs;
  // Whether gray operations that read its results run in float32, even if all gray ones would
  // run in the low type: losses of samples.
  bool stays_float32 = false;
  // Whether a user's custom list may name the operation. False if its types are its own business.
  bool on_custom_lists = true;
};

// An operation without the trait is black.
inline const MixedPrecision& mixed_precision_of(const OpDef& def) {
  static const MixedPrecision black;
  const MixedPrecision* trait = def.find_trait<MixedPrecision>();
  return trait ? *trait : black;
}

}  // namespace fleet
