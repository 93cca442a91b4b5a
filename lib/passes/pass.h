// Passes: rewrites of a Program before it is planned. One file each, registered under the name
// users know it by.
#pragma once

#include <memory>
#include <string>

#include "graph/program.h"

namespace fleet {

struct PassContext {
  int world_size = 1;
};

class Pass {
 public:
  virtual ~Pass() = default;
  // Rewrites; returns whether it changed anything. Says in the log what it did, in the words users
  // look for.
  virtual bool run(Program& program, const PassContext& context) = 0;
};

}  // namespace fleet
