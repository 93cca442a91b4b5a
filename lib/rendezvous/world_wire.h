// A world on the wire: equal nodes described once, a large one compressed, encoded once for all
// nodes and unpacked only where somebody looks. 12,500 nodes of 8 ranks take about 5 bytes a node.
#pragma once

#include <string>

#include "proto/rendezvous.pb.h"
#include "rendezvous/types.h"

namespace fleet {

namespace wire = rendezvous::v1;

// A wire::HostMessage with this world and nothing else, as bytes: behind those of a HostMessage
// with an assignment (without its world) they make it whole.
std::string encode(const World& world);
// kInternal where it makes no sense; what is inside of `world` shows only when it is looked at.
Assignment from_wire(const wire::Assignment& in);

}  // namespace fleet
