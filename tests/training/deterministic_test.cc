// train.deterministic: the same bits for any number of threads.
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/env.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

class Deterministic : public ::testing::Test {
 protected:
  void TearDown() override { set_threads(before_); }

  // After a few steps with so many OpenMP threads.
  TensorFile train(const std::string& threads) {
    set_threads(threads);
    const std::string output = "threads" + threads;
    const int code = job_.run_worker(
        {"job.json", "--set", "train.deterministic=true", "--set", "train.max_steps=5", "--set",
         "train.output=" + output, "--set", "checkpoint.at_end=true"},
        &log_);
    EXPECT_EQ(code, 0) << log_;
    return job_.weights(output);
  }

  TrainingJob job_;
  std::string log_;  // of the last run

 private:
  static void set_threads(const std::optional<std::string>& threads) {
    if (threads) {
      ::setenv("OMP_NUM_THREADS", threads->c_str(), 1);
    } else {
      ::unsetenv("OMP_NUM_THREADS");
    }
  }
  const std::optional<std::string> before_ = get_env("OMP_NUM_THREADS");
};

TEST_F(Deterministic, NumberOfThreads_DoesNotChangeABit) {
  const TensorFile one = train("1");
  EXPECT_EQ(distance(one, train("2")), 0);
  EXPECT_EQ(distance(one, train("3")), 0);
  EXPECT_THAT(log_, ::testing::HasSubstr("using one thread instead of 3"));
}

}  // namespace
}  // namespace fleet
