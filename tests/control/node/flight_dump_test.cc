#include "node/flight_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "diagnosis/collective_waits.h"
#include "tests/control/flight_pickle.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using pickled::dump;
using pickled::dump_at;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNow = 100'000'000'000;

RankCollectives calls_of(const std::string& bytes, int rank, int world_size = 0) {
  RankCollectives calls = calls_of_flight_dump(
      bytes, "dump", {.rank = rank, .world_size = world_size, .unix_time = kNow});
  calls.set_state('S');
  return calls;
}

std::string failure(const std::string& bytes) {
  try {
    calls_of(bytes, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), "dump");
    return error.failure();
  }
  return {};
}

// Of the ranks with these dumps.
std::vector<std::string> waits(const std::vector<std::string>& dumps, int world_size = 0) {
  Stacks all;
  for (size_t rank = 0; rank < dumps.size(); ++rank) {
    *all.add_collectives() = calls_of(dumps[rank], static_cast<int>(rank), world_size);
  }
  std::vector<std::string> lines;
  for (const CollectiveWait& wait : find_collective_waits(all)) lines.push_back(wait.line());
  return lines;
}

TEST(FlightDump, GroupsAndCalls_AreThoseOfTheRank) {
  const RankCollectives rank = calls_of(dump_at("[0, 2, 4]", 7, 4), 2);
  ASSERT_EQ(rank.groups_size(), 1);
  const GroupCalls& group = rank.groups(0);
  EXPECT_EQ(group.name(), "default_pg");
  EXPECT_THAT(group.ranks(), ElementsAre(0, 2, 3));
  EXPECT_TRUE(group.ahead());
  EXPECT_EQ(group.entered(), 7);
  EXPECT_EQ(group.done(), 4);
  EXPECT_EQ(group.waiting_ms(), 99'999);
  ASSERT_EQ(group.calls_size(), 5);  // 3 to 7
  const GroupCall& call = group.calls(2);
  EXPECT_EQ(call.sequence(), 5);
  EXPECT_EQ(call.kind(), "all_reduce");
  EXPECT_EQ(call.size(), 25 << 20);
  EXPECT_EQ(call.purpose(), "train.py:44") << "the innermost line outside PyTorch";
  EXPECT_EQ(call.state(), GroupCall::STARTED);
  EXPECT_EQ(group.calls(1).state(), GroupCall::DONE);
  EXPECT_EQ(group.calls(3).state(), GroupCall::ISSUED);
}

TEST(FlightDump, RankHasNotIssuedACall_IsNamed) {
  EXPECT_THAT(waits({dump_at("[0, 1, 2]", 900, 811), dump_at("[0, 1, 2]", 811, 811),
                     dump_at("[0, 1, 2]", 860, 811)}),
              ElementsAre(AllOf(HasSubstr("rank 1 has not entered all_reduce #812"),
                                HasSubstr("2 wait in it"))));
}

// The hosts are ahead of the devices by different numbers of calls.
TEST(FlightDump, DevicesHangInACallThatAllHaveIssued_IsSaid) {
  EXPECT_THAT(waits({dump_at("[0, 1]", 900, 811), dump_at("[0, 1]", 850, 811)}),
              ElementsAre(HasSubstr("all 2 ranks are in all_reduce #812")));
  EXPECT_THAT(waits({dump_at("[0, 1]", 811, 811), dump_at("[0, 1]", 811, 811)}), IsEmpty());
}

TEST(FlightDump, RingHasOverwrittenTheFirstCalls_TheLastOnesCount) {
  EXPECT_THAT(waits({dump_at("[0, 1]", 900, 811, 700), dump_at("[0, 1]", 811, 811, 750)}),
              ElementsAre(HasSubstr("rank 1 has not entered all_reduce #812")));
}

// Rank 1 may have finished calls of the group long ago.
TEST(FlightDump, CallsOfAGroupAreTooOldToBeKept_NothingIsSaidOfTheRank) {
  const std::vector<pickled::Group> groups = {{"0", "default_pg", "[0, 1]"}, {"7", "dp", "[0, 1]"}};
  pickled::Call in_default{.number = 90};
  pickled::Call in_dp{.number = 5, .state = "started", .group = "7", .description = "dp"};
  EXPECT_THAT(waits({dump(groups, {in_default, in_dp}, 50), dump(groups, {in_default}, 50)}),
              ElementsAre(AllOf(HasSubstr("rank 0 waits in all_reduce #5"),
                                HasSubstr("calls of rank 1 are unknown"))));
  EXPECT_THAT(waits({dump(groups, {in_default, in_dp}, 50), dump(groups, {in_default})}),
              ElementsAre(HasSubstr("rank 1 has not entered all_reduce #5")))
      << "all calls of rank 1 are known";
}

TEST(FlightDump, DifferentOperationsOfANumber_AreAMismatch) {
  const std::vector<pickled::Group> groups = {{"0", "default_pg", "[0, 1, 2]"}};
  const pickled::Call reduce{.state = "started"};
  const pickled::Call gather{.name = "nccl:all_gather", .state = "started"};
  EXPECT_THAT(waits({dump(groups, {reduce}), dump(groups, {gather}), dump(groups, {reduce})}),
              ElementsAre(AllOf(HasSubstr("rank 1 is in all_gather #1"),
                                HasSubstr("the others in all_reduce #1"))));
  pickled::Call small = gather;
  small.sizes = {3};
  EXPECT_THAT(waits({dump(groups, {gather}), dump(groups, {small}), dump(groups, {gather})}),
              ElementsAre(HasSubstr("all 3 ranks are in all_gather")))
      << "its ranks may contribute different sizes";
}

// Several tensors as one call: the entry at their end has their state.
TEST(FlightDump, CoalescedCalls_CountAsOne) {
  const std::vector<pickled::Group> groups = {{"0", "default_pg", "[0, 1]"}};
  const pickled::Call part{.state = "scheduled", .sizes = {1}};
  const pickled::Call all{.name = "nccl:coalesced", .sizes = {}};
  EXPECT_THAT(waits({dump(groups, {part, part, all}), dump(groups, {part, part, all})}), IsEmpty());
}

TEST(FlightDump, Messages_AreNumberedByDirection) {
  const std::vector<pickled::Group> groups = {{"0", "default_pg", "[0, 1, 2, 3]"},
                                              {"9", "pp", "[1, 3]"}};
  const auto message = [](const std::string& name, const std::string& state) {
    return pickled::Call{
        .name = name, .state = state, .group = "9", .description = "pp", .message = true};
  };
  const auto send = message("nccl:send 0->1", "completed");
  const auto recv = message("nccl:recv 1<-0", "completed");
  const auto waiting = message("nccl:recv 1<-0", "scheduled");
  const std::string none = dump(groups, {});
  EXPECT_THAT(waits({none, dump(groups, {send}), none, dump(groups, {recv, waiting})}),
              ElementsAre(AllOf(HasSubstr("rank 1 has not entered send #2"),
                                HasSubstr("to rank 3 of group pp"))));
  EXPECT_THAT(waits({none, dump(groups, {send}, 5), none, dump(groups, {recv, waiting}, 5)}),
              IsEmpty())
      << "without the first calls they cannot be numbered";
  auto batched = waiting, end = message("nccl:coalesced", "completed");
  batched.batch = end.batch = 3;
  EXPECT_THAT(waits({none, dump(groups, {send}), none, dump(groups, {recv, batched, end})}),
              IsEmpty())
      << "it has the state of its batch";
}

TEST(FlightDump, GroupsOfEqualDescriptionAndRanks_AreToldApart) {
  const std::vector<pickled::Group> groups = {
      {"1", "undefined", "[0, 1]"}, {"2", "dp", "[0, 1]"}, {"3", "dp", "[0, 1]"}};
  const RankCollectives rank =
      calls_of(dump(groups, {{.group = "1", .description = "undefined"},
                             {.number = 2, .group = "2", .description = "dp"},
                             {.number = 3, .group = "3", .description = "dp"}}),
               0);
  ASSERT_EQ(rank.groups_size(), 3);
  EXPECT_EQ(rank.groups(0).name(), "1") << "a group without a description has its name";
  EXPECT_EQ(rank.groups(1).ordinal(), 0);
  EXPECT_EQ(rank.groups(2).ordinal(), 1);
}

// scripts/make_flight_dumps.py: PyTorch 2.15 with Gloo, which records no ranks of its groups.
TEST(FlightDump, OfPyTorch_NamesTheRankThatIsMissing) {
  std::vector<std::string> dumps;
  for (const char* rank : {"0", "1", "2"}) {
    dumps.push_back(read_file(source_folder() + "/tests/golden/flight_gloo_" + rank));
  }
  Stacks all;
  for (int rank = 0; rank < 3; ++rank) {
    *all.add_collectives() = calls_of_flight_dump(
        dumps[static_cast<size_t>(rank)], "dump",
        {.rank = rank, .world_size = 3, .unix_time = int64_t{4'000'000'000} * 1'000'000'000});
  }
  const std::vector<CollectiveWait> found = find_collective_waits(all);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].line(),
              AllOf(HasSubstr("rank 1 has not entered all_reduce #4"), HasSubstr("2 wait in it")));
}

