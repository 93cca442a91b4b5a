#include <gmock/gmock.h>

#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

using testing::HasSubstr;

// Nodes that answer as a test sets them: one rank each.
struct FakeNodes {
  explicit FakeNodes(int count) : nodes(static_cast<size_t>(count)) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].set_own_ns(1'000);
      nodes[i].set_host_ns(1'000 + 500 * static_cast<int64_t>(i));
      nodes[i].set_error_ns(20);
      nodes[i].add_realtime()->set_offset_ns(7);
      TracedRank& rank = *nodes[i].add_ranks();
      rank.set_rank(static_cast<int>(i));
      rank.set_state(TracedRank::RECORDING);
    }
  }
  TraceReport operator()(const TraceRequest& request) {
    if (gone) throw Error(ErrorCode::kNotFound, "its fleetrun has ended");
    TraceReport report;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int node_rank = static_cast<int>(i);
      if (request.has_node_rank() && request.node_rank() != node_rank) continue;
      if (node_rank == silent) {
        report.add_silent(node_rank);
        continue;
      }
      TraceAnswer& answer = *report.add_answers();
      answer.set_node_rank(node_rank);
      if (request.kind() == TraceRequest::READ) {
        if (request.records_at() >= records) continue;
        const TraceRecord record{.begin_ns = 5, .end_ns = 6, .value = 0, .name = 0, .track = 0};
        answer.mutable_piece()->set_records(&record, sizeof record);
      } else {
        *answer.mutable_node() = nodes[i];
      }
    }
    return report;
  }
  void record(uint64_t count) {
    records = count;
    for (wire::NodeTrace& node : nodes) node.mutable_ranks(0)->set_records(count);
  }
  void end(int64_t steps) {
    for (wire::NodeTrace& node : nodes) {
      node.mutable_ranks(0)->set_state(TracedRank::DONE);
      node.mutable_ranks(0)->set_steps_done(steps);
    }
  }

  std::vector<wire::NodeTrace> nodes;
  uint64_t records = 0;
  int silent = -1;
  bool gone = false;
};

struct TraceCollectionTest : ::testing::Test {
  FakeNodes nodes{2};
  TraceCollection collection{"night", [this](const TraceRequest& r) { return nodes(r); }};
};

TEST_F(TraceCollectionTest, AllRanksDone_IsComplete) {
  collection.begin(20);
  EXPECT_TRUE(collection.poll());
  nodes.record(3);
  EXPECT_TRUE(collection.poll());
  nodes.end(20);
  EXPECT_FALSE(collection.poll());
  collection.finish();
  EXPECT_THAT(collection.missing(), testing::IsEmpty());
  ASSERT_EQ(collection.trace().ranks.size(), 2u);
  for (const RankTrace& rank : collection.trace().ranks) EXPECT_EQ(rank.records.size(), 3u);
  EXPECT_EQ(collection.trace().nodes.at(1).clock.offset_ns, 500);
  EXPECT_EQ(collection.trace().nodes.at(1).clock.error_ns, 20);
  EXPECT_EQ(collection.trace().nodes.at(1).realtime.at(0).offset_ns(), 7);
}

TEST_F(TraceCollectionTest, JobEndsMeanwhile_KeepsWhatWasGathered) {
  collection.begin(20);
  nodes.record(3);
  EXPECT_TRUE(collection.poll());
  nodes.gone = true;
  EXPECT_FALSE(collection.poll());
  collection.finish();
  EXPECT_TRUE(collection.job_ended());
  ASSERT_EQ(collection.trace().ranks.size(), 2u);
  EXPECT_EQ(collection.trace().ranks[0].records.size(), 3u);
  EXPECT_THAT(collection.missing(), testing::Contains(HasSubstr("its fleetrun has ended")));
  EXPECT_THAT(collection.missing(), testing::Contains(HasSubstr("rank 0 (node 0): 0 of 20 steps")));
}

TEST_F(TraceCollectionTest, NodeWithoutAComparedClock_IsRefusedByName) {
  nodes.nodes[1].clear_host_ns();
  collection.begin(20);
  nodes.end(20);
  EXPECT_FALSE(collection.poll());
  collection.finish();
  ASSERT_EQ(collection.trace().ranks.size(), 1u);
  EXPECT_EQ(collection.trace().ranks[0].rank.rank(), 0);
  ASSERT_EQ(collection.missing().size(), 1u);
  EXPECT_THAT(collection.missing()[0], HasSubstr("rank 1 (node 1) is left out"));
}

TEST_F(TraceCollectionTest, RankInAnotherTimeNamespace_IsRefusedAndNotWaitedFor) {
  nodes.nodes[0].mutable_ranks(0)->set_refused("its clock is in another time namespace");
  nodes.nodes[1].mutable_ranks(0)->set_state(TracedRank::DONE);
  nodes.nodes[1].mutable_ranks(0)->set_steps_done(20);
  collection.begin(20);
  EXPECT_FALSE(collection.poll());
  collection.finish();
  ASSERT_EQ(collection.trace().ranks.size(), 1u);
  EXPECT_THAT(collection.missing()[0], HasSubstr("rank 0 (node 0) is left out"));
}

TEST_F(TraceCollectionTest, ForeignRanks_AreNotWaitedFor) {
  for (wire::NodeTrace& node : nodes.nodes) node.mutable_ranks(0)->set_state(TracedRank::NONE);
  collection.begin(20);
  EXPECT_FALSE(collection.poll());
  collection.finish();
  EXPECT_EQ(collection.trace().ranks.size(), 2u);
  EXPECT_THAT(collection.missing(), testing::IsEmpty());
}

TEST_F(TraceCollectionTest, SilentNode_IsNamed) {
  nodes.silent = 1;
  collection.begin(20);
  nodes.end(20);
  EXPECT_FALSE(collection.poll());
  collection.finish();
  EXPECT_EQ(collection.trace().ranks.size(), 1u);
  EXPECT_THAT(collection.missing(), testing::Contains(HasSubstr("node 1 did not answer")));
}

TEST_F(TraceCollectionTest, BestComparisonOfClocks_Holds) {
  collection.begin(20);
  nodes.nodes[1].set_host_ns(1'700);
  nodes.nodes[1].set_error_ns(5);
  collection.poll();
  nodes.nodes[1].set_host_ns(9'000);
  nodes.nodes[1].set_error_ns(50);
  collection.poll();
  EXPECT_EQ(collection.trace().nodes.at(1).clock.offset_ns, 700);
}

}  // namespace
}  // namespace fleet
