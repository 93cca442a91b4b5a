// Jobs through two fleetds on one machine, at 127.0.0.1 and 127.0.0.2.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "node/reserved_ports.h"
#include "tests/control/daemon/jobs/fleetd_test_base.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

struct TwoFleetds : FleetdTest {
  TwoFleetds() : FleetdTest(2) {}
};

TEST_F(TwoFleetds, Ranks_MeetAndShowWithTheirNode) {
  const auto client = start("met", {"--ranks=all"}, {kHelper, "store"});
  EXPECT_EQ(client->wait(), 0) << client->output();
  EXPECT_THAT(split(client->output(), '\n'),
              IsSupersetOf({"[rank 0 127.0.0.1] sum 14", "[rank 1 127.0.0.1] sum 14",
                            "[rank 2 127.0.0.2] sum 14", "[rank 3 127.0.0.2] sum 14"}));
  EXPECT_EQ(job.read("log/met/node1/workerlog.1"), "sum 14\n");
  EXPECT_EQ(count_of(client->output(), "Configuration Arguments"), 1u);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, StandardOutput_IsTheRanksAlone) {
  Fleetrun client(job, "apart",
                  {"--via=fleetd", "--fleetd_port=" + port, "--ips=" + all_addresses(),
                   "--nproc_per_node=1", "--job_id=apart", "sh", "-c", "echo out; echo err >&2"},
                  {}, {}, "fleetrun", "apart.err");
  EXPECT_EQ(client.wait(), 0) << client.output();
  const std::string first = "[rank 0 127.0.0.1] out\n", second = "[rank 1 127.0.0.2] out\n";
  EXPECT_THAT(client.output(), ::testing::AnyOf(first + second, second + first));
  const std::string errors = job.read("apart.err");
  EXPECT_THAT(split(errors, '\n'),
              IsSupersetOf({"[rank 0 127.0.0.1] err", "[rank 1 127.0.0.2] err"}));
  EXPECT_EQ(count_of(errors, "] [rank"), 0u) << errors;
  EXPECT_THAT(errors, HasSubstr("[127.0.0.1]     |"));
  // Requested logs go to standard output.
  Fleetrun logs(job, "kept", {"logs", "apart", "--fleetd_port=" + port, "--ips=" + all_addresses()},
                {}, {}, "fleetrun", "kept.err");
  EXPECT_EQ(logs.wait(), 0);
  EXPECT_EQ(job.read("kept.err"), "");
  EXPECT_THAT(split(logs.output(), '\n'),
              IsSupersetOf({"[rank 0 127.0.0.1] out", "[rank 0 127.0.0.1] err"}));
}

TEST_F(TwoFleetds, PortOfTheRendezvous_IsTheOneThatWasAskedFor) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const std::string rendezvous = std::to_string(held.port());
  const auto client = start("ported", {"--rdzv_port=" + rendezvous, "--tee=3"},
                            {"sh", "-c", "echo $RANK meets at $FLEET_STORE_ADDRESS"});
  EXPECT_EQ(client->wait(), 0) << client->output();
  for (const char* rank : {"0", "1", "2", "3"}) {  // --tee: not only local rank 0
    EXPECT_THAT(client->output(), HasSubstr("] " + std::string(rank) + " meets at "));
  }
  // Node 0's ranks by its Unix socket, node 1's at the port.
  EXPECT_THAT(client->output(), HasSubstr("0 meets at unix:"));
  EXPECT_THAT(client->output(), HasSubstr("2 meets at 127.0.0.1:" + rendezvous + "\n"));
}

TEST_F(TwoFleetds, DryRun_PlansTheWholeJobAndAsksNobody) {
  const auto client = start("foreseen", {"--dry_run"}, {"sh", "-c", ": >started"});
  EXPECT_EQ(client->wait(), 0) << client->output();
  EXPECT_THAT(client->output(),
              AllOf(HasSubstr("fleetd at 127.0.0.2:" + port), HasSubstr(" ******\n")));
  EXPECT_EQ(job.read("started"), "");
  EXPECT_THAT(listed_jobs(), Not(Contains("foreseen")));
  const auto unknown = start("foreseen", {"--dry_run", "--via=fleeted"}, {"true"});
  EXPECT_EQ(unknown->wait(), 2);
}

