#include "train/resume_checks.h"

#include <gmock/gmock.h>

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
