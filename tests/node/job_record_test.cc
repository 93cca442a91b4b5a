#include "node/job_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct JobRecords : ::testing::Test {
  JobRecords() {
    std::string pattern = ::testing::TempDir() + "fleet_records.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv("FLEET_RUNTIME_DIR", (folder + "/run").c_str(), 1);
  }
  ~JobRecords() override {
    ::unsetenv("FLEET_RUNTIME_DIR");
    std::filesystem::remove_all(folder);
  }
  static JobRecord sample() {
    JobRecord record;
    record.job_id = "nightly/7";
    record.nnodes = 2;
    record.address = "10.0.0.1";
    record.rendezvous = "10.0.0.1:6768";
    record.log_dir = "log";
    record.command = {"train.py", "--name", "\xff"};
    return record;
  }
  static Assignment assignment(int ranks) {
    auto world = std::make_shared<World>();
    world->epoch = 3;
    world->world_size = ranks;
    NodePlacement node;
    node.address = "10.0.0.1";
    node.devices.resize(static_cast<size_t>(ranks));
    node.ports.assign(static_cast<size_t>(ranks), 6070);
    world->nodes = {node};
    return {world, 0, "10.0.0.1:6768"};
  }
  std::string folder;
};

TEST_F(JobRecords, OwnRecord_IsFoundWhileItLives) {
  EXPECT_THAT(find_jobs(), IsEmpty());
  {
    const JobRecordFile file(sample());
    const std::vector<JobRecord> found = find_jobs();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].job_id, "nightly/7");
    EXPECT_EQ(found[0].pid, ::getpid());
    EXPECT_EQ(found[0].epoch, 0);
    EXPECT_EQ(found[0].log_dir, (std::filesystem::current_path() / "log").string());
    struct stat status;
    ASSERT_EQ(::stat((folder + "/run").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
  }
  EXPECT_THAT(find_jobs(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST_F(JobRecords, Ranks_AreToldOnceAllHaveAProcess) {
  JobRecordFile file(sample());
  file.on_assignment(assignment(2), {"log/workerlog.0", "log/workerlog.1"});
  file.on_rank_started(1, 11);
  EXPECT_EQ(find_jobs().at(0).epoch, 0);
  file.on_rank_started(0, 10);
  const JobRecord found = find_jobs().at(0);
  EXPECT_EQ(found.epoch, 3);
  ASSERT_THAT(found.ranks, SizeIs(2));
  EXPECT_EQ(found.ranks[0].pid, 10);
  EXPECT_EQ(found.ranks[1].pid, 11);
  EXPECT_EQ(found.ranks[1].log_path,
            (std::filesystem::current_path() / "log/workerlog.1").string());
}

TEST_F(JobRecords, RecordOfAKilledLauncher_IsSwept) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = std::make_unique<JobRecordFile>(sample());
    ::_exit(file->record().pid == ::getpid() ? 0 : 1);  // without its destructor, as when killed
  }
  ASSERT_THAT(std::filesystem::exists(folder), true);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_FALSE(std::filesystem::is_empty(folder + "/run"));
  EXPECT_THAT(find_jobs(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST_F(JobRecords, OtherFiles_AreLeftAlone) {
  const JobRecordFile file(sample());
  std::ofstream(folder + "/run/notes.json") << "[1, 2";
  EXPECT_THAT(find_jobs(), SizeIs(1));
  EXPECT_TRUE(std::filesystem::exists(folder + "/run/notes.json"));
}

TEST_F(JobRecords, FolderThatOthersMayWrite_IsRefused) {
  std::filesystem::create_directory(folder + "/run");
  ::chmod((folder + "/run").c_str(), 0777);
  EXPECT_THROW(find_jobs(), Error);
  const JobRecordFile file(sample());  // the job itself goes on
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST(JobRecord, Text_ComesBackTheSame) {
  JobRecord record = JobRecords::sample();
  record.command.back() = "plain";
  record.ranks = {{0, 4, false, 123, "/log/workerlog.0"}, {1, 0, true, 124, "/log/serverlog.0"}};
  EXPECT_EQ(read_job_record(job_record_json(record)), record);
  EXPECT_THROW(read_job_record("{\"job_id\": 3}"), Error);
  EXPECT_THROW(read_job_record("nonsense"), Error);
}

}  // namespace
}  // namespace fleet
