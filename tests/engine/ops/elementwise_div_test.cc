#include "tests/engine/ops/elementwise.h"

namespace fleet {
namespace {

// The divisor is not differentiable.
TEST(ElementwiseDiv, EachBroadcast_MatchesReference) {
  for (const Operands& operands : spreads()) {
    check_op({.type = "elementwise_div",
              .attributes = {{"axis", operands.axis}},
              .inputs = {{.shape = operands.x},
                         {.shape = operands.y, .differentiate = false, .low = 0.5, .high = 2}},
              .reference =
                  [&](const std::vector<Values>& in) {
                    return std::vector<Values>{
                        naive_elementwise(operands, in, [](double x, double y) { return x / y; })};
                  },
              // Differences of a large one would take minutes.
              .check_gradient = operands.x.elements() < 1000});
  }
}

}  // namespace
}  // namespace fleet
