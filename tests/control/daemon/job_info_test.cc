#include "daemon/job_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

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
  job.record.generation = 1;
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
  job.node_index = 1;
  job.restarts = true;
  job.verdict = R"({"verdict":"rank failed","text":"ABORT!!! of rank 2"})";
  const JobInfo back = read_job_info(job_info_json(job));
  EXPECT_EQ(back.record, job.record);
  EXPECT_EQ(back.phase, job.phase);
  EXPECT_EQ(back.code, 5);
  EXPECT_EQ(back.gpus, job.gpus);
  EXPECT_TRUE(back.detached);
  EXPECT_EQ(back.node_index, 1);
  EXPECT_TRUE(back.restarts);
  EXPECT_EQ(read_verdict(back.verdict)->text, "ABORT!!! of rank 2");
  EXPECT_THROW(read_job_info("{}"), Error);
  EXPECT_THROW(read_job_info("nonsense"), Error);
  // It was written again by a function that calls itself for each object in an object.
  JobInfo deep = job;
  deep.verdict = R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_THROW(read_job_info(job_info_json(deep)), Error);
}

TEST(JobInfo, Table_HasALineForAllNodesOfAJob) {
  const std::string table = jobs_table({sample(0), sample(1)}, 1061);
  EXPECT_EQ(table,
            "JOB      STATE    NODES  RANKS  TIME  PID  LOGS   COMMAND\n"
            "nightly  running  2      4      1:01  7    /logs  train.py --lr 1\n");
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
  cut.verdict = R"({"verdict":"node lost","text":"no majority","generation":1})";
  killed.code = 137;
  last.code = 0;
  last.verdict = R"({"verdict":"success","text":"","generation":2})";
  EXPECT_THAT(jobs_table({cut, killed, last}, 1061), HasSubstr("succeeded"));
  EXPECT_THAT(jobs_table({killed, cut}, 1061), HasSubstr("failed (113)"));
}

TEST(JobInfo, Stop_IsToldFromAFailure) {
  JobInfo job = sample(0);
  job.phase = JobPhase::kEnded;
  job.code = 143;
  EXPECT_EQ(state_of(job), "failed (143)");  // a rank was killed by SIGTERM
  job.stopped_by = SIGTERM;
  EXPECT_EQ(state_of(job), "stopped (SIGTERM)");  // before there were ranks
  job.verdict = R"({"verdict":"rank failed","text":"ABORT!!!","message":"rank 2 died"})";
  EXPECT_EQ(state_of(job), "failed (143)");  // it had failed before
  job.verdict = R"({"verdict":"stopped","signal":"SIGINT"})";
  EXPECT_EQ(state_of(job), "stopped (SIGINT)");
  job.code = 0;
  EXPECT_EQ(state_of(job), "succeeded");  // its ranks saved and ended well
  job.killed = true;
  EXPECT_EQ(state_of(job), "killed");
}

TEST(JobInfo, Failure_IsShownWithItsCause) {
  JobInfo job = sample(0);
  job.phase = JobPhase::kEnded;
  job.code = 5;
  job.verdict = R"({"verdict":"rank failed","text":"rank 2 exited\nits log"})";
  EXPECT_THAT(jobs_table({job}, 1061), AllOf(HasSubstr("VERDICT"), HasSubstr("  rank 2 exited\n"),
                                             Not(HasSubstr("its log"))));
}

TEST(JobInfo, RunsOfOneName_HaveALineEach) {
  JobInfo first = sample(0), second = sample(0), other_node = sample(1);
  for (JobInfo* job : {&first, &second, &other_node}) job->nodes.clear();  // without a fleetd
  first.record.run = "a";
  second.record.run = other_node.record.run = "b";
  first.phase = JobPhase::kEnded;
  const std::string table = jobs_table({first, second, other_node}, 1061);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  // Jobs that have not met others know no run.
  second.record.run.clear();
  EXPECT_FALSE(same_run(first, second));
  EXPECT_TRUE(same_run(second, second));
}

TEST(JobInfo, OldOnes_AreLeftOut) {
  std::vector<JobInfo> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(sample(0));
    jobs.back().record.job_id = "job" + std::to_string(i);
    jobs.back().phase = i == 0 ? JobPhase::kRunning : JobPhase::kEnded;
    jobs.back().ended = 10 - i;
  }
  EXPECT_EQ(trim_ended_runs(3, &jobs), 0u);
  EXPECT_EQ(trim_ended_runs(1, &jobs), 2u);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1].record.job_id, "job1");
}

TEST(JobInfo, StrangeTexts_AreCutAndCannotMoveTheCursor) {
  JobInfo job = sample(0);
  job.record.job_id = "a\x1b[2J" + std::string(300, 'x');
  job.record.command = {"sh", "-c", "one\ntwo\r\xc2\x9b\x80"};
  for (const std::string& text : {jobs_table({job}, 1061), job_status({job}, 1061)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("a?[2Jxxx"), HasSubstr("one?two???"), Not(HasSubstr("\x1b")),
                            Not(HasSubstr("\r"))));
  }
  EXPECT_THAT(jobs_table({job}, 1061),
              AllOf(HasSubstr("xxx...  "), Not(HasSubstr(job.record.job_id))));
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
  const auto stopped = read_verdict(
      R"({"verdict":"stopped","text":"node 0 was told to stop","generation":3,"signal":"SIGTERM"})");
  EXPECT_EQ(stopped->text, "");
  EXPECT_EQ(stopped->stop, "SIGTERM");
  EXPECT_EQ(stopped->generation, 3);
  EXPECT_TRUE(read_verdict(R"({"verdict":"node lost"})")->node_lost);
  for (const char* wrong :
       {"", "7", "{}", R"({"verdict":5})", R"({"verdict":"hang","generation":"x"})"}) {
    EXPECT_FALSE(read_verdict(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace fleet
