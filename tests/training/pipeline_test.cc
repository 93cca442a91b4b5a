// Pipelines of processes: a stage that is lost or hangs, two pipelines, and the ranks' plans as
// printed.
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/test_paths.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> pipeline(const std::string& output,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {"strategy.pipeline=true",
                                        "strategy.pipeline_configs.accumulate_steps=4",
                                        "strategy.pipeline_configs.stages=2",
                                        "train.epochs=30",
                                        "checkpoint.every_steps=10",
                                        "train.evaluate_every=0",
                                        "train.output=" + output};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

class PipelineProcesses : public ::testing::Test {
 protected:
  // A job of two stages that has begun to train, and its ranks.
  std::vector<pid_t> start(const std::vector<std::string>& more = {}) {
    running_ = job_.start("cut", {"--nproc_per_node=2"}, pipeline("cut", more));
    job_.folder().wait_for("cut/checkpoints/step_00000010/state.json");
    return job_.folder().processes("fleet-worker");
  }
  // Output of the launcher and the ranks.
  std::string said() const {
    return running_->output() + job_.folder().read("log.cut/workerlog.0") +
           job_.folder().read("log.cut/workerlog.1");
  }
  TrainingJob job_;
  std::unique_ptr<Fleetrun> running_;
};

TEST_F(PipelineProcesses, KilledStage_IsNamed) {
  const auto workers = start();
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGKILL);
  EXPECT_EQ(running_->wait(), 128 + SIGKILL) << running_->output();
  EXPECT_THAT(said(), AnyOf(HasSubstr("stage 1 (rank 1)"), HasSubstr("stage 0 (rank 0)")));
  EXPECT_THAT(job_.folder().survivors(5), IsEmpty());
}

// Its silence is noticed after comm.timeout.
TEST_F(PipelineProcesses, HangingStage_IsNamed) {
  const auto workers = start({"comm.timeout=3"});
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGSTOP);
  EXPECT_NE(running_->wait(), 0) << running_->output();
  EXPECT_THAT(said(), AnyOf(HasSubstr("stage 1 (rank 1)"), HasSubstr("stage 0 (rank 0)")));
  EXPECT_THAT(job_.folder().survivors(20), IsEmpty());
}

// Between hosts, messages of all directions go over Gloo.
TEST_F(PipelineProcesses, TwoPipelinesOverGloo_TrainAsOverSharedMemory) {
  for (const char* backend : {"shm", "gloo"}) {
    auto ended = job_.start(backend, {"--nproc_per_node=4"},
                            pipeline(backend, {"train.max_steps=6", "checkpoint.every_steps=0",
                                               std::string("comm.backend=") + backend}));
    ASSERT_EQ(ended->wait(), 0) << ended->output();
  }
  EXPECT_LE(distance(job_.weights("shm"), job_.weights("gloo")), 1e-6);
}

TEST_F(PipelineProcesses, PrintedPlan_IsThatOfTheStage) {
  const auto plan = [&](const std::string& rank) {
    Fleetrun worker(
        job_.folder(), "plan" + rank,
        {"--print_plan", "--rank", rank, "--ranks", "2", job_.path("job.json"), "--set",
         "strategy.pipeline=true", "--set", "strategy.pipeline_configs.accumulate_steps=4"},
        {}, {}, "fleet-worker");
    EXPECT_EQ(worker.wait(), 0) << worker.output();
    return worker.output();
  };
  const std::string first = plan("0"), last = plan("1");
  EXPECT_THAT(first, HasSubstr("conv1.weight"));
  EXPECT_THAT(last, Not(HasSubstr("conv1.weight")));
  EXPECT_THAT(last, HasSubstr("[forward] recv"));
  EXPECT_THAT(last, HasSubstr("[backward] send"));
}

}  // namespace
}  // namespace fleet
