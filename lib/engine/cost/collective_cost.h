// Traffic of a collective of a Plan, and its time.
#pragma once

#include "cost/rates.h"

namespace fleet {

// Where the ranks of a job are, and what connects them.
struct JobTopology {
  int ranks = 1, nodes = 1;        // ranks are equally many on each node, in order
  std::string transport = "auto";  // comm.backend
  bool accelerator = false;        // ranks compute on GPUs
  double link_bytes = 1.25e9;      // bytes a second between two nodes, each way
  double link_seconds = 50e-6;     // delay of a message between nodes
  double local_bytes = 5e9;        // bytes a second between ranks of a node, if not measured
  double local_seconds = 10e-6;

  int ranks_per_node() const { return nodes > 0 ? (ranks + nodes - 1) / nodes : ranks; }
  int node_of(int rank) const { return rank / (ranks_per_node() > 0 ? ranks_per_node() : 1); }
  // The transport of these ranks: "shm", "gloo", "hierarchical(shm, gloo)" or "nccl".
  std::string transport_of(const std::vector<int>& group) const;
};

struct CollectiveCost {
  double bytes = 0;                // of the message
  double within = 0, between = 0;  // bytes that the mean rank sends inside its node, to other nodes
  double seconds = 0;
  double delay = 0;  // the part of seconds in which another communicator's message can move, too
  double busy = 0;   // seconds in which it needs a core of the rank, which then computes less
};

// Zeros for a group of one rank, and for operations that are no collectives.
CollectiveCost collective_cost(const Plan& plan, const PlannedOp& planned,
                               const JobTopology& topology, const MachineRates& rates);

}  // namespace fleet
