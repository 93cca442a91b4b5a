// Arithmetic and memory traffic of one operation of a Plan.
#pragma once

#include <string>

#include "exec/plan.h"

namespace fleet {

struct OpCost {
  // Type, kind (Arithmetic::kind) and element type: "conv2d 3x3 float32". Operations of one key
  // have comparable speed.
  std::string key;
  // How the first input of several dimensions lies in memory: "plain", "blocked", "strided" or
  // "opaque"; "" without such an input. Kernels of one operation may differ by it.
  std::string layout = {};
  DType dtype = DType::kFloat32;  // of the first floating input, else of the first output
  double operations = 0;          // additions and multiplications; 0: only the bytes count
  double bytes = 0;               // inputs read once and outputs written once, with padding
};

OpCost cost_of(const Plan& plan, const PlannedOp& planned);

}  // namespace fleet