TEST_F(TwoFleetds, SingleNode_ShowsAsALocalOne) {
  // The rank that fails waits: a failure ends the other one wherever it is.
  const auto client = start("one", {},
                            {"sh", "-c",
                             "echo rank $RANK; : >said.$RANK; "
                             "until test -e said.0; do sleep 0.01; done; exit $RANK"},
                            "127.0.0.2");
  EXPECT_EQ(client->wait(), 1) << client->output();
  EXPECT_THAT(split(client->output(), '\n'), Contains("rank 0"));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, Failure_IsReportedOnceAndDecidesTheCode) {
  const auto client = start("fails", {}, {"sh", "-c", "test $RANK = 3 || sleep 1000; exit 5"});
  EXPECT_EQ(client->wait(), 5) << client->output();
  EXPECT_EQ(count_of(client->output(), "ABORT!!!"), 1u);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, Sigterm_ReachesEveryRank) {
  const auto client = start("stops", {}, endless("trap 'echo saved; exit 0' TERM"));
  wait_for_ranks("stops");
  client->signal(SIGTERM);
  EXPECT_EQ(client->wait(), 128 + SIGTERM) << client->output();
  for (const char* log : {"node0/workerlog.0", "node0/workerlog.1", "node1/workerlog.1"}) {
    EXPECT_THAT(split(job.read("log/stops/" + std::string(log)), '\n'), Contains("saved"));
  }
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, SecondCtrlC_Kills) {
  const auto client = start("stubborn", {"--grace=1000"}, endless("trap 'echo heard' INT"));
  wait_for_ranks("stubborn");
  client->signal(SIGINT);
  while (job.read("log/stubborn/node1/workerlog.1").find("heard") == std::string::npos) {
    ::poll(nullptr, 0, 5);
  }
  client->signal(SIGINT);
  EXPECT_EQ(client->wait(), 130) << client->output();
  EXPECT_THAT(left(), IsEmpty());
}

// A rank prints each USR1 and USR2. All USR1 arrive before the first USR2.
TEST_F(TwoFleetds, UserSignals_ReachEveryRankOnceAndTheJobGoesOn) {
  const auto client =
      start("usr", {},
            endless("trap 'echo USR1 >>heard.$RANK' USR1; trap 'echo USR2 >>heard.$RANK' USR2"));
  wait_for_ranks("usr");
  const auto all_heard = [this](const std::string& what) {
    for (const char* rank : {"0", "1", "2", "3"}) {
      while (job.read("heard." + std::string(rank)).find(what) == std::string::npos) {
        ::poll(nullptr, 0, 5);
      }
    }
  };
  client->signal(SIGUSR1);
  all_heard("USR1");
  client->signal(SIGUSR2);
  all_heard("USR2");
  client->signal(SIGTERM);
  EXPECT_EQ(client->wait(), 128 + SIGTERM);
  for (const char* rank : {"0", "1", "2", "3"}) {
    EXPECT_EQ(job.read("heard." + std::string(rank)), "USR1\nUSR2\n") << "rank " << rank;
  }
}

TEST_F(TwoFleetds, ClientKilled_EverythingOfTheJobEnds) {
  const auto client = start("orphan", {}, endless("setsid sleep 1000 &"));
  wait_for_ranks("orphan");
  client->signal(SIGKILL);
  client->wait();
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_EQ(status("orphan").at(0).at("exit_code"), 128 + SIGHUP);
}

