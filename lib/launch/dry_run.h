// What a start would do, shown instead of done: fleetrun --dry_run.
#pragma once

#include <string>
#include <vector>

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
  Assignment assignment;            // this node's, of a world that is foreseen
  std::vector<ForeseenRank> ranks;  // node by node
  std::vector<std::string> notes;   // what is assumed
  Variables inherited;              // what every rank gets from fleetrun's own environment
};

// `plan` as it is before the others are met; other nodes are taken to be like this one where the
// list of nodes does not say otherwise. `environment`: fleetrun's own, "NAME=value" each.
ForeseenJob foresee(const LaunchPlan& plan, const std::vector<std::string>& environment);

// For people: where every rank goes and what it gets; only this trainer where `rank` is not -1.
// Secrets are masked.
std::string dry_run_table(const ForeseenJob& job, int rank);
// The same for programs, as JSON.
std::string dry_run_json(const ForeseenJob& job, int rank);
// `eval`-able: makes a shell's environment that of `rank`. `masked`: without secrets, for a
// terminal.
std::string dry_run_shell(const ForeseenJob& job, int rank, bool masked);

// Prints one of the above to standard output, as the request's options say.
void print_dry_run(const LaunchPlan& plan);

}  // namespace fleet
