#include "train/evaluation_tracker.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<MetricDef> kMetrics = {{.name = "loss"},
                                         {.name = "acc1", .larger_is_better = true},
                                         {.name = "acc4", .larger_is_better = true}};

class EvaluationTrackerTest : public TrainerTest {
 protected:
  EvaluationTracker watch(const std::vector<std::string>& keys) const {
    return {job(keys), kMetrics};
  }
  Error refusal(const std::vector<std::string>& keys, const std::vector<MetricDef>& metrics) const {
    return thrown_by([&] { EvaluationTracker(job(keys), metrics); });
  }
  // Steps of the checkpoints that there are.
  std::vector<int64_t> saved() const {
    std::vector<int64_t> steps;
    for (const auto& entry : fs::directory_iterator(output_ + "/checkpoints")) {
      steps.push_back(step_of_checkpoint(entry.path()));
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }
  // Of the test lines so far: the step whose value is best, the first of equals.
  std::pair<int64_t, double> best_of_lines(const std::string& metric, bool max) const {
    std::pair<int64_t, double> best{-1, 0};
    for (const auto& line : events("test")) {
      const double value = line[metric];
      const bool better = max ? value > best.second : value < best.second;
      if (best.first < 0 || better) best = {line["step"], value};
    }
    return best;
  }
};

TEST_F(EvaluationTrackerTest, Modes_AreThoseOfTheMetric) {
  EvaluationTracker accuracy = watch({"checkpoint.keep_best=acc1"});
  EvaluationTracker loss = watch({"checkpoint.keep_best={'metric': 'loss'}"});
  EvaluationTracker other = watch({"checkpoint.keep_best={'metric': 'loss', 'mode': 'max'}"});
  int64_t step = 0;
  const auto observe = [&](EvaluationTracker& watch, double value) {
    return watch.observe(++step, {{"loss", value}, {"acc1", value}, {"acc4", value}}, true);
  };
  EXPECT_TRUE(observe(accuracy, 0.5));
  EXPECT_FALSE(observe(accuracy, 0.4));
  EXPECT_FALSE(observe(accuracy, 0.5));
  EXPECT_TRUE(observe(accuracy, 0.6));
  EXPECT_FALSE(observe(accuracy, std::nan("")));
  EXPECT_EQ(accuracy.record().kept, (BestValue{"acc1", 0.6, 4}));
  EXPECT_TRUE(observe(loss, 0.5));
  EXPECT_TRUE(observe(loss, 0.4));
  EXPECT_FALSE(observe(loss, 0.5));
  EXPECT_TRUE(observe(other, 0.5));
  EXPECT_FALSE(observe(other, 0.4));
}

TEST_F(EvaluationTrackerTest, Patience_CountsEvaluationsWithoutABetterOne) {
  EvaluationTracker watch =
      this->watch({"train.early_stopping={'metric': 'loss', 'patience': 2, 'min_delta': 0.1}"});
  const auto observe = [&](int64_t step, double loss, bool counts = true) {
    watch.observe(step, {{"loss", loss}, {"acc1", 0}, {"acc4", 0}}, counts);
    return watch.should_stop();
  };
  EXPECT_FALSE(observe(1, 1));
  EXPECT_FALSE(observe(2, 0.95));  // not by more than 0.1
  EXPECT_FALSE(observe(3, 0.85));
  EXPECT_FALSE(observe(4, 0.9));
  EXPECT_FALSE(observe(5, 0.9, false));
  EXPECT_FALSE(observe(4, 0.9));  // that step was observed
  EvaluationTracker resumed =
      this->watch({"train.early_stopping={'metric': 'loss', 'patience': 2}"});
  resumed.restore(watch.record());
  resumed.observe(6, {{"loss", 2}, {"acc1", 0}, {"acc4", 0}}, true);
  EXPECT_TRUE(resumed.should_stop());
  EXPECT_TRUE(observe(6, std::nan("")));
  EXPECT_THAT(watch.why_it_stops(),
              ::testing::AllOf(HasSubstr("0.85 (step 3)"), HasSubstr("more than 0.1 in 2")));
}

TEST_F(EvaluationTrackerTest, WhatIsNotThere_IsRefused) {
  const Error error = refusal({"checkpoint.keep_best=acc7"}, kMetrics);
  EXPECT_THAT(error, IsUsageError("checkpoint.keep_best.metric"));
  EXPECT_THAT(error.next(), ::testing::AllOf(HasSubstr("'acc1'?"), HasSubstr("loss, acc1, acc4")));
  // Of another task.
  EXPECT_THAT(refusal({"checkpoint.keep_best=miou"}, kMetrics), Advises(HasSubstr("segmentation")));
  EXPECT_THAT(refusal({"train.early_stopping=loss"}, {}), IsUsageError("train.early_stopping"));
  EXPECT_THAT(refusal({"checkpoint.keep_best=loss"}, {}), IsUsageError("checkpoint.keep_best"));
  EXPECT_THROW(run(job({"checkpoint.keep_best=loss", "train.evaluate_every=0"}), 1), Error);
  EXPECT_THROW(job({"checkpoint.keep_best.mode=most"}), Error);
}

// A rate so high that the loss wanders: the best is somewhere in the middle.
const std::vector<std::string> kWanders = {"learning_rate.base=0.5", "train.epochs=12",
                                           "checkpoint.keep_best=loss", "checkpoint.keep=1",
                                           "checkpoint.every_epochs=1"};

TEST_F(EvaluationTrackerTest, BestAndLast_AreKeptWithTheNewest) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    run(job(with(kWanders, {"data.batch_size=" + std::to_string(16 / world)})), world);
    const auto [step, value] = best_of_lines("loss", false);
    ASSERT_GE(step, 0);
    ASSERT_LT(step, 48) << "the job does not wander";
    EXPECT_THAT(saved(), ElementsAre(step, 48));
    const auto summary = events("summary").at(0);
    EXPECT_EQ(summary["best_metric"], "loss");
    EXPECT_EQ(summary["best"], value);
    EXPECT_EQ(summary["best_step"], step);
    EXPECT_TRUE(fs::exists(std::string(summary["best_checkpoint"]) + "/model.safetensors"));
  }
}

