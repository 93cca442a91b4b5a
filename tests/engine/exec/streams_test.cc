// Operations on several streams: which waits for which, and which communicator each one gets.
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/executor.h"
#include "ops/collective.h"
#include "tensor/host.h"
#include "tests/engine/exec/recorder.h"

namespace fleet {
namespace {

constexpr int kRounds = 6;

// Six gradients of one feed, each summed on stream 1 + number % communicators.
Program summed(int communicators, bool after_previous) {
  Program program;
  const SectionId section = program.add_section("backward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  for (int i = 0; i < communicators; ++i) program.add_group({.name = "all", .ranks = {0, 1}});
  for (int i = 0; i < kRounds; ++i) {
    const VarId y =
        program.emit(section, "scale", {x}, {{"scale", 1.0 + i}}, "y" + std::to_string(i))[0];
    Op op = program.make_op(
        section, "all_reduce", {y}, {y},
        {{"communicator", int64_t{i % communicators}}, {"after_previous", after_previous}});
    op.stream = 1 + i % communicators;
    program.ops().push_back(std::move(op));
  }
  return program;
}

std::vector<ScheduledOp> collectives(const Plan& plan) {
  std::vector<ScheduledOp> found;
  for (const ScheduledOp& scheduled : plan.schedule({true})) {
    if (is_collective(plan.ops[scheduled.op].op)) found.push_back(scheduled);
  }
  return found;
}

bool waits_for(const ScheduledOp& scheduled, const ScheduledOp& other) {
  return std::count(scheduled.waits.begin(), scheduled.waits.end(), other.op) > 0;
}

TEST(PlanStreams, CollectivesOfTwoCommunicators_WaitForEachOtherOnlyWhereAsked) {
  for (bool after_previous : {false, true}) {
    const Plan plan = plan_program(summed(2, after_previous), {});
    EXPECT_EQ(plan.streams(), 3);
    const auto found = collectives(plan);
    ASSERT_EQ(found.size(), size_t{kRounds});
    for (int i = 1; i < kRounds; ++i) {
      EXPECT_EQ(waits_for(found[i], found[i - 1]), after_previous) << i;
    }
  }
}

TEST(PlanStreams, AfterThePreviousOnTheSameStream_NeedsNoEvent) {
  const Plan plan = plan_program(summed(1, true), {});
  for (const ScheduledOp& scheduled : collectives(plan)) {
    for (int wait : scheduled.waits) EXPECT_FALSE(is_collective(plan.ops[wait].op));
  }
}

// A section that does not run imposes no order; the sections that ran before it do.
TEST(PlanStreams, SectionThatDoesNotRun_LeavesTheWaitsOfTheOthers) {
  Program program;
  const SectionId always = program.add_section("always", {});
  const SectionId rarely = program.add_section("rarely", {.every = 2});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId s = program.state("s", {4}, {});
  const auto on_stream_1 = [&](SectionId section, const std::string& type,
                               std::vector<VarId> inputs) {
    Op op = program.make_op(section, type, std::move(inputs), {s});
    op.stream = 1;
    program.ops().push_back(std::move(op));
  };
  on_stream_1(always, "relu", {x});               // 0
  on_stream_1(rarely, "relu", {s});               // 1
  program.emit(always, "relu", {s}, {}, "last");  // 2
  const Plan plan = plan_program(program, {});
  EXPECT_EQ(plan.schedule({true, true}).back().waits, std::vector<int>{1});
  EXPECT_EQ(plan.schedule({true, false}).back().waits, std::vector<int>{0});
}

// The other stream may start as soon as its input is there, while stream 0 still works with what
// would end just before it in the program's order.
TEST(PlanStreams, OutputOfAnotherStream_OverlapsNothingThatMayStillBeInUse) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {64});
  const VarId y = program.emit(section, "scale", {x}, {}, "y")[0];
  const VarId busy = program.emit(section, "scale", {x}, {}, "busy")[0];
  const VarId end = program.emit(section, "scale", {busy}, {}, "end")[0];
  const VarId overlapped = program.temporary("overlapped");
  Op op = program.make_op(section, "scale", {y}, {overlapped});
  op.stream = 1;
  program.ops().push_back(std::move(op));
  const Plan plan = plan_program(program, {end});
  const PlannedVar &a = plan.vars[busy], &b = plan.vars[overlapped];
  ASSERT_EQ(a.region, Region::kArena);
  ASSERT_EQ(b.region, Region::kArena);
  EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
}

TEST(ExecutorStreams, Collectives_GoToTheCommunicatorTheyName) {
  std::vector<int> order;
  Recorder first(0, &order), second(1, &order);
  HostDevice device;
  Executor executor(plan_program(summed(2, false), {}), device, {&first, &second});
  executor.run({});
  executor.synchronize();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 0, 1, 0, 1}));
}

TEST(ExecutorStreams, CommunicatorThatIsNotThere_IsRefused) {
  std::vector<int> order;
  Recorder only(0, &order);
  HostDevice device;
  EXPECT_THROW(Executor(plan_program(summed(2, false), {}), device, &only), Error);
}

// A GPU's streams end well even where the sum was given up.
TEST(ExecutorStreams, FailureOfAnyCommunicator_ComesOutOfSynchronize) {
  std::vector<int> order;
  Recorder first(0, &order), second(1, &order);
  HostDevice device;
  Executor executor(plan_program(summed(2, false), {}), device, {&first, &second});
  executor.run({});
  second.failed = true;
  EXPECT_THROW(executor.synchronize(), Error);
}

}  // namespace
}  // namespace fleet
