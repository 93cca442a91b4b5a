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
  Values values = {};               // empty: drawn uniformly from [low, high]
  std::optional<DType> dtype = {};  // not given: OpCheck::dtype; kInt64: not differentiated
  VarKind kind = VarKind::kFeed;    // kParameter or kState: the kernel may choose its layout
  bool differentiate = true;
  bool present = true;                // false: an optional input that is left out
  std::optional<Layout> layout = {};  // start in this layout (states only)
  double low = -1, high = 1;
};

struct OpCheck {
  std::string type;
  // Of the inputs that say nothing else. Their values and the gradients that come in are rounded to
  // it, so that the reference computes with what the backend sees.
  DType dtype = DType::kFloat32;
  Attributes attributes = {};
  std::vector<CheckInput> inputs;
  // Values of the inputs -> values of the outputs that are checked, by slot; an empty one is not
  // checked (and takes no part in the gradient). Outputs behind the last given one are made if
  // required only.
  std::function<std::vector<Values>(const std::vector<Values>& inputs)> reference;
  // Relative to the largest value; where something is rounded to a 16-bit type, at least
  // rounding_tolerance() of it (gradients: twice that).
  double tolerance = 2e-5;           // of outputs
  double gradient_tolerance = 5e-4;  // of gradients
  double step = 1e-4;                // of the central difference
  bool check_gradient = true;
  // Outputs that are the same variable as an input (states updated in place): {output, input}.
  std::vector<std::pair<int, int>> updates = {};
  bool optional_outputs = true;  // make the optional outputs too
  uint64_t seed = 1;
};

// Allowed error of results in this type, relative to the largest; 0 except for 16-bit types.
double rounding_tolerance(DType dtype);

// Runs the check as gtest expectations; returns the outputs the backend computed (by slot). On
// which backend the executable says (op_device.h). A check in float32 is repeated in each 16-bit
// type that the device computes in, except what mixed precision leaves in float32 (black operations
// without such a kernel); on CUDA also in the layouts of images there, unless it says layouts. The
// outputs of the first, in float32, are returned.
std::vector<Values> check_op(const OpCheck& check);

}  // namespace fleet
