#include "diagnosis/collective_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How far a rank is in a group of ranks 0 to size - 1.
struct At {
  int64_t entered = 0, done = 0;
  std::string kind = "all_reduce";
  int64_t bytes = 25 << 20;
  int64_t waiting_ms = 5000;
};

struct Ranks {
  RankCollectives& rank(int number) {
    for (RankCollectives& known : *all.mutable_collectives()) {
      if (known.rank() == number) return known;
    }
    RankCollectives& made = *all.add_collectives();
    made.set_rank(number);
    made.set_state('S');
    return made;
  }
  GroupCalls& in(int number, const At& at, const std::string& group, std::vector<int> runs,
                 const std::string& purpose = "bucket 4") {
    GroupCalls& calls = *rank(number).add_groups();
    calls.set_name(group);
    calls.mutable_ranks()->Assign(runs.begin(), runs.end());
    calls.set_entered(at.entered);
    calls.set_done(at.done);
    calls.set_waiting_ms(at.entered > at.done ? at.waiting_ms : 0);
    for (int64_t number_of_call = std::max<int64_t>(1, at.entered - 1);
         number_of_call <= at.entered; ++number_of_call) {
      GroupCall& call = *calls.add_calls();
      call.set_sequence(number_of_call);
      call.set_kind(at.kind);
      call.set_size(at.bytes);
      call.set_purpose(purpose);
      call.set_state(number_of_call > at.done ? GroupCall::STARTED : GroupCall::DONE);
    }
    return calls;
  }
  // In the group of ranks 0 to size - 1.
  void all_in(const std::vector<At>& at, const std::string& group = "dp") {
    for (size_t i = 0; i < at.size(); ++i) {
      in(static_cast<int>(i), at[i], group, {0, 1, static_cast<int>(at.size())});
    }
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const CollectiveWait& wait : find_collective_waits(all)) lines.push_back(wait.line());
    return lines;
  }
  Stacks all;
};

TEST(CollectiveWaits, OneHasNotEntered_IsNamedWithTheNumberThatWait) {
  Ranks ranks;
  std::vector<At> at(8, {812, 811});
  at[3] = {811, 811};
  ranks.all_in(at);
  EXPECT_THAT(ranks.lines(), ElementsAre("rank 3 has not entered all_reduce #812 (bucket 4, 25 "
                                         "MiB) of group dp; 7 wait in it"));
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  EXPECT_EQ(waits[0].kind(), CollectiveWait::MISSING);
  EXPECT_THAT(waits[0].missing(), ElementsAre(3));
  EXPECT_EQ(waits[0].waiting_size(), 7);
  EXPECT_EQ(rank_waited_for(waits), 3);
}

TEST(CollectiveWaits, StoppedAndGoneRanks_AreSaid) {
  Ranks ranks;
  ranks.all_in({{5, 4}, {4, 4}, {5, 4}});
  ranks.rank(1).set_state('T');
  const std::string begin =
      "rank 1 has not entered all_reduce #5 (bucket 4, 25 MiB) of group dp; 2 wait in it; ";
  EXPECT_THAT(ranks.lines(), ElementsAre(begin + "rank 1 is stopped (by a signal)"));
  ranks.rank(1).set_state('X');
  EXPECT_THAT(ranks.lines(), ElementsAre(begin + "the process of rank 1 is gone"));
}

TEST(CollectiveWaits, RankIsStillInTheOneBefore_IsSaid) {
  Ranks ranks;
  ranks.all_in({{6, 5}, {5, 4}, {6, 5}});
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_reduce #6"),
                                               HasSubstr("rank 1 is still in all_reduce #5"))));
}

TEST(CollectiveWaits, HealthyRanks_SayNothing) {
  Ranks ranks;
  ranks.all_in({{5, 4, "all_reduce", 4096, 20}, {4, 4}, {5, 4, "all_reduce", 4096, 900}});
  EXPECT_THAT(ranks.lines(), IsEmpty());
  Ranks idle;
  idle.all_in({{5, 5}, {5, 5}, {4, 4}});  // a broadcast's root need not wait
  EXPECT_THAT(idle.lines(), IsEmpty());
  EXPECT_THAT(Ranks().lines(), IsEmpty());
}

TEST(CollectiveWaits, RankWithoutTheGroup_HasNotEnteredItsFirstCall) {
  Ranks ranks;
  for (const int rank : {0, 1}) ranks.in(rank, {1, 0}, "dp", {0, 1, 3});
  EXPECT_THAT(ranks.lines(), IsEmpty()) << "nothing is known of rank 2";
  ranks.rank(2);
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].kind(), CollectiveWait::MISSING);
  EXPECT_THAT(waits[0].missing(), ElementsAre(2));
  EXPECT_EQ(waits[0].call().sequence(), 1);
}

