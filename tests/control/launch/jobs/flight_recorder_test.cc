// A job of PyTorch hangs: its flight recorder says in which collective. The ranks are shells that
// make the pipe and write the dump as PyTorch does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "tests/control/flight_pickle.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using pickled::dump_at;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// PyTorch reads whatever is in the pipe, then writes the dump and goes on.
const std::string kAnswers =
    "mkfifo pipe.$RANK.pipe && exec 3<>pipe.$RANK.pipe && : >ready.$RANK && "
    "while :; do head -c1 <&3 >/dev/null; cat given.$RANK >dump.$RANK; done";
const std::string kWaits = ": >ready.$RANK; exec sleep 600";

struct FlightRecorder : ::testing::Test {
  // The dumps and programs of the ranks. The environment is that of a script in the job, as in
  // many jobs: that of fleetrun has nothing of PyTorch.
  void start(const std::vector<std::string>& dumps, const std::vector<std::string>& programs,
             const std::string& option = "--hang_timeout=2") {
    std::string script =
        "export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DEBUG_INFO_PIPE_FILE=pipe. "
        "TORCH_FR_DUMP_TEMP_FILE=$PWD/dump.; echo $$ >pid.$RANK; ";
    for (size_t rank = 0; rank < dumps.size(); ++rank) {
      write_file_atomically(job.path() + "/given." + std::to_string(rank), dumps[rank]);
      write_file_atomically(job.path() + "/program." + std::to_string(rank), programs[rank]);
    }
    fleetrun = std::make_unique<Fleetrun>(
        job, "run",
        std::vector<std::string>{"--nproc_per_node=" + std::to_string(dumps.size()), option,
                                 "--job_id=flight", "sh", "-c", script + "sh program.$RANK; :"});
    for (size_t rank = 0; rank < dumps.size(); ++rank) {
      job.wait_for("ready." + std::to_string(rank));
    }
  }
  std::string copy_of(int rank) const {
    return job.read("log/flight_recorder_" + std::to_string(rank));
  }
  JobFolder job;
  std::unique_ptr<Fleetrun> fleetrun;
};

const std::string kRanks = "[0, 1, 2]";
const std::string kLine =
    "rank 1 has not entered all_reduce #812 (train.py:44, 25 MiB) of group default_pg; 2 wait in "
    "it";

TEST_F(FlightRecorder, RankHasNotEnteredACollective_IsNamedAndTheDumpsAreKept) {
  const std::vector<std::string> dumps = {dump_at(kRanks, 830, 811, 800),
                                          dump_at(kRanks, 811, 811, 800),
                                          dump_at(kRanks, 815, 811, 800)};
  start(dumps, {kAnswers, kAnswers, kAnswers});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("\n  " + kLine + "\n"));
  const auto verdict = verdict_in(job);
  ASSERT_EQ(verdict["waits"].size(), 1u) << verdict.dump();
  const auto wait = verdict["waits"][0];
  EXPECT_EQ(wait["text"], kLine);
  EXPECT_EQ(wait["kind"], "missing");
  EXPECT_EQ(wait["group"], "default_pg");
  EXPECT_EQ(wait["operation"], "all_reduce");
  EXPECT_EQ(wait["sequence"], 812);
  EXPECT_EQ(wait["for"], "train.py:44");
  EXPECT_EQ(wait["bytes"], 25 << 20);
  EXPECT_EQ(wait["missing"], nlohmann::json({1}));
  EXPECT_EQ(wait["waiting"], nlohmann::json({0, 2}));
  EXPECT_EQ(verdict["rank"]["rank"], 1);
  ASSERT_EQ(verdict["notes"].size(), 1u);
  EXPECT_THAT(verdict["notes"][0], HasSubstr("/log/flight_recorder_N, ranks 0-2"));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(copy_of(rank), dumps[static_cast<size_t>(rank)]);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(FlightRecorder, Stacks_SaysTheSameOfAJobThatGoesOn) {
  start({dump_at("[0, 1]", 4, 3), dump_at("[0, 1]", 3, 3)}, {kAnswers, kAnswers}, "--grace=5");
  Fleetrun text(job, "text", {"stacks", "flight"});
  EXPECT_EQ(text.wait(), 0) << text.output();
  const std::string line = "rank 1 has not entered all_reduce #4 (train.py:44, 25 MiB)";
  EXPECT_THAT(text.output(), HasSubstr("\n  " + line));
  Fleetrun json(job, "json", {"stacks", "flight", "--format=json"});
  EXPECT_EQ(json.wait(), 0) << json.output();
  const auto report = nlohmann::json::parse(json.output());
  EXPECT_THAT(report["waits"][0]["text"], HasSubstr(line));
  EXPECT_THAT(report["notes"][0], HasSubstr("ranks 0-1"));
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
}

