#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

Schedule make(const std::string& json, int64_t steps_per_epoch, int64_t epochs,
              int64_t global_batch = 0, int64_t max_steps = 0) {
  const ConfigTree tree = ConfigTree::from_json(json, "test");
  return Schedule(tree.validate(schedule_schema(*tree.peek("name"))), steps_per_epoch, epochs,
                  global_batch, max_steps);
}

// As in transformers, whose schedules span max_steps if it is given.
TEST(Schedule, MaxSteps_EndsTheSpan) {
  const std::string cosine = R"({"name": "cosine", "base": 1, "warmup_steps": 4})";
  const Schedule whole = make(cosine, 10, 2), cut = make(cosine, 10, 9, 0, 20);
  for (const int64_t step : {0, 4, 11, 19, 20, 30}) {
    EXPECT_EQ(cut.learning_rate(step), whole.learning_rate(step)) << step;
  }
  EXPECT_EQ(cut.shortened_end(), 20);
  EXPECT_EQ(whole.shortened_end(), 0);
  EXPECT_EQ(make(cosine, 10, 2, 0, 21).shortened_end(), 0) << "the epochs end first";
  EXPECT_EQ(make(cosine, 10, 2, 0, 21).learning_rate(19), whole.learning_rate(19));
  const Schedule constant = make(R"({"name": "constant", "base": 1})", 10, 9, 0, 20);
  EXPECT_EQ(constant.shortened_end(), 0) << "it does not depend on the end";
  for (const std::string& name : schedule_registry().names()) {
    if (!schedule_registry().get(name).spans_job) continue;
    const std::string json = R"({"name": ")" + name + "\"}";
    const Schedule a = make(json, 10, 2), b = make(json, 10, 3, 0, 20);
    for (int64_t step = 0; step < 20; ++step) {
      EXPECT_EQ(a.learning_rate(step), b.learning_rate(step)) << name << " at " << step;
    }
  }
}

TEST(Schedule, BaseRate_IsThatOfTheFirstPieceWithoutABase) {
  const auto base_of = [](const std::string& json) {
    const ConfigTree tree = ConfigTree::from_json(json, "test");
    return base_rate(tree.validate(schedule_schema(tree.peek("name").value_or("constant"))));
  };
  EXPECT_EQ(base_of(R"({"name": "cosine", "base": 0.4})"), 0.4);
  EXPECT_EQ(base_of(R"({"name": "constant"})"), 0.1);
  EXPECT_EQ(base_of(R"({"name": "piecewise", "boundaries": [1], "values": [0.5, 0.2]})"), 0.5);
  EXPECT_EQ(base_of(R"({"name": "piecewise", "boundaries": [1], "values": [0.5, 0.2], "base": 2})"),
            2);
}

TEST(Schedule, Constant_Stays) {
  const Schedule schedule = make(R"({"name": "constant", "base": 0.3})", 10, 2);
  EXPECT_EQ(schedule.learning_rate(0), 0.3);
  EXPECT_EQ(schedule.learning_rate(1000), 0.3);
}

TEST(Schedule, Piecewise_ChangesAtItsBoundaries) {
  const Schedule schedule =
      make(R"({"name": "piecewise", "boundaries": [1, 2.5], "values": [1, 0.1, 0.01]})", 10, 4);
  EXPECT_EQ(schedule.learning_rate(0), 1);
  EXPECT_EQ(schedule.learning_rate(9), 1);
  EXPECT_EQ(schedule.learning_rate(10), 0.1);
  EXPECT_EQ(schedule.learning_rate(24), 0.1);
  EXPECT_EQ(schedule.learning_rate(25), 0.01);
  EXPECT_EQ(schedule.learning_rate(500), 0.01);
}

TEST(Schedule, PiecewiseInSteps_ChangesAtItsBoundaries) {
  const Schedule schedule =
      make(R"({"name": "piecewise", "unit": "step", "boundaries": [3], "values": [1, 2]})", 10, 4);
  EXPECT_EQ(schedule.learning_rate(2), 1);
  EXPECT_EQ(schedule.learning_rate(3), 2);
}

TEST(Schedule, PiecewiseWithABase_KeepsItsProportions) {
  const Schedule schedule = make(
      R"({"name": "piecewise", "boundaries": [1, 2], "values": [0.1, 0.05, 0.001], "base": 0.4})",
      10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(20), 0.004);
  EXPECT_THROW(
      make(R"({"name": "piecewise", "boundaries": [1], "values": [0, 1], "base": 1})", 1, 1),
      Error);
}

