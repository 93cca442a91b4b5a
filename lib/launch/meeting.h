// Where the nodes of a plan meet.
#pragma once

#include <memory>

#include "launch/plan.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"

namespace fleet {

// The rendezvous, where this node hosts it; else nullptr. Errors are RendezvousServer's.
std::unique_ptr<RendezvousServer> host_rendezvous(const LaunchPlan& plan);
// How this node reaches it. `server`: what host_rendezvous() gave.
RendezvousClientOptions client_options(const LaunchPlan& plan, const RendezvousServer* server);

}  // namespace fleet
