#include "optim/parameter_groups.h"

#include <gmock/gmock.h>

#include "passes/pass.h"
#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// The parameters of torch.optim.SGD([{"params": [a], "lr": .1}, {"params": [b], "weight_decay":
// .5}, {"params": [c]}], lr=1, weight_decay=.1)
TEST(ParameterGroups, RateAndDecay_AreTheGroups) {
  Rules rules(R"({"name": "sgd", "weight_decay": 0.1,
                  "groups": ["layer1.*: rate=0.1", "*.bias: weight_decay=0.5", "layer?.*: rate=9"]})",
              {{"layer1.weight", {1}, {{2}}}, {"fc.bias", {1}, {{2}}}, {"fc.weight", {1}, {{2}}}});
  rules.run(1);
  expect_all_near(rules.values("layer1.weight"), {1 - 0.1 * 2.1});
  expect_all_near(rules.values("fc.bias"), {1 - 2.5});
  expect_all_near(rules.values("fc.weight"), {1 - 2.1});
}

TEST(ParameterGroups, EveryRule_TakesTheRate) {
  for (const char* name :
       {"sgd", "momentum", "adam", "adamw", "nadam", "adan", "rmsprop", "adagrad", "lion", "lars",
        "lamb", "muon", "adafactor", "schedule_free_adamw", "schedule_free_sgd"}) {
    const std::string head = R"({"name": ")" + std::string(name) + "\"";
    Rules grouped(head + R"(, "groups": ["w: rate=0.25"]})", {torch_recipe()});
    Rules plain(head + "}", {torch_recipe()});
    EXPECT_EQ(grouped.run(0.5f), plain.run(0.125f)) << name;
  }
}

TEST(ParameterGroups, Updates_AreMergedByGroup) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> parameters;
  for (const char* name : {"a.1", "b.1", "a.2", "b.2"}) {
    parameters.push_back(program.parameter(name, {3}, {}));
    program.set_gradient(parameters.back(),
                         program.feed(std::string(name) + "@GRAD", DType::kFloat32, {3}));
  }
  append_updates(program, section, parameters, rate,
                 optimizer_settings(R"({"name": "sgd", "groups": ["a.*: rate=0.5"]})"));
  EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
  EXPECT_EQ(program.ops().size(), 3u);  // the rate, and two updates
}

TEST(ParameterGroups, TextThatIsNone_IsRefused) {
  for (const char* text : {"layer1.*", ": rate=1", "a: rate=x", "a: rate=0", "a: rates=2",
                           "a:", "a: rate=1", "a: weight_decay=-1", "a: rate"}) {
    try {
      parameter_groups(
          optimizer_settings(R"({"name": "sgd", "groups": [")" + std::string(text) + "\"]}"));
      FAIL() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
}

TEST(FreezeParameters, Patterns_MakeThemUntrainable) {
  Program program;
  const VarId a = program.parameter("conv1.weight", {1}, {}),
              b = program.parameter("fc.bias", {1}, {});
  EXPECT_EQ(freeze_parameters(program, optimizer_settings(R"({"name": "sgd"})")), 0);
  EXPECT_EQ(freeze_parameters(program,
                              optimizer_settings(R"({"name": "sgd", "frozen": ["conv?.*", "x"]})")),
            1);
  EXPECT_FALSE(program.var(a).trainable);
  EXPECT_TRUE(program.var(b).trainable);
  EXPECT_THROW(
      freeze_parameters(program, optimizer_settings(R"({"name": "sgd", "frozen": ["*"]})")), Error);
}

}  // namespace
}  // namespace fleet
