// What a start would do, foreseen instead of done: fleetrun --dry_run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/doctor/finding.h"
#include "launch/environment.h"
#include "launch/node_list.h"
#include "launch/plan.h"
#include "rendezvous/types.h"

namespace fleet {

struct ForeseenRank {
  int node_rank = 0, local_rank = 0;
  bool server = false;  // a parameter server
  int rank = 0;         // among the servers, or global
  RankCommand command;  // without cores but for ranks of this node
};

// Everything that would be started, as far as one node can know before it has met the others.
struct ForeseenJob {
  std::string job_id, rendezvous;
  Assignment assignment;             // this node's, of a world that is foreseen
  std::vector<std::string> program;  // a rank's
  std::vector<std::string> notes;    // what is assumed
  Findings findings;                 // of the doctor, on this node
  Variables inherited;               // what every rank gets from fleetrun's own environment
  std::vector<std::string> removed;  // and what not
  // Shows each rank, node by node, and only trainer `rank` where that is not -1. They are made one
  // after the other: a large job has more of them than memory.
  using See = std::function<void(const ForeseenRank&)>;
  std::function<void(int rank, const See& see)> each;

  const World& world() const { return *assignment.world; }
  int processes() const { return world().world_size + world().servers; }
};

// `plan` as it is before the others are met, and outlives what is returned; other nodes are taken
// to be like this one where the list of nodes does not say otherwise. `environment`: fleetrun's
// own, "NAME=value" each.
ForeseenJob foresee(const LaunchPlan& plan, const std::vector<std::string>& environment);

}  // namespace fleet
