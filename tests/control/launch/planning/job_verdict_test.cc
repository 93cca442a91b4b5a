#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "launch/planning/program.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(JobVerdict, OfAValidFile_IsOk) {
  EXPECT_TRUE(parse_job_verdict("{\"ok\":true}\n")->ok);
  // Other output may precede it, and a later version may say more.
  EXPECT_TRUE(parse_job_verdict("usage: ...\n{\"ok\":true,\"new\":[1]}\n")->ok);
}

TEST(JobVerdict, OfAWrongFile_HasCodeAndMessage) {
  const auto verdict = parse_job_verdict(
      "{\"ok\":false,\"code\":\"usage\",\"exit_code\":2,\"message\":\"a.json: wrong\"}");
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->ok);
  EXPECT_EQ(verdict->code, "usage");
  EXPECT_EQ(verdict->exit_code, 2);
  EXPECT_EQ(verdict->message, "a.json: wrong");
}

TEST(JobVerdict, Unusable_IsNone) {
  for (const char* output :
       {"", "no answer", "[]", "{}", "{\"ok\":1}", "{\"ok\":false}", "{\"ok\":true}\nmore",
        "{\"ok\":false,\"exit_code\":2}", "{\"ok\":false,\"message\":\"x\"}",
        "{\"ok\":false,\"exit_code\":\"2\",\"message\":\"x\"}"}) {
    EXPECT_FALSE(parse_job_verdict(output)) << output;
  }
}

class CheckJobFile : public ::testing::Test {
 protected:
  CheckJobFile() {
    std::string pattern = ::testing::TempDir() + "job_verdict.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CheckJobFile() override { std::filesystem::remove_all(folder_); }
  // The message of the error with a worker that is this script; "": none. `warning`: what was
  // written to standard error.
  std::string check(const std::string& script, std::string* warning = nullptr,
                    const PlannedRanks& ranks = {}) {
    const std::string worker = folder_ + "/fleet-worker";
    std::ofstream(worker) << "#!/bin/sh\n" << script << "\n";
    ::chmod(worker.c_str(), 0755);
    std::string message;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    try {
      check_job_file({worker, "job.json", "--set", "a=1"}, ranks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      message = error.what();
    }
    const std::string written =
        ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    if (warning) *warning = written;
    return message;
  }
  std::string folder_;
};

TEST_F(CheckJobFile, Worker_IsAskedWithItsOwnArguments) {
  EXPECT_EQ(check("[ \"$*\" = 'job.json --set a=1 --check --format=json' ] && "
                  "echo '{\"ok\":true}'"),
            "");
}

// The Program of a rank depends on them. The launcher may run inside a rank of another job.
TEST_F(CheckJobFile, Ranks_ReachTheWorker) {
  ::setenv("PADDLE_TRAINERS_NUM", "7", 1);
  ::setenv("PADDLE_TRAINER_ID", "5", 1);
  std::string warning;
  EXPECT_EQ(
      check("[ \"$PADDLE_TRAINER_ID/$PADDLE_TRAINERS_NUM/$PADDLE_LOCAL_SIZE/$PADDLE_NNODES/"
            "$FLAGS_selected_gpus\" = 0/8/4/2/2,3 ] && echo '{\"ok\":true}'",
            &warning, {.world_size = 8, .local_world_size = 4, .nnodes = 2, .devices = {2, 3}}),
      "");
  EXPECT_EQ(warning, "");
  ::unsetenv("PADDLE_TRAINERS_NUM");
  ::unsetenv("PADDLE_TRAINER_ID");
}

TEST_F(CheckJobFile, Servers_ReachTheWorker) {
  ::setenv("PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1", 1);  // of another job
  std::string warning;
  const std::string asked = "[ \"$*/$PADDLE_PSERVERS_IP_PORT_LIST\" = 'job.json --set a=1 --check ";
  EXPECT_EQ(check(asked + "--format=json --servers=2/' ] && echo '{\"ok\":true}'", &warning,
                  {.world_size = 4, .servers = 2}),
            "");
  EXPECT_EQ(warning, "");
  EXPECT_EQ(check(asked + "--format=json/' ] && echo '{\"ok\":true}'", &warning), "");
  EXPECT_EQ(warning, "");
  ::unsetenv("PADDLE_PSERVERS_IP_PORT_LIST");
}

// Other nodes may bring more or fewer ranks than this one assumes.
TEST_F(CheckJobFile, JobThatIsWrongForAssumedRanksOnly_IsNotRefused) {
  const std::string wrong =
      "echo '{\"ok\":false,\"code\":\"usage\",\"exit_code\":2,\"message\":\"stages\"}'; exit 2";
  const std::string alone =
      "if [ $PADDLE_TRAINERS_NUM = 1 ]; then echo '{\"ok\":true}'; else " + wrong + "; fi";
  EXPECT_EQ(check(alone, nullptr, {.world_size = 4, .nnodes = 2, .exact = false}), "");
  EXPECT_EQ(check(alone, nullptr, {.world_size = 4, .local_world_size = 4}), "stages");
  EXPECT_EQ(check(wrong, nullptr, {.world_size = 4, .nnodes = 2, .exact = false}), "stages");
}

TEST_F(CheckJobFile, WrongInput_IsTheWorkersMessage) {
  EXPECT_EQ(check("echo a note >&2; echo '{\"ok\":false,\"code\":\"usage\",\"exit_code\":2,"
                  "\"message\":\"job.json: wrong\"}'; exit 2"),
            "job.json: wrong");
}

TEST_F(CheckJobFile, OptionOfFleetrunAfterTheJobFile_BelongsBeforeIt) {
  for (const auto& [word, ours] : {std::pair("--nproc-per-node=2", true), {"--nonsense", false}}) {
    const std::string message = check(
        "echo \"{\\\"ok\\\":false,\\\"code\\\":\\\"usage\\\",\\\"exit_code\\\":2,"
        "\\\"message\\\":\\\"unknown option '" +
        std::string(word) + "'; known: --set\\\"}\"; exit 2");
    EXPECT_EQ(message.ends_with("is an option of fleetrun: write it before the job file"), ours)
        << message;
  }
}

// The ranks report it themselves.
TEST_F(CheckJobFile, AnotherError_DoesNotKeepTheJobFromStarting) {
  EXPECT_EQ(
      check("echo '{\"ok\":false,\"code\":\"io\",\"exit_code\":1,\"message\":\"x\"}'; exit 1"), "");
}

TEST_F(CheckJobFile, UnusableAnswer_IsOneLineAndTheJobStarts) {
  std::string warning;
  EXPECT_EQ(check("echo \"fleet-worker: unknown option '--check'\" >&2; exit 2", &warning), "");
  EXPECT_THAT(warning, ::testing::AllOf(HasSubstr("no usable verdict"),
                                        HasSubstr("exit code 2: fleet-worker: unknown option")));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
}

TEST_F(CheckJobFile, MuchOutput_IsReadToItsEnd) {
  EXPECT_EQ(check("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; "
                  "echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; "
                  "echo '{\"ok\":true}'"),
            "");
}

}  // namespace
}  // namespace fleet
