// Predicts what a start would do, for fleetrun --dry_run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/planning/environment.h"
#include "launch/planning/launch_plan.h"
#include "launch/planning/node_list.h"
#include "launch/tools/doctor/facts.h"
#include "launch/tools/dry_run/job_explanation.h"
#include "rendezvous/types.h"

namespace fleet {

struct DryRunRank {
  int node_rank = 0, local_rank = 0;
  bool server = false;        // a parameter server
  int rank = 0;               // index among the servers, or global rank
  wire::RankCommand command;  // with cores only for ranks of this node
};

// Everything that would start, as far as one node can know it before the nodes have joined.
struct DryRunPlan {
  std::string job_id, rendezvous;
  Assignment assignment;             // this node's, in the predicted world
  std::vector<std::string> program;  // the command of a rank
  std::vector<std::string> notes;    // assumptions
  Findings findings;                 // of the doctor's checks on this node
  Variables inherited;               // variables of fleetrun's environment that every rank gets
  std::vector<std::string> removed;  // variables that ranks do not get
  std::optional<JobExplanation> explanation;  // of a job file; print_dry_run() asks for it
  // Calls `see` for each rank, node by node, or only for trainer `rank` unless that is -1. Creates
  // them one at a time, because a large job would not fit in memory.
  using Visitor = std::function<void(const DryRunRank&)>;
  std::function<void(int rank, const Visitor& visit)> for_each_rank;

  const World& world() const { return *assignment.world; }
  int processes() const { return world().world_size() + world().servers(); }
};

// `plan` is the plan before the nodes have joined; it must outlive the result. Other nodes are
// assumed to be like this one, unless the list of nodes differs. `environment`: fleetrun's own,
// "NAME=value" each.
DryRunPlan make_dry_run_plan(const LaunchPlan& plan, const std::vector<std::string>& environment);

}  // namespace fleet
