// Training jobs that hang: the collective that the ranks wait in is named.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct HangOfTraining : ::testing::Test {
  void wait_for_steps() const { job.folder().wait_for("out/checkpoints/step_00000010/state.json"); }
  // That rank 1 is stopped: in computing, or within a collective.
  static void expect_named(const nlohmann::json& verdict, const std::string& output) {
    ASSERT_EQ(verdict["verdict"], "hang") << output;
    ASSERT_FALSE(verdict["waits"].empty()) << output;
    const std::string text = verdict["waits"][0]["text"];
    EXPECT_THAT(text, AnyOf(HasSubstr("rank 1 has not entered all_reduce #"),
                            HasSubstr("ranks are in all_reduce #")));
    EXPECT_THAT(text,
                AllOf(AnyOf(HasSubstr("of group data parallel"), HasSubstr("of group control")),
                      HasSubstr("; rank 1 is stopped (by a signal)")));
    EXPECT_THAT(output, HasSubstr(text));
    EXPECT_GT(verdict["waits"][0]["sequence"], 1);
    EXPECT_EQ(verdict["rank"]["rank"], 1);
  }
  TrainingJob job;
  const std::vector<std::string> endless = {"train.epochs=100000", "train.output=out",
                                            "checkpoint.every_steps=10"};
};

TEST_F(HangOfTraining, StoppedRank_IsNamedWithTheCollective) {
  auto fleetrun = job.start("run", {"--nproc_per_node=3", "--hang_timeout=3"}, endless);
  wait_for_steps();
  ::kill(job.worker("1"), SIGSTOP);
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  expect_named(verdict_in(job.folder(), "log.run"), fleetrun->output());
  EXPECT_THAT(job.folder().survivors(20), IsEmpty());
}

TEST_F(HangOfTraining, StacksOfAStoppedRank_NameTheCollectiveToo) {
  auto fleetrun = job.start("run", {"--nproc_per_node=3", "--job_id=stopped"}, endless);
  wait_for_steps();
  const pid_t stopped = job.worker("1");
  ::kill(stopped, SIGSTOP);
  ::usleep(1'500'000);  // shorter waits are those of a healthy job
  Fleetrun stacks(job.folder(), "stacks", {"stacks", "stopped", "--format=json"});
  EXPECT_EQ(stacks.wait(), 0) << stacks.output();
  const auto report = nlohmann::json::parse(stacks.output(), nullptr, false);
  ASSERT_TRUE(report.is_object()) << stacks.output();
  ASSERT_FALSE(report["waits"].empty()) << stacks.output();
  EXPECT_THAT(std::string(report["waits"][0]["text"]),
              HasSubstr("rank 1 is stopped (by a signal)"));
  ::kill(stopped, SIGCONT);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
}

// Its calls travel to the host of the rendezvous.
TEST_F(HangOfTraining, StoppedRankOfAnotherNode_IsNamedOnBoth) {
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const int rdzv_port = rendezvous.port();
  const auto node = [&](const std::string& number) {
    return job.start(
        "node" + number,
        {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0." + std::to_string(std::stoi(number) + 1),
         "--nproc_per_node=1", "--rdzv_port=" + std::to_string(rdzv_port),
         "--start_port=" + std::to_string(20000 + rdzv_port % 10000), "--hang_timeout=3"},
        endless);
  };
  const auto first = node("0"), second = node("1");
  wait_for_steps();
  ::kill(job.worker("1"), SIGSTOP);
  EXPECT_EQ(first->wait(), 115) << first->output();
  EXPECT_EQ(second->wait(), 115) << second->output();
  expect_named(verdict_in(job.folder(), "log.node0"), first->output());
  expect_named(verdict_in(job.folder(), "log.node1"), second->output());
}

}  // namespace
}  // namespace fleet
