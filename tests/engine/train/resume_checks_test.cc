#include "train/resume_checks.h"

#include <gmock/gmock.h>

#include <tuple>

#include "tests/errors.h"
#include "train/job.h"

namespace fleet {
namespace {

TEST(ResumeChecks, Validation_IsTheSameWithItsHash) {
  const std::string part = "0.25 of each class by seed 1: 16 samples, ";
  const std::string now = part + "hash 00112233445566ff";
  const auto same = [](const std::string& saved, const std::string& own) {
    return validation_difference({.validation = saved}, {.validation = own}).empty();
  };
  EXPECT_TRUE(same(now, now));
  EXPECT_TRUE(same("", ""));
  EXPECT_FALSE(same("", now));
  EXPECT_FALSE(same(now, ""));
  EXPECT_FALSE(same(part + "hash ff112233445566ff", now));
  EXPECT_FALSE(same("0.3" + now.substr(4), now));
}

TEST(ResumeChecks, OtherDataWithinAnEpoch_AreSaid) {
  const TrainingPosition own = {.data = "10 samples"};
  EXPECT_EQ(changed_data({.epoch = 3, .batch = 2, .data = "10 samples"}, own), "");
  EXPECT_EQ(changed_data({.epoch = 3, .data = "11 samples"}, own), "") << "between two epochs";
  EXPECT_EQ(changed_data({.epoch = 3, .batch = 2}, own), "") << "unknown";
  EXPECT_THAT(changed_data({.epoch = 3, .batch = 2, .data = "11 samples"}, own),
              ::testing::HasSubstr("within epoch 3, from 11 samples to 10 samples"));
}

TEST(ResumeChecks, Tokenizers_AreComparedByTheirContent) {
  const data::TokenizerIdentity saved{"a.json", 0x12}, unknown{};
  EXPECT_EQ(tokenizer_difference(saved, {"copy/b.json", 0x12}), "");
  EXPECT_EQ(tokenizer_difference(unknown, saved), "") << "an older checkpoint";
  EXPECT_EQ(tokenizer_difference(saved, unknown), "") << "tokens without a tokenizer";
  const std::string other = tokenizer_difference(saved, {"b.json", 0x13});
  EXPECT_THAT(other,
              ::testing::AllOf(::testing::HasSubstr("a.json"), ::testing::HasSubstr("b.json"),
                               ::testing::HasSubstr("12"), ::testing::HasSubstr("13")));
  EXPECT_EQ(continued({.tokenizer = saved}, {}).tokenizer.hash, 0x12u);
}

TEST(ResumeChecks, OtherWordsOfAVocabulary_AreRefused) {
  const auto words = [](uint64_t hash) {
    return TrainingPosition{.tokenizer = {.file = "text8", .hash = hash, .words = true}};
  };
  const TrainingPosition read = position_from_text(position_text(words(7)), "state.json");
  check_goes_on(read, words(7), std::nullopt, "step_00000004");
  EXPECT_THAT(thrown_by([&] { check_goes_on(read, words(8), std::nullopt, "step_00000004"); }),
              IsError(ErrorCode::kUsage, "step_00000004"));
}

TEST(ResumeChecks, NetworkOfTheSameShapes_IsRefused) {
  const auto own = [](const std::string& model) {
    ConfigTree tree = ConfigTree::from_json(R"({"task": "sequence_classification", "model": )" +
                                                model + R"(, "data": {"source": "labelled_text"}})",
                                            "job.json");
    return TrainingPosition{.settings = weight_settings(make_job(tree))};
  };
  const auto goes_on = [](const TrainingPosition& saved, const TrainingPosition& now) {
    check_goes_on(saved, now, std::nullopt, "step_00000004");
  };
  const TrainingPosition four = own(R"({"name": "bert", "num_attention_heads": 4})");
  goes_on(four, own(R"({"name": "bert", "num_attention_heads": 4, "hidden_dropout_prob": 0.3})"));
  goes_on({}, four);  // an older checkpoint
  const Error other =
      thrown_by([&] { goes_on(four, own(R"({"name": "bert", "num_attention_heads": 8})")); });
  EXPECT_THAT(other, IsError(ErrorCode::kUsage, "step_00000004"));
  EXPECT_THAT(other.failure(), ::testing::HasSubstr("model.num_attention_heads=4"));
  EXPECT_EQ(thrown_by([&] {
              goes_on(four, own(R"({"name": "bert", "num_attention_heads": 4,
                                                  "hidden_act": "relu"})"));
            }).code(),
            ErrorCode::kUsage);
  const TrainingPosition read = position_from_text(position_text(four), "state.json");
  EXPECT_EQ(read.settings, four.settings);
}

TEST(ResumeChecks, EpsilonOfTheNetwork_IsTheSameGivenOrNot) {
  const auto settings = [](const std::string& model, const std::string& epsilon) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"data": {"source": "synthetic"}, "model": {"name": ")" + model + "\"" + epsilon + "}}",
        "job.json");
    return weight_settings(make_job(tree));
  };
  for (const auto& [model, own, other] :
       {std::tuple("resnet18", "1e-5", "1e-3"), {"mobilenet_v3_small", "1e-3", "1e-5"}}) {
    const std::string key = R"(, "batch_norm_epsilon": )";
    const WeightSettings usual = settings(model, "");
    EXPECT_EQ(network_difference(usual, settings(model, key + own)), "") << model;
    EXPECT_EQ(network_difference(settings(model, key + own), usual), "") << model;
    EXPECT_NE(network_difference(settings(model, key + other), usual), "") << model;
  }
}

TEST(ResumeChecks, OtherPreparationOfImages_IsADifference) {
  const auto settings = [](const std::string& mean) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp"}, "data": {"source": "synthetic", "mean": )" + mean + "}}",
        "job.json");
    return weight_settings(make_job(tree));
  };
  EXPECT_EQ(input_difference(settings("[0.5, 0.5, 0.5]"), settings("[0.5]")), "");
  EXPECT_THAT(input_difference(settings("[0.4]"), settings("[0.5]")),
              ::testing::HasSubstr("data.mean=[0.4]"));
  EXPECT_EQ(input_difference({}, settings("[0.5]")), "") << "unknown";
}

