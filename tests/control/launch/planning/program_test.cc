#include "launch/planning/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct ProgramTest : ::testing::Test {
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fleet_program.XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string make_file(const std::string& name, int mode) {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n";
    ::chmod(path.c_str(), static_cast<mode_t>(mode));
    return path;
  }
  Error usage_error(const std::vector<std::string>& program) {
    return thrown_by([&] { rank_command(program, folder + "/fleet-worker"); });
  }
  std::string folder;
};

TEST_F(ProgramTest, JobFile_RunsTheWorker) {
  const std::string worker = make_file("fleet-worker", 0755), job = make_file("job.json", 0644);
  EXPECT_THAT(rank_command({job, "--set", "a=1"}, worker),
              ElementsAre(worker, job, "--set", "a=1"));
}

TEST_F(ProgramTest, JobFileWithoutAWorker_SaysWhatIsMissing) {
  EXPECT_THAT(usage_error({make_file("job.json", 0644)}),
              IsError(ErrorCode::kNotFound, folder + "/fleet-worker"));
}

TEST_F(ProgramTest, Script_RunsUnbufferedPython) {
  const std::string script = make_file("train.py", 0644);
  EXPECT_THAT(rank_command({script, "--lr", "1"}, ""),
              ElementsAre(EndsWith("/python3"), "-u", script, "--lr", "1"));
}

TEST_F(ProgramTest, AnythingElse_IsLookedUpInPath) {
  EXPECT_THAT(rank_command({"true", "x"}, ""), ElementsAre(EndsWith("/true"), "x"));
  const std::string own = make_file("own", 0755);
  EXPECT_THAT(rank_command({own}, ""), ElementsAre(own));
}

TEST_F(ProgramTest, WhatIsNotThere_IsAnError) {
  EXPECT_THAT(usage_error({"no_such_program_at_all"}), IsUsageError("no_such_program_at_all"));
  EXPECT_THAT(usage_error({folder + "/none"}), IsUsageError(folder + "/none"));
  EXPECT_THAT(usage_error({folder}), IsUsageError(folder));
  EXPECT_THAT(usage_error({folder + "/none.py"}), IsUsageError(folder + "/none.py"));
  EXPECT_THAT(usage_error({folder + "/none.json"}), IsUsageError(folder + "/none.json"));
}

TEST_F(ProgramTest, NotExecutable_SaysSo) {
  EXPECT_THAT(usage_error({make_file("plain", 0644)}).what(), HasSubstr("chmod +x"));
}

}  // namespace
}  // namespace fleet
