// Variables that share memory, in Programs made at random, against each schedule that can occur:
// an oracle that knows nothing of vector clocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "exec/plan.h"

namespace fleet {
namespace {

struct Random {
  explicit Random(int seed) : engine(seed) {}
  int below(int count) { return static_cast<int>(engine() % count); }
  std::mt19937 engine;
};

// Some operations on three streams, in sections of which some never run together. branches: most
// of them compute, many in a row in one section, so that several streams can share them.
Program random_program(int seed, bool branches = false) {
  Random random(seed);
  Program program;
  const std::vector<SectionId> sections = {
      program.add_section("always", {}), program.add_section("even", {.every = 2}),
      program.add_section("odd", {.every = 2, .between = true}),
      program.add_section("fourth", {.every = 4}),
      program.add_section("evaluation", {.training = false, .evaluation = true})};
  program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = program.feed("x", DType::kFloat32, {256});
  const VarId y = program.feed("y", DType::kFloat32, {64});
  std::vector<std::pair<VarId, SectionId>> made;
  SectionId section = sections[0];
  for (int i = 0; i < (branches ? 80 : 40); ++i) {
    if (!branches || random.below(10) == 0) {
      section = sections[random.below(static_cast<int>(sections.size()))];
    }
    const Predicate& when = program.sections()[section].when;
    std::vector<VarId> readable = {x, y};
    for (const auto& [var, writer] : made) {
      if (program.sections()[writer].when.covers(when)) readable.push_back(var);
    }
    const auto pick = [&] { return readable[random.below(static_cast<int>(readable.size()))]; };
    const VarId from = pick();
    const int stream = branches && random.below(8) > 0 ? 0 : random.below(3);
    if (from != x && from != y && random.below(4) == 0) {
      program.append(section, "all_reduce", {from}, {from}).stream = stream;
      continue;
    }
    const VarId other = pick(), to = program.temporary("t");
    const bool sum = program.var(other).shape == program.var(from).shape && random.below(2) == 0;
    const std::vector<VarId> inputs =
        sum ? std::vector<VarId>{from, other} : std::vector<VarId>{from};
    program.append(section, sum ? "elementwise_add" : "relu", inputs, {to}).stream = stream;
    made.emplace_back(to, section);
  }
  return program;
}

// before[a][b] of the operations of one schedule, straight from its waits and streams.
std::vector<std::vector<bool>> order_of(const Plan& plan,
                                        const std::vector<ScheduledOp>& schedule) {
  const size_t count = plan.ops.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  std::map<int, int> last;  // by stream
  for (const ScheduledOp& scheduled : schedule) {
    std::vector<int> direct = scheduled.waits;
    const int stream = plan.ops[scheduled.op].op.stream;
    if (last.contains(stream)) direct.push_back(last[stream]);
    for (const int other : direct) {
      before[other][scheduled.op] = true;
      for (size_t a = 0; a < count; ++a) {
        if (before[a][other]) before[a][scheduled.op] = true;
      }
    }
    last[stream] = scheduled.op;
  }
  return before;
}

bool touches(const Op& op, VarId id) {
  return std::count(op.inputs.begin(), op.inputs.end(), id) > 0 ||
         std::count(op.outputs.begin(), op.outputs.end(), id) > 0;
}

// Whether in this schedule all that touches a has ended when anything touches b. An operation may
// take over a's memory for b, as the last one of a and the first of b.
bool apart(const Plan& plan, const std::vector<ScheduledOp>& schedule,
           const std::vector<std::vector<bool>>& before, VarId a, VarId b) {
  for (const ScheduledOp& first : schedule) {
    if (!touches(plan.ops[first.op].op, a)) continue;
    for (const ScheduledOp& second : schedule) {
      if (!touches(plan.ops[second.op].op, b)) continue;
      const bool takes_over = first.op == second.op && !plan.ops[first.op].op.def->inplace.empty();
      if (!takes_over && !before[first.op][second.op]) return false;
    }
  }
  return true;
}

bool share_memory(const PlannedVar& a, const PlannedVar& b) {
  return a.shared && b.shared && a.region == b.region && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

// Checks the plans that `planned` makes for this number of seeds.
void expect_nothing_is_used_twice(int seeds, const std::function<Plan(int seed)>& planned) {
  int pairs = 0, other_streams = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const Plan plan = planned(seed);
    std::vector<StepInfo> runs = {{.evaluate = true}};
    for (int64_t step = 0; step < 4; ++step) runs.push_back({.step = step});
    for (const StepInfo& run : runs) {
      std::vector<bool> active;
      for (const Section& section : plan.program.sections())
        active.push_back(section.when.holds(run));
      const std::vector<ScheduledOp> schedule = plan.schedule(active);
      const auto before = order_of(plan, schedule);
      for (VarId a = 0; a < plan.program.var_count(); ++a) {
        for (VarId b = 0; b < a; ++b) {
          if (!share_memory(plan.vars[a], plan.vars[b])) continue;
          ++pairs;
          for (const PlannedOp& op : plan.ops)
            other_streams += op.op.stream > 0 && touches(op.op, a);
          EXPECT_TRUE(apart(plan, schedule, before, a, b) || apart(plan, schedule, before, b, a))
              << "seed " << seed << ", step " << run.step << ": " << plan.program.var(a).name
              << " and " << plan.program.var(b).name;
        }
      }
    }
  }
  EXPECT_GT(pairs, 1000);  // there was something to see
  EXPECT_GT(other_streams, 1000);
}

TEST(SharedMemory, OfRandomPrograms_IsNeverUsedForTwoThingsAtOnce) {
  expect_nothing_is_used_twice(150,
                               [](int seed) { return plan_program(random_program(seed), {}); });
}

}  // namespace
}  // namespace fleet
