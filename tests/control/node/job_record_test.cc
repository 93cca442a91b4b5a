#include "node/job_record.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "node/control_socket.h"
#include "node/runtime_folder.h"
#include "tests/errors.h"
#include "transport/event_loop.h"

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
    record.set_job_id("nightly/7");
    record.set_nnodes(2);
    record.set_address("10.0.0.1");
    record.set_rendezvous("10.0.0.1:6768");
    record.set_log_dir("log");
    for (const char* word : {"train.py", "--name", "\xff"}) record.add_command(word);
    return record;
  }
  static Assignment assignment(int ranks) {
    auto world = std::make_shared<World>();
    world->mutable_id()->set_generation(3);
    wire::Node* node = world->add_nodes();
    node->set_address("10.0.0.1");
    for (int rank = 0; rank < ranks; ++rank) add_rank(node, {}, 6070);
    number_ranks(world.get());
    return {world, 0, "10.0.0.1:6768"};
  }
  static wire::SpawnRanks ranks(int count) {
    wire::SpawnRanks spawn;
    for (int rank = 0; rank < count; ++rank) {
      wire::RankCommand& command = *spawn.add_ranks();
      command.set_local_rank(rank);
      command.set_rank(rank);
      command.set_log_path("log/workerlog." + std::to_string(rank));
      if (rank == 0) command.set_shown_streams(wire::RankCommand::STANDARD_OUTPUT);
    }
    return spawn;
  }
  // A launcher that was killed: its files stay.
  void die(const JobRecord& record) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto file = std::make_unique<JobRecordFile>(record);
      ::_exit(file->record().pid() == ::getpid() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
    ASSERT_FALSE(std::filesystem::is_empty(folder + "/run"));
  }
  std::string folder;
};

