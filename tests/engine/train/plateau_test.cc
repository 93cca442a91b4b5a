// A schedule that follows evaluations, in a job.
#include <gmock/gmock.h>

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using Plateau = TrainerTest;
using ::testing::HasSubstr;

// No evaluation improves by so much: the rate falls after each but the first.
const std::vector<std::string> kFalling = {
    R"(learning_rate={"name": "plateau", "base": 0.08, "factor": 0.5, "patience": 0,
       "threshold": 0.99})",
    "train.epochs=4", "train.fetch_every=1"};

TEST_F(Plateau, RateOfSteps_FollowsTheEvaluations) {
  run(job(kFalling), 2);
  const std::vector<double> want = {0.08, 0.08, 0.04, 0.02};  // by epoch
  const auto lines = events("train");
  ASSERT_EQ(lines.size(), 8u);
  for (const auto& line : lines) {
    EXPECT_NEAR(line["learning_rate"], want[line["epoch"].get<int>()], 1e-7) << line;
  }
}

// Also where the last evaluation is younger than the checkpoint, or came before its time.
TEST_F(Plateau, InterruptedAndResumed_IsBitIdentical) {
  const Outcome whole = run(job(with(kFalling, {"checkpoint.every_steps=1"})), 2);
  for (const char* cut : {"2", "3", "4", "5"}) {  // two steps an epoch
    std::filesystem::remove_all(output_);
    run(job(with(kFalling, {std::string("train.max_steps=") + cut})), 2);
    const Outcome resumed = run(job(with(kFalling, {"checkpoint.resume=auto"})), 2);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0) << "cut after " << cut;
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[1]), 0) << "cut after " << cut;
  }
}

TEST_F(Plateau, NothingEvaluated_IsRefused) {
  const Job blind = job(with(kFalling, {"train.evaluate_every=0"}));
  for (const std::string& message : start_two(blind, blind)) {
    EXPECT_THAT(message, HasSubstr("the schedule needs evaluations"));
  }
}

}  // namespace
}  // namespace fleet
