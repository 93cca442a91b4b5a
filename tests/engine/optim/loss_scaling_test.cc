// The operations of loss scaling: check_finite_and_unscale and update_loss_scaling.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "exec/executor.h"
#include "tensor/float16.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct State {
  float scale;
  int64_t good, bad;
  bool operator==(const State&) const = default;
};
std::ostream& operator<<(std::ostream& out, const State& state) {
  return out << "{" << state.scale << ", " << state.good << ", " << state.bad << "}";
}

// update_loss_scaling alone, with found_inf as an input.
class Scaling {
 public:
  Scaling(float initial, Attributes attributes) {
    Program program;
    const SectionId section = program.add_section("optimize", {});
    found_ = program.feed("found_inf", DType::kInt32, {1});
    const VarId scale = program.state("scale", {1}, {Init::kConstant, initial});
    const VarId good = program.state("good", {1}, {}, DType::kInt64);
    const VarId bad = program.state("bad", {1}, {}, DType::kInt64);
    program.append(section, "update_loss_scaling", {found_, scale, good, bad}, {scale, good, bad},
                   std::move(attributes));
    executor_ = std::make_unique<Executor>(plan_program(program, {}, op_plan_options()),
                                           op_device(), nullptr);
    executor_->initialize(1);
  }
  State step(bool found_inf) {
    const int32_t value = found_inf;
    executor_->feed(found_, std::span(&value, 1));
    executor_->run({});
    const Program& program = executor_->program();
    return {executor_->values<float>(program.find("scale"))[0],
            executor_->values<int64_t>(program.find("good"))[0],
            executor_->values<int64_t>(program.find("bad"))[0]};
  }

 private:
  VarId found_ = kNoVar;
  std::unique_ptr<Executor> executor_;
};

Attributes rule(int64_t incr_every, int64_t decr_every) {
  return {{"incr_every_n_steps", incr_every}, {"decr_every_n_nan_or_inf", decr_every}};
}

// Paddle's rule step by step, by hand: up after 3 good steps in a row, down at the second bad one.
TEST(UpdateLossScaling, GoodAndBadSteps_FollowPaddlesRule) {
  Scaling scaling(1024, rule(3, 2));
  const std::pair<bool, State> steps[] = {
      {false, {1024, 1, 0}},
      {false, {1024, 2, 0}},
      {false, {2048, 0, 0}},
      {false, {2048, 1, 0}},
      {true, {2048, 0, 1}},
      {false, {2048, 1, 0}},  // one bad step is forgotten after a good one
      {true, {2048, 0, 1}},
      {true, {1638.4f, 0, 0}},
      {true, {1638.4f, 0, 1}},
      {true, {1310.72f, 0, 0}},
      {false, {1310.72f, 1, 0}},
  };
  int number = 0;
  for (const auto& [found_inf, want] : steps) {
    const State got = scaling.step(found_inf);
    EXPECT_FLOAT_EQ(got.scale, want.scale) << number;
    EXPECT_EQ(got.good, want.good) << number;
    EXPECT_EQ(got.bad, want.bad) << number;
    ++number;
  }
}

TEST(UpdateLossScaling, Scale_NeverFallsBelowOne) {
  Scaling scaling(1.1f, rule(1000, 1));
  EXPECT_EQ(scaling.step(true), (State{1, 0, 0}));
  EXPECT_EQ(scaling.step(true), (State{1, 0, 0}));
}

TEST(UpdateLossScaling, ScaleThatWouldBeInfinite_Stays) {
  Scaling scaling(3e38f, rule(1, 1));
  EXPECT_EQ(scaling.step(false), (State{3e38f, 0, 0}));
}

