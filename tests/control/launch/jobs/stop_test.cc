// Orders to stop that come more than once: copies of one order leave the ranks their grace, a
// second order ends it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Stop, SignalToFourNodesWithinAMoment_LeavesRanksTheirGrace) {
  JobFolder job;
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  std::vector<std::unique_ptr<Fleetrun>> nodes;
  for (int node = 0; node < 4; ++node) {
    const std::string number = std::to_string(node);
    nodes.push_back(std::make_unique<Fleetrun>(
        job, "node" + number,
        std::vector<std::string>{"--ips=127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4",
                                 "--host=127.0.0." + std::to_string(node + 1), "--nproc_per_node=1",
                                 "--grace=300", "--log_dir=log" + number,
                                 "--rdzv_port=" + std::to_string(rendezvous.port()), "sh", "-c",
                                 "trap 'sleep 1; echo saved; exit 0' TERM; : >ready.$RANK; "
                                 "while :; do sleep 0.01; done"}));
  }
  for (int rank = 0; rank < 4; ++rank) job.wait_for("ready." + std::to_string(rank));
  for (const auto& node : nodes) {
    if (&node != &nodes.front()) ::usleep(66'000);  // the last 0.2 s after the first
    node->signal(SIGTERM);
  }
  for (int node = 0; node < 4; ++node) {
    EXPECT_EQ(nodes[static_cast<size_t>(node)]->wait(), 128 + SIGTERM);
    EXPECT_THAT(job.read("log" + std::to_string(node) + "/workerlog.0"), EndsWith("saved\n"));
  }
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

bool listens(const std::string& address, int port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
}

void wait_for_output(const Fleetrun& node, const std::string& text) {
  for (int i = 0; i < 30'000 && node.output().find(text) == std::string::npos; ++i) ::usleep(2000);
  ASSERT_THAT(node.output(), HasSubstr(text));
}

// The checks wait for a node that is suspended. Its suspension is not noticed, nor its loss.
TEST(Stop, SignalDuringPreflight_EndsTheWholeJob) {
  JobFolder job;
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const int rendezvous = held.port(), first = 20000 + rendezvous % 10000;
  std::vector<std::unique_ptr<Fleetrun>> nodes;
  const auto start = [&](int node) {
    const std::string number = std::to_string(node);
    nodes.push_back(std::make_unique<Fleetrun>(
        job, "node" + number,
        std::vector<std::string>{
            "--ips=127.0.0.[1-3]", "--host=127.0.0." + std::to_string(node + 1),
            "--nproc_per_node=1", "--preflight", "--heartbeat_timeout=600",
            "--log_dir=log" + number, "--start_port=" + std::to_string(first),
            "--rdzv_port=" + std::to_string(rendezvous), "sh", "-c", ": >ran"}));
  };
  start(0);
  start(1);
  wait_for_output(*nodes[1], "waiting for 127.0.0.3");
  nodes[1]->signal(SIGSTOP);
  start(2);
  for (int i = 0; i < 30'000 && !listens("127.0.0.3", first); ++i) ::usleep(2000);
  ASSERT_TRUE(listens("127.0.0.3", first));  // its checks have begun
  nodes[2]->signal(SIGTERM);
  wait_for_output(*nodes[2], "SIGTERM: ending the job before its ranks start");
  wait_for_output(*nodes[0], "node 2 (127.0.0.3) received SIGTERM");
  nodes[1]->signal(SIGCONT);
  for (const auto& node : nodes) EXPECT_EQ(node->wait(), 128 + SIGTERM) << node->output();
  EXPECT_EQ(job.read("ran"), "");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// As if it waited for a file server that is gone, in a write to a log.
TEST(Stop, GuardianHangs_IsKilledWithItsRanks) {
  JobFolder job;
  Fleetrun fleetrun(job, "run",
                    {"--nproc_per_node=2", "--grace=0.1", "sh", "-c",
                     "trap '' TERM; : >ready.$RANK; while :; do sleep 0.01; done"});
  for (const char* file : {"ready.0", "ready.1"}) job.wait_for(file);
  const std::vector<pid_t> guardian = job.processes("fleet-guardian");
  ASSERT_EQ(guardian.size(), 1u);
  ::kill(guardian[0], SIGSTOP);
  fleetrun.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM) << fleetrun.output();
  EXPECT_THAT(fleetrun.output(), HasSubstr("guardian process of this node"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST(Stop, SecondStopCommand_Kills) {
  JobFolder job;
  const std::string id = "stop-" + std::to_string(::getpid());
  Fleetrun fleetrun(job, "run",
                    {"--job_id=" + id, "--nproc_per_node=2", "--grace=1000", "sh", "-c",
                     "trap ': >told.$RANK' TERM; : >ready.$RANK; while :; do sleep 0.01; done"});
  const auto both = [&](const std::string& file) {
    for (const char* rank : {".0", ".1"}) job.wait_for(file + rank);
  };
  both("ready");
  Fleetrun first(job, "first", {"stop", id});
  both("told");
  Fleetrun second(job, "second", {"stop", id});
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM) << fleetrun.output();
  EXPECT_EQ(first.wait(), 0) << first.output();
  EXPECT_EQ(second.wait(), 0) << second.output();
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
