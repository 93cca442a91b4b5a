// Job files with parameter servers, through the real fleetrun and fleet-worker.
#include <gmock/gmock.h>
#include <signal.h>

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

const std::vector<std::string> kServed = {"--server_num=2", "--worker_num=2"};
const std::vector<std::string> kCollective = {"--nproc_per_node=2"};

class ServedTraining : public ::testing::Test {
 protected:
  // Exit code of a short run with output folder `name`.
  int run(const std::string& name, const std::vector<std::string>& options,
          std::vector<std::string> overrides = {}) {
    overrides.push_back("train.output=" + name);
    overrides.push_back("train.deterministic=true");  // whatever cores each process has
    overrides.push_back("train.evaluate_every=0");
    const auto fleetrun = job.start(name, options, overrides);
    const int code = fleetrun->wait();
    output = fleetrun->output();
    EXPECT_THAT(job.folder().survivors(30), IsEmpty());
    return code;
  }
  // A file of the newest checkpoint.
  std::string saved(const std::string& name, const std::string& file) const {
    const auto folder = latest_checkpoint(job.path(name) + "/checkpoints");
    return folder ? read_file(*folder + "/" + file) : "no checkpoint in " + name;
  }
  void expect_same(const std::string& one, const std::string& other) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_TRUE(saved(one, file) == saved(other, file)) << file;
    }
  }
  // Of the evaluations of a run.
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> found;
    std::istringstream lines(job.folder().read(name + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == "test") found.push_back(event["loss"].get<double>());
    }
    return found;
  }
  TrainingJob job;
  std::string output;
};

const std::string kSixSteps = "train.max_steps=6";

TEST_F(ServedTraining, Sync_IsBitIdenticalToCollectiveTraining) {
  ASSERT_EQ(run("collective", kCollective, {kSixSteps}), 0) << output;
  ASSERT_EQ(run("served", kServed, {kSixSteps}), 0) << output;
  expect_same("collective", "served");
  EXPECT_THAT(output, HasSubstr("mode sync"));
  for (const char* log : {"log.served/serverlog.0", "log.served/serverlog.1"}) {
    EXPECT_THAT(job.folder().read(log),
                AllOf(HasSubstr("holds"), HasSubstr("connected"), HasSubstr("2 trainers ended")));
  }
}

TEST_F(ServedTraining, Checkpoints_AreResumedByTheOther) {
  ASSERT_EQ(run("whole", kCollective, {kSixSteps}), 0) << output;
  const std::vector<std::string> half = {"train.max_steps=3"};
  const std::vector<std::string> rest = {kSixSteps, "checkpoint.resume=auto"};
  ASSERT_EQ(run("served", kServed, half), 0) << output;
  ASSERT_EQ(run("served", kCollective, rest), 0) << output;
  EXPECT_THAT(output, HasSubstr("resumed from"));
  expect_same("whole", "served");
  ASSERT_EQ(run("collective", kCollective, half), 0) << output;
  ASSERT_EQ(run("collective", {"--server_num=1", "--worker_num=2"}, rest), 0) << output;
  EXPECT_THAT(output, HasSubstr("resumed from"));
  expect_same("whole", "collective");
}

TEST_F(ServedTraining, MergedAndClippedGradients_AreBitIdenticalToCollectiveTraining) {
  const std::vector<std::string> merged = {kSixSteps,
                                           "strategy.gradient_merge=true",
                                           "strategy.gradient_merge_configs.k_steps=2",
                                           "optimizer={'name': 'adam', 'clip': 'global_norm'}",
                                           "train.ema=0.9",
                                           "train.on_nan=skip"};
  ASSERT_EQ(run("collective", kCollective, merged), 0) << output;
  ASSERT_EQ(run("served", kServed, merged), 0) << output;
  expect_same("collective", "served");
}

TEST_F(ServedTraining, Evaluations_EqualThoseOfCollectiveTraining) {
  const std::vector<std::string> evaluated = {kSixSteps, "train.evaluate_every_steps=3",
                                              "optimizer={'name': 'lars'}"};
  ASSERT_EQ(run("collective", kCollective, evaluated), 0) << output;
  ASSERT_EQ(run("served", kServed, evaluated), 0) << output;
  EXPECT_EQ(losses("served"), losses("collective"));
  expect_same("collective", "served");
  EXPECT_EQ(losses("served").size(), 2u);
}

TEST_F(ServedTraining, WhatServersCannotDo_IsRefusedBeforeAnythingStarts) {
  for (const char* setting :
       {"strategy.dgc=true", "strategy.a_sync_configs.use_ps_gpu=1", "train.evaluate_only=true"}) {
    EXPECT_EQ(run("refused", kServed, {setting}), 2) << setting;
    const std::string key = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_THAT(output, HasSubstr(key.substr(key.rfind('.') + 1)));
    EXPECT_THAT(output, Not(HasSubstr("start 2 processes")));
  }
}

// One trainer that waits for its own updates trains as without servers.
TEST_F(ServedTraining, AsyncWithOneTrainer_IsBitIdenticalToTrainingWithoutServers) {
  ASSERT_EQ(run("alone", {"--nproc_per_node=1"}, {kSixSteps}), 0) << output;
  ASSERT_EQ(run("served", {"--server_num=2", "--worker_num=1"},
                {kSixSteps, "strategy.a_sync=true", "strategy.a_sync_configs.max_staleness=0"}),
            0)
      << output;
  expect_same("alone", "served");
  EXPECT_THAT(output, HasSubstr("mode async"));
}

