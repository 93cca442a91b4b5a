// Two Plans of one net, for batches of two sizes, on one Executor.
#include "exec/shared_places.h"

#include <gtest/gtest.h>

#include "exec/executor.h"
#include "tensor/host.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// y = x + w, and each step doubles w afterwards; with `more`, also the state s.
Plan plan_for(int64_t rows, const std::string& parameter = "w", bool more = false) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const SectionId update = program.add_section("update", {.training = true});
  const VarId w = program.parameter(parameter, {4}, {Init::kConstant, 1});
  const VarId x = program.feed("x", DType::kFloat32, {rows, 4});
  const VarId y = program.temporary("y");
  program.append(forward, "elementwise_add", {x, w}, {y});
  program.append(update, "scale", {w}, {w}, {{"scale", 2.0}});
  if (more) {
    const VarId s = program.state("s", {4}, {Init::kConstant, 1});
    program.append(update, "scale", {s}, {s}, {{"scale", 2.0}});
  }
  return plan_program(program, {y});
}

class SharedPlaces : public ::testing::Test {
 protected:
  static std::vector<Plan> plans() {
    std::vector<Plan> plans;
    plans.push_back(plan_for(8));
    plans.push_back(plan_for(2));
    share_places(plans);
    return plans;
  }
};

TEST_F(SharedPlaces, ShorterPlan_NeedsNoMemoryOfItsOwn) {
  const std::vector<Plan> both = plans();
  EXPECT_EQ(both[1].persistent_bytes, both[0].persistent_bytes);
  EXPECT_LE(both[1].arena_bytes, both[0].arena_bytes);
}

TEST_F(SharedPlaces, PlansInTurns_TrainTheSameParameter) {
  HostDevice device;
  Executor executor(plans(), device, std::vector<Communicator*>{});
  executor.initialize(1);
  const Program& program = executor.program();
  const VarId x = program.find("x"), y = program.find("y"), w = program.find("w");
  const std::vector<float> zeros(32);
  executor.select(1);
  executor.feed(x, std::span(zeros).first(8));
  executor.run({});
  EXPECT_EQ(executor.values<float>(y), std::vector<float>(8, 1));
  executor.select(0);
  executor.feed(x, zeros);
  executor.run({});
  EXPECT_EQ(executor.values<float>(y), std::vector<float>(32, 2));
  executor.select(1);
  EXPECT_EQ(executor.values<float>(w), std::vector<float>(4, 4));
  EXPECT_EQ(thrown_by([&] { executor.feed(x, zeros); }).code(), ErrorCode::kInternal);
}

TEST_F(SharedPlaces, PlansOfOtherParameters_AreRefused) {
  std::vector<Plan> others;
  others.push_back(plan_for(8));
  others.push_back(plan_for(2, "v"));
  EXPECT_EQ(thrown_by([&] { share_places(others); }).code(), ErrorCode::kUnsupported);
}

// A Plan without a state of the first leaves it as it is; the host reads and writes it all the
// same.
TEST_F(SharedPlaces, PlanWithSomeStates_LeavesTheOthers) {
  std::vector<Plan> plans;
  plans.push_back(plan_for(2, "w", /*more=*/true));
  plans.push_back(plan_for(2));
  SharedEnds ends;
  share_some_places(plans[0], &plans[1], &ends);
  HostDevice device;
  Executor executor(std::move(plans), device, std::vector<Communicator*>{});
  executor.initialize(1);
  const Program& program = executor.program();
  const VarId x = program.find("x"), w = program.find("w"), s = program.find("s");
  const std::vector<float> zeros(8);
  const auto step = [&](int plan) {
    executor.select(plan);
    executor.feed(x, zeros);
    executor.run({});
  };
  step(1);
  EXPECT_EQ(executor.values<float>(s), std::vector<float>(4, 1));
  executor.write(s, std::vector<float>(4, 3));
  step(0);
  EXPECT_EQ(executor.values<float>(w), std::vector<float>(4, 4));
  EXPECT_EQ(executor.values<float>(s), std::vector<float>(4, 6));
}

TEST_F(SharedPlaces, PlanWithOtherStates_IsRefused) {
  const Plan first = plan_for(2);
  Plan other = plan_for(2, "w", /*more=*/true);
  SharedEnds ends;
  EXPECT_EQ(thrown_by([&] { share_some_places(first, &other, &ends); }).code(),
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace fleet
