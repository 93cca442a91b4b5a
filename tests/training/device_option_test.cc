// fleet-worker --device, on machines with and without a GPU.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DeviceOption : public ::testing::Test {
 protected:
  TrainingJob job_;
  std::string error_;
};

TEST_F(DeviceOption, PlanOfAGpu_IsPrintedWhereverItsModuleIs) {
  const int code = job_.run_worker({"job.json", "--device", "cuda", "--print_plan"}, &error_);
  if (has_plugin("cuda")) {
    EXPECT_EQ(code, 0) << error_;
    EXPECT_THAT(error_, Not(HasSubstr("the CPU is used")));
  } else {
    EXPECT_EQ(code, 2);
    EXPECT_THAT(error_, StartsWith("fleet-worker: train.device: "));
  }
  EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
}

TEST_F(DeviceOption, UnknownDevice_IsRefusedWithThoseThereAre) {
  EXPECT_EQ(job_.run_worker({"job.json", "--device", "cudda"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("one of auto, cpu, cuda"));
}

TEST_F(DeviceOption, TogetherWithSet_Wins) {
  EXPECT_EQ(
      job_.run_worker({"job.json", "--device", "cudda", "--set", "train.device=cpu"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("cudda"));
  EXPECT_EQ(job_.run_worker(
                {"job.json", "--set", "train.device=cudda", "--device", "cpu", "--print_config"},
                &error_),
            0)
      << error_;
}

TEST_F(DeviceOption, Cuda_WithoutAGpu_IsRefused) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(job_.run_worker({"job.json", "--device=cuda"}, &error_), 2);
  EXPECT_THAT(error_, StartsWith("fleet-worker: train.device (--device): "));
  EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
}

TEST_F(DeviceOption, PrintProgramBeforeTheJobFile_LeavesItThat) {
  EXPECT_EQ(job_.run_worker({"--print_program", "job.json", "--set", "model.name=mlp"}, &error_), 0)
      << error_;
  EXPECT_THAT(job_.folder().read("worker.out"), HasSubstr("softmax_with_cross_entropy"));
  EXPECT_EQ(job_.run_worker({"--print_program", "dot", "job.json"}, &error_), 0) << error_;
  EXPECT_THAT(job_.folder().read("worker.out"), HasSubstr("digraph"));
  EXPECT_EQ(job_.run_worker({"--print_flags", "--device", "cpu"}, &error_), 0) << error_;
  EXPECT_EQ(job_.run_worker({"job.json", "--print_program=dto"}, &error_), 2);
}

}  // namespace
}  // namespace fleet
