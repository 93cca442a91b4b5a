#include "daemon/job_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

JobInfo sample(int node) {
  JobInfo job;
  job.record.job_id = "nightly";
  job.record.pid = 7;
  job.record.node_rank = node;
  job.record.nnodes = 2;
  job.record.world_size = 4;
  job.record.epoch = 1;
  job.record.started = 1000;
  job.record.address = "10.0.0." + std::to_string(node + 1);
  job.record.log_dir = "/logs";
  job.record.command = {"train.py", "--lr", "1"};
  job.record.ranks = {{0, 2 * node, false, 70, "/logs/workerlog.0"}};
  job.phase = JobPhase::kRunning;
  job.nodes = {"a:6767", "b:6767"};
  return job;
}

TEST(JobInfo, Text_ComesBackTheSame) {
  JobInfo job = sample(1);
  job.phase = JobPhase::kEnded;
  job.code = 5;
  job.ended = 1060;
  job.gpus = {"0", "1"};
  job.detached = true;
  job.place = 1;
  job.restarts = true;
  job.verdict = R"({"verdict":"rank failed","text":"ABORT!!! of rank 2"})";
  const JobInfo back = read_job_info(job_info_json(job));
  EXPECT_EQ(back.record, job.record);
  EXPECT_EQ(back.phase, job.phase);
  EXPECT_EQ(back.code, 5);
  EXPECT_EQ(back.gpus, job.gpus);
  EXPECT_TRUE(back.detached);
  EXPECT_EQ(back.place, 1);
  EXPECT_TRUE(back.restarts);
  EXPECT_EQ(read_verdict(back.verdict)->text, "ABORT!!! of rank 2");
  EXPECT_THROW(read_job_info("{}"), Error);
  EXPECT_THROW(read_job_info("nonsense"), Error);
}

TEST(JobInfo, Table_HasALineForAllNodesOfAJob) {
  const std::string table = jobs_table({sample(0), sample(1)}, 1061);
  EXPECT_EQ(table,
            "JOB      STATE    NODES  RANKS  TIME  COMMAND\n"
            "nightly  running  2      4      1:01  train.py --lr 1\n");
}

TEST(JobInfo, State_IsThatOfTheNodeThatIsNotDone) {
  JobInfo done = sample(0);
  done.phase = JobPhase::kEnded;
  done.code = 0;
  EXPECT_THAT(jobs_table({done, sample(1)}, 1061), HasSubstr("running"));
  JobInfo failed = sample(1);
  failed.phase = JobPhase::kEnded;
  failed.code = 5;
  EXPECT_THAT(jobs_table({done, failed}, 1061), HasSubstr("failed (5)"));
}

TEST(JobInfo, Outcome_IsWhatThosePartsSayThatWentOn) {
  JobInfo cut = sample(0), killed = sample(1), last = sample(1);
  for (JobInfo* part : {&cut, &killed, &last}) part->phase = JobPhase::kEnded;
  cut.code = 113;
  cut.verdict = R"({"verdict":"node lost","text":"no majority","epoch":1})";
  killed.code = 137;
  last.code = 0;
  last.verdict = R"({"verdict":"success","text":"","epoch":2})";
  EXPECT_THAT(jobs_table({cut, killed, last}, 1061), HasSubstr("succeeded"));
  EXPECT_THAT(jobs_table({killed, cut}, 1061), HasSubstr("failed (113)"));
}

TEST(JobInfo, SpareNode_DoesNotMakeAJobWait) {
  JobInfo spare = sample(1);
  spare.phase = JobPhase::kForming;
  EXPECT_THAT(jobs_table({sample(0), spare}, 1061), HasSubstr("nightly  running"));
  EXPECT_THAT(jobs_table({spare}, 1061), HasSubstr("waiting for nodes"));
}

TEST(JobInfo, Status_TellsOfEachNodeAndTheVerdict) {
  EXPECT_THAT(
      job_status({sample(0), sample(1)}, 1061),
      AllOf(HasSubstr("node 1 (10.0.0.2): running, logs in /logs"), HasSubstr("rank 2  pid 70")));
  JobInfo failed = sample(0);
  failed.phase = JobPhase::kEnded;
  failed.code = 5;
  failed.verdict = R"({"verdict":"rank failed","text":"ABORT!!! of rank 2"})";
  EXPECT_THAT(job_status({failed}, 1061),
              AllOf(HasSubstr("ABORT!!! of rank 2"), Not(HasSubstr("pid"))));
}

TEST(JobInfo, Verdict_IsReadWhateverItIs) {
  const auto stopped =
      read_verdict(R"({"verdict":"stopped","text":"node 0 was told to stop","epoch":3})");
  EXPECT_EQ(stopped->text, "");
  EXPECT_EQ(stopped->epoch, 3);
  EXPECT_TRUE(read_verdict(R"({"verdict":"node lost"})")->node_lost);
  for (const char* wrong :
       {"", "7", "{}", R"({"verdict":5})", R"({"verdict":"hang","epoch":"x"})"}) {
    EXPECT_FALSE(read_verdict(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace fleet
