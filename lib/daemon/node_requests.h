// A command line with --via=fleetd, as what each node's fleetd is asked for.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/job_table.h"
#include "launch/dry_run/via_plan.h"
#include "launch/options.h"

namespace fleet {

// The client, as far as it matters.
struct ClientPlace {
  std::string user;
  std::string folder;                                            // working directory
  std::vector<std::pair<std::string, std::string>> environment;  // all of it
  std::string nonce;   // a few letters that tell jobs without a name apart
  std::string secret;  // for the job's rendezvous; "": it has none
};
// kUsage where --secret_file is none.
ClientPlace client_place(const Settings& settings);

struct NodeRequest {
  std::string name;     // the node, as listed
  std::string address;  // of its fleetd: "10.0.0.1:6767"
  JobRequest job;
};
// By node. kUsage where the options make no sense from elsewhere.
std::vector<NodeRequest> node_requests(const LaunchRequest& request, const ClientPlace& client);

// The same as a plan for --dry_run. `through`: how a node is reached, from its request.
ViaPlan plan_of_requests(const LaunchRequest& request, const std::vector<NodeRequest>& requests,
                         const std::function<std::string(const NodeRequest&)>& through);

// Which of the client's variables its ranks get: those of the libraries that programs are tuned
// with (NCCL_*, OMP_*, ...), without secrets and without what names this host's devices; and what
// `exported` says: NAME, NAME=VALUE, PREFIX*. kUsage for a NAME that is not set.
std::vector<std::pair<std::string, std::string>> travelling_environment(
    const std::vector<std::pair<std::string, std::string>>& environment,
    const std::vector<std::string>& exported);

}  // namespace fleet
