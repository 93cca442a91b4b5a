// How fast the links between the ranks of a job are, measured at its start.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "cost/rates.h"
#include "train/rank_coordinator.h"

namespace fleet {

// Where the measuring ranks are.
struct LinkPlaces {
  int ranks = 1, nodes = 1;
  bool accelerator = false;  // the communicator's memory is an accelerator's
};

// The time of all_reduces over the transport that the job uses (shared memory, TCP, NCCL): through
// this communicator alone, through two at the same time, and, if there are several ranks on each of
// several nodes and the transport does not do that itself, in groups of a node's ranks. The slowest
// rank's times, the same on all ranks. Messages have 4 KiB up to 32 MiB, or as much as takes half a
// second; each of the three measurements ends after some two seconds. Collective. `control` is of
// the same ranks. Errors of the transport.
std::vector<LinkRates> measure_links(Device& device, Communicator& communicator,
                                     RankCoordinator& control, const LinkPlaces& places);

}  // namespace fleet
