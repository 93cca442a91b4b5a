// Conversion between the structs of types.h and the messages of control.proto.
#pragma once

#include <string>

#include "proto/control.pb.h"
#include "rendezvous/job_state.h"
#include "rendezvous/types.h"
#include "rendezvous/world_wire.h"

namespace fleet {

// The devices of each rank, as in a Join and a Shape.
template <typename To>
void put_devices(const std::vector<std::vector<int>>& devices, To* to) {
  for (const auto& ids : devices) {
    auto* added = to->add_devices();
    for (const int id : ids) added->add_ids(id);
  }
}
template <typename From>
std::vector<std::vector<int>> get_devices(const From& from) {
  std::vector<std::vector<int>> devices;
  for (const auto& one : from.devices()) devices.emplace_back(one.ids().begin(), one.ids().end());
  return devices;
}

wire::Join to_wire(const NodeInfo& info);
NodeInfo from_wire(const wire::Join& join);
wire::RankExit to_wire(const RankExit& exit);  // keeps the last 64 KiB of the tail
wire::Stall to_wire(const RankStall& stall);
RankStall from_wire(const wire::Stall& in);
wire::StepReport to_wire(const std::vector<RankSteps>& rank_steps);
std::vector<RankSteps> from_wire(const wire::StepReport& in);
wire::Stacks to_wire(const std::vector<RankStack>& stacks);
std::vector<RankStack> from_wire(const wire::Stacks& in);
RankExit from_wire(const wire::RankExit& exit);
wire::StackReport to_wire(const StackReport& report);
StackReport from_wire(const wire::StackReport& in);
wire::Failure to_wire(const Error& error);
Error from_wire(const wire::Failure& failure);

// An Assignment is encoded without its world: encode() makes that once, to follow it
// (world_wire.h).
wire::HostMessage to_wire(const HostEvent& event);
// Any kind but heartbeat. Throws kInternal if the message does not belong to this protocol.
HostEvent from_wire(const wire::HostMessage& message);

}  // namespace fleet
