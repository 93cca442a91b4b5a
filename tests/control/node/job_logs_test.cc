#include "node/job_logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "transport/event_loop.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ranks are played by pipes; nothing is waited for.
struct JobLogsTest : ::testing::Test {
  JobLogsTest() {
    std::string pattern = ::testing::TempDir() + "fleet_logs.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    for (int rank = 0; rank < 2; ++rank) {
      wire::RankCommand* command = spawn.add_ranks();
      command->set_rank(rank);
      command->set_log_path(path(rank));
    }
  }
  ~JobLogsTest() override { std::filesystem::remove_all(folder); }
  std::string path(int rank) const { return folder + "/workerlog." + std::to_string(rank); }
  // Feeds the complete output of a rank.
  RankLog* play(JobLogs* logs, int rank, const std::string& output) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    RankOutput pipes{UniqueFd(ends[0]), {}};
    const UniqueFd writing(ends[1]);
    RankLog* log = logs->open(spawn.ranks(rank), std::move(pipes));
    EXPECT_EQ(::write(writing.get(), output.data(), output.size()),
              static_cast<ssize_t>(output.size()));
    log->drain();
    tail = last_lines(log->shown(), 20);
    bytes = log->bytes();
    return log;
  }
  void run(std::vector<std::string> generations) {
    JobLogs logs(loop);
    for (const std::string& output : generations) {
      logs.begin(spawn);
      play(&logs, 0, output);
    }
    logs.finish([] {});
  }
  std::vector<std::string> kept(int rank) const {
    std::vector<std::string> all;
    for (const LogPiece& piece : find_log_pieces(path(rank))) all.push_back(read_file(piece.path));
    all.push_back(read_file(path(rank)));
    return all;
  }

  EventLoop loop;
  std::string folder, tail;
  int64_t bytes = 0;
  wire::SpawnRanks spawn;
};

TEST_F(JobLogsTest, Restart_SetsTheLogAside) {
  run({"first\n", "second, which crashed", "third\n"});
  EXPECT_THAT(kept(0), ElementsAre("first\n", "second, which crashed", "third\n"));
  EXPECT_EQ(read_file(path(0) + ".1"), "first\n");
  EXPECT_FALSE(std::filesystem::exists(path(1)));
}

TEST_F(JobLogsTest, NextRun_IsAppendedAndItsRestartsNumberedOn) {
  run({"a\n", "b\n"});
  run({"c\n", "d\n"});
  EXPECT_THAT(kept(0), ElementsAre("a\n", "b\nc\n", "d\n"));
}

TEST_F(JobLogsTest, Overwrite_RemovesWhatEarlierRunsLeft) {
  run({"a\n", "b\n"});
  spawn.mutable_logs()->set_overwrite(true);
  run({"c\n", "d\n"});
  EXPECT_THAT(kept(0), ElementsAre("c\n", "d\n"));
}

TEST_F(JobLogsTest, OldPieces_CountForTheBound) {
  run({std::string(600, 'a') + "\n", std::string(600, 'b') + "\n", "c\n"});
  spawn.mutable_logs()->set_total_size(1000);
  spawn.mutable_logs()->set_max_size(400);
  run({std::string(300, 'd') + "\n"});
  EXPECT_THAT(kept(0),
              ElementsAre(std::string(600, 'b') + "\n", "c\n" + std::string(300, 'd') + "\n"));
}

// torchrun's logs: each start has a folder of its own.
TEST_F(JobLogsTest, LogsOfEarlierStarts_CountForTheBound) {
  spawn.mutable_logs()->set_total_size(1000);
  spawn.mutable_logs()->set_max_size(400);
  JobLogs logs(loop);
  std::vector<std::string> paths;
  for (int start = 0; start < 5; ++start) {
    paths.push_back(folder + "/attempt_" + std::to_string(start));
    spawn.mutable_ranks(0)->set_log_path(paths.back());
    logs.begin(spawn);
    play(&logs, 0, std::string(300, 'a') + "\n");
  }
  logs.finish([] {});
  std::vector<bool> there;
  for (const std::string& path : paths) there.push_back(std::filesystem::exists(path));
  EXPECT_THAT(there, ElementsAre(false, false, true, true, true));
}

