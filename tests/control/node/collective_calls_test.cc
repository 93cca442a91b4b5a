#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

#include "node/stack_collector.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

CollectiveRecord call(int64_t sequence, CollectiveKind kind = CollectiveKind::kAllReduce,
                      int peer = -1) {
  CollectiveRecord made;
  made.sequence = sequence;
  made.bytes = 100 * sequence;
  made.kind = kind;
  made.peer = peer;
  made.purpose = CollectivePurpose("bucket 4");
  return made;
}

struct Calls : ::testing::Test {
  CollectiveTicket started(int group, const CollectiveRecord& call) {
    const CollectiveTicket ticket = log.issue(group, call);
    log.start(ticket);
    return ticket;
  }
  void done(int group, const CollectiveRecord& call) { log.finish(started(group, call)); }
  RankCollectives read(int64_t later_ns = 0) {
    const CollectiveSnapshot snapshot = reader.read();
    const int64_t last = snapshot.calls.empty() ? 0 : snapshot.calls.back().started_ns;
    return calls_of(snapshot, 2, last + later_ns);
  }
  CollectiveLogReader reader;
  CollectiveLog log{reader.path()};
};

TEST_F(Calls, Position_IsTheLastStartedCallWithThoseAroundIt) {
  const int group = log.add_group("dp", {0, 2, 4, 5}, false);
  for (int i = 1; i <= 9; ++i) done(group, call(i));
  started(group, call(10, CollectiveKind::kBroadcast, 4));
  const RankCollectives seen = read(3'000'000'000);
  EXPECT_EQ(seen.rank(), 2);
  ASSERT_EQ(seen.groups_size(), 1);
  const GroupCalls& calls = seen.groups(0);
  EXPECT_EQ(calls.name(), "dp");
  EXPECT_THAT(calls.ranks(), ElementsAre(0, 2, 3, 5, 1, 1));
  EXPECT_EQ(calls.entered(), 10);
  EXPECT_EQ(calls.done(), 9);
  EXPECT_EQ(calls.waiting_ms(), 3000);
  ASSERT_EQ(calls.calls_size(), 3);
  EXPECT_EQ(calls.calls(2).sequence(), 10);
  EXPECT_EQ(calls.calls(2).kind(), "broadcast");
  EXPECT_EQ(calls.calls(2).size(), 1000);
  EXPECT_EQ(calls.calls(2).purpose(), "bucket 4");
  EXPECT_EQ(calls.calls(2).root(), 4);
  EXPECT_EQ(calls.calls(2).state(), GroupCall::STARTED);
  EXPECT_FALSE(calls.calls(1).has_root());
}

TEST_F(Calls, IssuedFarAhead_IsNotEnteredYet) {
  const int group = log.add_group("dp", {0, 1}, false);
  done(group, call(1));
  for (int i = 2; i <= 40; ++i) log.issue(group, call(i));
  const RankCollectives seen = read();
  EXPECT_EQ(seen.groups(0).entered(), 1);
  EXPECT_EQ(seen.groups(0).done(), 1);
  EXPECT_EQ(seen.groups(0).waiting_ms(), 0);
  EXPECT_EQ(seen.groups(0).calls_size(), 2);  // and the next one
}

// More than the log holds were issued after the one that it waits in.
TEST_F(Calls, WaitWhoseRecordIsOverwritten_StillCounts) {
  const int group = log.add_group("dp", {0, 1}, false);
  started(group, call(1));
  for (int i = 2; i <= 1000; ++i) log.issue(group, call(i));
  const RankCollectives seen = read();
  EXPECT_EQ(seen.groups(0).entered(), 1);
  EXPECT_EQ(seen.groups(0).done(), 0);
  EXPECT_GT(seen.groups(0).waiting_ms(), 1000);
}

TEST_F(Calls, OnAGpu_IssuedIsEnteredAndDoneIsUnknown) {
  const int group = log.add_group("dp", {0, 1}, true);
  for (int i = 1; i <= 40; ++i) log.issue(group, call(i));
  const RankCollectives seen = read();
  EXPECT_EQ(seen.groups(0).entered(), 40);
  EXPECT_FALSE(seen.groups(0).has_done());
  EXPECT_EQ(seen.groups(0).calls_size(), 40);
}

TEST_F(Calls, Messages_AreNumberedForEachDirection) {
  const int group = log.add_group("pipeline", {2, 3}, false);
  done(group, call(1, CollectiveKind::kSend, 3));
  done(group, call(2, CollectiveKind::kSend, 3));
  done(group, call(1, CollectiveKind::kRecv, 3));
  started(group, call(2, CollectiveKind::kRecv, 3));
  const RankCollectives seen = read();
  ASSERT_EQ(seen.groups_size(), 2);
  EXPECT_TRUE(seen.groups(0).message());
  EXPECT_THAT(seen.groups(0).ranks(), ElementsAre(2, 1, 2));  // from 2 to 3
  EXPECT_EQ(seen.groups(0).entered(), 2);
  EXPECT_EQ(seen.groups(0).done(), 2);
  EXPECT_THAT(seen.groups(1).ranks(), ElementsAre(3, -1, 2));
  EXPECT_EQ(seen.groups(1).entered(), 2);
  EXPECT_EQ(seen.groups(1).done(), 1);
}

TEST(WriterState, IsThatOfTheProcessThatWrites) {
  CollectiveSnapshot snapshot;
  snapshot.pid = ::getpid();
  snapshot.same_pid_names = true;
  EXPECT_EQ(writer_state(snapshot, 'S'), 'R');
  snapshot.pid = INT_MAX;
  EXPECT_EQ(writer_state(snapshot, 'S'), 'X');
  snapshot.same_pid_names = false;  // the number means something else here
  EXPECT_EQ(writer_state(snapshot, 'S'), 'S');
}

}  // namespace
}  // namespace fleet
