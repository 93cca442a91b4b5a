#include "daemon/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

JobRequest request(const std::string& job_id) {
  JobRequest wish;
  wish.job_id = job_id;
  wish.user = "ann";
  wish.program = {"train.py"};
  return wish;
}

std::string refusal(JobTable& table, const JobRequest& wish) {
  try {
    table.prepare(wish, 0);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

JobRecord record(const std::string& job_id, int epoch) {
  JobRecord all;
  all.job_id = job_id;
  all.epoch = epoch;
  return all;
}

TEST(JobTable, Job_GoesThroughItsPhases) {
  JobTable table("ann", {"0", "1"});
  EXPECT_EQ(table.prepare(request("a"), 1).phase, JobPhase::kPrepared);
  EXPECT_THAT(table.find("a")->gpus, ElementsAre("0", "1"));
  table.launched("a", 77, 2);
  EXPECT_EQ(table.find("a")->phase, JobPhase::kForming);
  table.recorded("a", record("a", 0));
  EXPECT_EQ(table.find("a")->phase, JobPhase::kForming);
  table.recorded("a", record("a", 1));
  EXPECT_EQ(table.find("a")->phase, JobPhase::kRunning);
  table.stopping("a");
  table.recorded("a", record("a", 2));
  EXPECT_EQ(table.find("a")->phase, JobPhase::kStopping);
  table.ended("a", 5, "{}", 9);
  EXPECT_EQ(table.find("a")->phase, JobPhase::kEnded);
  EXPECT_EQ(table.find("a")->code, 5);
  // What comes late changes nothing.
  table.stopping("a");
  table.ended("a", 0, "", 10);
  EXPECT_EQ(table.find("a")->code, 5);
}

TEST(JobTable, Names_AreUniqueAmongTheLiving) {
  JobTable table("ann", {});
  table.prepare(request("a"), 0);
  EXPECT_THAT(refusal(table, request("a")), HasSubstr("is here already"));
  table.launched("a", 1, 0);
  table.ended("a", 0, "", 1);
  table.prepare(request("a"), 2);
  EXPECT_THAT(table.all(), SizeIs(1));
}

TEST(JobTable, Reservation_LeavesNothing) {
  JobTable table("ann", {"0"});
  table.prepare(request("a"), 0);
  EXPECT_THAT(refusal(table, request("b")), HasSubstr("job 'a'"));
  table.ended("a", 0, "", 1);
  EXPECT_THAT(table.all(), IsEmpty());
  EXPECT_THAT(table.prepare(request("b"), 2).gpus, ElementsAre("0"));
}

TEST(JobTable, RefusedJob_HasNoGpus) {
  JobTable::Limits limits;
  limits.running = 1;
  JobTable table("ann", {"0"}, limits);
  JobRequest first = request("a");
  first.gpus.none = true;
  table.prepare(first, 0);
  EXPECT_THAT(refusal(table, request("b")), HasSubstr("1 jobs already"));
  table.ended("a", 0, "", 1);
  EXPECT_THAT(table.prepare(request("c"), 2).gpus, ElementsAre("0"));
}

TEST(JobTable, AnotherUsersJob_IsRefused) {
  JobTable table("ann", {});
  JobRequest wish = request("a");
  wish.user = "bob";
  EXPECT_THAT(refusal(table, wish), HasSubstr("the commands of user 'ann', not of 'bob'"));
  wish.user = "";
  EXPECT_EQ(table.prepare(wish, 0).record.job_id, "a");
}

TEST(JobTable, EndedJobs_AreForgottenByAgeAndNumber) {
  JobTable::Limits limits;
  limits.remembered = 2;
  limits.remembered_for = 100;
  JobTable table("ann", {}, limits);
  for (const char* name : {"a", "b", "c", "d"}) {
    table.prepare(request(name), 0);
    table.launched(name, 1, 0);
  }
  for (const char* name : {"a", "b", "c"}) table.ended(name, 0, "", 50);
  EXPECT_THAT(table.forget(60), ElementsAre("a"));
  EXPECT_THAT(table.forget(151), ElementsAre("b", "c"));
  EXPECT_THAT(table.all(), SizeIs(1));  // the one that runs
}

}  // namespace
}  // namespace fleet