TEST_F(JobLogsTest, Tail_IsRightAcrossRotationAndWithoutStamps) {
  spawn.mutable_logs()->set_max_size(10);
  spawn.mutable_logs()->set_stamp_files(true);
  run({"one\ntwo\nthree\nfour\nlast without an end"});
  EXPECT_EQ(tail, "one\ntwo\nthree\nfour\nlast without an end");
  EXPECT_GE(kept(0).size(), 5u);
  EXPECT_THAT(kept(0).front(), HasSubstr(" one\n"));
  EXPECT_EQ(bytes, 38);
}

TEST_F(JobLogsTest, FolderThatComesBack_IsWrittenAgain) {
  LogFolder logs(spawn.logs(), {path(0)});
  const std::string away = folder + "/away";
  LogFile file(&logs, away + "/workerlog.0", LogFile::Start::kFirst);
  file.write("lost\n");
  std::filesystem::create_directory(away);
  file.write("kept\n");
  EXPECT_EQ(read_file(away + "/workerlog.0"), "kept\n");
}

TEST_F(JobLogsTest, ReportsOfSteps_AreFoundAndPassUnchanged) {
  const std::string output = "1%\r2%\r{\"fleetrun\": {\"step\": 1}}\nother\n";
  for (const bool stamped : {false, true}) {
    spawn.mutable_logs()->set_stamp_files(stamped);
    JobLogs logs(loop);
    logs.begin(spawn);
    RankLog* log = play(&logs, stamped ? 1 : 0, output);
    const std::vector<StepText> found = log->take_step_reports();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].text, "{\"fleetrun\": {\"step\": 1}}");
    EXPECT_GT(found[0].at_ns, 0);
    logs.finish([] {});
  }
  EXPECT_EQ(read_file(path(0)), output);
  EXPECT_THAT(read_file(path(1)), HasSubstr("{\"fleetrun\": {\"step\": 1}}\n"));
}

// Standard error is apart: a quotation of a report in it is none.
TEST_F(JobLogsTest, StandardErrorApart_IsNotSearched) {
  spawn.mutable_ranks(0)->set_splits_streams(true);
  spawn.mutable_ranks(0)->set_error_log_path(path(0) + ".err");
  JobLogs logs(loop);
  logs.begin(spawn);
  int output[2], error[2];
  ASSERT_EQ(::pipe2(output, O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_EQ(::pipe2(error, O_CLOEXEC | O_NONBLOCK), 0);
  RankLog* log = logs.open(spawn.ranks(0), RankOutput{UniqueFd(output[0]), UniqueFd(error[0])});
  const UniqueFd writing(output[1]), writing_errors(error[1]);
  const std::string report = "{\"fleetrun\": {\"step\": 1}}\n";
  ASSERT_EQ(::write(writing_errors.get(), report.data(), report.size()),
            static_cast<ssize_t>(report.size()));
  log->drain();
  EXPECT_THAT(log->take_step_reports(), IsEmpty());
  logs.finish([] {});
}

TEST(ConsoleTest, SlowTerminal_DropsWholeLinesAndSaysSo) {
  EventLoop loop;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  Console console(loop, writing.get());
  console.drop_when_full(true);
  console.set_log_hint("log/workerlog.0");
  const std::string line = "a line of some length\n";
  std::string block;
  for (int i = 0; i < 1000; ++i) block += line;
  for (int i = 0; i < 1000; ++i) {
    console.write(block.substr(0, 10'007));  // ends within a line
    console.write(block.substr(10'007));
    EXPECT_FALSE(console.full());
  }
  EXPECT_LT(console.waiting(), 4u << 20);
  std::string shown;
  char buffer[65536];
  const int flags = ::fcntl(reading.get(), F_GETFL);
  ASSERT_EQ(::fcntl(reading.get(), F_SETFL, flags | O_NONBLOCK), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!console.idle()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    for (ssize_t n; (n = ::read(reading.get(), buffer, sizeof buffer)) > 0;)
      shown.append(buffer, static_cast<size_t>(n));
    loop.run_one();
  }
  for (ssize_t n; (n = ::read(reading.get(), buffer, sizeof buffer)) > 0;)
    shown.append(buffer, static_cast<size_t>(n));
  const size_t notice = shown.find("[fleetrun] ");
  ASSERT_NE(notice, std::string::npos);
  EXPECT_EQ(shown[notice - 1], '\n');
  EXPECT_EQ(notice % line.size(), 0u);  // whole lines before it
  const long lines = std::stol(shown.substr(notice + 11));
  EXPECT_EQ(static_cast<size_t>(lines) + notice / line.size(), 1'000'000u);
  EXPECT_THAT(shown, HasSubstr("log/workerlog.0"));
}

}  // namespace
}  // namespace fleet
