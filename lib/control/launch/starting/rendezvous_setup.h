// What a plan tells the other nodes, and how it meets them.
#pragma once

#include <memory>

#include "launch/planning/launch_plan.h"
#include "node/agent.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"

namespace fleet {

JobSpec job_of(const LaunchPlan& plan);
wire::Node node_of(const LaunchPlan& plan);
wire::Join join_of(const LaunchPlan& plan, bool hosts_rendezvous);

// Starts the rendezvous server if this node hosts it, else returns nullptr. Throws the errors of
// RendezvousServer.
std::unique_ptr<RendezvousServer> host_rendezvous(const LaunchPlan& plan);
// This node's way to the rendezvous. `server`: the result of host_rendezvous().
RendezvousClientOptions client_options(const LaunchPlan& plan, const RendezvousServer* server);
// Hosts the rendezvous on this node after the host was lost.
std::unique_ptr<RendezvousServer> take_over(const LaunchPlan& plan, const TakeOver& turn);

// If another node of --ips than the first already hosts this job, because a job with restarts has
// lost its host, changes the plan so that this node joins it there. Queries the other nodes for at
// most one second. May start threads (gRPC).
void rejoin_running_job(LaunchPlan* plan);

}  // namespace fleet
