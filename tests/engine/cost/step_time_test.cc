#include "cost/step_time.h"

#include <gtest/gtest.h>

#include "exec/backend.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// Every operation takes a millisecond, whatever it does.
MachineRates slow_operations() {
  MachineRates rates;
  rates.peak = {{"float32", 1e30}};
  rates.bytes_per_second = 1e30;
  rates.op_seconds = 1e-3;
  rates.idle_factor = 1;  // transfers need no core
  return rates;
}

void append_sum(Program& program, SectionId section, VarId var, GroupId group, int stream) {
  program.append(section, "all_reduce", {var}, {var}, {{"communicator", int64_t{group}}}).stream =
      stream;
}

JobTopology two_ranks() {
  JobTopology topology{.ranks = 2, .nodes = 1, .transport = "auto"};
  topology.local_bytes = 1e6;
  topology.local_seconds = 0;
  return topology;
}

struct Net {
  Program program;
  SectionId section;
  VarId gradient;
  VarId last;
};

// A gradient, its sum on another stream, then `after` operations that do not need it.
Net net(int after, int64_t elements, int stream = 1) {
  Net net;
  net.section = net.program.add_section("main", {});
  const GroupId group = net.program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = net.program.feed("x", DType::kFloat32, {elements});
  net.gradient = net.program.emit(net.section, "relu", {x})[0];
  append_sum(net.program, net.section, net.gradient, group, stream);
  VarId y = net.program.feed("y", DType::kFloat32, {4});
  for (int i = 0; i < after; ++i) {
    y = net.program.emit(net.section, "scale", {y}, {{"scale", 2.0}})[0];
  }
  net.last = y;
  return net;
}

TEST(PredictStep, OverlappedCommunication_IsHidden) {
  // 1000 floats to the other rank: 4000 bytes at 1 MB/s are 4 ms, behind 10 operations.
  Net parts = net(10, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  const StepTime time = predict_step(plan, two_ranks(), slow_operations(), {});
  EXPECT_NEAR(time.compute, 11e-3, 1e-6);
  EXPECT_NEAR(time.communication, 4e-3, 1e-4);
  EXPECT_NEAR(time.hidden, 4e-3, 1e-4);
  EXPECT_NEAR(time.total, 11e-3, 1e-4);
  EXPECT_NEAR(time.within, 4000, 100);
  EXPECT_EQ(time.between, 0);
}

TEST(PredictStep, CommunicationLongerThanTheRest_IsWaitedFor) {
  Net parts = net(2, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  const StepTime time = predict_step(plan, two_ranks(), slow_operations(), {});
  EXPECT_NEAR(time.total, 5e-3, 1e-4);
  EXPECT_NEAR(time.hidden, 2e-3, 1e-4);
}

TEST(PredictStep, CommunicationThatNeedsTheCore_IsNotHidden) {
  MachineRates rates = slow_operations();
  rates.idle_factor = 0;
  Net parts = net(10, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {}).total, 15e-3, 1e-4);
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {.threads = 4}).total, 12e-3, 1e-4);
}

TEST(PredictStep, SeveralCommunicators_ShareTheLink) {
  Program program;
  const SectionId section = program.add_section("main", {});
  std::vector<VarId> keep;
  for (int i = 0; i < 2; ++i) {
    const GroupId group = program.add_group({.name = "all", .ranks = {0, 1}});
    const VarId x = program.feed("x" + std::to_string(i), DType::kFloat32, {1000});
    keep.push_back(program.emit(section, "relu", {x})[0]);
    append_sum(program, section, keep.back(), group, 1 + i);
  }
  const Plan plan = plan_program(program, keep);
  EXPECT_NEAR(predict_step(plan, two_ranks(), slow_operations(), {}).total, 9e-3, 1.1e-3);
}

TEST(PredictStep, SectionOfEveryFourthStep_CountsAQuarter) {
  Program program;
  const SectionId every = program.add_section("every", {});
  const SectionId fourth = program.add_section("fourth", {.every = 4});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId a = program.emit(every, "relu", {x})[0];
  const VarId b = program.emit(fourth, "relu", {x})[0];
  const Plan plan = plan_program(program, {a, b});
  const StepTime time = predict_step(plan, {}, slow_operations(), {.steps = 64});
  EXPECT_NEAR(time.compute, 1.25e-3, 1e-6);
}

// A stage of a pipeline: `before` operations, then a message, which rank 1 receives before `after`.
Plan stage(int rank, int before, int after) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const GroupId group = program.add_group({.name = "activations", .ranks = {0, 1}});
  VarId value = program.feed("x", DType::kFloat32, {1000});
  const auto compute = [&](int count) {
    for (int i = 0; i < count; ++i) value = program.emit(section, "relu", {value})[0];
  };
  compute(before);
  const Attributes peer = {{"peer", int64_t{1 - rank}}, {"communicator", int64_t{group}}};
  const VarId moved = program.temporary("moved");
  if (rank == 0) {
    Op& op = program.append(section, "send", {value}, {moved}, peer);
    op.stream = 1;
    compute(after);
    return plan_program(program, {value});
  }
  Attributes received = peer;
  received.set("shape", std::vector<int64_t>{1000});
  received.set("dtype", std::string("float32"));
  program.append(section, "recv", {}, {moved}, received).stream = 1;
  value = moved;
  compute(after);
  return plan_program(program, {value});
}

