// Where a job's files are, as its user sees it.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::string> steps(const std::string& count, const std::string& more = "") {
  std::vector<std::string> overrides = {"train.evaluate_every=0", "train.max_steps=" + count};
  if (!more.empty()) overrides.push_back(more);
  return overrides;
}

TEST(RunFolders, EachRun_HasAFolderThatLatestLeadsTo) {
  TrainingJob job;
  for (const std::string number : {"001", "002"}) {
    auto run = job.start(number, {"--nproc_per_node=2"}, steps("5"));
    ASSERT_EQ(run->wait(), 0) << run->output();
    const std::string folder = "output/job/run-" + number;
    EXPECT_TRUE(fs::exists(job.path(folder + "/metrics.jsonl")));
    EXPECT_TRUE(fs::equivalent(job.path("output/job/latest"), job.path(folder)));
  }
  auto resumed =
      job.start("resumed", {"--nproc_per_node=2"}, steps("10", "checkpoint.resume=auto"));
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  EXPECT_THAT(resumed->output(), HasSubstr("resumed from output/job/run-002/checkpoints/step_"));
  const auto latest = latest_checkpoint(job.path("output/job/latest/checkpoints"));
  ASSERT_TRUE(latest.has_value());
  EXPECT_EQ(step_of_checkpoint(*latest), 10);
}

// Neither an evaluation nor a run that saved nothing hides the checkpoint of the run before.
TEST(RunFolders, Resuming_TakesTheRunThatHasACheckpoint) {
  TrainingJob job;
  auto trained = job.start("trained", {"--nproc_per_node=2"}, steps("5"));
  ASSERT_EQ(trained->wait(), 0) << trained->output();
  auto unsaved = job.start("unsaved", {}, steps("2", "checkpoint.at_end=false"));
  ASSERT_EQ(unsaved->wait(), 0) << unsaved->output();
  auto evaluated =
      job.start("evaluated", {"--nproc_per_node=2"}, steps("5", "train.evaluate_only=true"));
  ASSERT_EQ(evaluated->wait(), 0) << evaluated->output();
  EXPECT_FALSE(fs::exists(job.path("output/job/run-003")));
  auto resumed = job.start("resumed", {"--nproc_per_node=2"}, steps("8", "checkpoint.resume=auto"));
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  EXPECT_THAT(resumed->output(), HasSubstr("run-002 has no complete checkpoint: continuing "));
  EXPECT_THAT(resumed->output(), HasSubstr("resumed from output/job/run-001/checkpoints/step_"));
}

TEST(RunFolders, NewRunInAGivenFolder_SetsAsideWhatAnOlderOneWrote) {
  TrainingJob job;
  for (int i = 0; i < 2; ++i) {
    auto run = job.start("given", {"--nproc_per_node=2"}, steps("5", "train.output=given"));
    ASSERT_EQ(run->wait(), 0) << run->output();
  }
  EXPECT_EQ(job.folder().read("given/metrics.jsonl").find("\"start\"", 20), std::string::npos);
  EXPECT_THAT(job.folder().read("given/metrics.jsonl.1"), HasSubstr("\"summary\""));
  EXPECT_TRUE(fs::exists(job.path("given/checkpoints.1/step_00000005")));
}

TEST(RunFolders, SecondJobInTheFolderOfARunningOne_IsRefusedAndTheFirstGoesOn) {
  TrainingJob job;
  auto first = job.start("first", {"--nproc_per_node=2"},
                         {"train.epochs=100", "train.evaluate_every=0", "train.output=same"});
  job.folder().wait_for("same/metrics.jsonl");
  auto second = job.start("second", {"--nproc_per_node=2"}, steps("5", "train.output=same"));
  EXPECT_EQ(second->wait(), 2) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("the output folder same"));
  EXPECT_FALSE(fs::exists(job.path("same/metrics.jsonl.1")));
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
}

TEST(RunFolders, RestartedRun_GoesOnInItsFolder) {
  TrainingJob job;
  auto run = job.start("restarted", {"--nproc_per_node=2", "--max_restart=1"},
                       {"train.epochs=30", "checkpoint.every_steps=10", "train.evaluate_every=0",
                        "train.max_steps=200"});
  job.folder().wait_for("output/job/run-001/checkpoints/step_00000010/state.json");
  const auto workers = job.folder().processes("fleet-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[0], SIGKILL);
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_FALSE(fs::exists(job.path("output/job/run-002")));
  EXPECT_FALSE(fs::exists(job.path("output/job/run-001/metrics.jsonl.1")));
}

}  // namespace
}  // namespace fleet