TEST(ResumeChecks, ReachedEnd_NamesTheKeysToRaise) {
  const auto end = [](const TrainingPosition& at, int64_t epochs, int64_t max_steps) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp"}, "data": {"source": "synthetic"}})", "job.json");
    apply_overrides(tree, {"train.epochs=" + std::to_string(epochs),
                           "train.max_steps=" + std::to_string(max_steps)});
    return reached_end(at, TrainingIntervals(make_job(tree)), 4);
  };
  const auto names = [](const std::string& line) {
    return std::pair(line.find("train.epochs") != line.npos,
                     line.find("train.max_steps") != line.npos);
  };
  const TrainingPosition second{.step = 8, .epoch = 2};
  EXPECT_EQ(end(second, 3, 0), "");
  EXPECT_EQ(end(second, 3, 9), "");
  EXPECT_EQ(names(end(second, 2, 0)), std::pair(true, false));
  EXPECT_EQ(names(end(second, 2, 9)), std::pair(true, false));
  EXPECT_EQ(names(end(second, 3, 8)), std::pair(false, true));
  EXPECT_EQ(names(end(second, 2, 8)), std::pair(true, true));
  EXPECT_EQ(names(end({.step = 8, .epoch = 1, .batch = 4}, 2, 0)), std::pair(true, false));
  EXPECT_EQ(end({.step = 7, .epoch = 1, .batch = 3}, 2, 0), "");
}

// A program with data of its own knows neither classes nor a validation split.
TEST(ResumeChecks, WhatTheTrainingDoesNotKnow_StaysAsSaved) {
  const TrainingPosition saved = {
      .step = 7, .card = {{"cat", "dog"}, {3, 8, 8}}, .validation = "split"};
  const TrainingPosition none =
      continued(saved, {.step = 1, .merged_steps = 2, .card = {{}, {1, 8, 8}}});
  EXPECT_EQ(none.step, 7);
  EXPECT_EQ(none.merged_steps, 2);
  EXPECT_EQ(none.card, (ModelCard{{"cat", "dog"}, {1, 8, 8}}));
  EXPECT_EQ(none.validation, "split");
  const TrainingPosition own = continued(saved, {.card = {{"a", "b"}, {}}, .validation = "other"});
  EXPECT_EQ(own.card, (ModelCard{{"a", "b"}, {3, 8, 8}}));
  EXPECT_EQ(own.validation, "other");
}

}  // namespace
}  // namespace fleet
