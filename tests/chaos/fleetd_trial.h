// One trial with fleetds: a job over all nodes, started by a client elsewhere, one kill -9, and
// what came of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/chaos/network.h"

namespace fleet::chaos {

enum class Victim {
  kClient,    // the fleetrun that started the job
  kFleetd,    // of a node
  kLauncher,  // a node's fleetrun
  kRank,
};
const char* name_of(Victim victim);
const std::vector<Victim>& all_victims();

struct FleetdTrialOptions {
  std::string program;  // this one: run as a rank by "PROGRAM rank"
  std::string fleetrun;
  std::string folder;  // of this trial
  int ranks_per_node = 2;
  double grace = 2;   // seconds
  double slack = 10;  // times are wrong from so many times what is promised
};

struct FleetdTrialResult {
  std::string fault;  // "kill -9 of the fleetd of node 2"
  std::string wrong;  // what was not as it must be; empty: nothing
  bool verdict_right = true;
  double stopped = 0;  // seconds from the fault until the last process of the job had ended
  int left = 0;        // processes that were still there when all had to be gone
};

// `seed` alone decides the victim, its node and the time. The client runs on the network's last
// node. This process is a subreaper without other children.
FleetdTrialResult run_fleetd_trial(Victim victim, uint64_t seed, Network& network,
                                   const FleetdTrialOptions& options);

}  // namespace fleet::chaos
