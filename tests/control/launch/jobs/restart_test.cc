// Jobs that start again after a failure: --max_restart, spare nodes, ranges of nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

struct Restart : ::testing::Test {
  int run(std::vector<std::string> arguments) {
    fleetrun = std::make_unique<Fleetrun>(job, "run", std::move(arguments));
    return fleetrun->wait();
  }
  JobFolder job;
  std::unique_ptr<Fleetrun> fleetrun;
};

TEST_F(Restart, RankFailsOnce_TheSecondStartSucceeds) {
  const std::string script =
      "echo \"start $FLEET_GENERATION $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS\"; "
      ": >up.$RANK; test $FLEET_GENERATION = 2 || { test $RANK = 0 || "
      "{ until test -e up.0; do sleep 0.01; done; echo it broke; exit 5; }; exec sleep 1000; }";
  EXPECT_EQ(run({"--nproc_per_node=2", "--max_restart=2", "sh", "-c", script}), 0)
      << fleetrun->output();
  EXPECT_EQ(job.read("log/workerlog.0"), "start 2 1 of 2\n");
  EXPECT_EQ(job.read("log/workerlog.0.1"), "start 1 0 of 2\n");
  EXPECT_THAT(fleetrun->output(), HasSubstr("restart 1 of 2"));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["verdict"], "success");
  EXPECT_EQ(verdict["restarts"], 1);
  EXPECT_EQ(verdict["generations"][0]["verdict"], "rank failed");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(Restart, FailsAgainAndAgain_EndsWithTheRanksCodeAfterSoMany) {
  EXPECT_EQ(run({"--max_restarts=2", "sh", "-c", "echo start >>starts; exit 6"}), 6);
  EXPECT_EQ(job.read("starts"), "start\nstart\nstart\n");
  EXPECT_EQ(verdict_in(job)["restarts"], 2);
}

TEST_F(Restart, NoProgress_EndsWith116AndTheHistory) {
  EXPECT_EQ(run({"--max_restart=50", "--no_progress_restarts=2", "sh", "-c", "exit 6"}), 116);
  EXPECT_THAT(fleetrun->output(), HasSubstr("generation 1 (1 node, 1 rank): rank 0"));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["verdict"], "no progress");
  EXPECT_EQ(verdict["generations"].size(), 3u);
}

