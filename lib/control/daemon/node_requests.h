// Turns a command line with --via=fleetd into requests to each node's fleetd.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/job_table.h"
#include "launch/planning/arguments.h"
#include "launch/planning/via_plan.h"

namespace fleet {

// The facts about the client that matter to a job.
struct ClientContext {
  std::string user;
  std::string folder;     // working directory
  Variables environment;  // the whole environment
  std::string nonce;      // random letters that distinguish jobs without a name
  std::string secret;     // secret of the job's rendezvous; "": none
};
// Throws kUsage for an invalid --secret_file.
ClientContext client_context(const SecurityConfig& security);

struct NodeRequest {
  std::string name;     // the node, as listed
  std::string address;  // the fleetd's: "10.0.0.1:6767"
  JobRequest job;
};
// The requests by node. Throws kUsage if options make no sense with --via.
std::vector<NodeRequest> node_requests(const LaunchRequest& request, const ClientContext& client);

// These requests as a plan for --dry_run. `through`: how a node is reached, from its request.
ViaPlan plan_of_requests(const LaunchRequest& request, const std::vector<NodeRequest>& requests,
                         const std::function<std::string(const NodeRequest&)>& through);

// The client's variables that ranks get: those that tune the libraries of programs (NCCL_*, OMP_*,
// ...), without secrets and without names of this host's devices, and those of `exported`: NAME,
// NAME=VALUE, PREFIX*. Throws kUsage for a NAME that is not set.
Variables forwarded_environment(const Variables& environment,
                                const std::vector<std::string>& exported);

}  // namespace fleet
