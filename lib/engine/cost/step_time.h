// The time of a step, by running the schedules of Plans on paper.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "cost/rates.h"
#include "exec/plan.h"

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
  double bytes = 0;                // message size
  double within = 0, between = 0;  // bytes that the mean rank sends inside its node, to other nodes
  double seconds = 0;
  double delay = 0;  // the part of seconds in which another communicator's message can move, too
  double busy = 0;   // seconds in which it needs a core of the rank, which then computes less
};

// Zeros for a group of one rank, and for operations other than collectives.
CollectiveCost collective_cost(const Plan& plan, const PlannedOp& planned,
                               const JobTopology& topology, const MachineRates& rates);

// Between these seconds the measured step is expected.
struct StepBand {
  double low = 0, high = 0;
};

// Predictions for jobs of several ranks were this part of the measured step: the minimum and the
// maximum of docs/performance/predictions.md.
inline constexpr double kLeastPrediction = 0.72, kGreatestPrediction = 1.19;
inline constexpr double kBandMargin = 0.05;  // added at both ends

// The band around a predicted step. nullopt for one rank, whose predictions were within 15 %; for
// GPUs, which were not compared; and for rates that are an estimate, which give a lower bound.
std::optional<StepBand> band_of(double seconds, const JobTopology& topology,
                                const MachineRates& rates);

// Seconds of the mean step, of one rank.
struct StepTime {
  double total = 0;  // the whole step
  std::optional<StepBand> band = {};
  double compute = 0;              // in which operations compute
  double communication = 0;        // collectives, one after another
  double hidden = 0;               // communication during computation
  double waiting = 0;              // for other stages of a pipeline
  double host = 0;                 // the host's work around the step
  double within = 0, between = 0;  // bytes that the mean rank sends inside its node, to other nodes
  std::map<std::string, double> by_type;  // seconds of operations by type
  bool compute_bound = true;   // whether more seconds are bound by arithmetic than by memory
  std::vector<double> stages;  // compute of each stage; empty without a pipeline
};

// Adds times and bytes, each multiplied by the weight; not the band.
void add(const StepTime& more, double weight, StepTime* sum);

struct StepTimeOptions {
  int threads = 1;  // cores of a rank
  int steps = 1;    // the mean of so many steps, for strategies that do not act in every step
  // The host's decisions for each of these steps; null: by the sections' predicates alone.
  std::function<StepInfo(int64_t step)> prepare = {};
};

struct RankPlan {
  int rank = 0;
  const Plan* plan = nullptr;
};

// ranks: all stages of one pipeline, in order, or one rank. The result is of ranks[own], apart from
// the total: until the last of them has ended.
StepTime predict_step(std::span<const RankPlan> ranks, size_t own, const JobTopology& topology,
                      const MachineRates& rates, const StepTimeOptions& options);
StepTime predict_step(const Plan& plan, const JobTopology& topology, const MachineRates& rates,
                      const StepTimeOptions& options);

// Seconds of one operation of a Plan.
struct TimedOp {
  double seconds = 0;  // that it takes while nothing else disturbs it
  double delay = 0;    // for a collective: the part in which another message can move
  double busy = 0;     // for a collective: the part in which it needs a core of its rank
};

struct RankSchedule {
  int rank = 0;
  const Plan* plan = nullptr;
  const std::vector<TimedOp>* ops = nullptr;  // by index in Plan::ops
  std::vector<ScheduledOp> schedule;
  int threads = 1;  // cores of the rank
};

struct RankTimeline {
  double compute = 0;  // seconds in which any operation computes, less what messages take of them
  double idle = 0;     // in which it neither computes nor communicates, until the last rank ends
  double end = 0;
};

// Runs the schedules of one or more ranks on paper.
//
// Each stream runs its operations in order, after those that they wait for. A collective begins
// once all simulated ranks of its group have reached it; messages of a rank share its links, apart
// from those between two stages of a pipeline, which have streams of their own. While a collective
// needs a core, the computation of its rank loses that core.
//
// By rank, in the given order. kInternal if the ranks would wait for each other forever.
std::vector<RankTimeline> run_on_paper(std::vector<RankSchedule> ranks);

}  // namespace fleet
