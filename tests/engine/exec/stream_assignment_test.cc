#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "exec/assignment.h"
#include "exec/executor.h"
#include "ops/collective.h"
#include "tensor/host.h"
#include "tests/engine/exec/recorder.h"

namespace fleet {
namespace {

using testing::HasSubstr;

PlanOptions with_streams(int streams) {
  PlanOptions options;
  options.compute_streams = streams;
  return options;
}

// A host that claims some cores, whatever the machine has.
class Cores : public HostDevice {
 public:
  explicit Cores(int count) : count_(count) {}
  int cores() const override { return count_; }

 private:
  const int count_;
};

// Blocks of `width` branches of small operations between a split and a sum, and a state that each
// block updates in place.
struct Branches {
  Program program;
  VarId x, y, state;
  Branches(int blocks, int width, int depth, const Shape& shape = {8, 32}) {
    const SectionId section = program.add_section("forward", {});
    x = program.feed("x", DType::kFloat32, shape);
    state = program.state("state", shape, {});
    VarId from = x;
    for (int block = 0; block < blocks; ++block) {
      std::vector<VarId> ends;
      for (int branch = 0; branch < width; ++branch) {
        VarId end = from;
        for (int i = 0; i <= depth + branch % 2; ++i) {
          end = program.emit(
              section, i % 2 == 0 ? "scale" : "tanh", {end},
              i % 2 == 0 ? Attributes{{"scale", 0.5 + 0.1 * branch}} : Attributes{})[0];
        }
        ends.push_back(end);
      }
      from = program.emit(section, "sum", ends)[0];
      program.append(section, "elementwise_add", {state, from}, {state});
    }
    y = program.emit(section, "scale", {from}, {{"scale", 2.0}}, "y")[0];
  }
};

std::set<int> streams_used(const Plan& plan) {
  std::set<int> used;
  for (const PlannedOp& planned : plan.ops) used.insert(planned.op.stream);
  return used;
}

int operations_in_regions(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.ops.begin(), plan.ops.end(),
                                        [](const PlannedOp& op) { return op.region >= 0; }));
}

TEST(AssignStreams, Branches_UseBothStreams) {
  Branches net(3, 4, 2);
  const Plan plan = plan_program(net.program, {net.y}, with_streams(2));
  EXPECT_EQ(plan.compute_streams, (std::vector<int>{0, 1}));
  EXPECT_EQ(streams_used(plan), (std::set<int>{0, 1}));
  EXPECT_GT(operations_in_regions(plan), 30);
  EXPECT_THAT(plan.text(), HasSubstr("parallel: "));
}

TEST(AssignStreams, Chain_StaysAsItIs) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  VarId y = program.feed("x", DType::kFloat32, {64, 1000});
  for (int i = 0; i < 20; ++i) y = program.emit(section, "tanh", {y})[0];
  const Plan plan = plan_program(program, {y}, with_streams(4));
  EXPECT_EQ(plan.text(), plan_program(program, {y}).text());
  EXPECT_EQ(plan.compute_streams, std::vector<int>{0});
}

// Both halves of the cores would only be as fast as all of them.
TEST(AssignStreams, BranchesOfDifferentLengthOfLargeOperations_KeepAllCores) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1024, 8192});
  VarId a = x;
  for (int i = 0; i < 3; ++i) a = program.emit(section, "tanh", {a})[0];
  const VarId b = program.emit(section, "tanh", {x})[0];
  const VarId y = program.emit(section, "sum", {a, b})[0];
  Cores device(4);
  PlanOptions options = with_streams(4);
  options.device = &device;
  EXPECT_EQ(operations_in_regions(plan_program(program, {y}, options)), 0);
}

TEST(AssignStreams, MoreStreamsThanCores_AreNotUsed) {
  Branches net(2, 6, 2);
  Cores two(2), one(1);
  PlanOptions options = with_streams(6);
  options.device = &two;
  EXPECT_EQ(plan_program(net.program, {net.y}, options).compute_streams.size(), 2u);
  options.device = &one;
  EXPECT_EQ(plan_program(net.program, {net.y}, options).compute_streams.size(), 1u);
}

