// Two fleetruns on one machine, as 127.0.0.1 and 127.0.0.2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

struct TwoNodes : ::testing::Test {
  std::unique_ptr<Fleetrun> start(int node, const std::string& script,
                                  std::vector<std::string> options = {},
                                  const std::string& errors = {}) {
    const std::string number = std::to_string(node);
    std::vector<std::string> arguments = {"--ips=" + ips,
                                          "--host=127.0.0." + std::to_string(node + 1),
                                          "--nproc_per_node=2",
                                          "--log_dir=log" + number,
                                          "--rdzv_port=" + std::to_string(rdzv_port),
                                          "--start_port=" + std::to_string(start_port)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sh", "-c", script});
    return std::make_unique<Fleetrun>(job, "node" + number, arguments, Fleetrun::Environment{}, "",
                                      "fleetrun", errors);
  }
  // Starts both, and waits until all ranks run.
  void start_both(const std::string& on, std::vector<std::string> options = {}) {
    const std::string script = on + "; : >ready.$RANK; while :; do sleep 0.01; done";
    first = start(0, script, options);
    second = start(1, script, options);
    for (const char* rank : {"0", "1", "2", "3"}) job.wait_for(std::string("ready.") + rank);
  }
  JobFolder job;
  std::string ips = "127.0.0.1, 127.0.0.2";
  // Ports of this test: the first is held while it runs.
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const int rdzv_port = rendezvous.port();
  int start_port = 20000 + rdzv_port % 10000;
  std::unique_ptr<Fleetrun> first, second;
};

TEST_F(TwoNodes, AllRanks_MeetAndEndWithZero) {
  first = start(0, "exec " + kHelper + " store");
  second = start(1, "exec " + kHelper + " store");
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  EXPECT_EQ(job.read("log0/workerlog.0"), "sum 14\n");
  EXPECT_EQ(job.read("log1/workerlog.1"), "sum 14\n");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, Environment_CountsAcrossNodes) {
  first = start(0, "env");
  second = start(1, "env");
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  const std::string port = std::to_string(start_port), next = std::to_string(start_port + 1);
  EXPECT_THAT(
      split(job.read("log1/workerlog.1"), '\n'),
      IsSupersetOf({std::string("RANK=3"), std::string("LOCAL_RANK=1"), std::string("GROUP_RANK=1"),
                    std::string("WORLD_SIZE=4"), std::string("MASTER_ADDR=127.0.0.1"),
                    "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:" + port + ",127.0.0.1:" + next +
                        ",127.0.0.2:" + port + ",127.0.0.2:" + next}));
}

TEST_F(TwoNodes, TableOnOneConsole_IsPrintedOnce) {
  const auto run = [&](const std::string& errors_of_second) {
    start_port += 100;
    std::string printed;
    std::vector<std::unique_ptr<Fleetrun>> nodes;
    for (const int node : {0, 1}) {
      nodes.push_back(start(node, "true", {}, node == 0 ? "first.err" : errors_of_second));
    }
    for (const auto& node : nodes) EXPECT_EQ(node->wait(), 0);
    for (const std::string name : {"first.err", "second.err"}) {
      printed += job.read(name);
      std::filesystem::remove(job.path() + "/" + name);
    }
    size_t count = 0;
    for (const std::string& line : split(printed, '\n'))
      count += line.find("Distributed Envs") != std::string::npos;
    return count;
  };
  EXPECT_EQ(run("first.err"), 1u);
  EXPECT_EQ(run("second.err"), 2u);
}

TEST_F(TwoNodes, FirstFailure_DecidesOnBoth) {
  // When rank 2 fails, the others fail too, later and with another code.
  start_both(
      "trap 'exit 9' TERM; test $RANK = 2 && { echo error: rank two broke; "
      "while ! test -e go; do sleep 0.01; done; exit 5; } & "
      "if test $RANK = 2; then : >ready.$RANK; wait $!; exit $?; fi");
  std::ofstream(job.path() + "/go") << "";
  EXPECT_EQ(first->wait(), 5);
  EXPECT_EQ(second->wait(), 5);
  for (const Fleetrun* node : {first.get(), second.get()}) {
    EXPECT_THAT(node->output(),
                AllOf(HasSubstr("rank 2 of 4 exited with 5"), HasSubstr("rank two broke"),
                      HasSubstr("(log1/workerlog.0 on node 1)")));
  }
  const auto verdict = [](const Fleetrun& node) {
    const std::string text = node.output();
    const size_t begin = text.find("rank 2 of 4 exited");
    return text.substr(begin, text.rfind("rank two broke") - begin);
  };
  EXPECT_EQ(verdict(*first), verdict(*second));
  for (const char* logs : {"log0", "log1"}) {
    EXPECT_EQ(verdict_in(job, logs)["rank"]["rank"], 2) << logs;
  }
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, SignalToOne_StopsBoth) {
  start_both("trap 'echo saved; exit 0' TERM");
  second->signal(SIGTERM);
  EXPECT_EQ(second->wait(), 128 + SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
  EXPECT_THAT(job.read("log0/workerlog.0"), EndsWith("saved\n"));
  EXPECT_THAT(job.read("log1/workerlog.1"), EndsWith("saved\n"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, UserSignalToOne_ReachesTheRanksOfBoth) {
  start_both("trap ': >usr1.$RANK' USR1; trap 'exit 0' TERM");
  second->signal(SIGUSR1);
  for (const char* rank : {"0", "1", "2", "3"}) job.wait_for(std::string("usr1.") + rank);
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
  EXPECT_EQ(second->wait(), 128 + SIGTERM);
}

TEST_F(TwoNodes, SecondSignal_KillsTheRanksOfBoth) {
  start_both("trap ': >told.$RANK' INT", {"--grace=300"});
  first->signal(SIGINT);
  for (const char* rank : {"0", "1", "2", "3"}) job.wait_for(std::string("told.") + rank);
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 128 + SIGINT);
  EXPECT_EQ(second->wait(), 128 + SIGINT);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, SecondInterruptToTheOtherNode_KillsTheRanksOfBoth) {
  start_both("trap ': >told.$RANK' INT", {"--grace=300"});
  first->signal(SIGINT);
  for (const char* rank : {"0", "1", "2", "3"}) job.wait_for(std::string("told.") + rank);
  ::usleep(500'000);  // sooner, it is a copy of the first
  second->signal(SIGINT);
  EXPECT_EQ(first->wait(), 128 + SIGINT);
  EXPECT_EQ(second->wait(), 128 + SIGINT);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// As a cluster does that evicts a job node by node.
TEST_F(TwoNodes, SignalToEachNode_LeavesRanksTheirGrace) {
  start_both("trap 'sleep 1; echo saved; exit 0' TERM", {"--grace=300"});
  first->signal(SIGTERM);
  ::usleep(600'000);
  second->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
  EXPECT_EQ(second->wait(), 128 + SIGTERM);
  EXPECT_THAT(job.read("log0/workerlog.0"), EndsWith("saved\n"));
  EXPECT_THAT(job.read("log1/workerlog.1"), EndsWith("saved\n"));
}

TEST_F(TwoNodes, Stacks_ShowsTheRanksOfBothAndTheJobGoesOn) {
  start_both(": >ready.$RANK; exec sleep 1000", {"--job_id=looked-at"});  // all in the same call
  // A shell that has said ready may not be sleep yet, nor sleep be in its call.
  for (int tries = 0; tries < 100; ++tries) {
    Fleetrun stacks(job, "begin." + std::to_string(tries), {"stacks", "looked-at"});
    EXPECT_EQ(stacks.wait(), 0) << stacks.output();
    if (stacks.output().find("ranks 0-3: ") != std::string::npos) break;
  }
  for (const char* format : {"text", "json"}) {
    Fleetrun stacks(job, std::string("stacks.") + format,
                    {"stacks", "looked-at", std::string("--format=") + format});
    EXPECT_EQ(stacks.wait(), 0) << stacks.output();
    const bool text = std::string(format) == "text";
    EXPECT_THAT(stacks.output(), HasSubstr(text ? "4 ranks" : "\"silent_nodes\": []"));
    EXPECT_THAT(stacks.output(), HasSubstr(text ? "ranks 0-3: " : "\"local_rank\": 1"));
  }
  Fleetrun unknown(job, "unknown", {"stacks", "no-such-job"});
  EXPECT_NE(unknown.wait(), 0);
  EXPECT_THAT(unknown.output(), AllOf(HasSubstr("no-such-job"), HasSubstr("looked-at")));
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
  EXPECT_EQ(second->wait(), 128 + SIGTERM);
}

TEST_F(TwoNodes, LauncherLost_TheOtherSaysWhichAndEndsWith113) {
  start_both("true");
  second->signal(SIGKILL);
  EXPECT_EQ(second->wait(), 128 + SIGKILL);
  EXPECT_EQ(first->wait(), 113);
  const auto verdict = verdict_in(job, "log0");
  EXPECT_EQ(verdict["verdict"], "node lost");
  EXPECT_EQ(verdict["node"]["address"], "127.0.0.2");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, LauncherWithTheRendezvousLost_TheOtherSaysSoAndEndsWith113) {
  start_both("true");
  first->signal(SIGKILL);
  EXPECT_EQ(first->wait(), 128 + SIGKILL);
  EXPECT_EQ(second->wait(), 113);
  EXPECT_EQ(verdict_in(job, "log1")["node"]["rank"], 0);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, GuardianLost_TheOtherNodeEndsToo) {
  start_both("true");
  // Either of the two guardians will do. A process that one has just forked has its name for a
  // moment.
  std::vector<pid_t> guardians;
  for (int look = 0; look < 1000 && guardians.size() != 2; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(look > 0 ? 10 : 0));
    guardians = job.processes("fleet-guardian");
  }
  ASSERT_EQ(guardians.size(), 2u);
  ::kill(guardians[0], SIGKILL);
  EXPECT_EQ(first->wait(), 113) << first->output();
  EXPECT_EQ(second->wait(), 113) << second->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
  // On both nodes, and of one and the same.
  EXPECT_THAT(first->output(), HasSubstr("was lost: its guardian was killed"));
  const auto message = [&](const std::string& file) {
    const std::string json = job.read(file);
    const size_t at = json.find("\"message\"");
    return json.substr(at, json.find('\n', at) - at);
  };
  EXPECT_EQ(message("log0/verdict.json"), message("log1/verdict.json"));
}

// Ctrl-Z and fg.
TEST_F(TwoNodes, NodeSuspendedWhileItWaits_JoinsAgain) {
  ips = "127.0.0.1,127.0.0.2,127.0.0.3";
  const std::vector<std::string> options = {"--heartbeat_timeout=1"};
  first = start(0, "exit 0", options);
  second = start(1, "exit 0", options);
  const auto await = [](const Fleetrun& node, const std::string& text) {
    for (int i = 0; i < 30'000 && node.output().find(text) == std::string::npos; ++i) {
      ::usleep(1000);
    }
    ASSERT_THAT(node.output(), HasSubstr(text));
  };
  await(*first, "waiting for 127.0.0.3 (node 2) of 3 nodes; here: 127.0.0.1, 127.0.0.2");
  second->signal(SIGSTOP);
  await(*first, "node 127.0.0.2 has left again");
  second->signal(SIGCONT);
  await(*second, "joining again");
  const auto third = start(2, "exit 0", options);
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  EXPECT_EQ(third->wait(), 0) << third->output();
}

TEST_F(TwoNodes, HostSuspendedWhileItWaits_TheOthersJoinAgain) {
  ips = "127.0.0.1,127.0.0.2,127.0.0.3";
  const std::vector<std::string> options = {"--heartbeat_timeout=1", "--rdzv_timeout=60"};
  first = start(0, "exit 0", options);
  second = start(1, "exit 0", options);
  for (int i = 0;
       i < 30'000 && first->output().find("here: 127.0.0.1, 127.0.0.2") == std::string::npos; ++i) {
    ::usleep(1000);
  }
  first->signal(SIGSTOP);
  ::usleep(2'000'000);  // twice what makes a node lost
  first->signal(SIGCONT);
  const auto third = start(2, "exit 0", options);
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  EXPECT_EQ(third->wait(), 0) << third->output();
}

TEST_F(TwoNodes, MissingNode_IsNamedAtTheTimeout) {
  first = start(0, "true", {"--rdzv_timeout=0.3"});
  EXPECT_EQ(first->wait(), 112);
  EXPECT_THAT(first->output(), HasSubstr("127.0.0.2"));
  EXPECT_EQ(job.read("log0/workerlog.0"), "");
}

// The other node would wait for its results.
TEST_F(TwoNodes, PreflightOnOneNodeOnly_IsRefused) {
  first = start(0, ": >ran");
  second = start(1, ": >ran", {"--preflight"});
  EXPECT_EQ(second->wait(), 2) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("give every node the same --preflight"));
  first->signal(SIGTERM);  // it still waits
  EXPECT_EQ(first->wait(), 128 + SIGTERM) << first->output();
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/ran"));
}

TEST_F(TwoNodes, RendezvousThatIsNotThere_IsNamedAtTheTimeout) {
  second = start(1, "true", {"--rdzv_timeout=0.3"});
  EXPECT_EQ(second->wait(), 112);
  EXPECT_THAT(second->output(), HasSubstr("127.0.0.1:" + std::to_string(rdzv_port)));
}

TEST_F(TwoNodes, CtrlCWhileWaiting_EndsWith130) {
  first = start(0, "true");
  while (first->output().find("launch train") == std::string::npos) ::usleep(1000);
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 130);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(TwoNodes, TwoJobsWithOneId_TheSecondIsRefused) {
  start_both("true");
  start_port += 1000;  // its own endpoints: only the rendezvous is the same
  Fleetrun again(job, "again",
                 {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.2", "--nproc_per_node=2",
                  "--log_dir=log2", "--rdzv_port=" + std::to_string(rdzv_port),
                  "--start_port=" + std::to_string(start_port), "true"});
  EXPECT_THAT(again.wait(), ::testing::AnyOf(2, 112));
  EXPECT_EQ(again.output().find("Local start"), std::string::npos) << again.output();
  Fleetrun host(job, "host",
                {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.1", "--nproc_per_node=2",
                 "--log_dir=log3", "--rdzv_port=" + std::to_string(rdzv_port),
                 "--start_port=" + std::to_string(start_port), "true"});
  EXPECT_EQ(host.wait(), 2);
  EXPECT_THAT(host.output(), HasSubstr("--rdzv_port"));
  // The first job has not suffered.
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 128 + SIGTERM);
  EXPECT_EQ(second->wait(), 128 + SIGTERM);
}

TEST_F(TwoNodes, CountedNodes_MeetAtTheMaster) {
  const auto start_counted = [&](int node, const std::string& host) {
    return std::make_unique<Fleetrun>(
        job, "node" + std::to_string(node),
        std::vector<std::string>{"--nnodes=2", "--master=127.0.0.1:" + std::to_string(rdzv_port),
                                 "--host=" + host, "--log_dir=log" + std::to_string(node),
                                 "--start_port=" + std::to_string(start_port), kHelper, "store"});
  };
  first = start_counted(0, "127.0.0.1");
  second = start_counted(1, "127.0.0.2");
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
}

TEST_F(TwoNodes, CountsInTheList_AreTheRanksOfEachNode) {
  const auto start_listed = [&](int node, const std::string& ips) {
    return std::make_unique<Fleetrun>(
        job, "node" + std::to_string(node),
        std::vector<std::string>{
            "--ips=" + ips, "--host=127.0.0." + std::to_string(node + 1),
            "--log_dir=log" + std::to_string(node), "--rdzv_port=" + std::to_string(rdzv_port),
            "--start_port=" + std::to_string(start_port), "--rdzv_timeout=30", kHelper, "store"});
  };
  first = start_listed(0, "127.0.0.[1-2]:1");
  second = start_listed(1, "127.0.0.1:1,127.0.0.2:3");
  EXPECT_EQ(second->wait(), 2);
  EXPECT_THAT(second->output(), HasSubstr("--ips is '127.0.0.1:1,127.0.0.2:3' there and "
                                          "'127.0.0.1:1,127.0.0.2:1' on the host"));
  first->signal(SIGTERM);
  first->wait();
  first = start_listed(0, "127.0.0.1:1,127.0.0.2:3");
  second = start_listed(1, "127.0.0.1:1,127.0.0.2:3");
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  EXPECT_EQ(job.read("log1/workerlog.2"), "sum 14\n");
}

}  // namespace
}  // namespace fleet