TEST(PredictStep, StageThatReceives_WaitsForTheOneThatSends) {
  const Plan first = stage(0, 3, 1), second = stage(1, 0, 2);
  const RankPlan ranks[] = {{0, &first}, {1, &second}};
  // 3 operations, a message of 4 ms, 2 operations.
  const StepTime receives = predict_step(ranks, 1, two_ranks(), slow_operations(), {});
  EXPECT_NEAR(receives.total, 9e-3, 0.1e-3);
  EXPECT_NEAR(receives.compute, 2e-3, 1e-6);
  EXPECT_NEAR(receives.communication, 4e-3, 0.1e-3);
  EXPECT_NEAR(receives.hidden, 0, 0.1e-3);
  EXPECT_NEAR(receives.waiting, 3e-3, 0.1e-3);
  // The other has its fourth operation during the message, and waits for the end.
  const StepTime sends = predict_step(ranks, 0, two_ranks(), slow_operations(), {});
  EXPECT_NEAR(sends.total, 9e-3, 0.1e-3);
  EXPECT_NEAR(sends.hidden, 1e-3, 0.1e-3);
  EXPECT_NEAR(sends.waiting, 2e-3, 0.1e-3);
  ASSERT_EQ(sends.stages.size(), 2U);
  EXPECT_NEAR(sends.stages[0], 4e-3, 1e-6);
  EXPECT_NEAR(sends.stages[1], 2e-3, 1e-6);
}

TEST(PredictStep, StagesThatBothReceive_AreAnError) {
  Program program;
  const VarId x = program.feed("x", DType::kFloat32, {64});
  const VarId y = program.emit(program.add_section("main", {}), "relu", {x})[0];
  const Plan first = stage(1, 0, 1), second = plan_program(program, {y});
  const RankPlan ranks[] = {{0, &second}, {1, &first}};
  EXPECT_THAT(thrown_by([&] { predict_step(ranks, 0, two_ranks(), slow_operations(), {}); }),
              IsError(ErrorCode::kInternal));
}

TEST(CollectiveCost, BetweenNodes_IsCountedApart) {
  Net parts = net(0, 3000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  JobTopology topology = two_ranks();
  topology.nodes = 2;
  topology.link_bytes = 1e6;
  topology.link_seconds = 0;
  const StepTime time = predict_step(plan, topology, slow_operations(), {});
  EXPECT_EQ(time.within, 0);
  EXPECT_NEAR(time.between, 12000, 100);
  EXPECT_NEAR(time.communication, 12e-3, 1e-4);
}

TEST(CollectiveCost, MeasuredLink_ReplacesTheGuess) {
  Net parts = net(0, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  MachineRates rates = slow_operations();
  rates.links.push_back({.transport = "shm", .ranks = 2, .all_reduce = {{4000, 0.5}}});
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {}).communication, 0.5, 0.01);
}

TEST(CollectiveCost, MeasuredTimeOfACore_IsTakenFromTheComputation) {
  Net parts = net(10, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  MachineRates rates = slow_operations();
  rates.links.push_back({.transport = "shm", .ranks = 2, .all_reduce = {{4000, 4e-3, 1e-3}}});
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {}).total, 12e-3, 1e-4);
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {.threads = 2}).total, 11.5e-3, 1e-4);
}

// A message at the end waits for nothing but itself, so that its core is free.
TEST(CollectiveCost, AfterTheComputation_ItTakesNoCoreFromIt) {
  Net parts = net(0, 1000);
  const Plan plan = plan_program(parts.program, {parts.gradient, parts.last});
  MachineRates rates = slow_operations();
  rates.links.push_back({.transport = "shm", .ranks = 2, .all_reduce = {{4000, 4e-3, 4e-3}}});
  EXPECT_NEAR(predict_step(plan, two_ranks(), rates, {}).total, 5e-3, 1e-4);
}

// It covers the measured step of the worst predictions.
TEST(StepBand, OfSeveralRanks_CoversWhatWasMeasured) {
  const auto band = band_of(2, two_ranks(), {});
  ASSERT_TRUE(band);
  EXPECT_LT(band->low, 2 / kGreatestPrediction);
  EXPECT_GT(band->high, 2 / kLeastPrediction);
  EXPECT_FALSE(band_of(2, {.ranks = 1}, {}));
  EXPECT_FALSE(band_of(2, {.ranks = 2, .accelerator = true}, {}));
  EXPECT_FALSE(band_of(2, two_ranks(), {.estimate = true}));
}

TEST(JobTopology, Transport_FollowsTheNodes) {
  JobTopology topology{.ranks = 4, .nodes = 2};
  EXPECT_EQ(topology.transport_of({0, 1}), "shm");
  EXPECT_EQ(topology.transport_of({0, 2}), "gloo");
  EXPECT_EQ(topology.transport_of({0, 1, 2, 3}), "hierarchical(shm, gloo)");
  topology.accelerator = true;
  EXPECT_EQ(topology.transport_of({0, 1, 2, 3}), "nccl");
}

}  // namespace
}  // namespace fleet
