#include "cost/step_time.h"

#include <algorithm>

#include "ops/collective.h"

namespace fleet {
namespace {

// The first step that is predicted: ramps at the start of training are over, and periods of up to
// 64 steps begin.
constexpr int64_t kFirstStep = int64_t{1} << 20;

// The operations of one rank.
struct TimedPlan {
  RankPlan rank;
  std::vector<TimedOp> ops;
  std::vector<CollectiveCost> messages;  // by operation; zeros for those that compute
  std::vector<bool> computing;           // by operation: bound by arithmetic
};

TimedPlan time_operations(const RankPlan& rank, const JobTopology& topology,
                          const MachineRates& rates) {
  const Plan& plan = *rank.plan;
  TimedPlan timed{.rank = rank, .ops = {}, .messages = {}, .computing = {}};
  for (const PlannedOp& planned : plan.ops) {
    const CollectiveCost message = collective_cost(plan, planned, topology, rates);
    TimedOp one{.seconds = message.seconds, .delay = message.delay, .busy = message.busy};
    bool computing = false;
    if (!is_collective(planned.op)) {
      OpCost cost = cost_of(plan, planned);
      one.seconds = rates.seconds(cost);
      const double whole = rates.bound(cost);
      cost.operations = 0;
      computing = whole > rates.bound(cost);
    }
    timed.ops.push_back(one);
    timed.messages.push_back(message);
    timed.computing.push_back(computing);
  }
  return timed;
}

// The sums of a rank's own operations, regardless of when they run.
StepTime sums_of(const TimedPlan& timed, const std::vector<ScheduledOp>& schedule) {
  StepTime time;
  double computing = 0, moving = 0;
  for (const ScheduledOp& scheduled : schedule) {
    const Op& op = timed.rank.plan->ops[scheduled.op].op;
    const double seconds = timed.ops[scheduled.op].seconds;
    if (is_collective(op)) {
      time.communication += seconds;
      time.within += timed.messages[scheduled.op].within;
      time.between += timed.messages[scheduled.op].between;
    } else {
      time.by_type[op.type()] += seconds;
      (timed.computing[scheduled.op] ? computing : moving) += seconds;
    }
  }
  time.compute_bound = computing >= moving;
  return time;
}

using Active = std::vector<bool>;  // by section

StepTime simulate(const std::vector<TimedPlan>& plans, size_t own,
                  const std::vector<Active>& active, int threads) {
  std::vector<RankSchedule> ranks;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = *plans[i].rank.plan;
    ranks.push_back({.rank = plans[i].rank.rank,
                     .plan = &plan,
                     .ops = &plans[i].ops,
                     .schedule = plan.schedule(active[i]),
                     .threads = std::max(threads, 1)});
  }
  StepTime time = sums_of(plans[own], ranks[own].schedule);
  const std::vector<RankTimeline> times = run_on_paper(std::move(ranks));
  for (const RankTimeline& one : times) {
    time.total = std::max(time.total, one.end);
    if (plans.size() > 1) time.stages.push_back(one.compute);
  }
  time.compute = times[own].compute;
  time.hidden = std::clamp(time.compute + time.communication + times[own].idle - time.total, 0.0,
                           time.communication);
  time.waiting = std::max(time.total - time.compute - (time.communication - time.hidden), 0.0);
  return time;
}

}  // namespace

void add(const StepTime& more, double weight, StepTime* sum) {
  sum->total += weight * more.total;
  sum->compute += weight * more.compute;
  sum->communication += weight * more.communication;
  sum->hidden += weight * more.hidden;
  sum->waiting += weight * more.waiting;
  sum->host += weight * more.host;
  sum->within += weight * more.within;
  sum->between += weight * more.between;
  for (const auto& [type, seconds] : more.by_type) sum->by_type[type] += weight * seconds;
  sum->compute_bound = more.compute_bound;
  sum->stages.resize(more.stages.size());
  for (size_t i = 0; i < more.stages.size(); ++i) sum->stages[i] += weight * more.stages[i];
}

StepTime predict_step(std::span<const RankPlan> ranks, size_t own, const JobTopology& topology,
                      const MachineRates& rates, const StepTimeOptions& options) {
  std::vector<TimedPlan> plans;
  for (const RankPlan& rank : ranks) {
    plans.push_back(time_operations(rank, topology, rates));
  }
  std::map<std::vector<Active>, int> counts;  // steps by active sections of each rank
  const int steps = std::max(options.steps, 1);
  for (int i = 0; i < steps; ++i) {
    const int64_t step = kFirstStep + i;
    const StepInfo info = options.prepare ? options.prepare(step) : StepInfo{.step = step};
    std::vector<Active> active;
    for (const RankPlan& rank : ranks) {
      active.emplace_back();
      for (const Section& section : rank.plan->program.sections()) {
        active.back().push_back(section.when.holds(info));
      }
    }
    ++counts[active];
  }
  StepTime mean;
  for (const auto& [active, count] : counts) {
    add(simulate(plans, own, active, options.threads), double(count) / steps, &mean);
  }
  mean.host = rates.step_seconds;
  mean.total += mean.host;
  return mean;
}

std::optional<StepBand> band_of(double seconds, const JobTopology& topology,
                                const MachineRates& rates) {
  if (topology.ranks <= 1 || topology.accelerator || rates.estimate) return std::nullopt;
  return StepBand{seconds / (kGreatestPrediction * (1 + kBandMargin)),
                  seconds / kLeastPrediction * (1 + kBandMargin)};
}

StepTime predict_step(const Plan& plan, const JobTopology& topology, const MachineRates& rates,
                      const StepTimeOptions& options) {
  const RankPlan rank{.rank = 0, .plan = &plan};
  return predict_step(std::span(&rank, 1), 0, topology, rates, options);
}

}  // namespace fleet
