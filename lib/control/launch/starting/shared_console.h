// Several nodes of a job may write to one console. What concerns the whole job is printed there
// once, by the first of them.
#pragma once

#include <vector>

#include "launch/planning/launch_plan.h"
#include "node/supervision.h"
#include "rendezvous/types.h"

namespace fleet {

// Facts about the standard error of a node.
struct ConsoleFacts {
  int node_rank = 0;
  bool part = false;         // the fleetrun that started this one shows the output of all nodes
  bool in_step = false;      // a Slurm step: srun does
  bool through_ssh = false;  // ssh without a terminal passes it on to where ssh was started
  bool is_file = false;      // a file of this node, whoever started fleetrun
  // The ranks of the job's other nodes on this host that have the same one; -1: not known yet.
  std::vector<int> same = {};
};
// Pure. Whether this node prints what concerns the whole job. Node 0 always does.
bool speaks_for_job(const ConsoleFacts& facts);

ConsoleFacts console_facts(const LaunchPlan& plan, const Assignment& assignment);

// The output that this console shows, if any: a message need not repeat it.
ShownOutput shown_output(const LaunchPlan& plan);

}  // namespace fleet
