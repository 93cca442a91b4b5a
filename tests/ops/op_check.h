// Checks an operation on a backend: outputs against a naive reference in double, gradients against
// central differences of that reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"

namespace fleet {

using Values = std::vector<double>;

struct CheckInput {
  Shape shape;
  Values values = {};             // empty: drawn uniformly from [low, high]
  DType dtype = DType::kFloat32;  // or kInt64: not differentiated
  VarKind kind = VarKind::kFeed;  // kParameter or kState: the kernel may choose its layout
  bool differentiate = true;
  bool present = true;                // false: an optional input that is left out
  std::optional<Layout> layout = {};  // start in this layout (states only)
  double low = -1, high = 1;
};

struct OpCheck {
  std::string type;
  Attributes attributes = {};
  std::vector<CheckInput> inputs;
  // Values of the inputs -> values of the outputs that are checked, by slot; an empty one is not
  // checked (and takes no part in the gradient). Outputs behind the last given one are made if
  // required only.
  std::function<std::vector<Values>(const std::vector<Values>& inputs)> reference;
  double tolerance = 2e-5;           // of outputs, relative to the largest
  double gradient_tolerance = 5e-4;  // of gradients, relative to the largest
  double step = 1e-4;                // of the central difference
  bool check_gradient = true;
  // Outputs that are the same variable as an input (states updated in place): {output, input}.
  std::vector<std::pair<int, int>> updates = {};
  bool optional_outputs = true;  // make the optional outputs too
  uint64_t seed = 1;
};

// Runs the check as gtest expectations; returns the outputs the backend computed (by slot).
std::vector<Values> check_op(const OpCheck& check);

}  // namespace fleet