TEST_F(TwoFleetds, SilentClient_EverythingOfTheJobEnds) {
  const auto client = start("silent", {}, endless());
  wait_for_ranks("silent");
  client->signal(SIGSTOP);
  while (status("silent").at(0).at("phase") != "ended") ::poll(nullptr, 0, 20);
  client->signal(SIGCONT);
  EXPECT_NE(client->wait(), 0);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, FleetdKilled_ItsRanksDieAndTheNodeIsLost) {
  for (const int victim : {1, 0}) {
    const std::string name = "lost" + std::to_string(victim);
    const auto client = start(name, {"--grace=1"}, endless("setsid sleep 1000 &"));
    wait_for_ranks(name);
    fleetds[victim]->signal(SIGKILL);
    fleetds[victim]->wait();
    EXPECT_EQ(client->wait(), 113) << client->output();
    EXPECT_THAT(client->output(), HasSubstr("127.0.0." + std::to_string(victim + 1)));
    EXPECT_THAT(left(), IsEmpty());
    start_fleetd(victim);
  }
}

TEST_F(TwoFleetds, FleetdThatIsNotThere_NothingStarts) {
  fleetds[1]->signal(SIGTERM);
  EXPECT_EQ(fleetds[1]->wait(), 0);
  const auto client = start("half", {}, {"sh", "-c", ": >started"});
  EXPECT_EQ(client->wait(), 112) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("127.0.0.2:" + port));
  EXPECT_EQ(job.read("started"), "");
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_THAT(run_command({"ls"}, 1), Not(HasSubstr("half")));
}

TEST_F(TwoFleetds, WrongSecret_IsNamedAndNothingStarts) {
  const auto client = start("stranger", {}, {"true"}, "127.0.0.1,127.0.0.2",
                            {{"FLEETD_SECRET", "another secret than theirs"}});
  EXPECT_EQ(client->wait(), 2) << client->output();
  EXPECT_EQ(count_of(client->output(), "than theirs"), 0u) << client->output();
  EXPECT_THAT(listed_jobs(), Not(Contains("stranger")));
}

TEST_F(TwoFleetds, FolderThatIsNotThere_NothingIsLeft) {
  const auto client = start("nowhere", {"--chdir=/nowhere/at/all"}, {"true"});
  EXPECT_EQ(client->wait(), 2);
  EXPECT_THAT(client->output(), HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_THAT(listed_jobs(), Not(Contains("nowhere")));
}

TEST_F(TwoFleetds, ProgramThatIsNotThere_IsSaidWithItsNode) {
  const auto client = start("missing", {}, {"no_such_program"});
  EXPECT_EQ(client->wait(), 2) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("[127.0.0.1] fleetrun: no_such_program"));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, AnotherUsersCommands_AreRefused) {
  const auto client = start("other", {"--user=somebody_else"}, {"true"});
  EXPECT_EQ(client->wait(), 2);
  EXPECT_THAT(listed_jobs(), Not(Contains("other")));
}

TEST_F(TwoFleetds, Environment_TravelsAsFarAsItIsMeantTo) {
  const auto client =
      start("env", {"--export=MY_NOTE=three words here"}, {"sh", "-c", "env >env.$RANK"},
            "127.0.0.1", {{"NCCL_DEBUG", "INFO"}, {"LAPTOP_ONLY", "1"}, {"NCCL_KEY", "x"}});
  EXPECT_EQ(client->wait(), 0) << client->output();
  const std::vector<std::string> variables = split(job.read("env.0"), '\n');
  EXPECT_THAT(variables, IsSupersetOf({"NCCL_DEBUG=INFO", "MY_NOTE=three words here"}));
  for (const char* name : {"LAPTOP_ONLY=", "NCCL_KEY=", "FLEETD_SECRET=", "FLEETD_PID="}) {
    EXPECT_THAT(variables, Not(Contains(StartsWith(name))));
  }
}

TEST_F(TwoFleetds, TwoJobs_RunSideBySide) {
  const auto first = start("first", {}, endless("trap 'exit 0' TERM"));
  wait_for_ranks("first");
  const auto second = start("second", {}, {kHelper, "store"});
  EXPECT_EQ(second->wait(), 0) << second->output();
  Fleetrun again(
      job, "again",
      {"--via=fleetd", "--fleetd_port=" + port, "--ips=127.0.0.1", "--job_id=first", "true"});
  EXPECT_EQ(again.wait(), 2);
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 143) << first->output();
}

