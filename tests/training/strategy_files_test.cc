// Strategies as files: Paddle's are trained with, ours can be handed to Paddle.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class StrategyFiles : public ::testing::Test {
 protected:
  // Standard output of fleet-worker for job.json with these overrides and options.
  std::string output(const std::vector<std::string>& overrides,
                     const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"job.json"};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(job_.run_worker(arguments, &said_), 0) << said_;
    return job_.folder().read("worker.out");
  }
  TrainingJob job_;
  std::string said_;  // on standard error by the last run
};

TEST_F(StrategyFiles, OfPaddle_AreTrainedWith) {
  const auto folder = std::filesystem::path(source_folder()) / "tests/engine/strategy/golden";
  for (const char* name : {"paddle_2.0_example", "paddle_2.6.2_example", "paddle_3.3.1_example"}) {
    const std::string file = folder / (std::string(name) + ".prototxt");
    output({"strategy=" + file, "train.max_steps=2"});
    size_t lines = 0;
    for (const std::string& line : split(said_, '\n')) {
      lines += line.find("not configurable") != std::string::npos;
    }
    EXPECT_EQ(lines, 1u) << name << ": " << said_;
    std::filesystem::remove_all(job_.path("output"));
  }
}

TEST_F(StrategyFiles, Saved_IsTheStrategyThatSavedIt) {
  const std::vector<std::string> overrides = {"strategy.fuse_all_optimizer_ops=False",
                                              "strategy.thread_num=2",
                                              R"(strategy.amp_configs={"dtype": "bfloat16",})"};
  const std::string program = output(overrides, {"--print_program"});
  EXPECT_NE(program, output({}, {"--print_program"}));
  output(overrides, {"--save_strategy=saved.prototxt", "--paddle=2.1"});
  EXPECT_THAT(said_, ::testing::AllOf(HasSubstr("saved.prototxt"), HasSubstr("Paddle 2.1"),
                                      HasSubstr("amp_configs.dtype")));
  const std::string saved = read_file(job_.path("saved.prototxt"));
  EXPECT_EQ(saved.find("dtype"), std::string::npos) << saved;
  EXPECT_EQ(output({"strategy=saved.prototxt"}, {"--print_program"}), program);
  EXPECT_FALSE(std::filesystem::exists(job_.path("output")));  // it was to be written only
}

TEST_F(StrategyFiles, UnknownRelease_IsRefused) {
  EXPECT_EQ(job_.run_worker({"job.json", "--save_strategy=a", "--paddle=1.8"}, &said_), 2);
  EXPECT_THAT(said_, HasSubstr("2.6"));
}

TEST_F(StrategyFiles, IterationsARun_SpaceTheLosses) {
  output({"strategy.num_iteration_per_run=4", "train.fetch_every=1", "train.max_steps=10"});
  EXPECT_THAT(said_, HasSubstr("num_iteration_per_run is 4"));
  std::vector<std::string> steps;
  for (const std::string& line :
       split(read_file(job_.path("output/job/latest/metrics.jsonl")), '\n')) {
    if (line.find("\"event\":\"train\"") == std::string::npos) continue;
    const size_t at = line.find("\"step\":") + 7;
    steps.push_back(line.substr(at, line.find(',', at) - at));
  }
  EXPECT_THAT(steps, ::testing::ElementsAre("3", "7"));
}

TEST_F(StrategyFiles, MistakeInOne_HasItsPlace) {
  write_file_atomically(job_.path("bad.prototxt"), "amp: true\nincr_ratio: 3\n");
  EXPECT_EQ(job_.run_worker({"job.json", "--set", "strategy=bad.prototxt"}, &said_), 2);
  EXPECT_THAT(said_, StartsWith("fleet-worker: bad.prototxt:2:1: "));
}

}  // namespace
}  // namespace fleet
