#include "cost/step_time.h"

#include <algorithm>

#include "ops/collective.h"

namespace fleet {
namespace {

// The first step that is predicted: ramps at the start of training are over, and periods of up to
// 64 steps begin.
constexpr int64_t kFirstStep = int64_t{1} << 20;

struct Timed {
  double seconds = 0;
  bool collective = false;
  bool computing = false;  // bound by arithmetic
  CollectiveCost cost;
};

std::vector<Timed> time_operations(const Plan& plan, const JobTopology& topology,
                                   const MachineRates& rates) {
  std::vector<Timed> timed;
  for (const PlannedOp& planned : plan.ops) {
    Timed one;
    if (is_collective(planned.op)) {
      one.collective = true;
      one.cost = collective_cost(plan, planned, topology, rates);
      one.seconds = one.cost.seconds;
    } else {
      OpCost cost = cost_of(plan, planned);
      one.seconds = rates.seconds(cost);
      const double whole = rates.bound(cost);
      cost.operations = 0;
      one.computing = whole > rates.bound(cost);
    }
    timed.push_back(one);
  }
  return timed;
}

// A time in which collectives take a part of the cores from the computation.
struct Slowdown {
  double begin = 0, end = 0, part = 0;
};

// When work of so many seconds ends that begins at `start`. The slowdowns may overlap.
double end_of_work(double start, double seconds, const std::vector<Slowdown>& slowdowns) {
  constexpr double kLeast = 0.01;  // the share of a core that computation keeps
  double now = start;
  while (seconds > 0) {
    double lost = 0, next = now + seconds / kLeast;
    for (const Slowdown& one : slowdowns) {
      if (one.end <= now) continue;
      if (one.begin > now) {
        next = std::min(next, one.begin);
      } else {
        next = std::min(next, one.end);
        lost += one.part;
      }
    }
    const double rate = std::max(1 - lost, kLeast);
    if (now + seconds / rate <= next) return now + seconds / rate;
    seconds -= (next - now) * rate;
    now = next;
  }
  return now;
}

// One schedule: each stream runs its operations in order, after those that they wait for. While a
// collective needs a core, the computation loses that core.
class Simulation {
 public:
  Simulation(const Plan& plan, const std::vector<Timed>& timed, int threads)
      : plan_(plan), timed_(timed), threads_(std::max(threads, 1)) {}

  StepTime run(const std::vector<bool>& active) {
    std::vector<double> stream(plan_.streams(), 0), end(plan_.ops.size(), 0);
    double computing = 0, moving = 0;
    for (const ScheduledOp& scheduled : plan_.schedule(active)) {
      const Timed& one = timed_[scheduled.op];
      const int own = plan_.ops[scheduled.op].op.stream;
      double start = stream[own];
      for (const int wait : scheduled.waits) start = std::max(start, end[wait]);
      if (one.collective) {
        // Messages of several communicators share the links: only their delays pass at once.
        link_ = std::max(link_, start + one.cost.delay) + one.seconds - one.cost.delay;
        end[scheduled.op] = stream[own] = link_;
        time_.communication += one.seconds;
        time_.within += one.cost.within;
        time_.between += one.cost.between;
        if (one.cost.busy > 0) {
          // It moves in the last of its seconds; before, it waited for the link.
          slowdowns_.push_back({std::max(start, link_ - one.seconds), link_,
                                one.cost.busy / one.seconds / threads_});
        }
      } else {
        end[scheduled.op] = stream[own] = end_of_work(start, one.seconds, slowdowns_);
        time_.compute += one.seconds;
        time_.by_type[plan_.ops[scheduled.op].op.type()] += one.seconds;
        (one.computing ? computing : moving) += one.seconds;
      }
    }
    time_.total = *std::max_element(stream.begin(), stream.end());
    time_.hidden =
        std::clamp(time_.compute + time_.communication - time_.total, 0.0, time_.communication);
    time_.compute_bound = computing >= moving;
    return time_;
  }

 private:
  const Plan& plan_;
  const std::vector<Timed>& timed_;
  const int threads_;
  double link_ = 0;  // when the links are free
  std::vector<Slowdown> slowdowns_;
  StepTime time_;
};

void add(const StepTime& more, double weight, StepTime* sum) {
  sum->total += weight * more.total;
  sum->compute += weight * more.compute;
  sum->communication += weight * more.communication;
  sum->hidden += weight * more.hidden;
  sum->within += weight * more.within;
  sum->between += weight * more.between;
  for (const auto& [type, seconds] : more.by_type) sum->by_type[type] += weight * seconds;
  sum->compute_bound = more.compute_bound;
}

}  // namespace

StepTime predict_step(const Plan& plan, const JobTopology& topology, const MachineRates& rates,
                      const StepTimeOptions& options) {
  const std::vector<Timed> timed = time_operations(plan, topology, rates);
  std::map<std::vector<bool>, int> counts;  // steps by active sections
  const int steps = std::max(options.steps, 1);
  for (int i = 0; i < steps; ++i) {
    const int64_t step = kFirstStep + i;
    const StepInfo info = options.prepare ? options.prepare(step) : StepInfo{.step = step};
    std::vector<bool> active;
    for (const Section& section : plan.program.sections()) {
      active.push_back(section.when.holds(info));
    }
    ++counts[active];
  }
  StepTime mean;
  for (const auto& [active, count] : counts) {
    add(Simulation(plan, timed, options.threads).run(active), double(count) / steps, &mean);
  }
  mean.host = rates.step_seconds;
  mean.total += mean.host;
  return mean;
}

}  // namespace fleet
