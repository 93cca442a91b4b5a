// Tells why a process waits, from the functions on its stack. Pure.
#pragma once

#include <string>

#include "transport/control_messages.h"

namespace fleet {

// "a collective", "data", "the store", "the GPU", "an exit hook", "another process"; "" if the
// stack does not tell. The innermost function that tells counts, Python's first.
std::string waits_for(const StackCluster& cluster);

}  // namespace fleet
