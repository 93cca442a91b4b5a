// The time of a step, by running the schedules of a Plan on paper.
#pragma once

#include <functional>
#include <map>

#include "cost/collective_cost.h"

namespace fleet {

// Seconds of the mean step.
struct StepTime {
  double total = 0;                // the whole step
  double compute = 0;              // operations that compute, one after another
  double communication = 0;        // collectives, one after another
  double hidden = 0;               // communication during computation
  double host = 0;                 // the host's work around the step
  double within = 0, between = 0;  // bytes that the mean rank sends inside its node, to other nodes
  std::map<std::string, double> by_type;  // seconds of compute by type of operation
  bool compute_bound = true;  // whether more seconds are bound by arithmetic than by memory
};

struct StepTimeOptions {
  int threads = 1;  // cores of a rank
  int steps = 1;    // the mean of so many steps, for strategies that do not act in every step
  // The host's decisions for each of these steps; null: by the sections' predicates alone.
  std::function<StepInfo(int64_t step)> prepare = {};
};

StepTime predict_step(const Plan& plan, const JobTopology& topology, const MachineRates& rates,
                      const StepTimeOptions& options);

}  // namespace fleet
