// The arithmetic of operations: what estimates of a step's time ask about them.
#pragma once

#include <string>

#include "graph/program.h"

namespace fleet {

// The trait of operations that multiply and add more than they read and write, such as
// convolutions. The time of operations without it is estimated from the bytes that they move.
struct Arithmetic {
  // Additions and multiplications of one run.
  double (*operations)(const Program& program, const Op& op) = nullptr;
  // Distinguishes operations of one type that differ in speed, such as "depthwise"; null: none.
  std::string (*kind)(const Program& program, const Op& op) = nullptr;
};

// Additions and multiplications of one run; 0 for an operation without the trait. The shapes must
// be known.
double operations_of(const Program& program, const Op& op);

inline const Shape& shape_of(const Program& program, VarId id) { return program.var(id).shape; }

// Each element of `result` is a sum of products over all elements of `weight` that belong to one
// of the weight's first axis: 2 x elements(result) x elements(weight) / weight[0].
double sums_of_products(const Shape& result, const Shape& weight);

// "depthwise", "grouped", "1x1", "3x3", "7x7 few channels" and the like. weight[O, I / groups, KH,
// KW].
std::string convolution_kind(const Op& op, const Shape& weight);

}  // namespace fleet
