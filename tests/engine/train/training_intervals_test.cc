#include "train/training_intervals.h"

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using TrainingIntervalsTest = TrainerTest;

TEST_F(TrainingIntervalsTest, Members_AreTheKeysOfTheJob) {
  const TrainingIntervals of(
      job({"train.epochs=2", "train.max_steps=3", "train.fetch_every=4",
           "train.evaluate_every_steps=5", "train.evaluate_every=6", "checkpoint.every_steps=7",
           "checkpoint.every_epochs=8", "train.compare_ranks_every=9"}));
  EXPECT_EQ(of.epochs, 2);
  EXPECT_EQ(of.max_steps, 3);
  EXPECT_EQ(of.fetch_steps, 4);
  EXPECT_EQ(of.evaluate_steps, 5);
  EXPECT_EQ(of.evaluate_epochs, 6);
  EXPECT_EQ(of.save_steps, 7);
  EXPECT_EQ(of.save_epochs, 8);
  EXPECT_EQ(of.compare_steps, 9);
}

TEST_F(TrainingIntervalsTest, Zero_IsNeverDue) {
  EXPECT_FALSE(TrainingIntervals::due(0, 0));
  EXPECT_FALSE(TrainingIntervals::due(0, 6));
  EXPECT_TRUE(TrainingIntervals::due(3, 6));
  EXPECT_FALSE(TrainingIntervals::due(3, 7));
}

TEST_F(TrainingIntervalsTest, MaxSteps_EndsTheJob) {
  const TrainingIntervals limited(job({"train.max_steps=3"})), unlimited(job({}));
  EXPECT_FALSE(limited.ends_after(2));
  EXPECT_TRUE(limited.ends_after(3));
  EXPECT_FALSE(unlimited.ends_after(1'000'000));
}

}  // namespace
}  // namespace fleet
