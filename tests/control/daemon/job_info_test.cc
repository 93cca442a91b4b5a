#include "daemon/job_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "tests/table_rows.h"

namespace fleet {
namespace {

// Tables have local times.
[[maybe_unused]] const bool kUtc = ::setenv("TZ", "UTC0", 1) == 0 && (::tzset(), true);

JobInfo sample(int node) {
  JobInfo job;
  job.mutable_record()->set_job_id("nightly");
  job.mutable_record()->set_pid(7);
  job.mutable_record()->set_node_rank(node);
  job.mutable_record()->set_nnodes(2);
  job.mutable_record()->set_world_size(4);
  job.mutable_record()->set_generation(1);
  job.mutable_record()->set_started(1000);
  job.mutable_record()->set_address("10.0.0." + std::to_string(node + 1));
  job.mutable_record()->set_log_dir("/logs");
  for (const char* word : {"train.py", "--lr", "1"}) job.mutable_record()->add_command(word);
  JobRecord::Rank* rank = job.mutable_record()->add_ranks();
  rank->set_rank(2 * node);
  rank->set_pid(70);
  rank->set_log_path("/logs/workerlog.0");
  job.set_phase(JobInfo::RUNNING);
  job.add_nodes("a:6767");
  job.add_nodes("b:6767");
  return job;
}

// The only row of the table of jobs.
TableRow row_of(const std::vector<JobInfo>& parts) {
  const std::vector<TableRow> rows = table_rows(jobs_table(parts, 1061));
  EXPECT_EQ(rows.size(), 1u);
  return rows.empty() ? TableRow() : rows[0];
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

// The facts of a status, by name: "step     120/900".
TableRow facts_of(const JobInfo& job) {
  TableRow facts;
  for (const std::string& line : lines_of(job_status({job}, 1061))) {
    const size_t blank = std::min(line.find("  "), line.size());
    facts[line.substr(0, blank)] = trim(line.substr(blank));
  }
  return facts;
}

void decide(JobInfo* job, Verdict::Kind kind, const std::string& text, int generation = 1) {
  wire::JobVerdict* outcome = job->mutable_record()->mutable_verdict();
  outcome->set_text(text);
  outcome->mutable_verdict()->set_kind(kind);
  outcome->mutable_verdict()->set_generation(generation);
}

// Scripts read it.
TEST(JobInfo, Json_KeepsItsKeysAndTheirOrder) {
  JobInfo job = sample(1);
  job.set_phase(JobInfo::ENDED);
  job.set_code(5);
  job.set_ended(1060.5);
  job.add_gpus("0");
  job.set_detached(true);
  job.set_node_index(1);
  job.set_restarts(true);
  decide(&job, Verdict::HANG, "rank 2 hangs");
  job.mutable_record()->set_folder("/a\xff");
  EXPECT_EQ(jobs_json({job}), R"text([
  {
    "job_id": "nightly",
    "pid": 7,
    "birth": "",
    "run": "",
    "part": false,
    "node_rank": 1,
    "nnodes": 2,
    "world_size": 4,
    "generation": 1,
    "address": "10.0.0.2",
    "rendezvous": "",
    "log_dir": "/logs",
    "folder": "/a�",
    "started": 1000.0,
    "command": [
      "train.py",
      "--lr",
      "1"
    ],
    "ranks": [
      {
        "local_rank": 0,
        "rank": 2,
        "server": false,
        "pid": 70,
        "log": "/logs/workerlog.0",
        "shown": false,
        "log_begin": [
          0,
          0
        ],
        "log_end": [
          0,
          0
        ]
      }
    ],
    "progress": null,
    "phase": "ended",
    "state": "failed (5)",
    "nodes": [
      "a:6767",
      "b:6767"
    ],
    "place": 1,
    "gpus": [
      "0"
    ],
    "detached": true,
    "restarts": true,
    "exit_code": 5,
    "ended": 1060.5,
    "stopped_by": null,
    "verdict_path": "",
    "verdict": {
      "verdict": "hang",
      "exit_code": 115,
      "message": "",
      "text": "rank 2 hangs",
      "job_id": "nightly",
      "run": "",
      "generation": 1,
      "started": 1000.0,
      "time": 0.0,
      "nnodes": null,
      "world_size": null,
      "waits": [],
      "endings": [],
      "notes": [],
      "bottleneck": null,
      "restarts": 0,
      "generations": [],
      "replacements": []
    }
  }
]
)text");
}

TEST(JobInfo, JobWithoutVerdict_HasNull) {
  EXPECT_TRUE(nlohmann::json::parse(jobs_json({sample(0)})).at(0).at("verdict").is_null());
}

TEST(JobInfo, Table_HasALineForAllNodesOfAJob) {
  const std::string table = jobs_table({sample(0), sample(1)}, 1061);
  EXPECT_EQ(table,
            "JOB      STATE    NODES  RANKS  STARTED              TIME  PID  LOGS   COMMAND\n"
            "nightly  running  2      4      1970-01-01 00:16:40  1:01  7    /logs  train.py --lr 1"
            "\n");
}

TEST(JobInfo, ProgressOfAJob_IsInTheTableAndTheStatus) {
  JobInfo job = sample(0);
  wire::JobProgress* progress = job.mutable_record()->mutable_progress();
  progress->set_step(120);
  progress->set_target(900);
  progress->set_loss(0.25);
  progress->set_seconds_left(65);
  progress->set_unix_time(1058);
  JobInfo other = sample(0);
  other.mutable_record()->set_job_id("other");
  EXPECT_EQ(
      jobs_table({job, other}, 1061, {.columns = 100}),
      "JOB      STATE    NODES  RANKS  STARTED   TIME  STEP     LOSS  ETA   PID  LOGS   COMMAND"
      "\n"
      "nightly  running  2      4      00:16:40  1:01  120/900  0.25  1:02  7    /logs  "
      "train.py --lr 1\n"
      "other    running  2      4      00:16:40  1:01  -        -     -     7    /logs  "
      "train.py --lr 1\n");
  TableRow facts = facts_of(job);
  EXPECT_EQ(facts["step"], "120/900");
  EXPECT_EQ(facts["loss"], "0.25");
  EXPECT_EQ(facts["eta"], "1:02");
  EXPECT_EQ(nlohmann::json::parse(jobs_json({job}))[0]["progress"]["seconds_left"], 65.0);
  job.set_phase(JobInfo::ENDED);
  EXPECT_FALSE(facts_of(job).contains("eta"));
}

// The jobs of docs/how-to/watch_jobs.md, on 2026-11-23.
std::vector<JobInfo> two_runs() {
  constexpr double kStarted = 1795426862;  // 09:41:02
  JobInfo train = sample(0), nightly = sample(0);
  for (JobInfo* job : {&train, &nightly}) {
    job->clear_nodes();
    job->mutable_record()->set_nnodes(1);
    job->mutable_record()->clear_command();
  }
  train.mutable_record()->set_job_id("train");
  train.mutable_record()->add_command("train.py");
  train.mutable_record()->set_log_dir("/data/log");
  train.mutable_record()->set_pid(2412);
  train.mutable_record()->set_started(kStarted);
  train.set_phase(JobInfo::ENDED);
  train.set_code(1);
  train.set_ended(kStarted + 1);
  decide(&train, Verdict::RANK_FAILED,
         "rank 2 of 4 exited with 1: KeyError: 'missing_key' (log/workerlog.2)");
  nightly.mutable_record()->add_command("loop.py");
  nightly.mutable_record()->set_log_dir("/data/log2");
  nightly.mutable_record()->set_pid(2609);
  nightly.mutable_record()->set_world_size(2);
  nightly.mutable_record()->set_started(kStarted + 128);
  return {train, nightly};
}

constexpr double kLooked = 1795426862 + 129;

TEST(JobsTable, Terminal_HasTheVerdictBelowItsRun) {
  const std::string wide =
      "JOB      STATE       NODES  RANKS  STARTED   TIME  PID   LOGS        COMMAND\n"
      "train    failed (1)  1      4      09:41:02  0:01  2412  /data/log   train.py\n"
      "  rank 2 of 4 exited with 1: KeyError: 'missing_key' (log/workerlog.2)\n"
      "nightly  running     1      2      09:43:10  0:01  2609  /data/log2  loop.py\n";
  const std::string narrow =
      "JOB      STATE       STARTED   TIME\n"
      "train    failed (1)  09:41:02  0:01\n"
      "  rank 2 of 4 exited with 1: KeyError...\n"
      "nightly  running     09:43:10  0:01\n";
  EXPECT_EQ(jobs_table(two_runs(), kLooked, {.columns = 80}), wide);
  EXPECT_EQ(jobs_table(two_runs(), kLooked, {.columns = 40}), narrow);
}

TEST(JobsTable, OtherReader_HasTheVerdictInItsColumnAndWholeTimes) {
  const std::vector<TableRow> rows = table_rows(jobs_table(two_runs(), kLooked));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("STARTED"), "2026-11-23 09:41:02");
  EXPECT_FALSE(rows[0].at("VERDICT").empty());
  EXPECT_EQ(rows[1].at("VERDICT"), "");
  const double next_day = kLooked + 86'400;
  EXPECT_THAT(jobs_table(two_runs(), next_day, {.columns = 80}),
              ::testing::HasSubstr("11-23 09:41"));
}

// Names, paths and reasons of any length, with characters that take two columns.
TEST(JobsTable, AnyWidth_IsNotExceeded) {
  std::vector<JobInfo> jobs = two_runs();
  for (const std::string& name :
       {std::string("default"), std::string(60, 'x'),
        std::string("\u6a21\u578b\u8bad\u7ec3\u4efb\u52a1\u4e00\u4e8c\u4e09")}) {
    for (JobInfo job : two_runs()) {
      job.mutable_record()->set_job_id(name);
      job.mutable_record()->set_log_dir("/data/\u6a21\u578b/" + name + "/" + name);
      job.mutable_record()->add_command("--name=" + name);
      job.mutable_record()->mutable_progress()->set_step(120'000);
      job.mutable_record()->mutable_progress()->set_target(900'000);
      jobs.push_back(job);
    }
  }
  for (const size_t columns : std::vector<size_t>{20, 40, 60, 80, 100, 132, 200}) {
    const std::string table = jobs_table(jobs, kLooked, {.columns = columns});
    for (const std::string_view line : fleet::lines_of(table)) {
      EXPECT_LE(columns_of_text(line), columns) << line;
    }
    // A line for each run, and one for each reason.
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 8 + 4) << table;
  }
}

TEST(JobsTable, Colours_ChangeNothingElse) {
  const std::string plain = jobs_table(two_runs(), kLooked, {.columns = 80});
  const std::string coloured = jobs_table(two_runs(), kLooked, {.columns = 80, .colors = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_THAT(coloured, ::testing::HasSubstr("\x1b[31mfailed (1)\x1b[0m"));
  EXPECT_THAT(coloured, ::testing::HasSubstr("\x1b[32mrunning\x1b[0m"));
  EXPECT_EQ(trim(resolve_output(coloured)), trim(plain));
}

TEST(JobInfo, State_IsThatOfTheNodeThatIsNotDone) {
  JobInfo done = sample(0);
  done.set_phase(JobInfo::ENDED);
  done.set_code(0);
  EXPECT_EQ(row_of({done, sample(1)})["STATE"], "running");
  JobInfo failed = sample(1);
  failed.set_phase(JobInfo::ENDED);
  failed.set_code(5);
  EXPECT_EQ(row_of({done, failed})["STATE"], "failed (5)");
}

TEST(JobInfo, Outcome_ComesFromThePartsThatContinued) {
  JobInfo cut = sample(0), killed = sample(1), last = sample(1);
  for (JobInfo* part : {&cut, &killed, &last}) part->set_phase(JobInfo::ENDED);
  cut.set_code(113);
  decide(&cut, Verdict::NODE_LOST, "no majority", 1);
  killed.set_code(137);
  last.set_code(0);
  decide(&last, Verdict::SUCCESS, "", 2);
  EXPECT_EQ(row_of({cut, killed, last})["STATE"], "succeeded");
  EXPECT_EQ(row_of({killed, cut})["STATE"], "failed (113)");
}

TEST(JobInfo, Stop_DiffersFromAFailure) {
  JobInfo job = sample(0);
  job.set_phase(JobInfo::ENDED);
  job.set_code(143);
  EXPECT_EQ(state_of(job), "failed (143)");  // a rank was killed by SIGTERM
  job.set_stopped_by(SIGTERM);
  EXPECT_EQ(state_of(job), "stopped (SIGTERM)");  // before there were ranks
  decide(&job, Verdict::RANK_FAILED, "ABORT!!!");
  EXPECT_EQ(state_of(job), "failed (143)");  // it had failed before
  decide(&job, Verdict::STOPPED, "stopped by SIGINT");
  job.mutable_record()->mutable_verdict()->mutable_verdict()->set_signal(SIGINT);
  EXPECT_EQ(state_of(job), "stopped (SIGINT)");
  job.set_code(0);
  EXPECT_EQ(state_of(job), "succeeded");  // its ranks saved and ended well
  job.set_killed(true);
  EXPECT_EQ(state_of(job), "killed");
}

TEST(JobInfo, Failure_IsShownWithItsCause) {
  JobInfo job = sample(0);
  job.set_phase(JobInfo::ENDED);
  job.set_code(5);
  decide(&job, Verdict::RANK_FAILED, "rank 2 exited\nits log");
  EXPECT_EQ(row_of({job})["VERDICT"], "rank 2 exited");
}

TEST(JobInfo, RunsOfOneName_HaveALineEach) {
  JobInfo first = sample(0), second = sample(0), other_node = sample(1);
  for (JobInfo* job : {&first, &second, &other_node}) job->clear_nodes();  // without a fleetd
  first.mutable_record()->set_run("a");
  second.mutable_record()->set_run("b");
  other_node.mutable_record()->set_run("b");
  first.set_phase(JobInfo::ENDED);
  const std::string table = jobs_table({first, second, other_node}, 1061);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  // Jobs that have not met others know no run.
  second.mutable_record()->clear_run();
  EXPECT_FALSE(same_run(first, second));
  EXPECT_TRUE(same_run(second, second));
}

TEST(JobInfo, OldOnes_AreLeftOut) {
  std::vector<JobInfo> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(sample(0));
    jobs.back().mutable_record()->set_job_id("job" + std::to_string(i));
    jobs.back().set_phase(i == 0 ? JobInfo::RUNNING : JobInfo::ENDED);
    jobs.back().set_ended(10 - i);
  }
  EXPECT_EQ(trim_ended_runs(3, &jobs), 0u);
  EXPECT_EQ(trim_ended_runs(1, &jobs), 2u);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1].record().job_id(), "job1");
}

TEST(JobInfo, StrangeTexts_AreCutAndCannotMoveTheCursor) {
  JobInfo job = sample(0);
  job.mutable_record()->set_job_id("a\x1b[2J" + std::string(300, 'x'));
  job.mutable_record()->set_command(2, "one\ntwo\r\xc2\x9b\x80");
  for (const std::string& text : {jobs_table({job}, 1061), job_status({job}, 1061)}) {
    EXPECT_EQ(text.find_first_of("\x1b\r"), std::string::npos) << text;
  }
  TableRow row = row_of({job}), facts = facts_of(job);
  EXPECT_EQ(row["JOB"], "a?[2J" + std::string(32, 'x') + "...");
  EXPECT_EQ(row["COMMAND"], "train.py --lr one?two????");
  EXPECT_EQ(facts["job"], "a?[2J" + std::string(300, 'x'));
  EXPECT_EQ(facts["command"], "train.py --lr one?two????");
}

TEST(JobInfo, SpareNode_DoesNotMakeAJobWait) {
  JobInfo spare = sample(1);
  spare.set_phase(JobInfo::FORMING);
  EXPECT_EQ(row_of({sample(0), spare})["STATE"], "running");
  EXPECT_EQ(row_of({spare})["STATE"], "waiting for nodes");
}

TEST(JobInfo, Status_TellsOfEachNodeAndTheVerdict) {
  EXPECT_EQ(job_status({sample(0), sample(1)}, 1061),
            "job      nightly\n"
            "state    running\n"
            "started  1970-01-01 00:16:40\n"
            "time     1:01\n"
            "command  train.py --lr 1\n"
            "folder\n"
            "nodes    2\n"
            "ranks    4\n"
            "node 0 (10.0.0.1): running, logs in /logs\n"
            "  rank 0  pid 70  /logs/workerlog.0\n"
            "node 1 (10.0.0.2): running, logs in /logs\n"
            "  rank 2  pid 70  /logs/workerlog.0\n");
  JobInfo failed = sample(0);
  failed.set_phase(JobInfo::ENDED);
  failed.set_code(5);
  decide(&failed, Verdict::RANK_FAILED, "ABORT!!! of rank 2");
  const std::vector<std::string> lines = lines_of(job_status({failed}, 1061));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[lines.size() - 2], "node 0 (10.0.0.1): failed (5), logs in /logs");
  EXPECT_EQ(lines.back(), "ABORT!!! of rank 2");
}

TEST(JobInfo, RequestedStop_IsNoFailure) {
  JobInfo job = sample(0);
  decide(&job, Verdict::STOPPED, "stopped by SIGTERM");
  EXPECT_EQ(failure_text(job.record().verdict()), "");
  EXPECT_FALSE(node_lost(job.record().verdict()));
  decide(&job, Verdict::NODE_LOST, "node 1 was lost");
  EXPECT_EQ(failure_text(job.record().verdict()), "node 1 was lost");
  EXPECT_TRUE(node_lost(job.record().verdict()));
  EXPECT_EQ(failure_text({}), "");
}

}  // namespace
}  // namespace fleet
