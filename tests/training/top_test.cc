// fleetrun top on a real training job of two ranks.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "node/reserved_ports.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

bool complete(const nlohmann::json& frame) {
  if (!frame.is_object() || frame["ranks"].size() != 2) return false;
  return std::ranges::all_of(frame["ranks"], [](const nlohmann::json& rank) {
    return rank["step_ms"].is_number() && rank["cpu"].is_number() && rank["loss"].is_number();
  });
}

TEST(Top, TrainingJobOfTwoRanks_ShowsItsStepsAndWhatTheyConsistOf) {
  TrainingJob job;
  const auto fleetrun = job.start("seen", {"--nproc_per_node=2", "--job_id=seen"},
                                  {"train.epochs=100000", "data.threads=1", "train.output=out"});
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  nlohmann::json frame;
  for (int i = 0; !complete(frame) && std::chrono::steady_clock::now() < end; ++i) {
    Fleetrun top(job.folder(), "top" + std::to_string(i),
                 {"top", "seen", "--once", "--format=json", "--fleetd_port=" + port});
    frame =
        top.wait() == 0 ? nlohmann::json::parse(top.output(), nullptr, false) : nlohmann::json();
    ::poll(nullptr, 0, 200);
  }
  ASSERT_TRUE(complete(frame)) << frame.dump() << fleetrun->output();
  EXPECT_GT(frame["target"], 1000);
  EXPECT_TRUE(frame["seconds_left"].is_number());
  for (const nlohmann::json& rank : frame["ranks"]) {
    EXPECT_GT(rank["step"], 0);
    EXPECT_GT(rank["samples_per_second"], 0);
    EXPECT_GE(rank["input_share"], 0);
    EXPECT_GT(rank["peers_share"], 0);  // they agree on each step
    EXPECT_LT(rank["input_share"].get<double>() + rank["peers_share"].get<double>(), 1.05);
    EXPECT_GT(rank["memory"], 10 << 20);
    EXPECT_GT(rank["cpu"], 0);
  }
  EXPECT_EQ(frame["ranks"][0]["loss"], frame["ranks"][1]["loss"]);  // over all ranks
  EXPECT_NE(frame["ranks"][0]["slowest"], frame["ranks"][1]["slowest"]);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
  const nlohmann::json verdict =
      nlohmann::json::parse(job.folder().read("log.seen/verdict.json"), nullptr, false);
  EXPECT_TRUE(verdict.contains("bottleneck")) << verdict.dump();
}

// The last report of a rank comes with its end.
TEST(Top, TrainingJobThatHasEnded_HasDoneAllOfItsSteps) {
  TrainingJob job;
  const auto fleetrun = job.start("done", {"--nproc_per_node=2", "--job_id=done"},
                                  {"train.max_steps=13", "train.output=out"});
  ASSERT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  Fleetrun status(job.folder(), "status",
                  {"status", "done", "--format=json", "--fleetd_port=" + port});
  ASSERT_EQ(status.wait(), 0) << status.output();
  const nlohmann::json all = nlohmann::json::parse(status.output(), nullptr, false);
  ASSERT_EQ(all.size(), 1U) << status.output();
  EXPECT_EQ(all[0]["progress"]["step"], 13) << status.output();
  EXPECT_EQ(all[0]["progress"]["target"], 13);
}

}  // namespace
}  // namespace fleet
