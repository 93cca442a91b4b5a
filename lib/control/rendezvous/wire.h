// Messages of control.proto that are not used as they are sent: errors and worlds.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// A serialized wire::HostMessage with only this world, encoded once for all nodes. Appended to a
// serialized HostMessage with an assignment (without its world), it completes that message. 12,500
// nodes of 8 ranks take less than 10 bytes per node.
std::string encode(const World& world);
// Throws kInternal if the assignment is invalid; errors inside `world` appear when it is unpacked.
Assignment from_wire(const wire::Assignment& in);

wire::Failure to_wire(const Error& error);
Error from_wire(const wire::Failure& failure);

}  // namespace fleet
