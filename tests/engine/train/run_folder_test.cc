#include "train/run_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "tests/errors.h"
#include "train/checkpoint.h"

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

// A checkpoint with the files that every checkpoint has.
void save(const std::string& run, int64_t step = 4) {
  const std::string folder = folder_of_step(run + "/checkpoints", step);
  make_directories(folder);
  for (const char* name : {"/model.safetensors", "/optimizer.safetensors"}) {
    TensorFile file;
    file.tensors["bias"] = {DType::kFloat32, {8}, TensorBytes(32)};
    write_safetensors(folder + name, file);
  }
  write_file_atomically(folder + "/state.json",
                        R"({"version": 1, "step": 4, "epoch": 0, "batch": 0, "seed": 1,
                            "global_batch": 1, "model": "lenet"})");
}

TEST_F(RunFolderTest, Resuming_TakesTheNewestRunWithACompleteCheckpoint) {
  const RunFolderOptions resumes{.name = "net", .resumes = true};
  EXPECT_THAT(continued_folder(resumes).note(), HasSubstr("no checkpoint yet"));
  EXPECT_FALSE(continued_folder(resumes).forgets_runs());
  for (int run = 0; run < 5; ++run) begun({.name = "net"});
  EXPECT_TRUE(continued_folder(resumes).forgets_runs());
  EXPECT_THAT(continued_folder(resumes).note(),
              AllOf(HasSubstr("output/net/run-005, "), HasSubstr("run-003 and 2 more have no")));
  save("output/net/run-001");
  save("output/net/run-002");
  save("output/net/run-003");
  fs::resize_file("output/net/run-003/checkpoints/step_00000004/optimizer.safetensors", 100);
  fs::create_directories("output/net/run-004/checkpoints/step_00000009.part");
  const ContinuedFolder found = continued_folder(resumes);
  EXPECT_EQ(found.path, "output/net/run-002");
  EXPECT_FALSE(found.forgets_runs());
  EXPECT_THAT(found.note(), HasSubstr("run-003 have no complete checkpoint: continuing "));
  EXPECT_EQ(begun(resumes), "output/net/run-002");
  EXPECT_TRUE(fs::equivalent("output/net/latest", "output/net/run-002"));
  save("output/net/run-005");
  EXPECT_EQ(continued_folder(resumes).note(), "");
}

// Training must not start anew where the user has something to repair.
TEST_F(RunFolderTest, Resuming_DamagedCheckpointsAlone_TakesTheirRun) {
  for (int run = 0; run < 3; ++run) begun({.name = "net"});
  save("output/net/run-002");
  fs::remove("output/net/run-002/checkpoints/step_00000004/state.json");
  EXPECT_EQ(folder_to_continue({.name = "net", .resumes = true}), "output/net/run-002");
}

TEST_F(RunFolderTest, GivenFolderWithARunButNoCheckpoint_IsNamed) {
  const RunFolderOptions resumes{.output = "mine", .resumes = true};
  EXPECT_FALSE(continued_folder(resumes).forgets_runs());
  make_directories("mine");
  write_file_atomically("mine/metrics.jsonl", "");
  EXPECT_TRUE(continued_folder(resumes).forgets_runs());
  EXPECT_THAT(continued_folder(resumes).note(), HasSubstr("mine has no complete checkpoint"));
  mark_as_of_run("mine", "a");
  EXPECT_FALSE(continued_folder({.output = "mine", .resumes = true, .run = "a", .restarted = true})
                   .forgets_runs());
  save("mine");
  EXPECT_EQ(continued_folder(resumes).note(), "");
}

// TensorBoard reads what is below a link as another run.
TEST_F(RunFolderTest, TensorboardsFiles_AreNotBelowTheLink) {
  const std::string run = begun({.name = "net"});
  EXPECT_EQ(tensorboard_folder(run), "output/net/tensorboard/run-001");
  EXPECT_EQ(tensorboard_folder(run + "/"), "output/net/tensorboard/run-001");
  EXPECT_EQ(tensorboard_folder("mine"), "mine/tensorboard");
  EXPECT_EQ(tensorboard_folder("run-001"), "run-001/tensorboard");
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
