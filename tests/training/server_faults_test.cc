// A parameter server that is killed at each stage of a job, through the real fleetrun and
// fleet-worker (base/fault_point.h).
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/file.h"
#include "ps/message.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A checkpoint of 8 steps each.
constexpr char kClicksJob[] = R"({
  "task": "click", "model": {"name": "wide_deep", "dense": false, "dim": 4, "hidden": [16]},
  "data": {"source": "synthetic_clicks", "slot_count": 3, "slot_ids": 100, "ids": 0,
           "batch_size": 64, "train": {"samples": 8192}, "test": {"samples": 1024}},
  "optimizer": {"name": "adagrad"}, "learning_rate": {"base": 0.05},
  "tables": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1},
                           "initializer": {"low": -0.01, "high": 0.01}}},
  "train": {"epochs": 9, "deterministic": true, "max_steps": 24, "evaluate_every": 0,
            "fetch_every": 1, "output": "out", "tensorboard": false},
  "checkpoint": {"every_steps": 8}
})";

struct Stage {
  const char* name;
  std::string fault;            // PLACE DETAIL N of FLEET_FAULT
  std::optional<bool> resumes;  // from a checkpoint; empty: the job may have ended before
};
std::string at(const char* place, ps::MessageType type, int times) {
  return std::string(place) + " " + std::to_string(static_cast<int>(type)) + " " +
         std::to_string(times);
}
std::vector<Stage> stages() {
  using ps::MessageType;
  return {{"BeforeItListens", "ps_listens 0 1", false},
          {"WhileTrainersConnect", at("ps_has", MessageType::kHello, 2), false},
          {"InInitialValues", at("ps_has", MessageType::kInitial, 1), false},
          {"InTheFirstStep", at("ps_has", MessageType::kPush, 3), false},
          // Two trainers push rows and dense gradients: 4 pushes, and as many values, a step.
          {"InALaterStep", at("ps_has", MessageType::kPush, 4 * 18 + 2), true},
          {"BetweenPushAndValues", at("ps_sends", MessageType::kValues, 4 * 18 + 3), true},
          // Cut and write are two commands for each checkpoint.
          {"BeforeACut", at("ps_has", MessageType::kCommand, 3), true},
          {"AfterACut", at("ps_sends", MessageType::kResult, 3), true},
          {"WhileItWrites", "ps_writes 0 700", true},  // 500 of 1,000 shards for each checkpoint
          {"BeforeTheManifest", at("ps_sends", MessageType::kResult, 4), true},
          {"AtTheEnd", at("ps_has", MessageType::kGoodbye, 1), std::nullopt}};
}

class FaultyJob {
 public:
  FaultyJob() { write_file_atomically(job_.path("clicks.json"), kClicksJob); }

  // Runs it with 2 servers and 2 trainers; its exit code.
  int run(const std::string& fault) {
    Fleetrun::Environment environment;
    if (!fault.empty()) {
      write_file_atomically(job_.path("armed"), "");
      environment = {{"FLEET_FAULT", fault + " " + job_.path("armed")}};
    }
    Fleetrun fleetrun(job_.folder(), "job",
                      {"--server_num=2", "--worker_num=2", "--max_restart=1", "clicks.json"},
                      environment);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job_.folder().survivors(30), IsEmpty());
    return code;
  }
  bool fault_came() const { return !std::filesystem::exists(job_.path("armed")); }
  // The files of the last checkpoint; the names of all files of the run.
  std::map<std::string, std::string> saved() const {
    return files(job_.path("out/checkpoints/step_00000024"));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, content] : files(job_.path("out"))) all.push_back(name);
    return all;
  }
  std::string output;

 private:
  static std::map<std::string, std::string> files(const std::string& root) {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      all[std::filesystem::relative(entry.path(), root)] = read_file(entry.path());
    }
    return all;
  }
  TrainingJob job_;
};

class ServerKilled : public ::testing::TestWithParam<Stage> {
 protected:
  static void SetUpTestSuite() {
    FaultyJob job;
    ASSERT_EQ(job.run(""), 0) << job.output;
    *undisturbed_ = job.saved();
  }
  static inline const std::unique_ptr<std::map<std::string, std::string>> undisturbed_ =
      std::make_unique<std::map<std::string, std::string>>();
};

TEST_P(ServerKilled, RestartedJob_HasTheBitsOfAnUndisturbedOne) {
  FaultyJob job;
  EXPECT_EQ(job.run(GetParam().fault), 0) << job.output;
  EXPECT_TRUE(job.fault_came());
  const bool resumed = job.output.find("resumed from") != std::string::npos;
  EXPECT_EQ(resumed, GetParam().resumes.value_or(resumed)) << job.output;
  const auto saved = job.saved();
  ASSERT_EQ(saved.size(), undisturbed_->size());
  for (const auto& [name, content] : *undisturbed_) {
    EXPECT_TRUE(saved.contains(name) && saved.at(name) == content) << name;
  }
  EXPECT_THAT(job.names(), Not(Contains(HasSubstr(".part"))));
}

INSTANTIATE_TEST_SUITE_P(Stages, ServerKilled, ::testing::ValuesIn(stages()),
                         [](const auto& stage) { return std::string(stage.param.name); });

}  // namespace
}  // namespace fleet
