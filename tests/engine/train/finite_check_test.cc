#include "train/finite_check.h"

#include <gmock/gmock.h>

#include <cmath>

#include "exec/shared_places.h"
#include "tensor/host.h"
#include "tests/engine/train/rank_threads.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// Two parameters whose gradients are fed, looked at in every second step.
class Watched {
 public:
  Watched(RankCoordinator& control, int rank, OnNan on_nan = OnNan::kSkip) {
    Program program;
    loss_ = program.feed("loss", DType::kFloat32, {1});
    for (const char* name : {"a", "b"}) {
      const VarId parameter = program.parameter(name, {3}, {.a = 1});
      gradients_.push_back(program.feed(std::string(name) + "@grad", DType::kFloat32, {3}));
      program.set_gradient(parameter, gradients_.back());
      parameters_.push_back(parameter);
    }
    const SectionId section = program.add_section("optimize", {.every = 2});
    const VarId found = append_check_finite(program, section, loss_, gradients_);
    for (size_t i = 0; i < 2; ++i) {
      program.append(
          section, "sgd",
          {gradients_rate(program), kNoVar, found, kNoVar, parameters_[i], gradients_[i]},
          {parameters_[i], kNoVar}, {});
    }
    executor_ = std::make_unique<Executor>(
        plan_program(program, {}, {.backend = "cpu", .initial_layouts = {}, .device = nullptr}),
        device_, nullptr);
    executor_->initialize(1);
    watch_.emplace(*executor_, device_, control, rank, on_nan);
  }

  void step(int64_t number, float loss, float a, float b) {
    const std::vector<float> gradients[] = {{0.5f, a, 0.5f}, {0.5f, 0.5f, b}};
    const float rate = 1;
    executor_->feed(loss_, std::span(&loss, 1));
    executor_->feed(rate_, std::span(&rate, 1));
    for (int i = 0; i < 2; ++i) executor_->feed(gradients_[i], gradients[i]);
    watch_->step_begins({.step = number});
    executor_->run({.step = number});
  }
  std::vector<float> parameter(int i) { return executor_->values<float>(parameters_[i]); }
  void set_parameter(int i, float value) {
    executor_->write(parameters_[i], std::vector<float>(3, value));
  }
  FiniteCheck& watch() { return *watch_; }

 private:
  VarId gradients_rate(Program& program) {
    if (rate_ == kNoVar) rate_ = program.feed("rate", DType::kFloat32, {1});
    return rate_;
  }

  VarId loss_ = kNoVar, rate_ = kNoVar;
  std::vector<VarId> gradients_, parameters_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
  std::optional<FiniteCheck> watch_;
};

TEST(FiniteCheck, GoodSteps_FindNothing) {
  RankCoordinator control(nullptr);
  Watched watched(control, 0);
  for (int64_t step = 0; step < 6; ++step) watched.step(step, 1, 1, 1);
  EXPECT_FALSE(watched.watch().poll());
  EXPECT_EQ(watched.watch().bad_state(), "");
  EXPECT_EQ(watched.parameter(0), (std::vector<float>{-0.5f, -2, -0.5f}));
}

TEST(FiniteCheck, BadGradient_IsNamedWithItsStepAndLeftOut) {
  RankCoordinator control(nullptr);
  Watched watched(control, 0);
  for (int64_t step = 0; step < 2; ++step) watched.step(step, 1, 1, 1);
  EXPECT_FALSE(watched.watch().poll());
  const std::vector<float> before = watched.parameter(0);
  watched.step(2, 1, NAN, 1);  // no update is made of it
  for (int64_t step = 3; step < 8; ++step) watched.step(step, 1, 1, step < 5 ? 1 : INFINITY);
  const auto bad = watched.watch().poll();
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->count, 2);  // of steps 5 and 7
  EXPECT_EQ(bad->step, 5);
  EXPECT_EQ(bad->what, "b");
  EXPECT_EQ(bad->rank, -1) << "there is only one";
  EXPECT_EQ(bad->text(), "the gradient of 'b' is not finite");
  EXPECT_EQ(watched.parameter(0)[1], before[1] - 1);  // by step 3
  EXPECT_EQ(watched.parameter(1)[2], before[1] - 1);
  EXPECT_FALSE(watched.watch().poll()) << "it was seen";
  watched.step(9, NAN, 1, 1);
  const auto again = watched.watch().poll();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->step, 9);
  EXPECT_EQ(again->what, "loss");
  EXPECT_THAT(again->left_out(), HasSubstr("its update was left out"));
}

TEST(FiniteCheck, BadState_IsNamed) {
  RankCoordinator control(nullptr);
  Watched watched(control, 0);
  watched.set_parameter(1, NAN);
  EXPECT_EQ(watched.watch().bad_state(), "b");
}

// The name that bad_state() gives if the sum of a parameter's gradients is infinite.
std::string bad_sum(OnNan on_nan, bool scales_loss) {
  Program program;
  const VarId loss = program.feed("loss", DType::kFloat32, {1});
  program.set_gradient(program.parameter("a", {3}, {.a = 1}), program.state("a.sum", {3}, Init()));
  const VarId sum = program.find("a.sum");
  const SectionId section = program.add_section("optimize", {.every = 2});
  if (scales_loss) {
    const VarId scale = program.state("optimizer.loss_scaling", {1}, {.a = 1});
    program.append(section, "check_finite_and_unscale", {scale, sum},
                   {program.temporary("found_inf"), program.temporary("unscale")});
  } else {
    append_check_finite(program, section, loss, {sum});
  }
  HostDevice device;
  Executor executor(
      plan_program(program, {}, {.backend = "cpu", .initial_layouts = {}, .device = nullptr}),
      device, nullptr);
  executor.initialize(1);
  executor.write(sum, std::vector<float>(3, INFINITY));
  RankCoordinator control(nullptr);
  return FiniteCheck(executor, device, control, 0, on_nan).bad_state();
}

