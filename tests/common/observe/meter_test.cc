#include "observe/meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleet {
namespace {

TEST(MovingAverage, MoreThanTheWindow_ForgetsTheOldest) {
  MovingAverage average(3);
  for (double value : {100.0, 1.0, 2.0, 3.0}) average.add(value);
  EXPECT_DOUBLE_EQ(average.mean(), 2.0);
  EXPECT_DOUBLE_EQ(average.overall_mean(), 26.5);
  EXPECT_DOUBLE_EQ(average.last(), 3.0);
  EXPECT_EQ(average.count(), 4u);
}

TEST(MovingAverage, Empty_IsZero) {
  const MovingAverage average;
  EXPECT_EQ(average.mean(), 0);
  EXPECT_EQ(average.overall_mean(), 0);
}

TEST(MovingAverage, NotANumberLeavesTheWindow_MeanRecovers) {
  MovingAverage average(2);
  average.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(average.mean()));
  average.add(1);
  average.add(3);
  EXPECT_DOUBLE_EQ(average.mean(), 2.0);
}

TEST(WeightedAverage, PaddedBatch_WeighsOnlyItsRealSamples) {
  WeightedAverage average;
  average.add(0.5, 32);
  average.add(1.0, 8);
  average.add(123.0, 0);
  EXPECT_DOUBLE_EQ(average.mean(), 0.6);
  EXPECT_DOUBLE_EQ(average.weight(), 40);
}

class StepMeterTest : public ::testing::Test {
 protected:
  double now_ = 1000;
  StepMeter meter_{2, [this] { return now_; }};
  void step(double wait, double work, double samples) {
    now_ += wait;
    meter_.data_ready();
    now_ += work;
    meter_.step_done(samples);
  }
};

TEST_F(StepMeterTest, Steps_SplitWaitingFromWork) {
  step(0.25, 0.75, 32);
  EXPECT_DOUBLE_EQ(meter_.data_time().mean(), 0.25);
  EXPECT_DOUBLE_EQ(meter_.batch_time().mean(), 1.0);
  EXPECT_DOUBLE_EQ(meter_.speed(), 32);
}

TEST_F(StepMeterTest, PauseBetweenSteps_IsNotCountedAfterStart) {
  step(0, 1, 10);
  now_ += 600;  // an evaluation
  meter_.start();
  step(0, 1, 10);
  EXPECT_DOUBLE_EQ(meter_.speed(), 10);
  EXPECT_DOUBLE_EQ(meter_.samples(), 20);
}

TEST_F(StepMeterTest, StepWithoutData_WaitsNothing) {
  step(1, 1, 1);
  now_ += 1;
  meter_.step_done(1);
  EXPECT_DOUBLE_EQ(meter_.data_time().last(), 0);
}

}  // namespace
}  // namespace fleet