TEST_F(FlightRecorder, StoppedRank_IsNamedAsOneWithoutADump) {
  const std::string waiting = dump_at(kRanks, 5, 4);
  start({waiting, waiting, waiting}, {kAnswers, kAnswers, kAnswers});
  long long pid = 0;
  ASSERT_TRUE(parse_int(trim(job.read("pid.1")), &pid));
  ::kill(static_cast<pid_t>(pid), SIGSTOP);
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  const auto verdict = verdict_in(job);
  ASSERT_EQ(verdict["waits"].size(), 1u) << verdict.dump();
  EXPECT_EQ(verdict["waits"][0]["kind"], "unknown");
  EXPECT_EQ(verdict["waits"][0]["missing"], nlohmann::json({1}));
  EXPECT_EQ(verdict["waits"][0]["waiting"], nlohmann::json({0, 2}));
  EXPECT_THAT(verdict["waits"][0]["text"], HasSubstr("rank 1 is stopped (by a signal)"));
  EXPECT_THAT(verdict["notes"][0], HasSubstr("from rank 1: it is stopped"));
  EXPECT_EQ(verdict["rank"]["rank"], 1);
  EXPECT_EQ(copy_of(1), "");
  EXPECT_EQ(copy_of(2), waiting);
}

TEST_F(FlightRecorder, BadPipesAndDumps_AreSaidAndTheOthersAreRead) {
  const std::string good = dump_at("[0, 1, 2, 3, 4, 5]", 5, 4);
  const std::string hostile = "\x80\x02X\xff\xff\xff\xff";
  start({good, good, good, good.substr(0, good.size() / 2), hostile, good},
        {kAnswers, kWaits, "mkfifo pipe.$RANK.pipe; " + kWaits, kAnswers, kAnswers,
         ": >pipe.$RANK.pipe; " + kWaits});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  const auto verdict = verdict_in(job);
  ASSERT_EQ(verdict["waits"].size(), 1u) << verdict.dump();
  EXPECT_EQ(verdict["waits"][0]["waiting"], nlohmann::json({0}));
  EXPECT_EQ(verdict["waits"][0]["missing"], nlohmann::json({1, 2, 3, 4, 5}));
  const std::string notes = verdict["notes"].dump();
  EXPECT_THAT(notes, AllOf(HasSubstr("from rank 1: it has no pipe"),
                           HasSubstr("from rank 2: nothing reads its pipe"),
                           HasSubstr("from rank 3: its dump is damaged: "),
                           HasSubstr("from rank 4: its dump is damaged: "),
                           HasSubstr("from rank 5: the name of")));
  EXPECT_EQ(job.read("pipe.5.pipe"), "") << "nothing is written to a file";
  EXPECT_EQ(copy_of(0), good);
  for (const int rank : {1, 2, 3, 4, 5}) EXPECT_EQ(copy_of(rank), "") << rank;
}

// PyTorch without NCCL's watchdog has the pipe and does not look at it. An old dump is not its own.
TEST_F(FlightRecorder, RankDoesNotAnswer_IsSaidAndAnOldDumpIsNotTaken) {
  const std::string good = dump_at("[0, 1]", 5, 4);
  start({good, good},
        {kAnswers, "mkfifo pipe.1.pipe; exec 3<>pipe.1.pipe; cp given.1 dump.1; " + kWaits});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  const auto verdict = verdict_in(job);
  EXPECT_THAT(verdict["notes"].dump(), AllOf(HasSubstr("from rank 1"), HasSubstr("11.7 s")));
  EXPECT_EQ(verdict["waits"][0]["kind"], "unknown") << verdict.dump();
  EXPECT_EQ(copy_of(1), "");
}

TEST_F(FlightRecorder, PyTorchWithoutPipe_TheVerdictSaysHowToSwitchItOn) {
  std::ofstream(job.path() + "/libtorch_cuda.so") << std::string(4096, 'x');
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=2", "--hang_timeout=2", "sh", "-c",
                               "[ $RANK = 1 ] || exec sleep 600; exec " + program_folder() +
                                   "/launch_rank_helper map libtorch_cuda.so"});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  const auto verdict = verdict_in(job);
  ASSERT_EQ(verdict["notes"].size(), 1u) << verdict.dump();
  EXPECT_THAT(verdict["notes"][0], AllOf(HasSubstr("rank 1 waits"), HasSubstr("TORCH_NCCL_")));
  EXPECT_THAT(verdict["message"], HasSubstr(verdict["notes"][0].get<std::string>()));
}

TEST_F(FlightRecorder, OtherPrograms_AreNotMentioned) {
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=2", "--hang_timeout=1", "sleep", "60"});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), Not(HasSubstr("PyTorch")));
  EXPECT_EQ(verdict_in(job)["notes"], nlohmann::json::array());
}

}  // namespace
}  // namespace fleet