// Rank 5 waits in its pipeline for rank 1, so ranks 4, 6 and 7 wait for it.
TEST(CollectiveWaits, RankThatWaitsElsewhereItself_IsNotNamed) {
  Ranks ranks;
  for (const int rank : {4, 6, 7}) ranks.in(rank, {9, 8}, "dp", {4, 1, 4});
  ranks.in(5, {8, 8}, "dp", {4, 1, 4});
  ranks.in(5, {3, 2}, "pipeline", {1, 4, 2});
  ranks.in(1, {2, 2}, "pipeline", {1, 4, 2});
  EXPECT_THAT(ranks.lines(),
              ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_reduce #3"),
                                HasSubstr("group pipeline"), HasSubstr("rank 5 waits in it"))));
}

TEST(CollectiveWaits, Circle_NamesBothCollectives) {
  Ranks ranks;
  ranks.in(0, {3, 2}, "a", {0, 1, 2});
  ranks.in(1, {2, 2}, "a", {0, 1, 2});
  ranks.in(0, {6, 6}, "b", {0, 1, 2});
  ranks.in(1, {7, 6}, "b", {0, 1, 2});
  EXPECT_THAT(
      ranks.lines(),
      ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_reduce #3"),
                        HasSubstr("group a; rank 0 waits"), HasSubstr("it waits elsewhere")),
                  AllOf(HasSubstr("rank 0 has not entered all_reduce #7"),
                        HasSubstr("group b; rank 1 waits"), HasSubstr("it waits elsewhere"))));
  for (const CollectiveWait& wait : find_collective_waits(ranks.all)) {
    EXPECT_EQ(wait.kind(), CollectiveWait::CIRCLE);
  }
  EXPECT_EQ(rank_waited_for(find_collective_waits(ranks.all)), std::nullopt);
}

TEST(CollectiveWaits, DifferentCallsOfANumber_AreNamed) {
  Ranks ranks;
  ranks.all_in({{5, 4}, {5, 4, "broadcast", 4096}, {5, 4}});
  ranks.rank(1).mutable_groups(0)->mutable_calls(0)->set_kind("all_reduce");  // #4 was equal
  ranks.rank(1).mutable_groups(0)->mutable_calls(0)->set_size(25 << 20);
  EXPECT_THAT(ranks.lines(),
              ElementsAre(AllOf(HasSubstr("rank 1 is in broadcast #5"), HasSubstr("4 KiB"),
                                HasSubstr("the others in all_reduce #5"))));
  EXPECT_EQ(find_collective_waits(ranks.all)[0].kind(), CollectiveWait::MISMATCH);
  EXPECT_EQ(rank_waited_for(find_collective_waits(ranks.all)), 1);
}

TEST(CollectiveWaits, DifferentSizes_AreAMismatchToo) {
  Ranks ranks;
  ranks.all_in({{5, 4, "all_reduce", 1000}, {5, 4, "all_reduce", 1001}});
  EXPECT_THAT(ranks.lines(),
              ElementsAre(AllOf(HasSubstr("rank 0 is in all_reduce #4"), HasSubstr("1000 bytes"),
                                HasSubstr("rank 1 in all_reduce #4"), HasSubstr("1001 bytes"))));
}

TEST(CollectiveWaits, AllAreInIt_IsSaidIfNothingElseIs) {
  Ranks ranks;
  ranks.all_in({{5, 4}, {5, 4}, {5, 4}});
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].kind(), CollectiveWait::TOGETHER);
  EXPECT_EQ(waits[0].group(), "dp");
  EXPECT_EQ(waits[0].call().sequence(), 5);
  EXPECT_THAT(waits[0].missing(), IsEmpty());
  EXPECT_THAT(waits[0].waiting(), ElementsAre(0, 1, 2));
  EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("none continues")));
  EXPECT_EQ(rank_waited_for(waits), std::nullopt);
  ranks.rank(2).set_state('T');
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("all 3 ranks are in all_reduce #5"),
                                               HasSubstr("rank 2 is stopped (by a signal)"))));
}

TEST(CollectiveWaits, RankDiedInIt_IsNamedAndTheDeadDoNotWait) {
  Ranks ranks;
  ranks.all_in({{5, 4}, {5, 4}, {5, 4}});
  ranks.rank(1).set_state('X');
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("all 3 ranks are in all_reduce #5"),
                                               HasSubstr("the process of rank 1 is gone"))));
  EXPECT_EQ(rank_waited_for(find_collective_waits(ranks.all)), 1);
  for (const int rank : {0, 2}) ranks.rank(rank).set_state('X');
  EXPECT_THAT(ranks.lines(), IsEmpty());
}

// GPUs do not say what is done, and hosts issue ahead.
TEST(CollectiveWaits, Gpus_WaitInTheFirstCallThatIsNotEverywhere) {
  Ranks ranks;
  ranks.all_in({{900, 0}, {811, 0}, {902, 0}});
  for (int rank = 0; rank < 3; ++rank) {
    GroupCalls& calls = *ranks.rank(rank).mutable_groups(0);
    calls.clear_done();
    for (GroupCall& call : *calls.mutable_calls()) call.set_state(GroupCall::ISSUED);
    GroupCall next = calls.calls(0);
    next.set_sequence(812);
    next.set_state(GroupCall::ISSUED);
    if (rank != 1) *calls.add_calls() = next;
  }
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_reduce #812"),
                                               HasSubstr("2 wait in it"))));
  for (int rank = 0; rank < 3; ++rank) ranks.rank(rank).mutable_groups(0)->set_entered(902);
  EXPECT_THAT(ranks.lines(), IsEmpty()) << "all of it is issued: nothing more is known";
}

