// Shapes as attributes: a gradient operation that needs only the shape of a forward variable stores
// it this way, so that the variable need not stay live.
#pragma once

#include "graph/op.h"

namespace fleet {

inline std::vector<int64_t> to_attribute(const Shape& shape) {
  return {shape.begin(), shape.end()};
}
inline Shape to_shape(const std::vector<int64_t>& dims) {
  return Shape(std::span<const int64_t>(dims));
}

}  // namespace fleet
