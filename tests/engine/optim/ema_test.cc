#include "optim/ema.h"

#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

const std::vector<std::vector<float>> kValues = {
    {1, -2, 0.5f}, {0.9f, -1.5f, 0.25f}, {0.5f, -1, 2}, {-3, 4, 1.5f}, {2, 2, 2}};

// A parameter and a statistic that take the values they are fed, and an evaluation of both.
class Averaged {
 public:
  explicit Averaged(const EmaOptions& options, const Predicate& when = {}) {
    Program program;
    const SectionId forward = program.add_section("forward", {.training = true});
    const SectionId evaluate =
        program.add_section("evaluate", {.training = false, .evaluation = true});
    const SectionId optimize = program.add_section("optimize", when);
    weight_ = program.parameter("w", {3}, {Init::kConstant, 7});
    statistic_ = program.state("mean", {3}, {Init::kConstant, 5});
    fed_ = program.feed("fed", DType::kFloat32, {3});
    left_out_ = program.feed("left_out", DType::kInt32, {1});
    program.append(forward, "scale", {fed_}, {statistic_}, {{"scale", 2.0}});
    evaluated_ = program.emit(evaluate, "elementwise_add", {weight_, statistic_})[0];
    program.append(optimize, "sum", {fed_}, {weight_});
    append_ema(program, forward, evaluate, optimize, left_out_, options);
    executor_ = std::make_unique<Executor>(
        plan_program(std::move(program), {evaluated_}, op_plan_options()), op_device(), nullptr);
    executor_->initialize(1);
  }

  void step(const std::vector<float>& value, bool left_out = false) {
    const int32_t flag = left_out ? 1 : 0;
    executor_->feed(fed_, value);
    executor_->feed(left_out_, std::span(&flag, 1));
    executor_->run({.step = steps_++});
  }
  std::vector<float> values(const std::string& name) {
    return executor_->values<float>(executor_->program().find(name));
  }
  int64_t updates() {
    return executor_->values<int64_t>(executor_->program().find(kEmaUpdates))[0];
  }
  std::vector<float> evaluated() {
    executor_->run({.evaluate = true});
    return executor_->values<float>(evaluated_);
  }
  void write(const std::vector<float>& weight) { executor_->write(weight_, weight); }

 private:
  VarId weight_, statistic_, fed_, left_out_, evaluated_;
  std::unique_ptr<Executor> executor_;
  int64_t steps_ = 0;
};

// torch 2.15: swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
TEST(Ema, FixedDecay_GivesTorchsValues) {
  Averaged averaged({.decay = 0.9});
  for (const auto& value : kValues) averaged.step(value);
  expect_all_near(averaged.values("ema.w"), {0.69220996, -0.94255, 0.84327501});
  expect_all_near(averaged.values("ema.mean"), {1.3844199, -1.8851, 1.68655});
  expect_all_near(averaged.evaluated(), {2.0766299, -2.82765, 2.529825});
  expect_all_near(averaged.values("w"), {2, 2, 2});
}

// timm's ModelEmaV3.get_decay() and torch.lerp: decays 0, 0.2622, 0.4054, 0.45, 0.45
TEST(Ema, Warmup_GivesTimmsValues) {
  Averaged averaged({.decay = 0.45, .warmup = true, .gamma = 2, .power = 0.75});
  const std::vector<std::vector<double>> want = {{1, -2, 0.5},
                                                 {0.926221192, -1.63110602, 0.31555301},
                                                 {0.67278856, -1.25584817, 1.31713116},
                                                 {-1.34724522, 1.6348685, 1.41770899},
                                                 {0.493739694, 1.83569086, 1.73796904}};
  for (size_t i = 0; i < kValues.size(); ++i) {
    averaged.step(kValues[i]);
    expect_all_near(averaged.values("ema.w"), want[i]);
  }
}

TEST(Ema, UpdateLeftOut_DoesNotCount) {
  Averaged averaged({.decay = 0.5});
  averaged.step({1, 1, 1});
  averaged.step({9, 9, 9}, /*left_out=*/true);
  EXPECT_EQ(averaged.updates(), 1);
  averaged.step({2, 2, 2});
  EXPECT_EQ(averaged.updates(), 2);
  expect_all_near(averaged.values("ema.w"), {1.5, 1.5, 1.5});
}

TEST(Ema, UpdatesEveryOtherStep_CountsThose) {
  Averaged averaged({.decay = 0.5}, {.every = 2});
  averaged.step({9, 9, 9});
  EXPECT_EQ(averaged.updates(), 0);
  averaged.step({1, 1, 1});
  averaged.step({9, 9, 9});
  averaged.step({2, 2, 2});
  EXPECT_EQ(averaged.updates(), 2);
  expect_all_near(averaged.values("ema.w"), {1.5, 1.5, 1.5});
}

TEST(Ema, BeforeTheFirstUpdate_IsTheWeightsThemselves) {
  Averaged averaged({.decay = 0.5});
  expect_all_near(averaged.evaluated(), {12, 12, 12});
  averaged.write({1, 2, 3});
  expect_all_near(averaged.evaluated(), {6, 7, 8});
}

TEST(Ema, WeightsWrittenLater_LeaveTheAverage) {
  Averaged averaged({.decay = 0.5});
  averaged.step({1, 1, 1});
  averaged.write({1000, 1000, NAN});
  expect_all_near(averaged.evaluated(), {3, 3, 3});
}

}  // namespace
}  // namespace fleet