TEST(FiniteCheck, SumOfGradientsThatIsLeftOut_CanBeSaved) {
  EXPECT_EQ(bad_sum(OnNan::kSkip, /*scales_loss=*/false), "");
  EXPECT_EQ(bad_sum(OnNan::kStop, /*scales_loss=*/true), "");
  EXPECT_EQ(bad_sum(OnNan::kStop, /*scales_loss=*/false), "a.sum");
}

// Each rank's loss is its own; gradients are summed, and so all ranks see the same.
TEST(FiniteCheck, SeveralRanks_KnowWhoseLossItWas) {
  std::vector<BadUpdates> one(2), both(2);
  std::vector<std::string> states(2);
  run_ranks_well(2, [&](RankThread& thread) {
    const int rank = thread.rank;
    RankCoordinator control(thread.communicator);
    Watched watched(control, rank);
    watched.step(1, rank == 1 ? NAN : 1, NAN, NAN);
    one[rank] = watched.watch().poll().value_or(BadUpdates{});
    watched.step(3, 1, NAN, NAN);
    both[rank] = watched.watch().poll().value_or(BadUpdates{});
    if (rank == 0) watched.set_parameter(1, INFINITY);  // what is saved is rank 0's
    states[rank] = watched.watch().bad_state();
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(one[rank].text(), HasSubstr("loss of rank 1")) << rank;
    EXPECT_EQ(both[rank].text(), "the gradient of 'a' is not finite") << rank;
    EXPECT_EQ(both[rank].step, 3);
    EXPECT_EQ(states[rank], "b");
    EXPECT_EQ(one[rank].suspect(), 1);
    EXPECT_EQ(both[rank].suspect(), -1);
  }
}

// A rank whose loss alone is not finite leaves out an update that the others apply. If bad updates
// are skipped, the ranks agree before each one.
TEST(FiniteCheck, LossWithFiniteGradients_TakesRanksApart) {
  std::vector<int> together(2), apart(2);
  run_ranks_well(2, [&](RankThread& thread) {
    const int rank = thread.rank;
    RankCoordinator control(thread.communicator);
    Watched watched(control, rank, OnNan::kStop);
    watched.step(1, rank == 1 ? NAN : 1, NAN, NAN);
    watched.watch().poll();
    together[rank] = !watched.watch().ranks_apart();
    watched.step(3, rank == 1 ? INFINITY : 1, 1, 1);
    watched.watch().poll();
    apart[rank] = watched.watch().ranks_apart();
  });
  EXPECT_THAT(together, ::testing::Each(1));
  EXPECT_THAT(apart, ::testing::Each(1));
}

// The Plan of a phase in which "a" is frozen checks other gradients.
TEST(FiniteCheck, BadGradientOfAnEarlierPlan_IsNamedByThatPlan) {
  std::vector<VarId> feeds;
  const auto plan_of = [&](const std::vector<std::string>& trained) {
    Program program;
    feeds = {program.feed("loss", DType::kFloat32, {1}),
             program.feed("rate", DType::kFloat32, {1})};
    std::vector<std::pair<VarId, VarId>> updates;
    std::vector<VarId> gradients;
    for (const std::string name : {"a", "b"}) {
      const VarId parameter = program.parameter(name, {3}, {.a = 1});
      feeds.push_back(program.feed(name + "@grad", DType::kFloat32, {3}));
      program.set_gradient(parameter, feeds.back());
      if (std::ranges::find(trained, name) == trained.end()) continue;
      updates.emplace_back(parameter, feeds.back());
      gradients.push_back(feeds.back());
    }
    const SectionId section = program.add_section("optimize", {});
    const VarId found = append_check_finite(program, section, feeds[0], gradients);
    for (const auto& [parameter, gradient] : updates) {
      program.append(section, "sgd", {feeds[1], kNoVar, found, kNoVar, parameter, gradient},
                     {parameter, kNoVar}, {});
    }
    return plan_program(std::move(program), {}, {.backend = "cpu"});
  };
  std::vector<Plan> plans;
  plans.push_back(plan_of({"a", "b"}));
  plans.push_back(plan_of({"b"}));
  SharedEnds ends;
  share_some_places(plans[0], &plans[1], &ends);
  HostDevice device;
  Executor executor(std::move(plans), device, std::vector<Communicator*>{});
  executor.initialize(1);
  RankCoordinator control(nullptr);
  FiniteCheck watch(executor, device, control, 0, OnNan::kSkip);
  const std::vector<float> one = {1}, good = {1, 1, 1}, bad = {1, NAN, 1};
  for (int64_t step = 0; step < 2; ++step) {
    executor.select(step == 0 ? 1 : 0);
    for (size_t i = 0; i < feeds.size(); ++i) {
      if (step == 0 && i == 2) continue;  // "a" is frozen
      executor.feed(feeds[i], i < 2 ? one : step == 0 ? bad : good);
    }
    watch.step_begins({.step = step});
    executor.run({.step = step});
  }
  const auto found = watch.poll();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 0);
  EXPECT_EQ(found->what, "b");
}

}  // namespace
}  // namespace fleet
