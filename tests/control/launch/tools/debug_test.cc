#include "launch/tools/debug.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/commands.h"
#include "base/error.h"

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

template <typename F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
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
  EXPECT_THAT(error_of([] { parse_debug({}); }), HasSubstr("add --rank R"));
  EXPECT_THAT(error_of([] { parse_debug({"--rank"}); }), HasSubstr("needs a value"));
  EXPECT_THAT(error_of([] { parse_debug({"--rank=x"}); }), HasSubstr("--rank"));
  EXPECT_THAT(error_of([] { parse_debug({"--rank=1", "--gdb"}); }), HasSubstr("'--gdb'"));
  EXPECT_THAT(error_of([] { parse_debug({"--rank=1", "a", "gdb"}); }), HasSubstr("after --"));
}

TEST(DebugRank, OfTheOnlyJobThatHasIt) {
  const std::vector<JobRecord> jobs = {job("a", {0, 1}), job("b", {2, 3})};
  EXPECT_EQ(find_rank(wish_for(3), jobs).rank.pid(), 1003);
  EXPECT_EQ(find_rank(wish_for(1, "a"), jobs).job.job_id(), "a");
}
TEST(DebugRank, NotHere_SaysWhatIs) {
  EXPECT_THAT(error_of([] {
                find_rank(wish_for(5), {job("a", {0, 1})});
              }),
              HasSubstr("job 'a' (pid 100) has rank 0, 1"));
  EXPECT_THAT(error_of([] { find_rank(wish_for(0), {}); }), HasSubstr("no job runs on this node"));
  EXPECT_THAT(error_of([] { find_rank(wish_for(0, "x"), {job("a", {0})}); }),
              HasSubstr("no job 'x' runs"));
}
TEST(DebugRank, SeveralJobs_MustBeChosen) {
  const std::vector<JobRecord> jobs = {job("a", {0}), job("b", {0})};
  EXPECT_THAT(error_of([&] { find_rank(wish_for(0), jobs); }),
              HasSubstr("a (pid 100), b (pid 100)"));
  EXPECT_EQ(find_rank(wish_for(0, "b"), jobs).job.job_id(), "b");
}
TEST(DebugRank, TwoOfOneName_AreDistinguishedByPid) {
  std::vector<JobRecord> jobs = {job("a", {0}), job("a", {0})};
  jobs[1].set_pid(200);
  EXPECT_THAT(error_of([&] { find_rank(wish_for(0, "a"), jobs); }), HasSubstr("a (pid 200)"));
  EXPECT_EQ(find_rank(wish_for(0, "200"), jobs).job.pid(), 200);
}
TEST(DebugRank, Servers_AreNoRanks) {
  JobRecord record = job("a", {0});
  record.mutable_ranks(0)->set_server(true);
  EXPECT_THAT(error_of([&] { find_rank(wish_for(0), {record}); }), HasSubstr("no rank yet"));
}

}  // namespace
}  // namespace fleet