TEST_F(ServedTraining, GeoWithOneTrainer_TrainsLikeOneWithoutServers) {
  ASSERT_EQ(run("alone", {"--nproc_per_node=1"}, {kSixSteps}), 0) << output;
  ASSERT_EQ(run("served", {"--server_num=2", "--worker_num=1"},
                {kSixSteps, "strategy.a_sync_configs.k_steps=4"}),
            0)
      << output;
  EXPECT_LT(distance(job.weights("served"), job.weights("alone")), 1e-6);
  EXPECT_TRUE(saved("served", "optimizer.safetensors") == saved("alone", "optimizer.safetensors"));
  EXPECT_THAT(output, HasSubstr("mode geo"));
}

// Trainers meet at evaluations and at the end.
TEST_F(ServedTraining, TrainersThatRunApart_EvaluateSaveAndResume) {
  const std::vector<std::vector<std::string>> modes = {
      {"strategy.a_sync=true"}, {"strategy.a_sync=true", "strategy.a_sync_configs.k_steps=2"}};
  for (size_t i = 0; i < modes.size(); ++i) {
    const std::string name = "apart" + std::to_string(i);
    std::vector<std::string> overrides = modes[i];
    overrides.insert(overrides.end(), {"train.max_steps=8", "train.evaluate_every_steps=4",
                                       "checkpoint.every_steps=3"});
    ASSERT_EQ(run(name, kServed, overrides), 0) << output;
    EXPECT_THAT(job.folder().read("log." + name + "/serverlog.0"), HasSubstr("2 trainers ended"));
    EXPECT_EQ(losses(name).size(), 2u);
    overrides.push_back("checkpoint.resume=auto");
    overrides.push_back("train.max_steps=12");
    ASSERT_EQ(run(name, kServed, overrides), 0) << output;
    EXPECT_THAT(output, HasSubstr("resumed from"));
  }
}

const std::vector<std::string> kLongServers = {"train.epochs=1000", "checkpoint.every_steps=10",
                                               "train.evaluate_every=0", "train.output=long"};
constexpr char kFirstCheckpoint[] = "long/checkpoints/step_00000010/state.json";

// The fleet-worker of that role and number.
pid_t process_of(const TrainingJob& job, const std::string& variable) {
  for (const pid_t pid : job.folder().processes("fleet-worker")) {
    const std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(variable + '\0') != std::string::npos) return pid;
  }
  ADD_FAILURE() << "no process with " << variable;
  return -1;
}

TEST_F(ServedTraining, ServerKilled_JobEndsNamingIt) {
  const auto fleetrun = job.start("long", kServed, kLongServers);
  job.folder().wait_for(kFirstCheckpoint);
  kill(process_of(job, "TRAINING_ROLE=PSERVER"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL) << fleetrun->output();
  EXPECT_EQ(verdict_in(job.folder(), "log.long")["rank"]["role"], "server");
  // The other trainer may hear of the first one's end before it misses the server.
  EXPECT_THAT(job.folder().read("log.long/workerlog.0") + job.folder().read("log.long/workerlog.1"),
              HasSubstr("server"));
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

TEST_F(ServedTraining, TrainerKilled_JobEndsNamingIt) {
  const auto fleetrun = job.start("long", kServed, kLongServers);
  job.folder().wait_for(kFirstCheckpoint);
  kill(job.worker("1"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL) << fleetrun->output();
  const auto rank = verdict_in(job.folder(), "log.long")["rank"];
  EXPECT_EQ(rank["role"], "trainer");
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

TEST_F(ServedTraining, StoppedBySignal_Saves) {
  const auto fleetrun = job.start("long", kServed, kLongServers);
  job.folder().wait_for(kFirstCheckpoint);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
  EXPECT_THAT(job.folder().read("log.long/serverlog.0"), Not(HasSubstr("was asked to stop")));
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

TEST_F(ServedTraining, TrainersThatRunApart_SaveWhenStoppedBySignal) {
  std::vector<std::string> overrides = kLongServers;
  overrides.push_back("strategy.a_sync=true");
  const auto fleetrun = job.start("long", kServed, overrides);
  job.folder().wait_for(kFirstCheckpoint);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
  EXPECT_THAT(job.folder().read("log.long/workerlog.0"), HasSubstr("stopped as asked"));
  EXPECT_THAT(job.folder().read("log.long/workerlog.1"), Not(HasSubstr("[error]")));
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

TEST_F(ServedTraining, RestartedJob_GoesOnFromItsCheckpoint) {
  const auto fleetrun =
      job.start("long", {"--server_num=1", "--worker_num=1", "--max_restart=1"},
                {"train.max_steps=200", "train.epochs=1000", "checkpoint.every_steps=10",
                 "train.evaluate_every=0", "train.output=long"});
  job.folder().wait_for(kFirstCheckpoint);
  kill(process_of(job, "TRAINING_ROLE=PSERVER"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("resumed from long"));
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
