// --dry_run of a job that is started from elsewhere: what would run on which node.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/node_list.h"
#include "launch/options.h"
#include "launch/rank_context.h"

namespace fleet {

// Which processes of the job a node would have.
struct NodeProcesses {
  bool known = false;                         // false: as many as the node has GPUs, or one
  std::vector<int> servers = {}, ranks = {};  // neither: it waits as a spare
};
// By node, as far as the options tell: --nproc_per_node, counts in --ips, --gpus, the options of
// parameter servers. Behind a node of which it is not known the numbers of ranks are not either.
std::vector<NodeProcesses> foresee_processes(const Settings& settings,
                                             const std::vector<ListedNode>& nodes);

struct NodeStart {
  std::string name;     // as it is listed
  std::string through;  // "fleetd at 10.0.0.1:6767"
  std::string folder;   // "": this one
  std::string logs;
  std::string gpus;  // for people
  NodeProcesses processes;
  std::vector<std::string> reached_by;  // what is run here to reach it; empty: nothing
  std::vector<std::string> command;     // what runs there; empty: ViaPlan::command says it
};

struct ViaPlan {
  std::string job_id, via;
  std::vector<std::string> program;
  std::vector<std::string> command;  // what is run here for all nodes; empty: nothing
  Variables environment;             // what every node's fleetrun gets of this place
  std::vector<NodeStart> nodes;
  std::vector<std::string> notes;
};

// Secrets are masked.
void write_via_table(const ViaPlan& plan, std::ostream& out);
void write_via_json(const ViaPlan& plan, std::ostream& out);
// One of the two, to standard output.
void print_via_plan(const ViaPlan& plan, const DryRun& wish);

}  // namespace fleet
