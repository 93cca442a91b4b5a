#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "base/env.h"
#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/rank_commands.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// Sets an environment variable for its lifetime.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value)
      : name_(std::move(name)), before_(get_env(name_)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  const std::string name_;
  const std::optional<std::string> before_;
};

LaunchConfig file_config(std::vector<std::string> options) {
  options.insert(options.end(), {"sh"});
  return parse_arguments(options).config;
}

TEST(RankFiles, OfFleetrun_AreNamedAsPaddles) {
  const LaunchConfig plain = file_config({"--log_dir=logs"}), split = file_config({"--log_split"});
  EXPECT_EQ(log_folder(plain), "logs");
  const RankFiles files = RankFileLayout(plain, "logs").of(3, 1, 2);
  EXPECT_EQ(files.output, "logs/workerlog.2");
  EXPECT_EQ(files.errors, files.output);
  EXPECT_THAT(files.failure, MatchesRegex("/.*/logs/workerlog.2.error.json"));
  EXPECT_THAT(files.steps, MatchesRegex("/.*/logs/workerlog.2.steps"));
  EXPECT_EQ(RankFileLayout(plain, "logs").of(0, 1, 0).output, "logs/serverlog.0");
  EXPECT_EQ(RankFileLayout(split, "logs").of(0, 0, 0).errors, "logs/workerlog.0.err");
}

TEST(RankFiles, OfTorchrun_AreATreeOfTheStreamsThatAreWanted) {
  const LaunchConfig given = file_config(
      {"--compat=torchrun", "--log_dir=/logs", "--rdzv_id=a/b", "-r", "1:1", "-t", "2:3"});
  EXPECT_THAT(log_folder(given), MatchesRegex("/logs/a_b_[a-z0-9]{8}"));
  EXPECT_NE(log_folder(given), log_folder(given));
  const RankFileLayout files(given, "/logs/run");
  EXPECT_EQ(files.of(0, 0, 0).output, "");
  EXPECT_EQ(files.of(0, 0, 0).errors, "");
  EXPECT_EQ(files.of(0, 0, 0).failure, "/logs/run/attempt_0/0/error.json");
  EXPECT_EQ(files.of(0, 0, 0).steps, "/logs/run/attempt_0/0/steps");
  EXPECT_EQ(files.of(1, 0, 3).output, "/logs/run/attempt_3/1/stdout.log");
  EXPECT_EQ(files.of(1, 0, 3).errors, "");
  EXPECT_EQ(files.of(2, 0, 0).errors, "/logs/run/attempt_0/2/stderr.log");
}

TEST(RankFiles, OfTorchrunWithoutALogDir_AreTemporary) {
  const LaunchConfig given = file_config({"--compat=torchrun"});
  EXPECT_TRUE(is_temporary_log_folder(given));
  EXPECT_THAT(temporary_parent(log_folder(given)), MatchesRegex("/.*/torchelastic_[a-z0-9]{8}"));
  EXPECT_FALSE(is_temporary_log_folder(file_config({"--compat=torchrun", "--log_dir=x"})));
  EXPECT_FALSE(is_temporary_log_folder(file_config({})));
}

// torchrun uses Python's tempfile. Slurm's TMPDIR may exist on one node only.
TEST(RankFiles, OfTorchrun_WithoutTheFolderOfTmpdir_AreInTheNextUsableOne) {
  const std::string here = ::testing::TempDir() + "rank_files";
  std::filesystem::create_directories(here);
  std::ofstream(here + "/file") << "not a folder";
  const auto parent_with = [](const std::string& tmpdir, const std::string& temp) {
    ScopedVariable first("TMPDIR", tmpdir), second("TEMP", temp), third("TMP", "");
    return temporary_parent(log_folder(file_config({"--compat=torchrun"})));
  };
  EXPECT_THAT(parent_with(here, "/tmp"), StartsWith(here + "/torchelastic_"));
  EXPECT_THAT(parent_with(here + "/gone", here), StartsWith(here + "/torchelastic_"));
  EXPECT_THAT(parent_with(here + "/file", here), StartsWith(here + "/torchelastic_"));
  EXPECT_THAT(parent_with(here + "/gone", here + "/gone"), StartsWith("/tmp/torchelastic_"));
  std::filesystem::remove_all(here);
}

TEST(RankFiles, Copies_AreOfLinesWithTheseTexts) {
  const LaunchConfig given = file_config({"--duplicate_stdout_filters=apple,a,,b"});
  const wire::CopiedLines copies = RankFileLayout(given, "log").copies(false, 0);
  EXPECT_THAT(copies.filters(), ElementsAre("apple", "a,b"));
  EXPECT_EQ(copies.path(), "log/filtered_stdout.log");
  EXPECT_THAT(RankFileLayout(given, "log").copies(true, 0).filters(), IsEmpty());
  const LaunchConfig torchrun = file_config({"--compat=torchrun", "--duplicate_stderr_filters=x"});
  EXPECT_THAT(RankFileLayout(torchrun, "/r").copies(true, 1).path(),
              EndsWith("/r/attempt_1/filtered_stderr.log"));
}

}  // namespace
}  // namespace fleet