// Goyal et al. 2017: k times the batch, k times the rate, reached from the same start.
TEST(Schedule, ScaledWithTheGlobalBatch_FollowsTheLinearRule) {
  for (const std::string& name : schedule_registry().names()) {
    const std::string own =
        name == "piecewise" ? R"(, "boundaries": [1], "values": [0.1, 0.01])" : "";
    const std::string begin = R"({"name": ")" + name + "\"" + own + R"(, "warmup_steps": 4,
      "warmup_start": 0.01)";
    const Schedule plain = make(begin + "}", 10, 4, 512);
    const std::string scaled = begin + R"(, "scale_with_global_batch": true)";
    const Schedule twice = make(scaled + "}", 10, 4, 512);
    const Schedule four = make(scaled + R"(, "reference_batch": 128})", 10, 4, 512);
    EXPECT_EQ(plain.scale(), 1);
    EXPECT_EQ(twice.scale(), 2);
    EXPECT_DOUBLE_EQ(twice.learning_rate(0), 0.01) << name;
    for (const int64_t step : {4, 15, 30}) {
      EXPECT_DOUBLE_EQ(twice.learning_rate(step), 2 * plain.learning_rate(step)) << name;
      EXPECT_DOUBLE_EQ(four.learning_rate(step), 4 * plain.learning_rate(step)) << name;
    }
  }
  EXPECT_THROW(make(R"({"name": "constant", "reference_batch": 128})", 1, 1, 128), Error);
}

TEST(Schedule, PiecewiseThatDoesNotFit_IsRefused) {
  EXPECT_THROW(make(R"({"name": "piecewise", "boundaries": [1, 2], "values": [1, 2]})", 1, 1),
               Error);
  EXPECT_THROW(make(R"({"name": "piecewise", "boundaries": [2, 1], "values": [1, 2, 3]})", 1, 1),
               Error);
}

TEST(Schedule, Cosine_FallsFromBaseToEnd) {
  const Schedule schedule = make(R"({"name": "cosine", "base": 0.5, "end": 0.1})", 10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 0.1 + 0.2 * (1 + std::cos(M_PI / 4)));
  EXPECT_DOUBLE_EQ(schedule.learning_rate(20), 0.3);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(40), 0.1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(99), 0.1);
}

TEST(Schedule, CosinePerEpoch_HoldsWithinAnEpoch) {
  const Schedule schedule = make(R"({"name": "cosine", "base": 1, "per": "epoch"})", 10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(9), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 0.5 * (1 + std::cos(M_PI / 4)));
  EXPECT_DOUBLE_EQ(schedule.learning_rate(19), schedule.learning_rate(10));
}

TEST(Schedule, Polynomial_FallsFromBaseToEnd) {
  const Schedule schedule =
      make(R"({"name": "polynomial", "base": 1, "end": 0.2, "power": 2})", 10, 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(5), 0.2 + 0.8 * 0.25);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(11), 0.2);
}

TEST(Schedule, WarmUp_RisesToTheFirstValueThenTheScheduleBegins) {
  const Schedule schedule =
      make(R"({"name": "cosine", "base": 0.5, "warmup_epochs": 0.5, "warmup_start": 0.1})", 10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1), 0.1 + 0.4 / 5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(4), 0.1 + 0.4 * 4 / 5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(5), 0.5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(40), 0) << "the end of the job is the end";
  EXPECT_GT(schedule.learning_rate(39), 0);
}

// As in the recipe of Goyal et al. (2017): 5 epochs of warm-up, boundaries at 30, 60 and 80.
TEST(Schedule, WarmUp_LeavesBoundariesWhereTheyAre) {
  const Schedule schedule = make(
      R"({"name": "piecewise", "boundaries": [1], "values": [1, 2], "warmup_steps": 2})", 10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1), 0.5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(9), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 2);
}

TEST(Schedule, WarmUpPerEpoch_MovesOnWithTheEpochsOfTheJob) {
  const Schedule schedule =
      make(R"({"name": "polynomial", "base": 1, "per": "epoch", "warmup_epochs": 1.5})", 10, 4);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(15), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(19), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(20), 1 - 5.0 / 25);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(29), 1 - 5.0 / 25);
}

TEST(Schedule, LengthOfAnEpoch_MattersToSome) {
  const auto counts = [](const std::string& json) {
    const ConfigTree tree = ConfigTree::from_json(json, "test");
    return counts_epochs(tree.validate(schedule_schema(*tree.peek("name"))));
  };
  for (const char* json :
       {R"({"name": "cosine"})", R"({"name": "polynomial"})", R"({"name": "one_cycle"})",
        R"({"name": "step"})", R"({"name": "step", "unit": "step", "per": "epoch"})",
        R"({"name": "constant", "warmup_epochs": 1})"}) {
    EXPECT_TRUE(counts(json)) << json;
  }
  for (const char* json : {R"({"name": "constant", "warmup_steps": 5})",
                           R"({"name": "step", "unit": "step"})", R"({"name": "plateau"})"}) {
    EXPECT_FALSE(counts(json)) << json;
  }
}

TEST(Schedule, ContradictingWarmUp_IsRefused) {
  EXPECT_THROW(make(R"({"name": "constant", "warmup_epochs": 1, "warmup_steps": 2})", 1, 1), Error);
  EXPECT_THROW(make(R"({"name": "constant", "warmup_start": 0.1})", 1, 1), Error);
}

}  // namespace
}  // namespace fleet