TEST(AssignStreams, Sections_ShareNoRegion) {
  Program program;
  const SectionId always = program.add_section("always", {});
  const SectionId second = program.add_section("second", {.every = 2});
  const VarId x = program.feed("x", DType::kFloat32, {100});
  for (int i = 0; i < 40; ++i) program.emit(i / 10 % 2 == 0 ? always : second, "tanh", {x});
  const Plan plan = plan_program(program, {}, with_streams(2));
  std::map<int, std::set<SectionId>> sections;
  for (const PlannedOp& planned : plan.ops) sections[planned.region].insert(planned.op.section);
  EXPECT_EQ(sections.size(), 4u);
  for (const auto& [region, inside] : sections) EXPECT_EQ(inside.size(), 1u) << region;
}

// Where a region begins or ends, an operation waits for all streams; elsewhere for data only.
TEST(AssignStreams, Region_IsJoinedAtBothEnds) {
  Program program;
  const VarId x = program.feed("x", DType::kFloat32, {64});
  for (const char* name : {"first", "second", "third"}) {
    const SectionId section = program.add_section(name, {});
    for (int i = 0; i < 9; ++i) program.emit(section, "tanh", {x});
  }
  const Plan plan = plan_program(program, {}, with_streams(2));
  std::map<int, int> last, before;  // by stream: so far, and when the region began
  int region = plan.ops[0].region, joins = 0;
  std::set<int> begun;
  for (const ScheduledOp& scheduled : plan.schedule({true, true, true})) {
    const PlannedOp& planned = plan.ops[scheduled.op];
    if (planned.region != region) {
      region = planned.region;
      begun.clear();
      before = last;
    }
    const int other = 1 - planned.op.stream;
    if (begun.insert(planned.op.stream).second && before.contains(other)) {
      EXPECT_THAT(scheduled.waits, testing::Contains(before[other]));
      ++joins;
    }
    last[planned.op.stream] = scheduled.op;
  }
  EXPECT_EQ(joins, 4);
}

// All sums of a communicator keep their order, and come after what they add up.
TEST(AssignStreams, Collectives_KeepTheirOrderAndStream) {
  Program program;
  const SectionId section = program.add_section("backward", {});
  program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = program.feed("x", DType::kFloat32, {64});
  std::vector<VarId> gradients;
  for (int i = 0; i < 12; ++i) {
    VarId y = x;
    for (int k = 0; k <= 11 - i; ++k) y = program.emit(section, "tanh", {y})[0];
    program.append(section, "all_reduce", {y}, {y}).stream = 1;
    gradients.push_back(y);
  }
  for (uint64_t seed = 0; seed < 20; ++seed) {
    PlanOptions options = with_streams(2);
    if (seed > 0) options.shuffle = seed;
    const Plan plan = plan_program(program, {}, options);
    EXPECT_EQ(plan.compute_streams, (std::vector<int>{0, 2}));
    std::vector<VarId> summed;
    std::set<VarId> written;
    for (const PlannedOp& planned : plan.ops) {
      for (VarId id : planned.op.inputs) EXPECT_TRUE(id == x || written.contains(id));
      written.insert(planned.op.outputs.begin(), planned.op.outputs.end());
      if (!is_collective(planned.op)) continue;
      EXPECT_EQ(planned.op.stream, 1);
      EXPECT_EQ(planned.region, -1);
      summed.push_back(planned.op.inputs[0]);
    }
    EXPECT_EQ(summed, gradients);
  }
}

// An operation that waits for a collective begins another region: in the one before, the other
// streams would wait too.
TEST(AssignStreams, ReaderOfACollective_BeginsAnotherRegion) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = program.feed("x", DType::kFloat32, {64});
  const auto branches = [&](VarId from) {
    VarId end = from;
    for (int i = 0; i < 8; ++i) end = program.emit(section, "tanh", {from})[0];
    return end;
  };
  const VarId y = branches(x);
  program.append(section, "all_reduce", {y}, {y}).stream = 1;
  branches(y);
  const Plan plan = plan_program(program, {}, with_streams(2));
  std::set<int> before, after;
  for (const PlannedOp& planned : plan.ops) {
    if (is_collective(planned.op)) continue;
    (planned.op.inputs[0] == x ? before : after).insert(planned.region);
  }
  for (int region : before) EXPECT_FALSE(after.contains(region)) << region;
}

