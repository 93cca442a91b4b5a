// Jobs of three fleetds that lose a node and continue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/file.h"
#include "base/text.h"
#include "tests/control/daemon/jobs/fleetd_test_base.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ends once all of the second generation run, and something says so. Tells who it is in each
// generation.
const std::vector<std::string> kRank = {
    "sh", "-c",
    "trap 'exit 0' TERM; echo generation $FLEET_GENERATION rank $RANK of $WORLD_SIZE; "
    ": >generation$FLEET_GENERATION.$RANK; while [ ! -e end ]; do sleep 0.01; done"};

struct ThreeFleetds : FleetdTest {
  ThreeFleetds() : FleetdTest(3) {}
  std::vector<std::string> elastic(const std::string& nnodes = "2:3") const {
    return {"--nnodes=" + nnodes, "--max_restart=3", "--grace=1", "--ranks=all"};
  }
  void wait_for_generation(int generation, int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) {
      job.wait_for("generation" + std::to_string(generation) + "." + std::to_string(rank));
    }
  }
  // Output that a launcher has not passed on yet is lost with it.
  static void wait_until_all_are_shown(const Fleetrun& client) {
    for (const char* rank : {"0", "1", "2", "3", "4", "5"}) {
      const std::string line = "generation 1 rank " + std::string(rank) + " of 6";
      while (client.output().find(line) == std::string::npos) ::poll(nullptr, 0, 5);
    }
  }
  void end_well() const { write_file_atomically(job.path() + "/end", ""); }
  // The node's fleetrun: fleetd's child.
  pid_t launcher(size_t node) const {
    const std::string pid = std::to_string(fleetds[node]->pid());
    const auto children =
        split(trim(read_file("/proc/" + pid + "/task/" + pid + "/children")), ' ');
    long long child = -1;
    if (!children.empty()) parse_int(children[0], &child);
    return static_cast<pid_t>(child);
  }
  void goes_on(const std::string& name, Fleetrun* client, int lost) {
    wait_for_generation(2, 4);
    // The fleetds are informed a moment after the ranks have started.
    const int code = fleetds[static_cast<size_t>(lost)] ? 0 : 1;
    while (run_command({"ls"}, code).find(name + "  running  2") == std::string::npos) {
      ::poll(nullptr, 0, 10);
    }
    end_well();
    EXPECT_EQ(client->wait(), 0) << client->output();
    // Output that a killed launcher had read may be lost.
    const std::string first = lost == 0 ? "generation 1 rank 3 of 6" : "generation 1 rank 0 of 6";
    EXPECT_THAT(client->output(), AllOf(HasSubstr(first), HasSubstr("generation 2 rank 3 of 4")));
    EXPECT_EQ(count_of(client->output(), "ABORT"), 0u);
    EXPECT_THAT(left(), IsEmpty());
  }
};

TEST_F(ThreeFleetds, KilledFleetrun_TheOthersGoOn) {
  const auto client = start("one", elastic(), kRank);
  wait_until_all_are_shown(*client);
  ::kill(launcher(2), SIGKILL);
  goes_on("one", client.get(), 2);
  EXPECT_THAT(client->output(), HasSubstr("fleetrun on 127.0.0.3 was killed by SIGKILL"));
  EXPECT_EQ(state("one"), "succeeded");
}

TEST_F(ThreeFleetds, KilledFleetd_TheOthersGoOn) {
  const auto client = start("two", elastic(), kRank);
  wait_until_all_are_shown(*client);
  fleetds[1]->signal(SIGKILL);
  fleetds[1].reset();
  goes_on("two", client.get(), 1);
}

TEST_F(ThreeFleetds, LostHostOfTheRendezvous_TheNextOneTakesOver) {
  const auto client = start("three", elastic(), kRank);
  wait_until_all_are_shown(*client);
  fleetds[0]->signal(SIGKILL);
  fleetds[0].reset();
  goes_on("three", client.get(), 0);
}

TEST_F(ThreeFleetds, SpareNode_StepsIn) {
  auto options = elastic("2");
  options.push_back("--detach");
  const auto client = start("spare", options, kRank);
  EXPECT_EQ(client->wait(), 0) << client->output();
  wait_for_generation(1, 4);
  EXPECT_EQ(state("spare"), "running");
  // One of its ranks, wherever it will be, and the job as a whole.
  const std::string where = "--fleetd=127.0.0.1:" + port;
  Fleetrun follower(job, "follower", {"logs", "spare", "-f", "--rank=3", where});
  Fleetrun attached(job, "attached", {"attach", "spare", where});
  for (const Fleetrun* each : {&follower, &attached}) {
    while (each->output().find("generation 1 rank 3 of 4") == std::string::npos)
      ::poll(nullptr, 0, 5);
  }
  // Ranks go by arrival: which of the others is the spare one?
  const nlohmann::json parts = status("spare");
  ::kill(launcher(parts.at(1).at("generation") == 1 ? 1 : 2), SIGKILL);
  wait_for_generation(2, 4);
  EXPECT_THAT(run_command({"status", "spare"}),
              AllOf(HasSubstr("running, detached"), testing::ContainsRegex("generation +2")));
  end_well();
  EXPECT_EQ(attached.wait(), 0) << attached.output();
  EXPECT_EQ(follower.wait(), 0) << follower.output();
  for (const Fleetrun* each : {&follower, &attached}) {
    EXPECT_EQ(count_of(each->output(), "generation 2 rank 3 of 4"), 1u) << each->output();
  }
  EXPECT_EQ(state("spare"), "succeeded");
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(ThreeFleetds, FleetdThatIsNotThere_IsDoneWithout) {
  fleetds[2]->signal(SIGTERM);
  fleetds[2]->wait();
  fleetds[2].reset();
  auto options = elastic();
  options.push_back("--elastic_timeout=0.5");  // nobody else comes
  const auto client = start("fewer", options, kRank);
  wait_for_generation(1, 4);
  end_well();
  EXPECT_EQ(client->wait(), 0) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("generation 1 rank 3 of 4"));
}

// Without restarts and with them: the job ends with its client.
TEST_F(ThreeFleetds, ClientKilled_TheElasticJobEnds) {
  const auto client = start("orphan", elastic(), kRank);
  wait_for_generation(1, 6);
  client->signal(SIGKILL);
  client->wait();
  EXPECT_THAT(left(), IsEmpty());
}

}  // namespace
}  // namespace fleet
