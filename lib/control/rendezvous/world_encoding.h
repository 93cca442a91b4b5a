// The World of a job in bytes: encoded once for all nodes, and unpacked on first access.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// A serialized wire::HostMessage with only this world. Appended to a serialized HostMessage with an
// assignment (without its world), it completes that message. 12,500 nodes of 8 ranks take less than
// 10 bytes per node.
std::string encode(const World& world);
// Throws kInternal if the assignment is invalid; errors inside `world` appear when it is unpacked.
Assignment decode(const wire::Assignment& in);

}  // namespace fleet
