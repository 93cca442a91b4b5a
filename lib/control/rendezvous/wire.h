// Messages of control.proto: what is not used as it is sent, and the limits on what peers send.
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

// Cuts long texts: a sender and a receiver both keep to the limits.
RankExit within_limits(RankExit exit);
Stacks within_limits(Stacks stacks);
// The same for the verdicts in a message of the host. Throws kInternal if it is of no known kind.
wire::HostMessage within_limits(wire::HostMessage message);

}  // namespace fleet
