// Orders to stop that come more than once: copies of one order leave the ranks their grace, a
// second order ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

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