TEST_F(JobRecords, OwnRecord_IsFoundWhileItLives) {
  EXPECT_THAT(find_jobs(), IsEmpty());
  {
    const JobRecordFile file(sample());
    const std::vector<JobRecord> found = find_jobs();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].job_id(), "nightly/7");
    EXPECT_EQ(found[0].pid(), ::getpid());
    EXPECT_EQ(found[0].generation(), 0);
    EXPECT_EQ(found[0].log_dir(), (std::filesystem::current_path() / "log").string());
    struct stat status;
    ASSERT_EQ(::stat((folder + "/run").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
  }
  EXPECT_THAT(find_jobs(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST_F(JobRecords, Ranks_AreRecordedOnceAllHaveAProcess) {
  JobRecordFile file(sample());
  file.on_assignment(assignment(2), ranks(2));
  file.on_rank_started(1, 11);
  EXPECT_EQ(find_jobs().at(0).generation(), 0);
  file.on_rank_started(0, 10);
  const JobRecord found = find_jobs().at(0);
  EXPECT_EQ(found.generation(), 3);
  ASSERT_THAT(found.ranks(), SizeIs(2));
  EXPECT_EQ(found.ranks(0).pid(), 10);
  EXPECT_EQ(found.ranks(1).pid(), 11);
  EXPECT_EQ(found.ranks(1).log_path(),
            (std::filesystem::current_path() / "log/workerlog.1").string());
}

// systemd-logind removes the session's folder at a logout.
TEST_F(JobRecords, FileThatVanished_IsStillFoundAndWrittenAgain) {
  JobRecordFile file(sample());
  std::filesystem::remove_all(folder + "/run");
  ASSERT_THAT(find_jobs(), SizeIs(1));
  EXPECT_EQ(find_jobs()[0].job_id(), "nightly/7");
  EXPECT_EQ(find_jobs()[0].pid(), ::getpid());
  file.keep();
  EXPECT_FALSE(std::filesystem::is_empty(folder + "/run"));
  EXPECT_THAT(find_jobs(), SizeIs(1));  // once
}

TEST_F(JobRecords, RecordInMemory_IsOfItsRuntimeFolderOnly) {
  const JobRecordFile file(sample());
  ::setenv("FLEET_RUNTIME_DIR", (folder + "/other").c_str(), 1);
  EXPECT_THAT(find_jobs(), IsEmpty());
  ::setenv("FLEET_RUNTIME_DIR", (folder + "/run").c_str(), 1);
}

TEST_F(JobRecords, AnyProcessBelowTheLauncher_NamesTheJob) {
  const JobRecordFile file(sample());
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(running_job_called(std::to_string(child), "stacks").pid(), ::getpid());
  EXPECT_EQ(launcher_of_process(child, {::getpid(), 1}), ::getpid());  // the nearest
  EXPECT_EQ(launcher_of_process(child, {}), -1);
  EXPECT_EQ(launcher_of_process("name", {::getpid()}), -1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(running_job_called("1", "stacks"), Error);
}

// cron, su and a shell after a logout have no session.
TEST(RuntimeFolders, WithAndWithoutASession_AreTheSame) {
  const std::string user = std::to_string(::geteuid());
  const std::string session = "/run/user/" + user;
  ::unsetenv("FLEET_RUNTIME_DIR");
  const auto folders = [] {
    const std::vector<std::string> all = runtime_folders();
    return std::set<std::string>(all.begin(), all.end());
  };
  ::unsetenv("XDG_RUNTIME_DIR");
  const std::set<std::string> without = folders();
  EXPECT_EQ(without, (std::set<std::string>{session + "/fleetrun", "/tmp/fleetrun-" + user}));
  if (std::filesystem::exists(session)) {
    ::setenv("XDG_RUNTIME_DIR", session.c_str(), 1);
    EXPECT_EQ(folders(), without);
    ::unsetenv("XDG_RUNTIME_DIR");
  }
  ::setenv("FLEET_RUNTIME_DIR", "/only/this", 1);
  EXPECT_EQ(runtime_folders(), std::vector<std::string>{"/only/this"});
  ::unsetenv("FLEET_RUNTIME_DIR");
}

TEST_F(JobRecords, KilledLauncher_IsAnEndedJob) {
  die(sample());
  EXPECT_THAT(find_jobs(), IsEmpty());
  const std::vector<JobInfo> ended = find_ended_jobs();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].record().job_id(), "nightly/7");
  EXPECT_TRUE(ended[0].killed());
  EXPECT_EQ(ended[0].code(), 128 + SIGKILL);
}

TEST_F(JobRecords, KilledLauncherThatHasWrittenItsVerdict_HasThat) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = std::make_unique<JobRecordFile>(sample());
    wire::JobVerdict outcome;
    outcome.mutable_verdict()->set_kind(Verdict::RANK_FAILED);
    outcome.mutable_verdict()->mutable_exit()->set_code(5);
    file->on_verdict(outcome);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  find_jobs();
  EXPECT_EQ(find_ended_jobs().at(0).code(), 5);
  EXPECT_FALSE(find_ended_jobs().at(0).killed());
}

TEST_F(JobRecords, PartOfAnother_IsLeftToWhoStartedIt) {
  JobRecord record = sample();
  record.set_part(true);
  die(record);
  EXPECT_THAT(find_jobs(), IsEmpty());
  EXPECT_THAT(find_ended_jobs(), IsEmpty());
  EXPECT_FALSE(std::filesystem::is_empty(folder + "/run"));  // its fleetd reads it
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/run")) {
    std::filesystem::last_write_time(
        entry, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
  }
  find_jobs();
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST_F(JobRecords, EndOfAJob_IsKept) {
  std::filesystem::create_directory(folder + "/log");
  const std::string log = folder + "/log/workerlog.0";
  std::ofstream(log) << "of an earlier run\n";
  JobRecordFile file(sample());
  auto commands = ranks(1);
  commands.mutable_ranks(0)->set_log_path(log);
  file.on_assignment(assignment(1), commands);
  file.on_rank_started(0, 10);
  std::ofstream(log, std::ios::app) << "of this\n";
  JobInfo how;
  how.set_code(3);
  wire::JobVerdict outcome;
  outcome.set_text("rank 0 failed");
  file.on_verdict(outcome);
  file.end(how);
  EXPECT_THAT(find_jobs(), IsEmpty());
  const JobInfo ended = find_ended_jobs().at(0);
  EXPECT_EQ(ended.record().job_id(), "nightly/7");
  EXPECT_EQ(ended.code(), 3);
  EXPECT_EQ(ended.record().verdict().text(), "rank 0 failed");
  const JobRecord::Rank& rank = ended.record().ranks(0);
  EXPECT_TRUE(rank.shown());
  EXPECT_EQ(rank.log_begin().at(), 18);
  EXPECT_EQ(rank.log_end().file(), rank.log_begin().file());
  EXPECT_EQ(rank.log_end().at(), 26);
}

TEST_F(JobRecords, EndThatIsKnown_IsNotOverwritten) {
  const pid_t child = ::fork();
  if (child == 0) {  // killed just after it had kept how the job ended
    const auto file = std::make_unique<JobRecordFile>(sample());
    JobInfo ended;
    *ended.mutable_record() = file->record();
    ended.set_code(3);
    save_ended_job(ended);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_THAT(find_jobs(), IsEmpty());
  EXPECT_EQ(find_ended_jobs().at(0).code(), 3);
}

TEST_F(JobRecords, EndedJobs_AreBoundedInNumberSizeAndAge) {
  for (int i = 0; i < 5; ++i) {
    JobRecord record = sample();
    record.set_job_id("job" + std::to_string(i));
    record.set_started(i);
    JobInfo ended;
    *ended.mutable_record() = record;
    save_ended_job(ended);
    // The file system's clock may be coarse.
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/run")) {
      if (entry.path().filename().string().starts_with(record.job_id())) {
        std::filesystem::last_write_time(
            entry, std::filesystem::file_time_type::clock::now() - std::chrono::hours(10 - i));
      }
    }
  }
  const auto left = [] {
    std::string all;
    for (const JobInfo& job : find_ended_jobs()) all += job.record().job_id().back();
    return all;
  };
  clean_runtime_folder();
  EXPECT_EQ(left(), "01234");
  clean_runtime_folder({.jobs = 4});
  EXPECT_EQ(left(), "1234");
  clean_runtime_folder({.seconds = 8.5 * 3600});
  EXPECT_EQ(left(), "234");
  clean_runtime_folder({.bytes = 100});
  EXPECT_EQ(left(), "4");
}

TEST_F(JobRecords, Tidying_RemovesWhatTheDeadHaveLeft) {
  die(sample());
  const std::string run = folder + "/run";
  const auto make_socket = [&](const std::string& name, bool listens) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", run.c_str(), name.c_str());
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (listens) ::listen(socket, 1);
    return UniqueFd(socket);
  };
  // No process has these numbers.
  make_socket("fleetrun.2147480001.sock", false);
  const UniqueFd other_container = make_socket("fleetrun.2147480002.sock", true);
  const UniqueFd ours = make_socket("fleetrun." + std::to_string(::getpid()) + ".sock", false);
  std::ofstream(run + "/x.job.part.1.2") << "{";
  std::ofstream(run + "/y.verdict") << "{}";
  std::ofstream(run + "/notes.txt") << "not ours";
  std::ofstream(run + "/old.2147480004.json") << "{}";  // of fleetrun 0.1
  JobRecord elsewhere = sample();
  elsewhere.set_pid(7);
  elsewhere.set_pid_namespace("another");
  std::ofstream(run + "/night.2147480003.job") << elsewhere.SerializeAsString();
  make_socket("fleetrun.2147480003.sock", false);
  clean_runtime_folder();
  EXPECT_FALSE(std::filesystem::exists(run + "/fleetrun.2147480001.sock"));
  EXPECT_TRUE(std::filesystem::exists(run + "/x.job.part.1.2"));  // it may be in use
  EXPECT_THAT(find_ended_jobs(), SizeIs(1));
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    const timespec old[] = {{1, 0}, {1, 0}};
    ::utimensat(AT_FDCWD, entry.path().c_str(), old, AT_SYMLINK_NOFOLLOW);
  }
  clean_runtime_folder();
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"fleetrun.2147480002.sock", "fleetrun.2147480003.sock",
                                         "fleetrun." + std::to_string(::getpid()) + ".sock",
                                         "night.2147480003.job", "notes.txt"}));
}