// PyTorch says what is done, and its hosts issue ahead.
TEST(CollectiveWaits, CallsAhead_WaitInTheFirstThatIsNotDone) {
  Ranks ranks;
  ranks.all_in({{900, 811}, {850, 811}, {902, 811}});
  for (int rank = 0; rank < 3; ++rank) ranks.rank(rank).mutable_groups(0)->set_ahead(true);
  EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("all 3 ranks are in call #812")))
      << "all have issued it, though they are not equally far ahead";
  ranks.rank(1).mutable_groups(0)->set_entered(811);
  ranks.rank(1).mutable_groups(0)->set_waiting_ms(0);
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("rank 1 has not entered call #812"),
                                               HasSubstr("2 wait in it"))));
}

TEST(CollectiveWaits, OthersWaitAndNothingIsKnownOfARank_ItIsNamedAsThat) {
  Ranks ranks;
  for (const int rank : {0, 2}) ranks.in(rank, {5, 4}, "dp", {0, 1, 3}).set_ahead(true);
  ranks.rank(1).set_missing("no pipe");
  EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("the calls of rank 1 are unknown")));
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  EXPECT_EQ(waits[0].group(), "dp");
  EXPECT_EQ(waits[0].call().sequence(), 5);
  EXPECT_EQ(waits[0].kind(), CollectiveWait::UNKNOWN);
  EXPECT_THAT(waits[0].missing(), ElementsAre(1));
  EXPECT_THAT(waits[0].waiting(), ElementsAre(0, 2));
  EXPECT_EQ(rank_waited_for(waits), std::nullopt) << "it may wait in the call too";
  ranks.rank(1).set_state('T');
  EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("; rank 1 is stopped (by a signal)")));
  ranks.rank(2).mutable_groups(0)->set_entered(4);
  EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("rank 2 has not entered all_reduce #5")))
      << "a rank that is known to be missing is named instead";
}

TEST(CollectiveWaits, RecorderIsOffOrTheGroupIsUnknown_RankIsNotCalledMissing) {
  for (const bool off : {true, false}) {
    Ranks ranks;
    ranks.in(0, {5, 4}, "dp", {0, 1, 2}).set_ahead(true);
    off ? ranks.rank(1).set_recorder_off(true)
        : ranks.in(1, {0, 0}, "dp", {0, 1, 2}).set_unknown(true);
    EXPECT_THAT(ranks.lines(), ElementsAre(HasSubstr("the calls of rank 1 are unknown")));
  }
}

TEST(CollectiveWaits, Message_NamesSenderAndReceiver) {
  Ranks ranks;
  ranks.in(3, {12, 11, "recv", 4 << 20}, "pipeline", {2, 1, 2}, "x").set_message(true);
  ranks.in(2, {11, 11, "send", 4 << 20}, "pipeline", {2, 1, 2}, "x").set_message(true);
  EXPECT_THAT(ranks.lines(), ElementsAre(AllOf(HasSubstr("rank 2 has not entered send #12"),
                                               HasSubstr("to rank 3 of group pipeline"),
                                               HasSubstr("rank 3 waits in recv"))));
}

TEST(CollectiveWaits, EqualGroups_AreToldApart) {
  Ranks ranks;
  for (const int ordinal : {0, 1}) {
    ranks.in(0, {5, 5}, "dp", {0, 1, 2}).set_ordinal(ordinal);
    ranks.in(1, {ordinal == 0 ? 5 : 6, 5}, "dp", {0, 1, 2}).set_ordinal(ordinal);
  }
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_THAT(waits[0].missing(), ElementsAre(0));
  EXPECT_EQ(waits[0].call().sequence(), 6);
}

TEST(CollectiveWaits, ThousandsOfRanks_AreQuickAndShort) {
  Ranks ranks;
  for (int rank = 0; rank < 4096; ++rank) {
    RankCollectives& one = *ranks.all.add_collectives();
    one.set_rank(rank);
    GroupCalls& calls = *one.add_groups();
    calls.set_name("dp");
    for (const int number : {0, 1, 4096}) calls.add_ranks(number);
    calls.set_entered(rank % 2 == 0 ? 7 : 6);
    calls.set_done(6);
    calls.set_waiting_ms(9000);
  }
  const std::vector<CollectiveWait> waits = find_collective_waits(ranks.all);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].waiting_size(), 2048);
  EXPECT_EQ(waits[0].missing_size(), 2048);
  EXPECT_LT(waits[0].line().size(), 500u);
}

}  // namespace
}  // namespace fleet
