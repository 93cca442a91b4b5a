#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launch/tools/dry_run/dry_run.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobExplanation, OfAnAnswer_HasLinesAndTheRest) {
  const JobExplanation explanation =
      parse_job_explanation("a log line\n{\"parameters\": 5, \"text\": [\"one\", \"  two\"]}\n");
  EXPECT_THAT(explanation.lines, ElementsAre("one", "  two"));
  EXPECT_EQ(explanation.json, "{\"parameters\":5}");
  EXPECT_EQ(explanation.missing, "");
}

TEST(JobExplanation, Unusable_SaysSo) {
  for (const char* output : {"", "no answer", "[]", "{}", "{\"text\": 1}"}) {
    const JobExplanation explanation = parse_job_explanation(output);
    EXPECT_NE(explanation.missing, "") << output;
    EXPECT_EQ(explanation.json, "") << output;
  }
}

class ExplainJobFile : public ::testing::Test {
 protected:
  ExplainJobFile() {
    std::string pattern = ::testing::TempDir() + "job_explanation.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ExplainJobFile() override { std::filesystem::remove_all(folder_); }
  // The answer of a worker that is this script.
  JobExplanation explain(const std::string& script) {
    const std::string worker = folder_ + "/fleet-worker";
    std::ofstream(worker) << "#!/bin/sh\n" << script << "\n";
    ::chmod(worker.c_str(), 0755);
    return explain_job_file({worker, "job.json", "--set", "a=1"}, 4, 2, 3,
                            {{"OMP_NUM_THREADS", "3"}, {"SECRET", "x"}});
  }
  std::string folder_;
};

TEST_F(ExplainJobFile, WorkerGetsRanksNodesAndThreads) {
  const JobExplanation explanation =
      explain("echo \"{\\\"text\\\": [\\\"$* threads $OMP_NUM_THREADS secret $SECRET.\\\"]}\"");
  ASSERT_EQ(explanation.lines.size(), 1U);
  EXPECT_THAT(explanation.lines[0], HasSubstr("job.json --set a=1 --explain --format=json"));
  EXPECT_THAT(explanation.lines[0], HasSubstr("--measure=never --ranks=4 --nodes=2 --servers=3"));
  EXPECT_THAT(explanation.lines[0], HasSubstr("threads 3 secret ."));
}

TEST_F(ExplainJobFile, FailureOfTheWorker_IsTheReason) {
  EXPECT_EQ(explain("echo 'fleet-worker: no such model' >&2; exit 2").missing,
            "fleet-worker: no such model");
  EXPECT_THAT(explain("exit 9").missing, HasSubstr("exit code 9"));
}

}  // namespace
}  // namespace fleet
