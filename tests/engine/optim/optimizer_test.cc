#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

TEST(Optimizer, WeightDecayExclusions_AreSubstringsOfNames) {
  Rules rules(R"({"name": "sgd", "weight_decay": 0.5,
                  "exclude_from_weight_decay": [".bias", "bn"]})",
              {{"fc.weight", {1}, {{0}}}, {"fc.bias", {1}, {{0}}}, {"bn1.weight", {1}, {{0}}}});
  rules.run(1);
  EXPECT_EQ(rules.values("fc.weight")[0], 0.5f);
  EXPECT_EQ(rules.values("fc.bias")[0], 1);
  EXPECT_EQ(rules.values("bn1.weight")[0], 1);
}

TEST(Optimizer, WeightDecayWithoutVectors_AGroupComesFirst) {
  const Settings settings =
      optimizer_settings(R"({"name": "sgd", "weight_decay": 0.5, "weight_decay_exclude_1d": true,
                             "groups": ["*.ours: weight_decay=0.25"]})");
  Program program;
  const auto decay_of = [&](const std::string& name, const Shape& shape, bool left_out = false) {
    Var& var = program.var(program.parameter(name, shape, {}));
    var.no_weight_decay = left_out;
    return weight_decay_of(settings, var);
  };
  EXPECT_EQ(decay_of("fc.weight", {1, 2}), 0.5);
  EXPECT_EQ(decay_of("fc.bias", {2}), 0);
  EXPECT_EQ(decay_of("token", {1, 1, 2}, true), 0);
  EXPECT_EQ(decay_of("token.ours", {1, 1, 2}, true), 0.25);
}

TEST(Optimizer, NotTrainable_StaysAndHasNoState) {
  Rules rules(R"({"name": "momentum", "weight_decay": 0.5})",
              {{"w", {1}, {{1}}}, {"frozen", {1}, {{1}}, /*trainable=*/false}});
  rules.run(1);
  EXPECT_EQ(rules.values("w")[0], -0.5f);
  EXPECT_EQ(rules.values("frozen")[0], 1);
  EXPECT_EQ(rules.executor().program().find("frozen.momentum"), kNoVar);
}

// Gradients (3, 0) and (0, 4): norm 5.
std::vector<Trained> norm_of_five() { return {{"a", {0, 0}, {{3, 0}}}, {"b", {0, 0}, {{0, 4}}}}; }

TEST(Clip, GlobalNormAbove_ScalesAllAlike) {
  Rules rules(R"({"name": "sgd", "clip": "global_norm", "clip_norm": 1})", norm_of_five());
  rules.run(1);
  expect_all_near(rules.values("a"), {-0.6, 0});
  expect_all_near(rules.values("b"), {0, -0.8});
}

TEST(Clip, GlobalNormBelow_LeavesGradients) {
  Rules rules(R"({"name": "sgd", "clip": "global_norm", "clip_norm": 5.5})", norm_of_five());
  rules.run(1);
  EXPECT_EQ(rules.values("a"), (std::vector<float>{-3, 0}));
  EXPECT_EQ(rules.values("b"), (std::vector<float>{0, -4}));
}

TEST(Clip, Norm_ScalesEachByItsOwn) {
  Rules rules(R"({"name": "sgd", "clip": "norm", "clip_norm": 3.5})", norm_of_five());
  rules.run(1);
  expect_all_near(rules.values("a"), {-3, 0});
  expect_all_near(rules.values("b"), {0, -3.5});
}

TEST(Clip, Value_BoundsEachElement) {
  Rules rules(R"({"name": "sgd", "clip": "value", "clip_value": 2})",
              {{"a", {0, 0, 0}, {{3, -5, 1}}}});
  rules.run(1);
  expect_all_near(rules.values("a"), {-2, 2, -1});
}

// Decay is added after clipping, as Paddle and PyTorch do it.
TEST(Clip, GlobalNorm_DoesNotCountTheDecay) {
  Rules rules(R"({"name": "sgd", "clip": "global_norm", "clip_norm": 1, "weight_decay": 1})",
              {{"a", {10, 0}, {{3, 4}}}});
  rules.run(0.1f);
  expect_all_near(rules.values("a"), {10 - 0.1 * (0.6 + 10), -0.1 * 0.8});
}

TEST(Clip, EveryRule_TakesTheScale) {
  for (const std::string& name : optimizer_registry().names()) {
    SCOPED_TRACE(name);
    Trained clipped = torch_recipe(), scaled = torch_recipe();
    for (std::vector<float>& gradient : scaled.gradients) {
      double square = 0;
      for (float g : gradient) square += g * g;
      for (float& g : gradient) g = static_cast<float>(g * 0.25 / std::sqrt(square));
    }
    const Schema schema = optimizer_schema(name);
    const bool has_epsilon =
        std::any_of(schema.keys().begin(), schema.keys().end(),
                    [](const ConfigKey& key) { return key.path == "epsilon"; });
    // With a small epsilon, a rule that normalizes its step would hide the scale.
    const std::string head =
        R"({"name": ")" + name + "\"" + (has_epsilon ? R"(, "epsilon": 1.0)" : "");
    Rules one(head + R"(, "clip": "global_norm", "clip_norm": 0.25})", {clipped});
    Rules other(head + "}", {scaled});
    const std::vector<float> want = other.run();
    expect_all_near(one.run(), std::vector<double>(want.begin(), want.end()));
  }
}

TEST(Clip, UndefinedGradient_ShowsInEveryParameter) {
  Rules rules(R"({"name": "sgd", "clip": "global_norm"})",
              {{"a", {1}, {{NAN}}}, {"b", {1}, {{1}}}});
  rules.run(1);
  EXPECT_TRUE(std::isnan(rules.values("b")[0]));
}

TEST(Clip, BoundWithoutItsKind_IsRefused) {
  try {
    Rules rules(R"({"name": "sgd", "clip_norm": 2})", {{"a", {1}, {{1}}}});
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("clip_norm"), std::string::npos);
  }
}

// Their moments are divided by 1 - decay^t.
TEST(Optimizer, DecayOfOne_IsRefused) {
  for (const char* settings :
       {R"({"name": "adam", "beta1": 1})", R"({"name": "adamw", "beta2": 1})",
        R"({"name": "lamb", "beta2": 1})", R"({"name": "adan", "beta3": 1})"}) {
    EXPECT_THROW(optimizer_settings(settings), Error) << settings;
  }
}

TEST(Optimizer, UnknownNameOrKey_NamesTheNearest) {
  try {
    optimizer_schema("momentun");
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("momentum"), std::string::npos) << error.what();
  }
  EXPECT_THROW(optimizer_settings(R"({"name": "sgd", "momentum": 0.9})"), Error);
}

}  // namespace
}  // namespace fleet
