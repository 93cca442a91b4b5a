// fleetrun trace, without a job that answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "base/commands.h"
#include "node/job_record.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

struct TraceOutput : ::testing::Test {
  TraceOutput() {
    std::string pattern = ::testing::TempDir() + "fleet_trace.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv("FLEET_RUNTIME_DIR", (folder + "/run").c_str(), 1);
    JobRecord record;
    record.set_job_id("night");
    job = std::make_unique<JobRecordFile>(record);
  }
  ~TraceOutput() override {
    job.reset();
    ::unsetenv("FLEET_RUNTIME_DIR");
    std::filesystem::remove_all(folder);
  }
  static Error failure(const std::string& output) {
    return thrown_by([&] { run_command(*find_command("trace"), {"night", "-o", output}); });
  }
  std::string folder;
  std::unique_ptr<JobRecordFile> job;  // its control socket does not exist
};

TEST_F(TraceOutput, UnwritablePlace_IsRefusedBeforeTheJobIsAsked) {
  EXPECT_THAT(failure(folder + "/none/it"), IsUsageError(folder + "/none/it"));
  EXPECT_THAT(failure(folder), IsUsageError(folder));
  EXPECT_THAT(failure("/proc/it").what(),
              ::testing::AllOf(HasSubstr("/proc/it: cannot write the trace"),
                               HasSubstr("No such file or directory"), HasSubstr("--output")));
}

TEST_F(TraceOutput, WritablePlace_NothingIsLeftThereIfTheJobDoesNotAnswer) {
  std::filesystem::create_directory(folder + "/here");
  EXPECT_THAT(failure(folder + "/here/it"), ::testing::Not(IsUsageError()));
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/here"));
}

}  // namespace
}  // namespace fleet
