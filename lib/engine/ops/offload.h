// Host memory as a place for data that a device does not need for a while.
#pragma once

#include "graph/program.h"

namespace fleet {

// Whether operations of this type write their outputs to host memory.
bool writes_host_memory(const OpDef& def);

}  // namespace fleet