TEST_F(Restart, WhatRanksLeftBehind_IsGoneBeforeTheNextStart) {
  const std::string script =
      "if test $FLEET_GENERATION = 1; then setsid sh -c 'trap \"\" TERM; echo $$ >daemon.tmp; "
      "mv daemon.tmp daemon; while :; do sleep 0.05; done' & "
      "while ! test -e daemon; do sleep 0.01; done; exit 3; fi; "
      "! kill -0 $(cat daemon) 2>/dev/null";
  EXPECT_EQ(run({"--max_restart=1", "sh", "-c", script}), 0) << fleetrun->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(Restart, SignalWhileRanksAreBeingStopped_EndsTheJob) {
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=2", "--max_restart=1", "--grace=60", "sh", "-c",
                               "test $RANK = 1 && { while ! test -e armed; do sleep 0.01; done; "
                               "exit 4; }; trap ': >asked' TERM; : >armed; "
                               "while :; do sleep 0.01; done"});
  job.wait_for("asked");
  while (fleetrun->output().find("restart 1 of 1") == std::string::npos) ::usleep(1000);
  fleetrun->signal(SIGINT);
  fleetrun->signal(SIGTERM);  // another one does not wait for the stubborn
  EXPECT_EQ(fleetrun->wait(), 130);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(Restart, GuardianLost_EndsTheJob) {
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--max_restart=1", "sh", "-c", ": >up; exec sleep 1000"});
  job.wait_for("up");
  const std::vector<pid_t> guardians = job.processes("fleet-guardian");
  ASSERT_EQ(guardians.size(), 1u);
  ::kill(guardians[0], SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 113) << fleetrun->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// Nodes of one machine, as 127.0.0.1, 127.0.0.2 and so on.
struct RestartNodes : ::testing::Test {
  void start(int node, const std::string& script, std::vector<std::string> options,
             const std::string& name = "") {
    const std::string number = std::to_string(node);
    std::vector<std::string> arguments = {
        "--host=127.0.0." + std::to_string(node + 1), "--log_dir=log" + number,
        "--rdzv_port=" + std::to_string(rdzv_port), "--start_port=" + std::to_string(start_port)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sh", "-c", script});
    nodes.push_back(
        std::make_unique<Fleetrun>(job, name.empty() ? "node" + number : name, arguments));
  }
  void wait_for_output(const Fleetrun& node, const std::string& text) {
    for (int i = 0; i < 30'000 && node.output().find(text) == std::string::npos; ++i)
      ::usleep(2000);
    ASSERT_THAT(node.output(), HasSubstr(text));
  }
  JobFolder job;
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");  // held: no other's meanwhile
  const int rdzv_port = rendezvous.port(), start_port = 20000 + rdzv_port % 10000;
  std::vector<std::unique_ptr<Fleetrun>> nodes;
};

TEST_F(RestartNodes, RankOfTheSecondNodeFails_BothStartAgain) {
  // The rank that fails waits: a failure ends the other one wherever it is.
  const std::string script =
      "echo start $FLEET_GENERATION >>starts.$RANK; test $FLEET_GENERATION = 3 && exit 0; "
      ": >up.$FLEET_GENERATION.$RANK; test $RANK = 0 && exec sleep 1000; "
      "until test -e up.$FLEET_GENERATION.0; do sleep 0.01; done; exit 5";
  for (const int node : {0, 1}) {
    start(node, script, {"--ips=127.0.0.1,127.0.0.2", "--max_restart=3"});
  }
  for (const auto& node : nodes) {
    EXPECT_EQ(node->wait(), 0) << node->output();
    EXPECT_THAT(node->output(), AllOf(HasSubstr("restart 1 of 3"), HasSubstr("restart 2 of 3")));
  }
  EXPECT_EQ(job.read("starts.0"), "start 1\nstart 2\nstart 3\n");
  EXPECT_EQ(job.read("starts.1"), "start 1\nstart 2\nstart 3\n");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RestartNodes, OtherMaxRestartOnANode_IsRefused) {
  start(0, "true", {"--ips=127.0.0.1,127.0.0.2", "--max_restart=3"});
  start(1, "true", {"--ips=127.0.0.1,127.0.0.2", "--max_restart=2"});
  EXPECT_EQ(nodes[1]->wait(), 2);
  EXPECT_THAT(nodes[1]->output(), HasSubstr("--max_restart is '2' there and '3' on the host"));
}

// A node is killed; the spare takes its place.
TEST_F(RestartNodes, NodeKilled_TheSpareStepsIn) {
  const std::string script =
      "echo $RANK of $WORLD_SIZE >>seen.$FLEET_GENERATION; : >up.$FLEET_GENERATION.$RANK; "
      "test $FLEET_GENERATION = 1 && exec sleep 1000; exit 0";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--nnodes=2", "--max_restart=1"};
  for (const int node : {0, 1}) start(node, script, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.1.") + rank);
  start(2, script, options);
  wait_for_output(*nodes[2], "waits as a spare");
  nodes[1]->signal(SIGKILL);
  EXPECT_EQ(nodes[0]->wait(), 0) << nodes[0]->output();
  EXPECT_EQ(nodes[2]->wait(), 0) << nodes[2]->output();
  EXPECT_THAT(split(job.read("seen.2"), '\n'), IsSupersetOf({"0 of 2", "1 of 2"}));
  EXPECT_EQ(verdict_in(job, "log2")["generations"][0]["verdict"], "node lost");
  nodes[1]->wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RestartNodes, NodeKilledAndStartedAgain_TheJobGoesOn) {
  const std::string script =
      ": >up.$FLEET_GENERATION.$RANK; test $FLEET_GENERATION = 1 && exec sleep 1000; exit 0";
  const std::vector<std::string> options = {"--ips=127.0.0.1,127.0.0.2", "--max_restart=1"};
  for (const int node : {0, 1}) start(node, script, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.1.") + rank);
  nodes[1]->signal(SIGKILL);
  nodes[1]->wait();
  while (job.processes("fleet-guardian").size() > 1) ::usleep(1000);  // it holds the ports
  start(1, script, options, "again");
  EXPECT_EQ(nodes[0]->wait(), 0) << nodes[0]->output();
  EXPECT_EQ(nodes[2]->wait(), 0) << nodes[2]->output();
}

TEST_F(RestartNodes, NodeKilledAndNobodyComes_EndsWith113) {
  const std::string script = ": >up.$RANK; exec sleep 1000";
  const std::vector<std::string> options = {"--ips=127.0.0.1,127.0.0.2", "--max_restart=1",
                                            "--elastic_timeout=0.2"};
  for (const int node : {0, 1}) start(node, script, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.") + rank);
  nodes[1]->signal(SIGKILL);
  EXPECT_EQ(nodes[0]->wait(), 113) << nodes[0]->output();
  EXPECT_THAT(nodes[0]->output(), HasSubstr("no other joined within 0.2 s (--elastic_timeout)"));
  nodes[1]->wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// The rendezvous host is killed; the others elect the next one and continue.
TEST_F(RestartNodes, HostKilled_TheOthersGoOn) {
  const std::string script =
      "echo $RANK of $WORLD_SIZE >>seen.$FLEET_GENERATION; echo $FLEET_RUN "
      ">run.$FLEET_GENERATION.$RANK; : "
      ">up.$FLEET_GENERATION.$RANK; "
      "test $FLEET_GENERATION = 1 && exec sleep 1000; exit 0";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--nnodes=2:3"};
  for (const int node : {0, 1, 2}) start(node, script, options);
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.1.") + rank);
  nodes[0]->signal(SIGKILL);
  EXPECT_EQ(nodes[1]->wait(), 0) << nodes[1]->output();
  EXPECT_EQ(nodes[2]->wait(), 0) << nodes[2]->output();
  EXPECT_THAT(split(job.read("seen.2"), '\n'), IsSupersetOf({"0 of 2", "1 of 2"}));
  // By this fleet-worker knows its own checkpoints.
  EXPECT_EQ(job.read("run.2.0"), job.read("run.1.0"));
  EXPECT_NE(job.read("run.2.0"), "\n");
  EXPECT_THAT(nodes[1]->output(), HasSubstr("this node now hosts the rendezvous"));
  EXPECT_EQ(verdict_in(job, "log2")["generations"][0]["verdict"], "node lost");
  nodes[0]->wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// It finds the job where it runs now: a second one of the same name would be the other half.
TEST_F(RestartNodes, HostKilledAndStartedAgain_JoinsTheNextOne) {
  const std::string script =
      "echo $RANK of $WORLD_SIZE >>seen.$FLEET_GENERATION; : >up.$FLEET_GENERATION.$RANK; "
      "test $FLEET_GENERATION = 1 && exec sleep 1000; exit 0";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--max_restart=1"};
  for (const int node : {0, 1, 2}) start(node, script, options);
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.1.") + rank);
  nodes[0]->signal(SIGKILL);
  nodes[0]->wait();
  wait_for_output(*nodes[1], "this node now hosts the rendezvous");
  while (job.processes("fleet-guardian").size() > 2) ::usleep(1000);  // it holds the ports
  start(0, script, options, "again");
  for (const size_t node : {1, 2, 3}) EXPECT_EQ(nodes[node]->wait(), 0) << nodes[node]->output();
  EXPECT_THAT(nodes[3]->output(), HasSubstr("its rendezvous is now at 127.0.0.2:"));
  EXPECT_THAT(split(job.read("seen.2"), '\n'), IsSupersetOf({"0 of 3", "1 of 3", "2 of 3"}));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// The first of --ips no longer hosts the job then.
TEST_F(RestartNodes, AnotherNodeLostAfterAFailover_FindsTheHostToo) {
  const std::string script =
      ": >up.$FLEET_GENERATION.$RANK; test $FLEET_GENERATION = 3 && exit 0; exec sleep 1000";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--max_restart=2"};
  const auto restart = [&](int node, const std::string& name) {
    nodes[node]->signal(SIGKILL);
    nodes[node]->wait();
    if (node == 0) wait_for_output(*nodes[1], "this node now hosts the rendezvous");
    while (job.processes("fleet-guardian").size() > 2) ::usleep(1000);  // it holds the ports
    start(node, script, options, name);
  };
  for (const int node : {0, 1, 2}) start(node, script, options);
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.1.") + rank);
  restart(0, "again");
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.2.") + rank);
  restart(2, "anew");
  for (const size_t node : {1, 3, 4}) EXPECT_EQ(nodes[node]->wait(), 0) << nodes[node]->output();
  EXPECT_THAT(nodes[4]->output(), HasSubstr("its rendezvous is now at 127.0.0.2:"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// A node starts while no node hosts the job: it has no world, and knows only the first of --ips.
TEST_F(RestartNodes, HostLostWhileANodeWaits_ItFindsTheNextOne) {
  const std::string script = ": >up.$FLEET_GENERATION.$RANK; exec sleep 1000";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-5]", "--nnodes=3:5"};
  for (const int node : {0, 1, 2, 3, 4}) start(node, script, options);
  for (const char* rank : {"0", "1", "2", "3", "4"}) job.wait_for(std::string("up.1.") + rank);
  nodes[4]->signal(SIGKILL);
  nodes[4]->wait();
  for (const char* rank : {"0", "1", "2", "3"}) job.wait_for(std::string("up.2.") + rank);
  for (const int node : {1, 2, 3}) nodes[node]->signal(SIGSTOP);
  nodes[0]->signal(SIGKILL);
  nodes[0]->wait();
  while (job.processes("fleet-guardian").size() > 3) ::usleep(1000);  // it holds the ports
  start(4, script, options, "again");
  wait_for_output(*nodes[5], "waiting for node 0's fleetrun at 127.0.0.1:");
  for (const int node : {1, 2, 3}) nodes[node]->signal(SIGCONT);
  wait_for_output(*nodes[5], "joining its rendezvous at 127.0.0.2:");
  wait_for_output(*nodes[5], "this node");  // its part in the job
  nodes[1]->signal(SIGTERM);
  for (const int node : {1, 2, 3, 5}) {
    EXPECT_EQ(nodes[node]->wait(), 128 + SIGTERM) << nodes[node]->output();
  }
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// One of two is not a majority: the other may be alive on the far side of a broken link.
TEST_F(RestartNodes, HostOfTwoKilled_TheOtherEndsWith113) {
  const std::string script = ": >up.$RANK; exec sleep 1000";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-2]", "--nnodes=1:2",
                                            "--elastic_timeout=0.5", "--heartbeat_timeout=0.5"};
  for (const int node : {0, 1}) start(node, script, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.") + rank);
  nodes[0]->signal(SIGKILL);
  EXPECT_EQ(nodes[1]->wait(), 113) << nodes[1]->output();
  nodes[0]->wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// Ends when the test says so.
constexpr char kUntilDone[] =
    ": >up.$FLEET_GENERATION.$RANK; until test -e done; do sleep 0.05; done";

// Like a machine that was suspended, or whose link was down.
TEST_F(RestartNodes, NodeSuspended_TakesPartAgain) {
  const std::vector<std::string> options = {"--ips=127.0.0.1,127.0.0.2", "--max_restart=9",
                                            "--heartbeat_timeout=2"};
  for (const int node : {0, 1}) start(node, kUntilDone, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.1.") + rank);
  nodes[1]->signal(SIGSTOP);
  wait_for_output(*nodes[0], "restart 1 of 9");
  nodes[1]->signal(SIGCONT);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.2.") + rank);
  std::ofstream(job.path() + "/done");
  for (const auto& node : nodes) EXPECT_EQ(node->wait(), 0) << node->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// The other one has no majority: it waits for the host instead of ending.
TEST_F(RestartNodes, HostOfTwoSuspended_BothTakePartAgain) {
  const std::vector<std::string> options = {"--ips=127.0.0.1,127.0.0.2", "--max_restart=9",
                                            "--heartbeat_timeout=2"};
  for (const int node : {0, 1}) start(node, kUntilDone, options);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.1.") + rank);
  nodes[0]->signal(SIGSTOP);
  wait_for_output(*nodes[1], "this node now hosts the rendezvous");
  nodes[0]->signal(SIGCONT);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.2.") + rank);
  std::ofstream(job.path() + "/done");
  for (const auto& node : nodes) EXPECT_EQ(node->wait(), 0) << node->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// The others have continued with another host by the time it wakes up: it has no majority any more.
TEST_F(RestartNodes, HostSuspended_JoinsTheNextOne) {
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--nnodes=2:3",
                                            "--elastic_timeout=1", "--heartbeat_timeout=2"};
  for (const int node : {0, 1, 2}) start(node, kUntilDone, options);
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.1.") + rank);
  nodes[0]->signal(SIGSTOP);
  for (const char* rank : {"0", "1"}) job.wait_for(std::string("up.2.") + rank);
  nodes[0]->signal(SIGCONT);
  for (const char* rank : {"0", "1", "2"}) job.wait_for(std::string("up.3.") + rank);
  std::ofstream(job.path() + "/done");
  for (const auto& node : nodes) EXPECT_EQ(node->wait(), 0) << node->output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// With a range of nodes: begins with fewer, grows, and shrinks.
TEST_F(RestartNodes, Elastic_GrowsAndShrinks) {
  const std::string script =
      "echo $WORLD_SIZE >>size.$RANK; : >up.$FLEET_GENERATION.$RANK; "
      "test $FLEET_GENERATION = 3 && exit 0; exec sleep 1000";
  const std::vector<std::string> options = {"--ips=127.0.0.[1-3]", "--nnodes=1:3",
                                            "--elastic_timeout=0.5"};
  start(0, script, options);
  job.wait_for("up.1.0");
  start(1, script, options);
  job.wait_for("up.2.0");
  job.wait_for("up.2.1");
  nodes[1]->signal(SIGKILL);
  EXPECT_EQ(nodes[0]->wait(), 0) << nodes[0]->output();
  EXPECT_EQ(job.read("size.0"), "1\n2\n1\n");
  EXPECT_THAT(nodes[0]->output(), HasSubstr("the job continues with 2 nodes"));
  nodes[1]->wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
