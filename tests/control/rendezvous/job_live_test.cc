// JobState and requests for what the ranks do now.
#include <gtest/gtest.h>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {
namespace {

TEST(JobState, LiveIsAskedFor_OnlyTheAskerGetsAllRanks) {
  SteadyJob job(job_of({"a", "b"}));
  job.join_all();
  for (const SessionId node : {1, 2}) {
    StepReport report;
    report.add_ranks()->set_rank(static_cast<int>(node) - 1);
    report.mutable_ranks(0)->set_steps(7);
    report.mutable_ranks(0)->set_step(7);
    report.add_usage()->set_rank(static_cast<int>(node) - 1);
    job.send(node, &wire::NodeMessage::mutable_steps, report);
  }
  job.send(2, &wire::NodeMessage::mutable_live_request);
  ASSERT_EQ(job.events_for<LiveReport>(2).size(), 1u);
  EXPECT_TRUE(job.events_for<LiveReport>(1).empty());
  const LiveReport report = job.events_for<LiveReport>(2)[0];
  EXPECT_EQ(report.nnodes(), 2);
  EXPECT_EQ(report.world_size(), 4);
  EXPECT_EQ(report.generation(), 1);
  ASSERT_EQ(report.ranks_size(), 2);
  EXPECT_EQ(report.ranks(1).node_rank(), 1);
}

TEST(JobState, HistoryIsAskedFor_BeginsWithTheJob) {
  SteadyJob job(job_of({"a", "b"}));
  job.join_all();
  for (int step = 0; step < 3; ++step) {
    StepReport report;
    report.add_ranks()->set_rank(0);
    report.mutable_ranks(0)->set_steps(step);
    report.mutable_ranks(0)->set_step(step);
    report.mutable_ranks(0)->set_accuracy(0.5);
    job.send(1, &wire::NodeMessage::mutable_steps, report);
    job.heartbeat_all_for(std::chrono::seconds(2), {1, 2});
  }
  wire::LiveRequest request;
  request.set_history(true);
  job.send(2, &wire::NodeMessage::mutable_live_request, request);
  const LiveReport report = job.events_for<LiveReport>(2).at(0);
  EXPECT_EQ(report.accuracy(), 0.5);
  ASSERT_EQ(report.history().points_size(), 3);
  EXPECT_EQ(report.history().points(2).step(), 2);
  EXPECT_GT(report.history().now_ms(), report.history().points(2).at_ms());
  job.send(2, &wire::NodeMessage::mutable_live_request);
  EXPECT_FALSE(job.events_for<LiveReport>(2).back().has_history());
}

TEST(JobState, LiveIsAskedForWhileStopping_AnswersWithoutRanks) {
  SteadyJob job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, 7);
  job.settle();
  ASSERT_TRUE(job.state.verdict());
  job.send(2, &wire::NodeMessage::mutable_live_request);
  EXPECT_EQ(job.events_for<LiveReport>(2).size(), 1u);
}

}  // namespace
}  // namespace fleet