TEST_F(TwoFleetds, DetachedJob_IsListedFollowedAttachedToAndStopped) {
  const auto client =
      start("away", {"--detach"},
            endless("trap 'echo bye from $RANK; exit 0' TERM; echo hello from $RANK"));
  EXPECT_EQ(client->wait(), 0) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("job away runs on 2 nodes"));
  wait_for_ranks("away");
  EXPECT_EQ(state("away"), "running");
  EXPECT_EQ(status("away").at(0).at("detached"), true);
  EXPECT_EQ(status("away").at(1).at("ranks").size(), 2u);

  Fleetrun follower(
      job, "follower",
      {"logs", "away", "-f", "--rank=3", "--fleetd=127.0.0.1:" + port + ",127.0.0.2:" + port});
  Fleetrun attached(job, "attached", {"attach", "away", "--fleetd=127.0.0.1:" + port});
  while (attached.output().find("hello from 0") == std::string::npos) ::poll(nullptr, 0, 5);
  while (follower.output().find("hello from 3") == std::string::npos) ::poll(nullptr, 0, 5);
  run_command({"stop", "away"});
  EXPECT_EQ(attached.wait(), 143) << attached.output();
  EXPECT_GT(count_of(attached.output(), "bye from 0"), 0u);
  EXPECT_EQ(follower.wait(), 0);
  EXPECT_THAT(split(follower.output(), '\n'), IsSupersetOf({"hello from 3", "bye from 3"}));
  EXPECT_THAT(left(), IsEmpty());
  // And it is remembered.
  EXPECT_EQ(state("away"), "stopped (SIGTERM)");
  EXPECT_THAT(split(run_command({"logs", "away", "--rank=2"}), '\n'), Contains("bye from 2"));
  EXPECT_THAT(split(run_command({"logs", "away"}), '\n'),
              Contains("[rank 0 127.0.0.1] hello from 0"));
}

