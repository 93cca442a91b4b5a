// Files and output that the system does not take.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// The exit code of fleet-worker in the job's folder; `before`: shell commands in front of it,
// `after`: arguments and redirections. What it says goes to the file "errors".
int run_worker(const TrainingJob& job, const std::string& before, const std::string& after) {
  const std::string command = "cd '" + job.folder().path() + "' && " + before + " env " +
                              job.folder().marked_environment() + " CUDA_VISIBLE_DEVICES= '" +
                              program_folder() + "/fleet-worker' " + after + " 2>errors";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(WorkerOutput, FullDisk_FailsWithALine) {
  const TrainingJob job;
  for (const char* arguments : {"--help", "--print_operations", "job.json --print_config",
                                "job.json --print_keys", "job.json --check"}) {
    EXPECT_EQ(run_worker(job, "", std::string(arguments) + " >/dev/full"), 1) << arguments;
    EXPECT_THAT(job.folder().read("errors"), HasSubstr("standard output")) << arguments;
  }
}

// Before: killed by SIGXFSZ, without a word.
TEST(FileSizeLimit, CheckpointLargerThanIt_IsReportedWithTheLimit) {
  const TrainingJob job;
  EXPECT_EQ(run_worker(job, "ulimit -f 100;", "job.json --set train.output=output >/dev/null"), 1);
  EXPECT_THAT(job.folder().read("errors"), HasSubstr("ulimit -f"));
}

}  // namespace
}  // namespace fleet
