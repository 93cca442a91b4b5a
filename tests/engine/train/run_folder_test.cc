#include "train/run_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// In a working folder of its own.
class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    folder_ = fs::path(::testing::TempDir()) / ("run_folder_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static Error refusal(const RunFolderOptions& options) {
    return thrown_by([&] { RunFolder folder(options); });
  }

  fs::path before_, folder_;
};

// Of a run that has written, and ended.
std::string begun(const RunFolderOptions& options) {
  RunFolder folder(options);
  folder.begin();
  return folder.path();
}

TEST_F(RunFolderTest, EachRun_HasAFolderOfItsOwn) {
  for (const char* wanted : {"output/net/run-001", "output/net/run-002", "output/net/run-003"}) {
    EXPECT_EQ(begun({.name = "net"}), wanted);
    EXPECT_TRUE(fs::equivalent("output/net/latest", wanted));
  }
  EXPECT_EQ(begun({.name = "other"}), "output/other/run-001");
  fs::remove_all("output/net/run-002");  // a number is not used twice while a later one is there
  fs::create_directories("output/net/run-1000");
  EXPECT_EQ(begun({.name = "net"}), "output/net/run-1001");
}

TEST_F(RunFolderTest, RunThatDidNotBegin_LeavesNothing) {
  EXPECT_EQ(begun({.name = "net"}), "output/net/run-001");
  { const RunFolder failed({.name = "net"}); }
  EXPECT_FALSE(fs::exists("output/net/run-002"));
  EXPECT_TRUE(fs::equivalent("output/net/latest", "output/net/run-001"));
}

TEST_F(RunFolderTest, RunsAtOnce_HaveTwoFolders) {
  const RunFolder first({.name = "net"}), second({.name = "net"});
  EXPECT_NE(first.path(), second.path());
}

TEST_F(RunFolderTest, Resuming_TakesTheNewestRun) {
  EXPECT_EQ(begun({.name = "net", .resumes = true}), "output/net/run-001");
  EXPECT_EQ(begun({.name = "net"}), "output/net/run-002");
  EXPECT_EQ(begun({.name = "net", .resumes = true}), "output/net/run-002");
}

TEST_F(RunFolderTest, RestartedRun_GoesOnInItsFolder) {
  mark_as_of_run(begun({.name = "net", .run = "a"}), "a");
  EXPECT_EQ(begun({.name = "net", .run = "a", .restarted = true}), "output/net/run-001");
  EXPECT_EQ(begun({.name = "net", .run = "b", .restarted = true}), "output/net/run-002");
}

TEST_F(RunFolderTest, FolderToContinue_IsFoundWithoutCreatingOne) {
  EXPECT_EQ(folder_to_continue({.name = "net", .resumes = true}), "");
  EXPECT_FALSE(fs::exists("output"));
  mark_as_of_run(begun({.name = "net", .run = "a"}), "a");
  begun({.name = "net"});
  EXPECT_EQ(folder_to_continue({.name = "net"}), "");
  EXPECT_EQ(folder_to_continue({.name = "net", .resumes = true}), "output/net/run-002");
  EXPECT_EQ(folder_to_continue({.name = "net", .run = "a", .restarted = true}),
            "output/net/run-001");
  EXPECT_EQ(folder_to_continue({.output = "mine"}), "mine");
  EXPECT_FALSE(fs::exists("mine"));
}

TEST_F(RunFolderTest, RestartedRun_FindsItsFolderBelowANewerRun) {
  mark_as_of_run(begun({.name = "net", .run = "a"}), "a");
  mark_as_of_run(begun({.name = "net", .run = "b"}), "b");
  for (const bool resumes : {false, true}) {
    EXPECT_EQ(begun({.name = "net", .resumes = resumes, .run = "a", .restarted = true}),
              "output/net/run-001");
  }
}

TEST_F(RunFolderTest, FolderOfARunningJob_IsRefused) {
  const RunFolder first({.output = "mine", .name = "net", .run = "a"});
  EXPECT_EQ(first.path(), "mine");
  const Error error = refusal({.output = "mine", .name = "net", .run = "b"});
  EXPECT_THAT(error, IsUsageError("the output folder mine"));
  EXPECT_THAT(error.failure(),
              HasSubstr("another job is using it (process " + std::to_string(::getpid()) + " on "));
  const RunFolder run({.name = "net", .run = "a"});
  EXPECT_THAT(refusal({.name = "net", .resumes = true}),
              IsUsageError("the output folder output/net/run-001"));
}

TEST_F(RunFolderTest, FolderOfAJobThatHasEnded_IsTaken) {
  { const RunFolder first({.output = "mine", .run = "a"}); }
  EXPECT_NO_THROW(RunFolder({.output = "mine", .run = "b"}));
}

TEST_F(RunFolderTest, NamesThatAreNoFolder_AreRefused) {
  for (const char* name : {"", "..", ".", "a/b"}) {
    EXPECT_THAT(refusal({.name = name}), IsUsageError("train.name")) << name;
  }
}

TEST_F(RunFolderTest, WhatCannotBeWritten_IsRefused) {
  { UniqueFd made(::creat("file", 0644)); }
  EXPECT_THAT(refusal({.output = "file"}), AllOf(IsUsageError("the output folder file"),
                                                 Advises("set train.output to a writable folder")));
  EXPECT_THAT(refusal({.output = "file/below"}), IsUsageError("the output folder file/below"));
}

TEST_F(RunFolderTest, SetAside_KeepsWhatIsThere) {
  EXPECT_FALSE(set_aside("metrics.jsonl").has_value());
  for (const char* wanted : {"metrics.jsonl.1", "metrics.jsonl.2"}) {
    write_file_atomically("metrics.jsonl", wanted);
    EXPECT_EQ(set_aside("metrics.jsonl"), wanted);
  }
  EXPECT_EQ(read_file("metrics.jsonl.1"), "metrics.jsonl.1");
}

}  // namespace
}  // namespace fleet
