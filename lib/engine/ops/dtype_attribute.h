// Element types as attributes, stored by name.
#pragma once

#include "graph/op.h"

namespace fleet {

// Parses "float32" and so on; kInternal for other texts.
inline DType to_dtype(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DType::kUInt8); ++i) {
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  FLEET_CHECK(false, "no element type '" + name + "'");
}

}  // namespace fleet