// Many branches that end in one small sum each would all be alive at once.
TEST(AssignStreams, Memory_StaysWithinATenthOfOneStream) {
  for (const int64_t size : {int64_t{1} << 10, int64_t{1} << 18, int64_t{1} << 21}) {
    Program program;
    const SectionId section = program.add_section("forward", {});
    const VarId x = program.feed("x", DType::kFloat32, {size});
    for (int i = 0; i < 30; ++i) {
      const VarId a = program.emit(section, "tanh", {x})[0];
      const VarId b = program.emit(section, "tanh", {a})[0];
      program.emit(section, "mean", {b});
    }
    const Plan plan = plan_program(program, {}, with_streams(8));
    const size_t one = plan_program(program, {}).memory().total();
    EXPECT_EQ(plan.one_stream_bytes, one);
    EXPECT_LE(plan.memory().total(), one + std::max(kParallelMemoryBytes, one / 10)) << size;
  }
}

// The same Plan on one stream and on two, with its operations in 200 orders.
TEST(ParallelExecutor, ShuffledSchedules_GiveTheSameBits) {
  Branches net(4, 5, 2);
  Cores device(2);
  std::vector<float> x(8 * 32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) / 11.f - 1.5f;
  std::set<std::string> orders;
  std::vector<std::vector<float>> expected;
  for (uint64_t seed = 0; seed <= 200; ++seed) {
    PlanOptions options = with_streams(seed == 0 ? 1 : 2);
    options.device = &device;
    if (seed > 0) options.shuffle = seed;
    Executor executor(plan_program(net.program, {net.y}, options), device, nullptr);
    EXPECT_EQ(executor.plan().compute_streams.size(), seed == 0 ? 1u : 2u);
    orders.insert(executor.plan().text());
    executor.initialize(1);
    executor.feed(net.x, x);
    for (int step = 0; step < 3; ++step) executor.run({.step = step});
    const std::vector<std::vector<float>> values = {executor.values<float>(net.y),
                                                    executor.values<float>(net.state)};
    if (seed == 0) expected = values;
    ASSERT_EQ(values, expected) << "seed " << seed;
  }
  EXPECT_EQ(orders.size(), 201u);
}

TEST(ParallelExecutor, ProfilingAndChecking_RunOneByOneWithTheSameBits) {
  Branches net(2, 4, 2);
  Cores device(2);
  PlanOptions options = with_streams(2);
  options.device = &device;
  Executor executor(plan_program(net.program, {net.y}, options), device, nullptr);
  executor.feed(net.x, std::vector<float>(8 * 32, 0.75f));
  executor.run({});
  const std::vector<float> expected = executor.values<float>(net.y);
  executor.set_profiling(true);
  executor.run({});
  EXPECT_EQ(executor.values<float>(net.y), expected);
  const std::vector<double> seconds = executor.profiled_seconds();
  EXPECT_EQ(std::count(seconds.begin(), seconds.end(), 0), 0);  // every operation was measured
  executor.set_profiling(false);
  executor.set_checking(true);
  executor.run({});
  EXPECT_EQ(executor.values<float>(net.y), expected);
}

// A sum within a region starts when its gradient is there, on its own stream.
TEST(ParallelExecutor, CollectivesInsideARegion_RunInTheirOrder) {
  Program program;
  const SectionId section = program.add_section("backward", {});
  program.add_group({.name = "all", .ranks = {0, 1}});
  program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = program.feed("x", DType::kFloat32, {64});
  for (int i = 0; i < 20; ++i) {
    const VarId y = program.emit(section, "tanh", {x})[0];
    program.append(section, "all_reduce", {y}, {y}, {{"communicator", int64_t{i % 2}}}).stream =
        1 + i % 2;
  }
  Cores device(2);
  PlanOptions options = with_streams(2);
  options.device = &device;
  const Plan plan = plan_program(program, {}, options);
  EXPECT_GT(operations_in_regions(plan), 10);
  std::vector<int> order, expected;
  for (int i = 0; i < 20; ++i) expected.push_back(i % 2);
  Recorder first(0, &order), second(1, &order);
  Executor executor(plan, device, {&first, &second});
  executor.run({});
  executor.synchronize();
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace fleet
