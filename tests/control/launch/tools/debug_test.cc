#include "launch/tools/debug.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/commands.h"
#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

JobRecord job(const std::string& id, std::vector<int> ranks) {
  JobRecord record;
  record.set_job_id(id);
  record.set_pid(100);
  for (const int rank : ranks) {
    JobRecord::Rank* added = record.add_ranks();
    added->set_local_rank(rank);
    added->set_rank(rank);
    added->set_pid(1000 + rank);
  }
  return record;
}
DebugRequest wish_for(int rank, const std::string& job = "") { return {rank, job, false, {}}; }

DebugRequest parse_debug(const std::vector<std::string>& arguments) {
  return parse_debug_request(*read_command_line(find_command("debug")->syntax, arguments));
}

TEST(DebugArguments, RankJobAndWrapper) {
  const DebugRequest request = parse_debug({"--rank", "3", "train", "--", "gdb", "--args"});
  EXPECT_EQ(request.rank, 3);
  EXPECT_EQ(request.job, "train");
  EXPECT_FALSE(request.attach);
  EXPECT_THAT(request.wrapper, ElementsAre("gdb", "--args"));
}
TEST(DebugArguments, Defaults_AreGdb) {
  EXPECT_THAT(parse_debug({"--rank=0"}).wrapper, ElementsAre("gdb", "--args"));
  EXPECT_THAT(parse_debug({"--attach", "--rank=0"}).wrapper, ElementsAre("gdb", "-p"));
}
TEST(DebugArguments, Bad_AreNamed) {
  EXPECT_THAT(thrown_by([] { parse_debug({}); }), IsUsageError("debug"));
  EXPECT_THAT(thrown_by([] { parse_debug({"--rank"}); }), IsUsageError());
  EXPECT_THAT(thrown_by([] { parse_debug({"--rank=x"}); }), IsUsageError("--rank"));
  EXPECT_THAT(thrown_by([] { parse_debug({"--rank=1", "--gdb"}); }), IsUsageError());
  EXPECT_THAT(thrown_by([] { parse_debug({"--rank=1", "a", "gdb"}); }), IsUsageError("debug"));
}

TEST(DebugRank, OfTheOnlyJobThatHasIt) {
  const std::vector<JobRecord> jobs = {job("a", {0, 1}), job("b", {2, 3})};
  EXPECT_EQ(find_rank(wish_for(3), jobs).rank.pid(), 1003);
  EXPECT_EQ(find_rank(wish_for(1, "a"), jobs).job.job_id(), "a");
}
TEST(DebugRank, NotHere_SaysWhatIs) {
  EXPECT_THAT(thrown_by([] {
                find_rank(wish_for(5), {job("a", {0, 1})});
              }).what(),
              HasSubstr("job 'a' (pid 100) has rank 0, 1"));
  EXPECT_THAT(thrown_by([] { find_rank(wish_for(0), {}); }), IsUsageError("rank 0"));
  EXPECT_THAT(thrown_by([] { find_rank(wish_for(0, "x"), {job("a", {0})}); }),
              IsUsageError("rank 0"));
}
TEST(DebugRank, SeveralJobs_MustBeChosen) {
  const std::vector<JobRecord> jobs = {job("a", {0}), job("b", {0})};
  EXPECT_THAT(thrown_by([&] { find_rank(wish_for(0), jobs); }), IsUsageError("rank 0"));
  EXPECT_EQ(find_rank(wish_for(0, "b"), jobs).job.job_id(), "b");
}
TEST(DebugRank, TwoOfOneName_AreDistinguishedByPid) {
  std::vector<JobRecord> jobs = {job("a", {0}), job("a", {0})};
  jobs[1].set_pid(200);
  EXPECT_THAT(thrown_by([&] { find_rank(wish_for(0, "a"), jobs); }).what(),
              HasSubstr("a (pid 200)"));
  EXPECT_EQ(find_rank(wish_for(0, "200"), jobs).job.pid(), 200);
}
TEST(DebugRank, Servers_AreNoRanks) {
  JobRecord record = job("a", {0});
  record.mutable_ranks(0)->set_server(true);
  EXPECT_THAT(thrown_by([&] { find_rank(wish_for(0), {record}); }), IsUsageError("rank 0"));
}

}  // namespace
}  // namespace fleet
