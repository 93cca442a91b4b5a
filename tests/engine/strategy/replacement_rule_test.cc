// lars and lamb: the updates follow another rule than the job's optimizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Program trained_with_rule(const std::string& text, const std::string& optimizer) {
  ConfigTree tree = ConfigTree::from_json(optimizer, "test");
  const std::string name = *tree.peek("name");
  return trained_program(text, {.ranks = 2, .optimizer = name}, {.optimizer = optimizer});
}

// The update that changes this parameter.
const Op& update_of(const Program& program, const std::string& type, const std::string& parameter) {
  const VarId id = program.find(parameter);
  for (const Op& op : program.ops()) {
    const bool changes = std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
    if (op.type() == type && changes) return op;
  }
  throw std::runtime_error("no " + type + " of " + parameter);
}

std::string a_bias(const Program& program) {
  for (const VarId id : program.parameters()) {
    if (program.var(id).name.ends_with("bias")) return program.var(id).name;
  }
  return "";
}

TEST(Lars, ReplacesMomentum_WithItsConfigs) {
  const Program program = trained_with_rule(
      "lars: true lars_configs { lars_coeff: 0.02 lars_weight_decay: 0.25 epsilon: 0.125 "
      "exclude_from_weight_decay: ['bias', 'bn'] }",
      R"({"name": "momentum", "momentum": 0.75, "clip": "global_norm", "clip_norm": 2})");
  for (const Op& op : program.ops()) EXPECT_NE(op.type(), "momentum");
  const std::string bias = a_bias(program);
  const std::string weight = bias.substr(0, bias.size() - 4) + "weight";
  const Op& op = update_of(program, "lars", weight);
  EXPECT_FLOAT_EQ(static_cast<float>(op.attributes.number("lars_coeff")), 0.02f);
  EXPECT_EQ(op.attributes.number("weight_decay"), 0.25);
  EXPECT_EQ(op.attributes.number("epsilon"), 0.125);
  EXPECT_EQ(op.attributes.number("momentum"), 0.75);
  EXPECT_EQ(update_of(program, "lars", bias).attributes.number("weight_decay"), 0);
  EXPECT_THAT(print_text(program), HasSubstr("clip_norm=2"));
}

TEST(Lamb, ReplacesAdam_WithItsConfigs) {
  const Program program = trained_with_rule(
      "lamb: true lamb_configs { lamb_weight_decay: 0.5 exclude_from_weight_decay: 'bias' }",
      R"({"name": "adam", "beta1": 0.75, "epsilon": 0.125, "weight_decay": 0.25})");
  const std::string bias = a_bias(program);
  const Op& op = update_of(program, "lamb", bias.substr(0, bias.size() - 4) + "weight");
  EXPECT_EQ(op.attributes.number("weight_decay"), 0.5);
  EXPECT_EQ(op.attributes.number("beta1"), 0.75);
  EXPECT_EQ(op.attributes.number("epsilon"), 0.125);
  EXPECT_EQ(op.attributes.number("coupled_weight_decay"), 0.25);
  EXPECT_EQ(update_of(program, "lamb", bias).attributes.number("weight_decay"), 0);
}

TEST(ReplacementRule, OtherOptimizer_SwitchesItOffAndSaysWhy) {
  const auto names = [](const std::string& text, const std::string& optimizer) {
    return make_strategy(text, {.optimizer = optimizer}).names();
  };
  EXPECT_THAT(names("lars: true", "adam"), Not(Contains("lars")));
  EXPECT_THAT(names("lamb: true", "sgd"), Not(Contains("lamb")));
}

TEST(ReplacementRule, Both_FollowPaddlesRule) {
  const std::string line = captured_log([] {
    EXPECT_THAT(make_strategy("lars: true", {.optimizer = "momentum"}).names(), Contains("lars"));
    const PassContext low{.low_types = {DType::kBFloat16}, .optimizer = "momentum"};
    EXPECT_THAT(make_strategy("lars: true amp: true", low).names(),
                testing::IsSupersetOf({"lars", "amp"}));
  });
  EXPECT_EQ(line, "");
}

TEST(ReplacementRule, ExclusionsOfTheInnerDecay_AreRefused) {
  EXPECT_THROW(trained_with_rule("lars: true", R"({"name": "momentum", "weight_decay": 0.1,
                                         "exclude_from_weight_decay": ["bias"]})"),
               Error);
  EXPECT_THROW(trained_with_rule("lars: true", R"({"name": "momentum", "weight_decay": 0.1,
                                         "weight_decay_exclude_1d": true})"),
               Error);
}

}  // namespace
}  // namespace fleet
