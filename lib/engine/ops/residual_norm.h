// Shared rules of normalizations over the last dimension, and of those of a residual sum: x +
// residual, which is output 1, normalized to output 0.
#pragma once

#include <initializer_list>
#include <string>

#include "graph/program.h"

namespace fleet {

// Rows of the last dimension.
inline int64_t rows_of_last(const Shape& x) { return x.elements() / x[x.rank() - 1]; }

// kUsage unless x (input 0) has rows, the inputs `parameters` (if present) have one value for each
// element of a row, and epsilon is positive.
inline void require_row_norm(const ShapeContext& context, std::initializer_list<int> parameters) {
  const Shape& x = context.shape(0);
  context.require(x.rank() >= 2, "x must have at least 2 dimensions, not " + x.text());
  context.require(context.attributes().number("epsilon") > 0, "epsilon must be positive");
  for (const int i : parameters) {
    if (!context.has_input(i)) continue;
    context.require(context.shape(i) == Shape{x[x.rank() - 1]},
                    context.op().def->inputs[static_cast<size_t>(i)].name + " " +
                        context.shape(i).text() + " does not fit the last dimension of " +
                        x.text());
  }
}

// kUsage unless inputs a and b have one shape and type.
inline void require_same(const ShapeContext& context, int a, int b) {
  context.require(context.shape(a) == context.shape(b) && context.dtype(a) == context.dtype(b),
                  "inputs " + context.shape(a).text() + " and " + context.shape(b).text() +
                      " must have one shape and type");
}

// If only the sum reaches the loss, passes its gradient to both summands. Returns whether that was
// all.
inline bool pass_sum_gradient_only(GradientContext& context) {
  if (context.output_gradient(0) != kNoVar) return false;
  context.pass_gradient(0, context.output_gradient(1));
  context.pass_gradient(1, context.output_gradient(1));
  return true;
}

// The variable for the gradient of the summands, which they share; kNoVar if neither needs it.
// After its operation is appended, share_summands_gradient() gives it to the other one.
inline VarId summands_gradient(GradientContext& context) {
  return context.input_gradient(context.needs(0) ? 0 : 1);
}
inline void share_summands_gradient(GradientContext& context, VarId gradient) {
  if (context.needs(0) && context.needs(1)) context.pass_gradient(1, gradient);
}

}  // namespace fleet
