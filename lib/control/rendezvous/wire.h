// Messages of control.proto: what is not used as it is sent, and the limits on what peers send.
#pragma once

#include <string>

#include "proto/control.pb.h"
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
wire::Failure to_wire(const Error& error);
Error from_wire(const wire::Failure& failure);

// Cuts long texts: a sender and a receiver both keep to the limits.
RankExit within_limits(RankExit exit);
// Stacks that ranks have in common are sent once: those of a large job would not fit a message.
void share_frames(Stacks* stacks);
// Of what was received: gives each rank its own frames again, within limits.
Stacks with_own_frames(const Stacks& stacks);

// The same for the verdicts in a message of the host. Throws kInternal if it is of no known kind.
wire::HostMessage within_limits(wire::HostMessage message);

}  // namespace fleet
