// Jobs with tables on parameter servers, through the real fleetrun and fleet-worker.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/file.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<std::string> kServedTables = {"--server_num=2", "--worker_num=2"};

// Clicks whose best AUC is known; ids are hashes of 63 bits.
constexpr char kClicks[] = R"({
  "task": "click", "model": {"name": "wide_deep", "dense": false, "dim": 4, "hidden": [16]},
  "data": {"source": "synthetic_clicks", "slot_count": 3, "slot_ids": 100, "ids": 0,
           "deviation": 2, "batch_size": 64, "train": {"samples": 16384}, "test": {"samples": 4096}},
  "optimizer": {"name": "adagrad"}, "learning_rate": {"base": 0.05},
  "tables": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1},
                           "initializer": {"low": -0.01, "high": 0.01}}},
  "train": {"epochs": 1, "deterministic": true, "max_steps": 120}
})";

// Rows of files, whose labels follow from the first id.
constexpr char kFiles[] = R"({
  "task": "click", "model": {"name": "wide_deep", "dense": false, "dim": 4, "hidden": [16]},
  "data": {"source": "slot_text", "train": {"file": "train.txt"}, "batch_size": 64, "ids": 1000,
           "id_values": "ids", "slots": [{"name": "click", "type": "label"},
                                         {"name": "{1..2}", "type": "int", "max_len": 1}]},
  "optimizer": {"name": "adagrad"}, "learning_rate": {"base": 0.05},
  "tables": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1}}},
  "train": {"epochs": 8, "evaluate_every": 0}
})";

class ServedTables : public ::testing::Test {
 protected:
  ServedTables() {
    write_file_atomically(job.path("clicks.json"), kClicks);
    write_file_atomically(job.path("files.json"), kFiles);
  }
  int run(const std::string& file, const std::string& name, const std::vector<std::string>& options,
          std::vector<std::string> overrides = {}) {
    overrides.push_back("train.output=" + name);
    const auto fleetrun = job.start(name, options, overrides, file);
    const int code = fleetrun->wait();
    output = fleetrun->output();
    EXPECT_THAT(job.folder().survivors(30), IsEmpty());
    return code;
  }
  std::string newest(const std::string& name) const {
    return latest_checkpoint(job.path(name) + "/checkpoints").value_or("none");
  }
  // The table's rows, as text.
  std::string rows(const std::string& name) {
    std::string error;
    EXPECT_EQ(job.run_worker({"table", newest(name) + "/tables", "-o", name + ".txt"}, &error), 0)
        << error;
    return job.folder().read(name + ".txt");
  }
  TrainingJob job;
  std::string output;
};

double last_auc(const TrainingJob& job, const std::string& name,
                const std::string& file = "metrics.jsonl") {
  double auc = 0;
  std::istringstream lines(job.folder().read(name + "/" + file));
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["event"] == "test") auc = event["auc"].get<double>();
  }
  return auc;
}

pid_t first_server(const TrainingJob& job) {
  const std::string role("TRAINING_ROLE=PSERVER");
  for (const pid_t pid : job.folder().processes("fleet-worker")) {
    const std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(role + '\0') != std::string::npos) return pid;
  }
  ADD_FAILURE() << "no server";
  return -1;
}

TEST_F(ServedTables, KilledServer_RestartsToTheSameEnd) {
  ASSERT_EQ(run("clicks.json", "whole", kServedTables), 0) << output;
  EXPECT_THAT(output, HasSubstr("best possible AUC"));
  const double best = std::stod(output.substr(output.find("rows is ") + 8));
  EXPECT_GT(last_auc(job, "whole"), best - 0.03);
  EXPECT_THAT(job.folder().read("log.whole/serverlog.0"), HasSubstr("table embedding: "));
  const std::string table = rows("whole");
  EXPECT_GT(std::ranges::count(table, '\n'), 150);  // of 300 ids

  const auto fleetrun = job.start("again", {"--server_num=2", "--worker_num=2", "--max_restart=1"},
                                  {"train.output=again", "checkpoint.every_steps=10",
                                   "checkpoint.table_deltas=3", "checkpoint.keep=1"},
                                  "clicks.json");
  job.folder().wait_for("again/checkpoints/step_00000010/state.json");
  kill(first_server(job), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("resumed from"));
  EXPECT_TRUE(rows("again") == table);
  EXPECT_TRUE(read_file(newest("again") + "/model.safetensors") ==
              read_file(newest("whole") + "/model.safetensors"));
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

std::string some_clicks(int count, uint64_t seed, uint64_t most) {
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < count; ++i) {
    const uint64_t first = random() % most, second = random() % most;
    text += "click:" + std::to_string(first % 2) + " 1:" + std::to_string(first) +
            " 2:" + std::to_string(second) + "\n";
  }
  return text;
}

