// Memory of the host as a place for what a device need not hold for a while.
#pragma once

#include "graph/program.h"

namespace fleet {

// Whether the outputs of operations of this type lie in the host's memory.
bool writes_host_memory(const OpDef& def);

}  // namespace fleet
