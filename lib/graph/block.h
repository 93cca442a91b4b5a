// Blocks: parts of a model that follow one another.
#pragma once

#include <string>

#include "graph/op.h"

namespace fleet {

// What lies between its output and that of the block before it. Blocks are listed in the order of
// the forward pass.
struct Block {
  std::string name;       // "layer1.0"
  VarId output = kNoVar;  // all that later blocks read of it, as a rule
};

}  // namespace fleet