// Where nothing else is saved, the best one is.
TEST_F(EvaluationTrackerTest, BestAlone_IsSavedAfterItsEvaluation) {
  run(job(with(kWanders, {"checkpoint.every_epochs=0", "checkpoint.at_end=false"})), 1);
  const auto step = best_of_lines("loss", false).first;
  ASSERT_GE(step, 0);
  EXPECT_EQ(saved().back(), step);
}

TEST_F(EvaluationTrackerTest, Resumed_KnowsWhichIsBest) {
  run(job(kWanders), 1);
  const auto best = best_of_lines("loss", false);
  const auto kept = saved();
  for (const char* cut : {"4", "20", "40", "46"}) {  // ends of epochs, and within one
    fs::remove_all(output_);
    run(job(with(kWanders, {std::string("train.max_steps=") + cut})), 1);
    run(job(with(kWanders, {"checkpoint.resume=auto"})), 1);
    const auto summary = events("summary").back();
    if (std::string(cut) != "46") {  // there the evaluation within the epoch may be the best
      EXPECT_EQ(summary["best_step"], best.first) << cut;
      EXPECT_EQ(saved(), kept) << cut;
    }
    EXPECT_EQ(best_of_lines("loss", false).second, summary["best"]) << cut;
  }
}

TEST_F(EvaluationTrackerTest, EarlyStopping_EndsAllRanksAtOneStepAndGoesOnCounting) {
  const std::vector<std::string> keys = {
      "train.epochs=40",
      "train.early_stopping={'metric': 'loss', 'patience': 3, 'min_delta': 100}"};
  const Outcome outcome = run(job(with(keys, {"data.batch_size=8"})), 2);
  EXPECT_EQ(outcome.results[0].steps, 16);  // the first evaluation, and three without a better one
  EXPECT_EQ(outcome.results[1].steps, 16);
  EXPECT_TRUE(outcome.results[1].stopped_early);
  EXPECT_EQ(outcome.results[0].stopped_by, 0);
  EXPECT_EQ(events("summary").at(0)["stopped_early"], true);
  EXPECT_EQ(events("test").size(), 4u);
  // Started again it stands where it ended.
  EXPECT_EQ(
      run(job(with(keys, {"data.batch_size=8", "checkpoint.resume=auto"})), 2).results[0].steps,
      16);
  fs::remove_all(output_);
  run(job(with(keys, {"train.max_steps=8"})), 1);
  EXPECT_EQ(run(job(with(keys, {"checkpoint.resume=auto"})), 1).results[0].steps, 16);
}

}  // namespace
}  // namespace fleet
