#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "exec/executor.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// The state after one event.
std::vector<float> after(const std::string& event, const std::vector<float>& before, float loss = 0,
                         float rate = 0, int64_t init = 1) {
  Program program;
  const SectionId section = program.add_section("always", {});
  const VarId steps = program.state("steps", {4}, Init());
  const VarId l = program.feed("loss", DType::kFloat32, {1});
  const VarId r = program.feed("rate", DType::kFloat32, {1});
  const bool looks = event == "first" || event == "adapt";
  program.append(section, "local_steps", {steps, looks ? l : kNoVar, looks ? r : kNoVar}, {steps},
                 {{"event", event}, {"init_steps", init}});
  Executor executor(plan_program(std::move(program), {}, op_plan_options()), op_device(), nullptr);
  executor.initialize(1);
  executor.write(steps, before);
  executor.feed(l, std::span(&loss, 1));
  executor.feed(r, std::span(&rate, 1));
  executor.run({});
  return executor.values<float>(steps);
}

using Floats = std::vector<float>;

TEST(LocalSteps, Events_ChangeWhatIsRemembered) {
  EXPECT_EQ(after("step", {1, 2, 3, 4}), (Floats{1, 2, 3, 5}));
  EXPECT_EQ(after("average", {1, 2, 3, 4}), (Floats{1, 2, 3, 0}));
  EXPECT_EQ(after("first", {0, 0, 0, 1}, 2.5f, 0.1f), (Floats{2.5f, 0.1f, 0, 1}));
}

TEST(LocalSteps, Adapt_TakesTheRootOfLossOverRate) {
  const auto k = [](float loss, float rate, int64_t init) {
    return after("adapt", {2, 0.5f, 7, 3}, loss, rate, init)[2];
  };
  EXPECT_EQ(k(2, 0.5f, 4), 2);      // as at the start: the root of init_steps
  EXPECT_EQ(k(1, 0.5f, 9), 3);      // sqrt(4.5), rounded up
  EXPECT_EQ(k(1, 0.125f, 1), 2);    // sqrt(2)
  EXPECT_EQ(k(0.01f, 0.5f, 1), 1);  // at least
  EXPECT_EQ(k(2, 0.001f, 1), 16);   // at most
  EXPECT_EQ(k(2, 0, 1), 16);        // a rate of 0: nothing moves
  EXPECT_EQ(k(-1, 0.5f, 1), 1);     // no root
}

// train.on_nan=skip continues after such a step.
TEST(LocalSteps, LossThatIsNotFinite_ChangesNothing) {
  for (const float loss : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(after("first", {0, 0, 0, 1}, loss, 0.1f), (Floats{0, 0, 0, 1}));
    EXPECT_EQ(after("adapt", {2, 0.5f, 7, 3}, loss, 0.1f), (Floats{2, 0.5f, 7, 3}));
  }
  EXPECT_EQ(after("adapt", {0, 0, 0, 3}, 2.5f, 0.1f, 4), (Floats{2.5f, 0.1f, 2, 3}));
}

}  // namespace
}  // namespace fleet
