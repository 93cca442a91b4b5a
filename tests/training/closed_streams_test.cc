// Programs that a cron wrapper or a daemon manager starts without standard streams.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

TEST(ClosedStreams, RunFolder_HoldsItsOwnLinesOnly) {
  TrainingJob job;
  for (const char* closed : {">&- 2>&-", "<&- >&- 2>&-", "2>&-", "<&-"}) {
    const std::string command = "cd '" + job.folder().path() + "' && rm -rf output && " +
                                job.folder().marked_environment() + " '" + program_folder() +
                                "/fleet-worker' job.json --set train.output=output " + closed;
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << closed << ": " << status;
    std::ifstream metrics(job.path("output/metrics.jsonl"));
    int lines = 0;
    for (std::string line; std::getline(metrics, line); ++lines) {
      EXPECT_NO_THROW((void)Json::parse(line)) << closed << ": " << line;
    }
    EXPECT_GT(lines, 0) << closed;
  }
}

}  // namespace
}  // namespace fleet