TEST(FlightDump, CutOffOrSomethingElse_IsRefused) {
  const std::string good = dump_at("[0, 1]", 3, 2);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(failure(good.substr(0, size)), "") << size;
  }
  EXPECT_EQ(failure(good), "");
  EXPECT_THAT(failure(good + "."), HasSubstr("is not a dump"));
  EXPECT_THAT(failure(pickled::whole(pickled::list({}))), HasSubstr("is not a dump"));
  EXPECT_THAT(failure(pickled::whole(pickled::dict({{"version", pickled::text("1.0")}}))),
              HasSubstr("is not a dump"));
  EXPECT_THAT(failure("\x80\x02"
                      "cposix\nsystem\n(X\2\0\0\0ls"
                      "tR."),
              HasSubstr("not executed"));
}

TEST(FlightDump, ValuesOfWrongKinds_AreLeftOut) {
  using pickled::dict, pickled::list, pickled::number, pickled::text;
  const std::string odd = dict({{"collective_seq_id", number(-5)}});
  const std::string far = dict({{"collective_seq_id", number(INT64_MAX)}});
  const std::string bare = dict({{"collective_seq_id", number(1)}, {"process_group", number(1)}});
  for (const std::string& entries : {list({odd, far, bare, number(3), list({})}), number(3)}) {
    const RankCollectives rank = calls_of(
        pickled::whole(
            dict({{"version", text("2.10")}, {"pg_config", list({})}, {"entries", entries}})),
        0, 2);
    for (const GroupCalls& group : rank.groups()) EXPECT_EQ(group.calls_size(), 0);
  }
}