// Gradients of all three types, one of them in blocks; `poke` changes one element.
struct Checked {
  int32_t found_inf;
  float unscale;
};
Checked check(int tensor, int64_t element, float value) {
  Program program;
  PlanOptions options = op_plan_options();
  const SectionId section = program.add_section("optimize", {});
  const VarId scaling = program.feed("loss_scaling", DType::kFloat32, {1});
  const Shape shape{20, 3, 30, 40};
  const VarId gradients[] = {
      program.feed("a", DType::kFloat32, shape), program.feed("b", DType::kBFloat16, shape),
      program.feed("c", DType::kFloat16, shape), program.state("d", shape, {Init::kConstant, 1})};
  options.initial_layouts[gradients[3]] =
      Layout::blocked({32, 3, 30, 40}, {57600, 19200, 640, 16}, {{0, 16}});
  const VarId found = program.temporary("found_inf"), unscale = program.temporary("unscale");
  program.append(section, "check_finite_and_unscale",
                 {scaling, gradients[0], gradients[1], gradients[2], gradients[3]},
                 {found, unscale});
  Executor executor(plan_program(program, {found, unscale}, options), op_device(), nullptr);
  executor.initialize(1);
  const float scale = 8;
  executor.feed(scaling, std::span(&scale, 1));
  std::vector<float> wide(shape.elements(), 60000);
  std::vector<BFloat16> bf16(wide.size(), BFloat16(3e38f));
  std::vector<Float16> fp16(wide.size(), Float16(-65504));
  if (tensor == 0) wide[element] = value;
  if (tensor == 1) bf16[element] = BFloat16(value);
  if (tensor == 2) fp16[element] = Float16(value);
  executor.feed(gradients[0], wide);
  executor.feed(gradients[1], bf16);
  executor.feed(gradients[2], fp16);
  if (tensor == 3) {
    std::vector<float> all(wide.size(), 1);
    all[element] = value;
    executor.write(gradients[3], all);
  }
  executor.run({});
  return {executor.values<int32_t>(found)[0], executor.values<float>(unscale)[0]};
}

TEST(CheckFiniteAndUnscale, LargeNumbers_AreFine) {
  const Checked checked = check(0, 0, 3e38f);
  EXPECT_EQ(checked.found_inf, 0);
  EXPECT_EQ(checked.unscale, 0.125f);
}

TEST(CheckFiniteAndUnscale, OneBadElementAnywhere_IsFound) {
  for (int tensor = 0; tensor < 4; ++tensor) {
    for (int64_t element : {0, 16384, 71999}) {
      for (float value : {INFINITY, -INFINITY, NAN}) {
        EXPECT_EQ(check(tensor, element, value).found_inf, 1) << tensor << " " << element;
      }
    }
  }
}

// count_skipped_updates alone, with its inputs fed; scaled: with a loss scale.
std::vector<int64_t> counts(bool scaled, const std::vector<std::array<float, 3>>& steps) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId found = program.feed("found_inf", DType::kInt32, {1});
  const VarId loss = program.feed("loss", DType::kFloat32, {1});
  const VarId scale = scaled ? program.feed("scale", DType::kFloat32, {1}) : kNoVar;
  const VarId skipped = program.state("skipped", {1}, {}, DType::kInt64);
  program.append(section, "count_skipped_updates", {skipped, found, loss, scale}, {skipped});
  Executor executor(plan_program(program, {}, op_plan_options()), op_device(), nullptr);
  executor.initialize(1);
  std::vector<int64_t> all;
  for (const auto& [bad, value, factor] : steps) {
    const auto found_inf = static_cast<int32_t>(bad);
    executor.feed(found, std::span(&found_inf, 1));
    executor.feed(loss, std::span(&value, 1));
    if (scaled) executor.feed(scale, std::span(&factor, 1));
    executor.run({});
    all.push_back(executor.values<int64_t>(skipped)[0]);
  }
  return all;
}

TEST(CountSkippedUpdates, OnlyThoseThatASmallerScaleCannotRepair) {
  EXPECT_EQ(
      counts(true, {{1, 2, 4}, {1, NAN, 4}, {1, INFINITY, 4}, {1, 2, 1}, {1, 2, 2}, {0, 2, 1}}),
      (std::vector<int64_t>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(counts(false, {{1, 2, 0}, {1, NAN, 0}, {0, 2, 0}, {1, 2, 0}}),
            (std::vector<int64_t>{1, 2, 0, 1}));
}

}  // namespace
}  // namespace fleet
