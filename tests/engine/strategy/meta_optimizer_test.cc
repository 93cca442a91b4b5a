// The registry: a meta-optimizer that nothing else knows takes a field, competes with others, is
// called in every phase and decides before each step.
#include "strategy/meta_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "strategy/names.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using ::testing::AllOf;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> phases;  // of the last one made

// Updates only where the host says so, which it does in every second step.
class EverySecond : public MetaOptimizer {
 public:
  EverySecond() { phases.clear(); }
  void groups(BuildContext& build) override {
    note("groups");
    flag_ = build.program.add_flag("update");
  }
  void forward(BuildContext&) override { note("forward"); }
  void fuse_forward(BuildContext&) override { note("fuse_forward"); }
  void fuse_backward(BuildContext& build) override {
    note(build.backward.parameters.empty() ? "no backward" : "fuse_backward");
  }
  void gradients(BuildContext&) override { note("gradients"); }
  void communication(BuildContext& build) override {
    note("communication");
    build.sums_gradients = false;
    build.update_when = {.flag = flag_};
  }
  void update(BuildContext& build) override { note(build.optimize < 0 ? "no section" : "update"); }
  void fuse_update(BuildContext&) override { note("fuse_update"); }
  void finish(const BuildContext&) override { note("finish"); }
  void before_step(HostStep& step) override {
    if (step.info.step % 2 == 1) step.info.flags |= uint64_t{1} << flag_;
  }

 private:
  static void note(const char* phase) { phases.push_back(phase); }
  FlagId flag_ = kNoFlag;
};

FLEET_META_OPTIMIZER(test_every_second) {
  def.help = "for this test";
  def.position = 300;  // before the sums
  def.fields = {"qat"};
  def.requested = [](const StrategyProto& proto) { return proto.qat(); };
  def.obstacle = [](const StrategyProto&, const PassContext& context) {
    return std::string(context.data_parallel_degree() > 1 ? "" : "it needs several ranks");
  };
  def.paddle_class = "QatOptimizer";
  def.create = [](const StrategyProto&, const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    return std::make_unique<EverySecond>();
  };
}

Program trained_by(Strategy& strategy) {
  Program program;
  append_training(program, strategy, {.model = "mlp", .optimizer = R"({"name": "sgd"})"});
  return program;
}

TEST(MetaOptimizer, Phases_AreCalledInOrder) {
  Strategy strategy = make_strategy("qat: true", {.ranks = 2});
  trained_by(strategy);
  EXPECT_THAT(phases, ElementsAre("groups", "forward", "fuse_forward", "fuse_backward", "gradients",
                                  "communication", "update", "fuse_update", "finish"));
}

TEST(MetaOptimizer, WhatItTellsOthers_IsFollowed) {
  Strategy strategy = make_strategy("qat: true", {.ranks = 2});
  const Program program = trained_by(strategy);
  for (const Op& op : program.ops()) EXPECT_NE(op.type(), "all_reduce");
  const SectionId optimize = program.find_section("optimize");
  EXPECT_EQ(program.sections()[optimize].when.flag, 0);
  EXPECT_THAT(print_text(program), HasSubstr("flag 0 is update"));
  for (int64_t step = 0; step < 4; ++step) {
    StepInfo info{.step = step};
    HostStep host{.info = info, .learning_rate = 0.1, .read = {}};
    strategy.before_step(host);
    EXPECT_EQ(program.sections()[optimize].when.holds(info), step % 2 == 1) << step;
  }
}

TEST(MetaOptimizer, NotAskedFor_DoesNothing) {
  Strategy strategy = make_strategy("", {.ranks = 2});
  phases.clear();
  trained_by(strategy);
  EXPECT_THAT(phases, ElementsAre());
}

TEST(MetaOptimizer, ThatCannotAct_IsOffAndSaysWhy) {
  const std::string line = captured_log(
      [] { EXPECT_THAT(make_strategy("qat: true").names(), Not(Contains("test_every_second"))); });
  EXPECT_THAT(line,
              AllOf(HasSubstr("test_every_second is switched off"), HasSubstr("several ranks")));
}

TEST(MetaOptimizer, ThatLoses_IsOffAndSaysAgainstWhom) {
  const std::string line = captured_log([] {
    const Strategy strategy =
        make_strategy("qat: true amp: true", {.ranks = 2, .low_types = {DType::kBFloat16}});
    EXPECT_THAT(strategy.names(), Contains("amp"));
    EXPECT_THAT(strategy.names(), Not(Contains("test_every_second")));
  });
  EXPECT_THAT(line, AllOf(HasSubstr("test_every_second is switched off"), HasSubstr("amp")));
}

// Two that took one field would both believe that it is theirs.
TEST(MetaOptimizer, Fields_AreThereAndTakenOnce) {
  std::set<std::string> taken;
  for (const std::string& name : meta_optimizer_registry().names()) {
    for (const std::string& field : meta_optimizer_registry().get(name).fields) {
      EXPECT_TRUE(taken.insert(field).second) << field;
      EXPECT_NE(find_field(field), nullptr) << field << " of " << name;
    }
  }
}

}  // namespace
}  // namespace fleet
