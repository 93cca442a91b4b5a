#include "daemon/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

JobRequest request(const std::string& job_id) {
  JobRequest wanted;
  wanted.set_job_id(job_id);
  wanted.set_user("ann");
  wanted.add_program("train.py");
  return wanted;
}

Error table_refusal(JobTable& table, const JobRequest& wanted) {
  return thrown_by([&] { table.prepare(wanted, 0); });
}

JobRecord record(const std::string& job_id, int generation) {
  JobRecord all;
  all.set_job_id(job_id);
  all.set_generation(generation);
  return all;
}

TEST(JobTable, Job_GoesThroughItsPhases) {
  JobTable table("ann", {"0", "1"});
  const JobInfo& job = table.prepare(request("a"), 1);
  const int a = job.number();
  EXPECT_EQ(job.phase(), JobInfo::PREPARED);
  EXPECT_THAT(table.find(a)->gpus(), ElementsAre("0", "1"));
  table.on_launched(a, 77, 2);
  EXPECT_EQ(table.find(a)->phase(), JobInfo::FORMING);
  table.on_record(a, record("a", 0));
  EXPECT_EQ(table.find(a)->phase(), JobInfo::FORMING);
  table.on_record(a, record("a", 1));
  EXPECT_EQ(table.find(a)->phase(), JobInfo::RUNNING);
  table.on_stopping(a);
  table.on_record(a, record("a", 2));
  EXPECT_EQ(table.find(a)->phase(), JobInfo::STOPPING);
  table.on_ended(a, 5, 9);
  EXPECT_EQ(table.find(a)->phase(), JobInfo::ENDED);
  EXPECT_EQ(table.find(a)->code(), 5);
  // Late events change nothing.
  table.on_stopping(a);
  table.on_ended(a, 0, 10);
  EXPECT_EQ(table.find(a)->code(), 5);
}

TEST(JobTable, Names_AreUniqueAmongTheLiving) {
  JobTable table("ann", {});
  const int first = table.prepare(request("a"), 0).number();
  EXPECT_THAT(table_refusal(table, request("a")), IsUsageError("job a"));
  table.on_launched(first, 1, 0);
  table.on_ended(first, 0, 1);
  const int second = table.prepare(request("a"), 2).number();
  EXPECT_THAT(table.all(), SizeIs(1));
  // A stale number must not refer to the new job.
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.find_by_job_id("a")->number(), second);
}

TEST(JobTable, Reservation_LeavesNothing) {
  JobTable table("ann", {"0"});
  const int a = table.prepare(request("a"), 0).number();
  EXPECT_THAT(table_refusal(table, request("b")), IsUsageError());
  table.on_ended(a, 0, 1);
  EXPECT_THAT(table.all(), IsEmpty());
  EXPECT_THAT(table.prepare(request("b"), 2).gpus(), ElementsAre("0"));
}

TEST(JobTable, RefusedJob_HasNoGpus) {
  JobTable::Limits limits;
  limits.max_running = 1;
  JobTable table("ann", {"0"}, limits);
  JobRequest first = request("a");
  first.mutable_gpus()->set_none(true);
  const int a = table.prepare(first, 0).number();
  EXPECT_THAT(table_refusal(table, request("b")), IsUsageError());
  table.on_ended(a, 0, 1);
  EXPECT_THAT(table.prepare(request("c"), 2).gpus(), ElementsAre("0"));
}

TEST(JobTable, AnotherUsersJob_IsRefused) {
  JobTable table("ann", {});
  JobRequest wanted = request("a");
  wanted.set_user("bob");
  EXPECT_THAT(table_refusal(table, wanted), IsUsageError());
  wanted.clear_user();
  EXPECT_EQ(table.prepare(wanted, 0).record().job_id(), "a");
}

TEST(JobTable, Place_StaysWhereRanksChange) {
  JobTable table("ann", {});
  JobRequest wanted = request("a");
  wanted.set_node_rank(2);
  wanted.set_folder("/data");
  wanted.set_log_dir("log/a");
  const int a = table.prepare(wanted, 0).number();
  EXPECT_EQ(table.find(a)->record().log_dir(), "/data/log/a");
  table.on_launched(a, 1, 0);
  JobRecord closer = record("a", 2);
  closer.set_node_rank(1);
  table.on_record(a, closer);
  EXPECT_EQ(table.find(a)->record().node_rank(), 1);
  EXPECT_EQ(table.find(a)->node_index(), 2);
}

TEST(JobTable, EndedJobs_AreForgottenByAgeAndNumber) {
  JobTable::Limits limits;
  limits.max_ended = 2;
  limits.ended_ttl_seconds = 100;
  JobTable table("ann", {}, limits);
  std::vector<int> numbers;
  for (const char* name : {"a", "b", "c", "d"}) {
    numbers.push_back(table.prepare(request(name), 0).number());
    table.on_launched(numbers.back(), 1, 0);
  }
  for (int i = 0; i < 3; ++i) table.on_ended(numbers[static_cast<size_t>(i)], 0, 50);
  const auto named = [](const char* name) {
    return ::testing::ResultOf([](const JobInfo& job) { return job.record().job_id(); },
                               ::testing::Eq(name));
  };
  EXPECT_THAT(table.expire(60), ElementsAre(named("a")));
  EXPECT_THAT(table.expire(151), ElementsAre(named("b"), named("c")));
  EXPECT_THAT(table.all(), SizeIs(1));  // the one that runs
}

TEST(JobTable, JobOfAnEarlierFleetd_IsKnown) {
  JobTable table("ann", {"0"});
  JobInfo old;
  old.mutable_record()->set_job_id("a");
  old.set_phase(JobInfo::ENDED);
  old.set_code(5);
  table.restore(old);
  EXPECT_EQ(table.find_by_job_id("a")->code(), 5);
  const int number = table.find_by_job_id("a")->number();
  EXPECT_THAT(table.prepare(request("a"), 0).gpus(), ElementsAre("0"));
  EXPECT_EQ(table.find(number), nullptr);
  table.restore(old);  // it has a successor
  EXPECT_THAT(table.all(), SizeIs(1));
}

}  // namespace
}  // namespace fleet
