// The job files of config/strategies, all there are: each trains through the real fleetrun, loses a
// rank to kill -9, is resumed, and ends with the same bits as a run that nobody killed.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/config.h"
#include "base/file.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(source_folder()) / "config/strategies")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class StrategyJob : public ::testing::TestWithParam<std::string> {
 protected:
  // Two ranks of the job on little synthetic data, so that it takes seconds. The steps suffice for
  // strategies that act only every few steps.
  std::unique_ptr<Fleetrun> start(const std::string& name, const std::string& output,
                                  const std::vector<std::string>& more) {
    return start(GetParam(), name, output, more);
  }
  std::unique_ptr<Fleetrun> start(const std::string& job, const std::string& name,
                                  const std::string& output, const std::vector<std::string>& more) {
    const std::string file = fs::path(source_folder()) / "config/strategies" / (job + ".json");
    const ConfigTree tree = ConfigTree::from_file(file);
    const auto model = tree.peek("model.name");
    const bool gray = model == "lenet" || model == "mlp";
    std::vector<std::string> overrides = {
        "data.source=synthetic",
        std::string("data.image=") + (gray ? R"({"channels":1,"height":28,"width":28})"
                                           : R"({"channels":3,"height":32,"width":32})"),
        "data.batch_size=8",
        "data.train.samples=1280",
        "train.epochs=30",
        "train.evaluate_every=0",
        "train.fetch_every=50",
        "checkpoint.every_steps=10",
        "train.output=" + output};
    const auto set_where = [&](const std::string& strategy, const std::string& key) {
      if (tree.peek("strategy." + strategy)) overrides.push_back("strategy." + strategy + key);
    };
    set_where("dgc", "_configs.rampup_begin_step=4");
    set_where("dgc", "_configs.rampup_step=12");
    set_where("localsgd", "_configs.begin_step=1");
    set_where("adaptive_localsgd", "_configs.begin_step=1");
    overrides.insert(overrides.end(), more.begin(), more.end());
    return job_.start(name, {"--nproc_per_node=2"}, overrides, file);
  }

  // The last checkpoint's files of tensors: the model's, and the ranks' own.
  std::map<std::string, std::string> tensors(const std::string& output) const {
    std::map<std::string, std::string> files;
    const auto folder = latest_checkpoint(job_.path(output) + "/checkpoints");
    if (!folder) return files;
    for (const auto& entry : fs::directory_iterator(*folder)) {
      if (entry.path().extension() != ".safetensors") continue;
      files[entry.path().filename()] = read_file(entry.path());
    }
    return files;
  }

  TrainingJob job_;
};

TEST_P(StrategyJob, RankKilled_ResumedRunIsBitIdentical) {
  auto whole = start("whole", "whole", {"train.max_steps=200"});
  ASSERT_EQ(whole->wait(), 0) << whole->output();
  // Only amp may be: this processor may lack a 16-bit type.
  std::string output = whole->output();
  for (size_t at; (at = output.find("amp is switched off")) != output.npos;) output.erase(at, 19);
  EXPECT_THAT(output, Not(HasSubstr("is switched off")));

  auto cut = start("cut", "cut", {"train.max_steps=200"});
  job_.folder().wait_for("cut/checkpoints/step_00000010/state.json");
  const auto workers = job_.folder().processes("fleet-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGKILL);
  EXPECT_EQ(cut->wait(), 128 + SIGKILL) << cut->output();
  EXPECT_THAT(job_.folder().survivors(5), IsEmpty());

  auto resumed = start("resumed", "cut", {"checkpoint.resume=auto", "train.max_steps=200"});
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  const auto expected = tensors("whole"), actual = tensors("cut");
  EXPECT_TRUE(expected.contains("model.safetensors"));
  EXPECT_EQ(distance(job_.weights("whole"), job_.weights("cut")), 0);
  EXPECT_TRUE(expected == actual) << "the checkpoints' tensors differ";
}

class StrategyPair : public StrategyJob {};

// Both replace the update: by Paddle's rules dgc stays, and trains as if lars had not been asked
// for.
TEST_F(StrategyPair, DgcOverLars_TrainsAndSaysSo) {
  auto both = start("dgc", "both", "both", {"strategy.lars=true", "train.max_steps=30"});
  ASSERT_EQ(both->wait(), 0) << both->output();
  EXPECT_THAT(both->output(), ::testing::AllOf(HasSubstr("lars is switched off"),
                                               HasSubstr("remove lars, or dgc")));
  auto alone = start("dgc", "alone", "alone", {"train.max_steps=30"});
  ASSERT_EQ(alone->wait(), 0) << alone->output();
  EXPECT_FALSE(tensors("both").empty());
  EXPECT_TRUE(tensors("both") == tensors("alone")) << "the checkpoints' tensors differ";
}

INSTANTIATE_TEST_SUITE_P(OfConfig, StrategyJob, ::testing::ValuesIn(job_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fleet
