// One trial: a job over all nodes, one fault, and what came of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/chaos/network.h"

namespace fleet::chaos {

enum class Fault {
  kRank,      // kill -9 of a rank
  kGuardian,  // of a node's guardian
  kLauncher,  // of a node's fleetrun, but for the one that hosts the rendezvous
  kHost,      // of the one that does
  kLink,      // a node's link drops everything
  kFreeze,    // SIGSTOP of a node's fleetrun
  kHang,      // SIGSTOP of a rank, with --hang_timeout
  kTerm,      // SIGTERM to a node's fleetrun
  kBoth,      // kill -9 of a node's fleetrun and its guardian in the same moment
  kAwait,     // SIGSTOP and SIGCONT of a node's fleetrun that waits for others, then SIGTERM
  kLoss,      // 30 % of the packets between nodes are lost for a while, then SIGTERM
  kDisk,      // no room is left for a node's logs, then kill -9 of a rank
  // For a moment, after which nothing has happened, then SIGTERM; or, where restarts are allowed,
  // perhaps for longer than a node may be silent: all nodes take part in the restart.
  kOutage,   // a node's link drops everything for a while
  kSuspend,  // SIGSTOP of all processes of a node, later SIGCONT
};
const char* name_of(Fault fault);
const std::vector<Fault>& all_faults();

struct TrialOptions {
  std::string program;  // this one: run as a rank by "PROGRAM rank"
  std::string fleetrun;
  std::string folder;  // of this trial
  int ranks_per_node = 2;
  double grace = 2;                // seconds
  double heartbeat = 15;           // seconds: --heartbeat_timeout
  double slack = 10;               // times are wrong from so many times what is promised
  double hang_timeout = 2;         // seconds, for kHang
  double loss_seconds = 6;         // for kLoss
  bool restarts = false;           // the job must continue with the remaining nodes
  std::vector<std::string> extra;  // further arguments of fleetrun
};

struct TrialResult {
  bool started = false;
  std::string fault;  // "kill -9 of rank 3"
  std::string wrong;  // what was not as it must be; empty: nothing
  bool verdict_right = true;
  double seen = 0;     // seconds from the fault until the last node had its verdict, or the last
                       // rank ran again
  double stopped = 0;  // until the last process of the job had ended
  int left = 0;        // processes that were still there when all had to be gone
};

// `seed` alone decides the details of the fault, its node and the time. This process is a subreaper
// without other children.
TrialResult run_trial(Fault fault, uint64_t seed, Network& network, const TrialOptions& options);

}  // namespace fleet::chaos
