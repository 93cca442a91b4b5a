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

  // After a few steps with so many OpenMP threads, and streams that compute at the same time.
  TensorFile train(const std::string& threads, const std::string& streams = "1") {
    set_threads(threads);
    const std::string output = "threads" + threads + "." + streams;
    const int code = job_.run_worker(
        {"job.json", "--set", "train.deterministic=true", "--set", "train.max_steps=5", "--set",
         "train.output=" + output, "--set", "checkpoint.at_end=true", "--set",
         "strategy.execution_strategy.num_threads=" + streams},
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

// Every stream then has one thread, as the one stream has otherwise.
TEST_F(Deterministic, NumberOfComputingStreams_DoesNotChangeABit) {
  const TensorFile one = train("2", "1");
  EXPECT_EQ(distance(one, train("2", "2")), 0);
  EXPECT_THAT(log_, ::testing::HasSubstr("on streams 0 1"));
}

}  // namespace
}  // namespace fleet
