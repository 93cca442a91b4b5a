// A world on the wire: equal nodes are described once, a large world is compressed. It is encoded
// once for all nodes and unpacked on first access. 12,500 nodes of 8 ranks take about 5 bytes per
// node.
#pragma once

#include <string>

#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

// A serialized wire::HostMessage with only this world. Appended to a serialized HostMessage with an
// assignment (without its world), it completes that message.
std::string encode(const World& world);
// Throws kInternal if the assignment is invalid; errors inside `world` appear when it is unpacked.
Assignment from_wire(const wire::Assignment& in);

}  // namespace fleet