// Values that refer to each other: a small file of many calls, each with many frames. Calls before
// the newest ones and frames beyond the first ones are not read.
TEST(FlightDump, HostileReferences_AreBounded) {
  const auto group_of = [](int frames, int references) {
    const std::string group = pickled::pair(pickled::text("0"), pickled::text("default_pg"));
    std::string bytes = "\x80\x02" + pickled::frame("/lib/torch/x.py", 1) + "q\x01" + "0](";
    for (int i = 0; i < frames; ++i) bytes += "h\x01";
    bytes += pickled::frame("/data/train.py", 44) + "eq\x02" + "0";
    bytes += pickled::dict({{"process_group", group},
                            {"frames", "h\x02"},
                            {"collective_seq_id", pickled::number(1)}}) +
             "q\x03" + "0";
    std::string entries =
        "](" + pickled::dict({{"process_group", group}, {"collective_seq_id", pickled::number(5)}});
    for (int i = 0; i < references; ++i) entries += "h\x03";
    bytes += pickled::dict({{"version", pickled::text("2.10")}, {"entries", entries + "e"}}) + ".";
    const RankCollectives calls = calls_of(bytes, 0, 2);
    EXPECT_EQ(calls.groups_size(), 1);
    return calls.groups_size() > 0 ? calls.groups(0) : GroupCalls();
  };
  const GroupCalls few = group_of(3, 10);
  EXPECT_EQ(few.entered(), 5);
  ASSERT_EQ(few.calls_size(), 2);
  EXPECT_EQ(few.calls(0).purpose(), "train.py:44");
  const GroupCalls many = group_of(100'000, 200'000);
  EXPECT_EQ(many.entered(), 1) << "the oldest call is beyond the bound";
  ASSERT_EQ(many.calls_size(), 1);
  EXPECT_EQ(many.calls(0).purpose(), "") << "its only line outside PyTorch is beyond the bound";
}

}  // namespace
}  // namespace fleet
