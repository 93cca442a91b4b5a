// Between the structs of types.h and the messages of rendezvous.proto.
#pragma once

#include <string>

#include "proto/rendezvous.pb.h"
#include "rendezvous/job_state.h"
#include "rendezvous/types.h"

namespace fleet {

namespace wire = rendezvous::v1;

wire::Join to_wire(const NodeInfo& info);
NodeInfo from_wire(const wire::Join& join);
wire::RankExit to_wire(const RankExit& exit);  // keeps the last 64 KiB of the tail
wire::Stall to_wire(const RankStall& stall);
RankStall from_wire(const wire::Stall& in);
wire::Pace to_wire(const std::vector<RankPace>& pace);
std::vector<RankPace> from_wire(const wire::Pace& in);
wire::Stacks to_wire(const std::vector<RankStack>& stacks);
std::vector<RankStack> from_wire(const wire::Stacks& in);
RankExit from_wire(const wire::RankExit& exit);
wire::Failure to_wire(const Error& error);
Error from_wire(const wire::Failure& failure);

// Thousands of nodes get the same world: it is encoded once, and each Assignment carries those
// bytes.
std::string encode(const World& world);
// world: encode()d, where the event is an Assignment.
wire::HostMessage to_wire(const HostEvent& event, const std::string& world);
// Any kind but beat. kInternal where the message is none of this protocol.
HostEvent from_wire(const wire::HostMessage& message);

}  // namespace fleet