TEST_F(TwoFleetds, AttachedClientKilled_TheJobGoesOn) {
  start("stays", {"--detach"}, endless("trap 'exit 0' TERM; echo here I am"))->wait();
  wait_for_ranks("stays");
  Fleetrun attached(job, "attached", {"attach", "stays", "--fleetd=127.0.0.1:" + port});
  while (attached.output().find("here I am") == std::string::npos) ::poll(nullptr, 0, 5);
  attached.signal(SIGKILL);
  attached.wait();
  EXPECT_EQ(state("stays"), "running");
  Fleetrun again(job, "again", {"attach", "stays", "--fleetd=127.0.0.1:" + port});
  run_command({"stop", "stays", "--kill"});
  EXPECT_EQ(again.wait(), 143) << again.output();
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, StopWithAnotherGraceTime_AppliesOnAllNodes) {
  const auto client = start("stubborn", {"--grace=1000"}, endless("trap '' TERM"));
  wait_for_ranks("stubborn");
  run_command({"stop", "stubborn", "--grace=0.2"});
  EXPECT_EQ(client->wait(), 143) << client->output();
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, StoppedFleetd_EndsItsJobsFirst) {
  const auto client = start("polite", {}, endless("trap 'echo saved; exit 0' TERM"));
  wait_for_ranks("polite");
  fleetds[1]->signal(SIGTERM);
  EXPECT_EQ(fleetds[1]->wait(), 0);
  EXPECT_EQ(client->wait(), 143) << client->output();
  EXPECT_THAT(split(job.read("log/polite/node0/workerlog.0"), '\n'), Contains("saved"));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(TwoFleetds, OneNodeWhoseFleetdIsStopped_GetsTheOutcome) {
  const auto client = start("alone", {}, endless("trap 'exit 0' TERM"), "127.0.0.2");
  wait_for_ranks("alone", 2);
  fleetds[1]->signal(SIGTERM);
  EXPECT_EQ(client->wait(), 143) << client->output();
  EXPECT_EQ(fleetds[1]->wait(), 0);
}

// The records of jobs outlive a fleetd. A job that ended with it is recorded as ended.
TEST_F(TwoFleetds, FleetdStartedAgain_KnowsItsJobs) {
  start("done", {}, {"sh", "-c", "echo the end of $RANK"})->wait();
  start("broken", {}, {"sh", "-c", "exit $((RANK + 3))"}, "127.0.0.1")->wait();
  start("taken", {"--detach"}, endless("echo taken along"), "127.0.0.1")->wait();
  // The job is known before its ranks have said anything.
  while (job.read("log/taken/workerlog.1") != "taken along\n") ::poll(nullptr, 0, 5);
  fleetds[0]->signal(SIGKILL);
  fleetds[0]->wait();
  EXPECT_THAT(left(), IsEmpty());
  start_fleetd(0);
  EXPECT_EQ(state("done"), "succeeded");
  EXPECT_THAT(state("broken"), StartsWith("failed ("));
  EXPECT_EQ(state("taken"), "failed (137)");
  EXPECT_EQ(status("done").at(0).at("verdict").at("verdict"), "success");
  EXPECT_THAT(split(run_command({"logs", "done"}), '\n'), Contains(EndsWith("the end of 0")));
  EXPECT_EQ(run_command({"logs", "done", "--rank=1"}), "the end of 1\n");
  EXPECT_EQ(run_command({"logs", "taken", "--rank=1"}), "taken along\n");
  // Its name may be used again.
  EXPECT_EQ(start("taken", {}, {"true"}, "127.0.0.1")->wait(), 0);
  EXPECT_EQ(state("taken"), "succeeded");
}

TEST_F(TwoFleetds, LogThatIsRotated_IsFollowed) {
  start(
      "rotated", {"--detach", "--log_max_size=64K"},
      {"sh", "-c",
       ": >$FLEET_JOB_ID.$RANK; while [ ! -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 20000 "
       "]; "
       "do echo line $i of $RANK; i=$((i+1)); done"})
      ->wait();
  wait_for_ranks("rotated");
  Fleetrun follower(
      job, "follower",
      {"logs", "rotated", "-f", "--rank=3", "--fleetd=127.0.0.1:" + port + ",127.0.0.2:" + port});
  write_file_atomically(job.path() + "/go", "");
  EXPECT_EQ(follower.wait(), 0);
  EXPECT_EQ(count_of(follower.output(), " of 3\n"), 20000u) << follower.output();
  EXPECT_GT(count_of(run_command({"logs", "rotated", "--rank=2"}), " of 2\n"), 19999u);
}

// A reader that takes nothing: the log waits where it is, and not in the memory of who shows it.
TEST_F(TwoFleetds, LogIntoAFullPipe_TakesNoMemory) {
  start("big", {}, {"sh", "-c", "echo the first line"}, "127.0.0.1")->wait();
  constexpr size_t kSize = 96 << 20;
  write_file_atomically(job.path() + "/log/big/workerlog.0", std::string(kSize, 'x'));
  const std::string pipe = job.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Fleetrun logs(job, "logs", {"logs", "big", "--rank=0", "--fleetd=127.0.0.1:" + port}, {}, pipe);
  // Until it reads no more.
  const std::string proc = "/proc/" + std::to_string(logs.pid());
  const auto state = [&] { return read_file(proc + "/io") + process_state(logs.pid()); };
  std::string seen;
  for (int same = 0; same < 20; ::poll(nullptr, 0, 10)) {
    const std::string now = state();
    same = now == seen && now.find("wchar: 0\n") == std::string::npos ? same + 1 : 0;
    seen = now;
  }
  const std::string status = read_file(proc + "/status");
  long long peak = 0;
  parse_int(trim(std::string_view(status).substr(status.find("VmHWM:") + 6, 12)), &peak);  // KiB
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, 64 << 10);
  size_t total = 0;
  for (std::string buffer(1 << 20, ' '); total < kSize;) {
    pollfd readable = {reader.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 60'000), 1);
    const ssize_t size = ::read(reader.get(), buffer.data(), buffer.size());
    if (size == 0) break;
    if (size > 0) total += static_cast<size_t>(size);
  }
  EXPECT_EQ(total, kSize);
  EXPECT_EQ(logs.wait(), 0);
}

TEST_F(TwoFleetds, StopOfAJobWithANodeThatDoesNotAnswer_IsNoSuccess) {
  start("half", {"--detach"}, endless("trap 'exit 0' TERM"))->wait();
  fleetds[1]->signal(SIGSTOP);
  EXPECT_EQ(count_of(run_command({"stop", "half"}, 1), "has ended"), 0u);
  fleetds[1]->signal(SIGCONT);
  EXPECT_THAT(left(), IsEmpty());
}

// A job that another node may know is not reported as unknown.
TEST_F(TwoFleetds, CommandsWithoutAnAnswer_NameTheFleetd) {
  start("done", {}, {"sh", "-c", "echo fine"}, address(0))->wait();
  fleetds[1]->signal(SIGTERM);
  EXPECT_EQ(fleetds[1]->wait(), 0);
  for (const std::string command : {"status", "logs", "stop", "attach"}) {
    const std::string output = run_command({command, "elsewhere"}, 1);
    EXPECT_THAT(output, HasSubstr("no answer from fleetd at 127.0.0.2:" + port)) << command;
  }
  EXPECT_GT(count_of(run_command({"logs", "done"}, 1), "fine"), 0u);
}

// This host's fleetd need not exist, but one that hangs may know the job.
TEST_F(TwoFleetds, HungFleetdOfThisHost_IsNamed) {
  fleetds[0]->signal(SIGSTOP);
  Fleetrun about(job, "status", {"status", "elsewhere", "--fleetd_port=" + port});
  Fleetrun logs(job, "logs", {"logs", "elsewhere", "--fleetd_port=" + port});
  for (Fleetrun* command : {&about, &logs}) {
    EXPECT_EQ(command->wait(), 1) << command->output();
    EXPECT_THAT(command->output(), HasSubstr("no answer from fleetd at 127.0.0.1:" + port));
  }
  fleetds[0]->signal(SIGCONT);
}

TEST_F(TwoFleetds, MuchOutput_ComesWhole) {
  const auto client = start("much", {},
                            {"sh", "-c",
                             "i=0; while [ $i -lt 20000 ]; do echo line $i of $RANK; "
                             "i=$((i+1)); done"});
  EXPECT_EQ(client->wait(), 0);
  EXPECT_EQ(count_of(client->output(), "] line "), 40000u);
  EXPECT_THAT(split(client->output(), '\n'), IsSupersetOf({"[rank 0 127.0.0.1] line 19999 of 0",
                                                           "[rank 2 127.0.0.2] line 19999 of 2"}));
}

TEST(Fleetd, AsRoot_IsRefusedUnlessAllowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  JobFolder job;
  Fleetrun fleetd(job, "fleetd", {"--listen=127.0.0.1:0"}, {}, "", "fleetd");
  EXPECT_EQ(fleetd.wait(), 2);
  EXPECT_THAT(fleetd.output(), HasSubstr("--allow_root"));
}

TEST(Fleetd, WithoutASecret_MakesOneForThisUserAlone) {
  JobFolder job;
  Fleetrun fleetd(job, "fleetd", {"--listen=127.0.0.1:0", "--allow_root"},
                  {{"FLEETD_SECRET", ""},
                   {"XDG_CONFIG_HOME", job.path() + "/config"},
                   {"XDG_STATE_HOME", job.path() + "/state"}},
                  {}, "fleetd");
  while (fleetd.output().find("listens on") == std::string::npos) ::poll(nullptr, 0, 2);
  const std::string path = "config/fleetrun/fleetd.secret";
  EXPECT_GE(job.read(path).size(), 64u);
  EXPECT_EQ(count_of(fleetd.output(), job.read(path).substr(0, 20)), 0u);
  fleetd.signal(SIGTERM);
  EXPECT_EQ(fleetd.wait(), 0);
}

}  // namespace
}  // namespace fleet