TEST_F(JobRecords, LongAndStrangeNames_AreFilesOfTheFolder) {
  JobRecord record = sample();
  for (const std::string& id : {std::string("../../x"), std::string(5000, 'x'),
                                std::string("\xff\x01 \n"), std::string("."), std::string("-rf")}) {
    record.set_job_id(id);
    const JobRecordFile file(record);
    EXPECT_THAT(find_jobs(), SizeIs(1)) << id;
  }
  EXPECT_NE(job_record_name(std::string(200, 'x'), 1), job_record_name(std::string(201, 'x'), 1));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(JobRecords, OtherFiles_AreLeftAlone) {
  const JobRecordFile file(sample());
  std::ofstream(folder + "/run/notes.job") << "[1, 2";
  std::ofstream(folder + "/run/empty.job") << "";
  EXPECT_THAT(find_jobs(), SizeIs(1));
  EXPECT_TRUE(std::filesystem::exists(folder + "/run/notes.job"));
}

TEST_F(JobRecords, FolderThatOthersMayWrite_IsRefused) {
  std::filesystem::create_directory(folder + "/run");
  ::chmod((folder + "/run").c_str(), 0777);
  EXPECT_THROW(find_jobs(), Error);
  EXPECT_THROW(find_ended_jobs(), Error);
  EXPECT_THROW(clean_runtime_folder(), Error);
  JobRecordFile file(sample());  // the job itself continues
  file.end({});
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
}

TEST_F(JobRecords, FolderBehindALink_IsRefused) {
  std::filesystem::create_directory(folder + "/elsewhere");
  std::filesystem::create_directory_symlink("elsewhere", folder + "/run");
  EXPECT_THROW(make_runtime_folder(), Error);
  const JobRecordFile file(sample());
  EventLoop loop;
  const ControlSocket socket(loop, [](const wire::ControlRequest&, const ControlSocket::Reply&) {});
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/elsewhere"));
}

TEST_F(JobRecords, StrangersFolder_IsRefusedAndNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make folders of another user";
  std::filesystem::create_directory(folder + "/run");
  ASSERT_EQ(::chown((folder + "/run").c_str(), 65533, 65533), 0);
  try {
    find_jobs();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), folder + "/run");
  }
  const JobRecordFile file(sample());
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/run"));
  // Nor is another user's session used.
  ::unsetenv("FLEET_RUNTIME_DIR");
  ::setenv("XDG_RUNTIME_DIR", (folder + "/run").c_str(), 1);
  EXPECT_EQ(runtime_folder(), "/tmp/fleetrun-0");
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST(JobRecord, AsJson_HasItsRanks) {
  JobRecord record = JobRecords::sample();
  record.set_command(2, "plain");
  JobRecord::Rank* rank = record.add_ranks();
  rank->set_rank(4);
  rank->set_pid(123);
  rank->set_log_path("/log/workerlog.0");
  rank->set_error_log("/log/workerlog.0.err");
  rank->set_shown(true);
  rank->mutable_log_begin()->set_file(1);
  rank->mutable_log_begin()->set_at(2);
  record.add_ranks()->set_server(true);
  const auto ranks = nlohmann::json::parse(job_record_json(record).dump())["ranks"];
  EXPECT_EQ(ranks[0]["rank"], 4);
  EXPECT_EQ(ranks[0]["log_begin"], (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(ranks[0]["error_log"], "/log/workerlog.0.err");
  EXPECT_EQ(ranks[1]["server"], true);
}

TEST_F(JobRecords, JobThatHasEnded_IsNamedAsSuch) {
  JobInfo ended;
  *ended.mutable_record() = sample();
  ended.set_code(3);
  save_ended_job(ended);
  EXPECT_THAT(thrown_by([] { running_job_called("nightly/7", "stacks"); }),
              IsError(ErrorCode::kNotFound, "stacks"));
  EXPECT_EQ(thrown_by([] { running_job_called("nightly/7", "stacks"); }).failure(),
            "the job 'nightly/7' has ended");
  EXPECT_THAT(thrown_by([] { running_job_called("other", "stacks"); }).failure(),
              ::testing::HasSubstr("no job called 'other'"));
}

}  // namespace
}  // namespace fleet
