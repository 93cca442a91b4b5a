// Blocks: consecutive parts of a model.
#pragma once

#include <string>

#include "graph/op.h"

namespace fleet {

// The operations between the previous block's output and this one's. Blocks are listed in the order
// of the forward pass.
struct Block {
  std::string name;       // "layer1.0"
  VarId output = kNoVar;  // usually the only value that later blocks read
};

}  // namespace fleet
