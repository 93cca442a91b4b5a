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
  const JobInfo& job = table.prepare(request("a"), 1);
  const int a = job.number;
  EXPECT_EQ(job.phase, JobPhase::kPrepared);
  EXPECT_THAT(table.find(a)->gpus, ElementsAre("0", "1"));
  table.launched(a, 77, 2);
  EXPECT_EQ(table.find(a)->phase, JobPhase::kForming);
  table.recorded(a, record("a", 0));
  EXPECT_EQ(table.find(a)->phase, JobPhase::kForming);
  table.recorded(a, record("a", 1));
  EXPECT_EQ(table.find(a)->phase, JobPhase::kRunning);
  table.stopping(a);
  table.recorded(a, record("a", 2));
  EXPECT_EQ(table.find(a)->phase, JobPhase::kStopping);
  table.ended(a, 5, "{}", 9);
  EXPECT_EQ(table.find(a)->phase, JobPhase::kEnded);
  EXPECT_EQ(table.find(a)->code, 5);
  // What comes late changes nothing.
  table.stopping(a);
  table.ended(a, 0, "", 10);
  EXPECT_EQ(table.find(a)->code, 5);
}

TEST(JobTable, Names_AreUniqueAmongTheLiving) {
  JobTable table("ann", {});
  const int first = table.prepare(request("a"), 0).number;
  EXPECT_THAT(refusal(table, request("a")), HasSubstr("already exists"));
  table.launched(first, 1, 0);
  table.ended(first, 0, "", 1);
  const int second = table.prepare(request("a"), 2).number;
  EXPECT_THAT(table.all(), SizeIs(1));
  // Whoever still holds the first one does not mean the second.
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.named("a")->number, second);
}

TEST(JobTable, Reservation_LeavesNothing) {
  JobTable table("ann", {"0"});
  const int a = table.prepare(request("a"), 0).number;
  EXPECT_THAT(refusal(table, request("b")), HasSubstr("job 'a'"));
  table.ended(a, 0, "", 1);
  EXPECT_THAT(table.all(), IsEmpty());
  EXPECT_THAT(table.prepare(request("b"), 2).gpus, ElementsAre("0"));
}

TEST(JobTable, RefusedJob_HasNoGpus) {
  JobTable::Limits limits;
  limits.running = 1;
  JobTable table("ann", {"0"}, limits);
  JobRequest first = request("a");
  first.gpus.none = true;
  const int a = table.prepare(first, 0).number;
  EXPECT_THAT(refusal(table, request("b")), HasSubstr("already runs 1 jobs"));
  table.ended(a, 0, "", 1);
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

TEST(JobTable, Place_StaysWhereRanksChange) {
  JobTable table("ann", {});
  JobRequest wish = request("a");
  wish.node_rank = 2;
  wish.folder = "/data";
  wish.log_dir = "log/a";
  const int a = table.prepare(wish, 0).number;
  EXPECT_EQ(table.find(a)->record.log_dir, "/data/log/a");
  table.launched(a, 1, 0);
  JobRecord closer = record("a", 2);
  closer.node_rank = 1;
  table.recorded(a, closer);
  EXPECT_EQ(table.find(a)->record.node_rank, 1);
  EXPECT_EQ(table.find(a)->place, 2);
}

TEST(JobTable, EndedJobs_AreForgottenByAgeAndNumber) {
  JobTable::Limits limits;
  limits.remembered = 2;
  limits.remembered_for = 100;
  JobTable table("ann", {}, limits);
  std::vector<int> numbers;
  for (const char* name : {"a", "b", "c", "d"}) {
    numbers.push_back(table.prepare(request(name), 0).number);
    table.launched(numbers.back(), 1, 0);
  }
  for (int i = 0; i < 3; ++i) table.ended(numbers[static_cast<size_t>(i)], 0, "", 50);
  const auto named = [](const char* name) {
    return ::testing::ResultOf([](const JobInfo& job) { return job.record.job_id; },
                               ::testing::Eq(name));
  };
  EXPECT_THAT(table.forget(60), ElementsAre(named("a")));
  EXPECT_THAT(table.forget(151), ElementsAre(named("b"), named("c")));
  EXPECT_THAT(table.all(), SizeIs(1));  // the one that runs
}

TEST(JobTable, JobOfAnEarlierFleetd_IsKnown) {
  JobTable table("ann", {"0"});
  JobInfo old;
  old.record.job_id = "a";
  old.phase = JobPhase::kEnded;
  old.code = 5;
  table.remember(old);
  EXPECT_EQ(table.named("a")->code, 5);
  const int number = table.named("a")->number;
  EXPECT_THAT(table.prepare(request("a"), 0).gpus, ElementsAre("0"));
  EXPECT_EQ(table.find(number), nullptr);
  table.remember(old);  // it has a successor
  EXPECT_THAT(table.all(), SizeIs(1));
}

}  // namespace
}  // namespace fleet