TEST_F(ServedTables, KeysWithoutEffect_AreNamed) {
  ASSERT_EQ(
      run("clicks.json", "named", kServedTables,
          {"train.max_steps=2", "model.sparse_embedding=false", "tables.embedding.shrink.age=1"}),
      0)
      << output;
  EXPECT_THAT(output, HasSubstr("model.sparse_embedding has no effect"));
  EXPECT_THAT(output, HasSubstr("tables.embedding.shrink.age has no effect"));
}

TEST_F(ServedTables, MixedPrecision_IsEvaluated) {
  ASSERT_EQ(run("clicks.json", "amp", kServedTables, {"train.max_steps=40", "strategy.amp=true"}),
            0)
      << output;
  EXPECT_GT(last_auc(job, "amp"), 0.6);
}

TEST_F(ServedTables, EmptySection_NamesNoTables) {
  EXPECT_EQ(run("clicks.json", "alone", {"--nproc_per_node=1"},
                {"tables={}", "data.ids=1000", "model.ids=1000", "train.max_steps=2"}),
            0)
      << output;
}

TEST_F(ServedTables, MistypedRule_NamesItsKeyAndTheRules) {
  EXPECT_EQ(run("clicks.json", "refused", kServedTables, {"tables.embedding.rule.name=adagard"}),
            2);
  EXPECT_THAT(output, AllOf(HasSubstr("tables.embedding.rule.name"), HasSubstr("'adagrad'?"),
                            HasSubstr("naive"), Not(HasSubstr("start 2 processes"))));
  EXPECT_EQ(run("clicks.json", "refused", kServedTables, {"tables.embedding.rule.lr=0.1"}), 2);
  EXPECT_THAT(output, HasSubstr("'tables.embedding.rule.learning_rate'?"));
}

TEST_F(ServedTables, Prediction_NeedsNoServers) {
  write_file_atomically(job.path("train.txt"), some_clicks(2048, 1, 40));
  write_file_atomically(job.path("new.txt"), some_clicks(50, 2, 40) + "click:0 1:900 2:901\n");
  ASSERT_EQ(run("files.json", "files", {"--server_num=1", "--worker_num=1"}), 0) << output;
  std::string error;
  ASSERT_EQ(
      job.run_worker({"files.json", "--predict", "new.txt", "--set",
                      "predict.checkpoint=" + newest("files"), "--set", "predict.output=new.jsonl"},
                     &error),
      0)
      << error;
  EXPECT_THAT(error + job.folder().read("worker.out"), HasSubstr(": 2 of "));
  std::istringstream lines(job.folder().read("new.jsonl")), clicks(some_clicks(50, 2, 40));
  int right = 0;
  for (std::string line, click; std::getline(clicks, click);) {
    ASSERT_TRUE(std::getline(lines, line));
    const double probability = nlohmann::json::parse(line)["probability"].get<double>();
    right += (probability > 0.5) == click.starts_with("click:1") ? 1 : 0;
  }
  EXPECT_GT(right, 45);
}

