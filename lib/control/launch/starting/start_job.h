// One node's part of a job, from its plan to an exit code: what the plan tells the other nodes, how
// it meets them, and the start.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launch/planning/launch_plan.h"
#include "node/agent.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"

namespace fleet {

// Starts the guardian, joins the other nodes and runs the job; returns the exit code. `check` runs
// when the world is known, before ranks start: a text that it returns ends the job; may be empty.
// Throws Error for requests that the machine rejects. Call it from the main thread of a process
// without other threads.
int start_job(LaunchPlan* plan, std::function<std::string(const Assignment&)> check);

// --- its parts, also for fleetrun doctor and --dry_run ---

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
