// Trainers of parameter servers that are killed or stopped, through the real fleetrun and
// fleet-worker.
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>

#include "base/file.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Overrides = std::vector<std::string>;

const std::vector<std::string> kTwoServers = {"--server_num=2", "--worker_num=2"};
const Overrides kInAsync = {"strategy.a_sync=true"};
const Overrides kInBoundedAsync = {"strategy.a_sync=true",
                                   "strategy.a_sync_configs.max_staleness=3"};
const Overrides kInGeo = {"strategy.a_sync_configs.k_steps=3"};
constexpr char kReplaced[] = "takes the place of trainer ";

class LostTrainer : public ::testing::Test {
 protected:
  std::unique_ptr<Fleetrun> start(const Overrides& mode, int steps, const Overrides& more = {},
                                  std::vector<std::string> options = kTwoServers) {
    Overrides overrides = {"train.output=long", "train.epochs=1000", "checkpoint.every_steps=10",
                           "train.evaluate_every=0", "train.max_steps=" + std::to_string(steps)};
    overrides.insert(overrides.end(), mode.begin(), mode.end());
    overrides.insert(overrides.end(), more.begin(), more.end());
    return job.start("long", std::move(options), overrides);
  }
  void wait_for_training() const {
    job.folder().wait_for("long/checkpoints/step_00000010/state.json");
  }
  std::string log(const std::string& process) const {
    return job.folder().read("log.long/" + process);
  }
  // By trainer 0, which saves last; the servers have heard a goodbye of each trainer.
  void expect_all_steps(int steps) const {
    const auto newest = latest_checkpoint(job.path("long/checkpoints"));
    ASSERT_TRUE(newest);
    EXPECT_EQ(step_of_checkpoint(*newest), steps);
    EXPECT_THAT(log("serverlog.0"), HasSubstr("2 trainers ended"));
    EXPECT_THAT(job.folder().survivors(30), IsEmpty());
  }
  std::vector<int64_t> evaluated_steps() const {
    std::vector<int64_t> found;
    std::istringstream lines(job.folder().read("long/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == "test") found.push_back(event["step"].get<int64_t>());
    }
    return found;
  }
  TrainingJob job;
};

struct Loss {
  std::string name, rank;
  Overrides mode;
};

class ReplacedTrainer : public LostTrainer, public ::testing::WithParamInterface<Loss> {};

TEST_P(ReplacedTrainer, Killed_AnotherProcessDoesTheRestOfItsSteps) {
  const auto& [name, rank, mode] = GetParam();
  const auto fleetrun = start(mode, 150);
  wait_for_training();
  kill(job.worker(rank), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("rank " + rank + " (local rank"));
  const std::string own = log("workerlog." + rank);
  EXPECT_THAT(own, HasSubstr(kReplaced + rank));
  EXPECT_THAT(own, HasSubstr(" samples)"));
  EXPECT_THAT(log(rank == "0" ? "workerlog.1" : "workerlog.0"), Not(HasSubstr(kReplaced)));
  const auto replaced = verdict_in(job.folder(), "log.long")["replacements"];
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(replaced[0]["rank"], std::stoi(rank));
  EXPECT_EQ(replaced[0]["signal"], "SIGKILL");
  // Null if the killed process had done all its steps: on a loaded host, it may be far ahead.
  const auto& samples = replaced[0]["repeated_samples"];
  if (!samples.is_null()) {
    EXPECT_THAT(own, HasSubstr("(" + samples.dump() + " samples), which are trained again"));
  }
  expect_all_steps(150);
}

INSTANTIATE_TEST_SUITE_P(Modes, ReplacedTrainer,
                         ::testing::Values(Loss{"Async", "1", kInAsync},
                                           Loss{"AsyncFirst", "0", kInAsync},
                                           Loss{"BoundedStaleness", "1", kInBoundedAsync},
                                           Loss{"Geo", "1", kInGeo}, Loss{"GeoFirst", "0", kInGeo}),
                         [](const auto& param) { return param.param.name; });

// Trainers meet every 20 steps; whichever meeting the killed one was in is made again.
TEST_F(LostTrainer, KilledAroundEvaluations_AllAreMade) {
  const auto fleetrun = start(kInAsync, 120, {"train.evaluate_every_steps=20"});
  wait_for_training();
  for (const std::string rank : {"1", "0"}) {
    kill(job.worker(rank), SIGKILL);
    job.folder().wait_for(rank == "1" ? "long/checkpoints/step_00000060/state.json"
                                      : "long/checkpoints/step_00000100/state.json");
  }
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_EQ(evaluated_steps(), (std::vector<int64_t>{20, 40, 60, 80, 100, 120}));
  expect_all_steps(120);
}

TEST_F(LostTrainer, RestartsForbidden_JobEndsNamingIt) {
  auto options = kTwoServers;
  options.push_back("--max_restart=0");
  const auto fleetrun = start(kInAsync, 100'000, {}, options);
  wait_for_training();
  kill(job.worker("1"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL) << fleetrun->output();
  const auto rank = verdict_in(job.folder(), "log.long")["rank"];
  EXPECT_EQ(rank["role"], "trainer");
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

TEST_F(LostTrainer, Sync_JobRestartsAsAsked) {
  auto options = kTwoServers;
  options.push_back("--max_restart=1");
  const auto fleetrun = start({}, 60, {}, options);
  wait_for_training();
  kill(job.worker("1"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("resumed from long"));
  EXPECT_THAT(log("workerlog.1"), Not(HasSubstr(kReplaced)));
  expect_all_steps(60);
}

// Trainers still need servers that got a signal; but these do not wait for a lost trainer.
TEST_F(LostTrainer, OfServersThatWereAskedToStop_JobRestartsAsAsked) {
  auto options = kTwoServers;
  options.push_back("--max_restart=3");
  const auto fleetrun = start(kInAsync, 150, {}, options);
  wait_for_training();
  for (const pid_t process : job.folder().processes("fleet-worker")) {
    const std::string environment = read_file("/proc/" + std::to_string(process) + "/environ");
    if (environment.find("TRAINING_ROLE=PSERVER") != std::string::npos) kill(process, SIGTERM);
  }
  kill(job.worker("1"), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("was asked to stop"));
  expect_all_steps(150);
}

// While it is stopped, trainer 0 comes as far ahead as it may.
TEST_F(LostTrainer, StoppedAndContinued_IsNotReplaced) {
  const auto fleetrun = start(kInAsync, 200);
  wait_for_training();
  const pid_t stopped = job.worker("1");
  kill(stopped, SIGSTOP);
  job.folder().wait_for("long/checkpoints/step_00000120/state.json");
  kill(stopped, SIGCONT);
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(log("workerlog.1"), Not(HasSubstr(kReplaced)));
  EXPECT_THAT(log("serverlog.0"), Not(HasSubstr("is lost")));
  expect_all_steps(200);
}

}  // namespace
}  // namespace fleet