TEST_F(ServedTables, EvaluationAlone_ReadsTheRowsOfTheCheckpoint) {
  ASSERT_EQ(run("clicks.json", "trained", kServedTables, {"train.max_steps=40"}), 0) << output;
  const double auc = last_auc(job, "trained");
  EXPECT_GT(auc, 0.6);
  const std::string weights = "checkpoint.resume=" + newest("trained");
  ASSERT_EQ(run("clicks.json", "evaluated", {"--nproc_per_node=2"},
                {"train.evaluate_only=true", weights}),
            0)
      << output;
  EXPECT_NEAR(last_auc(job, "evaluated", "evaluations.jsonl"), auc, 1e-9);
  EXPECT_EQ(run("clicks.json", "served", kServedTables, {"train.evaluate_only=true", weights}), 2);
}

TEST_F(ServedTables, GradientMerge_ResumesWithinAnUpdate) {
  const std::vector<std::string> merged = {"strategy.gradient_merge=true",
                                           "strategy.gradient_merge_configs.k_steps=4"};
  const auto train = [&](const std::string& name, int steps, const std::string& more) {
    std::vector<std::string> overrides = merged;
    overrides.insert(overrides.end(), {"train.max_steps=" + std::to_string(steps), more});
    return run("clicks.json", name, kServedTables, overrides);
  };
  ASSERT_EQ(train("whole", 16, "train.evaluate_every=0"), 0) << output;
  ASSERT_EQ(train("half", 6, "train.evaluate_every=0"), 0) << output;  // within the second update
  ASSERT_EQ(train("half", 16, "checkpoint.resume=auto"), 0) << output;
  EXPECT_THAT(output, HasSubstr("resumed from"));
  EXPECT_TRUE(rows("half") == rows("whole"));
  EXPECT_TRUE(read_file(newest("half") + "/model.safetensors") ==
              read_file(newest("whole") + "/model.safetensors"));
}

// Trainer 0 saves alone, while others are within other updates.
TEST_F(ServedTables, GradientMergeApart_SavesAndResumesWithinAnUpdate) {
  const auto train = [&](int steps) {
    return run("clicks.json", "apart", kServedTables,
               {"strategy.a_sync=true", "strategy.gradient_merge=true",
                "strategy.gradient_merge_configs.k_steps=4", "checkpoint.every_steps=15",
                "checkpoint.resume=auto", "train.max_steps=" + std::to_string(steps)});
  };
  ASSERT_EQ(train(62), 0) << output;
  EXPECT_FALSE(std::filesystem::exists(newest("apart") + "/rank_00000.safetensors"));
  ASSERT_EQ(train(120), 0) << output;
  EXPECT_THAT(output, HasSubstr("resumed from"));
  EXPECT_GT(last_auc(job, "apart"), 0.6);
}

TEST_F(ServedTables, MoreIdsThanRows_AreRefusedBeforeTheStart) {
  EXPECT_EQ(run("clicks.json", "dense", kServedTables, {"tables=null", "model.ids=100"}), 2);
  EXPECT_THAT(output, HasSubstr("data.ids"));
}

TEST_F(ServedTables, ModesThatRunApart_LearnAndSaveTables) {
  for (const std::string mode : {"a_sync=true", "a_sync_configs.k_steps=4"}) {
    ASSERT_EQ(
        run("clicks.json", mode, kServedTables, {"strategy." + mode, "checkpoint.every_steps=50"}),
        0)
        << output;
    const double best = std::stod(output.substr(output.find("rows is ") + 8));
    EXPECT_GT(last_auc(job, mode), best - 0.05) << mode;
    const std::string table = rows(mode);
    EXPECT_GT(std::ranges::count(table, '\n'), 150);  // of 300 ids
  }
}

TEST_F(ServedTables, AdmissionInGeo_IsRefusedByName) {
  EXPECT_EQ(run("clicks.json", "geo", kServedTables,
                {"strategy.a_sync_configs.k_steps=4", "tables.embedding.entry.kind=count",
                 "tables.embedding.entry.count=2"}),
            2);
  EXPECT_THAT(output, HasSubstr("tables.embedding.entry.kind"));
}

TEST_F(ServedTables, TrainingWithoutServers_IsRefused) {
  EXPECT_EQ(run("clicks.json", "alone", {"--nproc_per_node=1"}), 2);
  EXPECT_THAT(output, AllOf(HasSubstr("tables"), HasSubstr("--server_num")));
}

}  // namespace
}  // namespace fleet
