#include "ops/arithmetic.h"

#include <algorithm>

namespace fleet {

double operations_of(const Program& program, const Op& op) {
  const Arithmetic* arithmetic = op.def->find_trait<Arithmetic>();
  return arithmetic ? arithmetic->operations(program, op) : 0;
}

double sums_of_products(const Shape& result, const Shape& weight) {
  return 2 * static_cast<double>(result.elements()) * static_cast<double>(weight.elements()) /
         static_cast<double>(std::max<int64_t>(weight[0], 1));
}

std::string convolution_kind(const Op& op, const Shape& weight) {
  // Vector instructions work on 8 or 16 channels at once.
  constexpr int64_t kFewChannels = 8;
  if (op.attributes.integer("groups") > 1) return weight[1] == 1 ? "depthwise" : "grouped";
  const std::string size = std::to_string(weight[2]) + "x" + std::to_string(weight[3]);
  return weight[1] < kFewChannels ? size + " few channels" : size;
}

}  // namespace fleet
