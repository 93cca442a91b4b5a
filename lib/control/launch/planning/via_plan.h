// The command that a job started with --via runs on each node.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/environment.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/node_list.h"

namespace fleet {

// The processes that a node would run.
struct NodeProcesses {
  bool known = false;                         // false: one per GPU of the node, or one
  std::vector<int> servers = {}, ranks = {};  // both empty: a spare node
};
// The processes by node, as far as the options determine them: --nproc_per_node, counts in --ips,
// --gpus, the options of parameter servers. After a node with an unknown count, rank numbers are
// unknown too.
std::vector<NodeProcesses> expected_processes(const LaunchConfig& config,
                                              const std::vector<ListedNode>& nodes);

struct NodeStart {
  std::string name;     // as listed
  std::string through;  // "fleetd at 10.0.0.1:6767"
  std::string folder;   // "": the current folder
  std::string logs;
  std::string gpus;  // for people
  NodeProcesses processes;
  std::vector<std::string> reached_by;  // the local command that reaches it; may be empty
  std::vector<std::string> command;  // the command on the node; empty: ViaPlan::command covers it
};

struct ViaPlan {
  std::string job_id, via;
  std::vector<std::string> program;
  std::vector<std::string> command;  // the local command for all nodes; may be empty
  Variables environment;             // local variables that every node's fleetrun gets
  std::vector<NodeStart> nodes;
  std::vector<std::string> notes;
};

}  // namespace fleet
