#include "train/checkpoint_saver.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "base/file.h"
#include "base/file_status.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Saving while training continues, and failing disks.
class BackgroundSaving : public TrainerTest {
 protected:
  std::string checkpoints() const { return output_ + "/checkpoints"; }
  // Waits for a moment of a job that runs; a failure where it does not come.
  static void await(const char* what, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::string error_of(const Job& job, int world) {
    try {
      run(job, world);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.what();
    }
    return "no error";
  }
};

// Later training steps do not change the values that are being saved.
TEST_F(BackgroundSaving, Values_AreThoseOfTheStep) {
  Program program;
  program.add_section("forward", {});
  const VarId weight = program.parameter("weight", {512, 1024}, {Init::kUniform, -1, 1});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.initialize(1);
  const auto before = executor.values<float>(weight);
  CheckpointSaver saver(checkpoints(), executor, {}, nullptr);
  for (const int64_t step : {1, 2}) {
    saver.begin({.step = step, .model = "m"}, {.newest = 1});
    executor.write(weight, std::vector<float>(before.size(), 7));
    ASSERT_TRUE(saver.wait_for(std::chrono::seconds(60)));
    const auto outcome = saver.take();
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->step, step);
    EXPECT_FALSE(outcome->failure);
    EXPECT_EQ(outcome->folder, *latest_checkpoint(checkpoints()));
    EXPECT_FALSE(saver.take().has_value());
    load_checkpoint(outcome->folder, "m", executor);
    EXPECT_EQ(executor.values<float>(weight), before);
  }
}

TEST_F(BackgroundSaving, StatesOfEachRank_AreSavedByAll) {
  const std::vector<std::string> often = {"checkpoint.every_steps=1", "strategy.localsgd=true",
                                          "data.batch_size=8", "checkpoint.keep=0"};
  const Outcome whole = run(job(with(often, {"train.epochs=1"})), 2);
  int count = 0;
  for (const auto& entry : fs::directory_iterator(checkpoints())) {
    EXPECT_TRUE(fs::exists(entry.path() / "rank_00001.safetensors")) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 4);
}

// Something in the way of the folder: also root cannot write there.
TEST_F(BackgroundSaving, FolderThatCannotBeWritten_EndsTheJobAfterItsTrainingOnly) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    fs::create_directories(output_);
    std::ofstream(checkpoints()) << "in the way";
    const std::string error = error_of(job({"checkpoint.every_steps=1"}), world);
    EXPECT_THAT(error, HasSubstr("last checkpoint"));
    const auto summary = events("summary");
    ASSERT_EQ(summary.size(), 1u);
    EXPECT_EQ(summary[0]["steps"], world == 1 ? 8 : 4);
  }
}

TEST_F(BackgroundSaving, FolderThatIsRemoved_IsMadeAnew) {
  std::atomic<int> stop{0};
  std::thread user([&] {
    await("a first checkpoint", [&] { return latest_checkpoint(checkpoints()).has_value(); });
    fs::rename(output_, output_ + ".gone");
    await("another one", [&] { return latest_checkpoint(checkpoints()).has_value(); });
    stop = SIGTERM;
  });
  const Outcome outcome = run(job({"checkpoint.every_steps=1", "train.epochs=1000000"}), 1, &stop);
  user.join();
  fs::remove_all(output_ + ".gone");
  EXPECT_EQ(outcome.results[0].stopped_by, SIGTERM);
  EXPECT_EQ(step_of_checkpoint(*latest_checkpoint(checkpoints())), outcome.results[0].steps);
  EXPECT_EQ(events("summary").size(), 1u);
}

// Failures that pass: the next checkpoint is there, and the job ends well.
TEST_F(BackgroundSaving, FailureThatPasses_IsNone) {
  fs::create_directories(output_);
  std::ofstream(checkpoints()) << "in the way";
  std::atomic<int> stop{0};
  std::thread user([&] {
    await("some steps", [&] {
      std::ifstream file(output_ + "/metrics.jsonl");
      return std::count(std::istreambuf_iterator<char>(file), {}, '\n') > 3;
    });
    fs::remove(checkpoints());
    await("a checkpoint", [&] { return latest_checkpoint(checkpoints()).has_value(); });
    stop = SIGTERM;
  });
  const Outcome outcome = run(job({"checkpoint.every_steps=1", "train.epochs=1000000"}), 2, &stop);
  user.join();
  EXPECT_EQ(step_of_checkpoint(*latest_checkpoint(checkpoints())), outcome.results[0].steps);
}

// The best step of a full disk is not on it: no checkpoint may name it.
TEST_F(BackgroundSaving, BestStepThatWasNotSaved_IsForgotten) {
  fs::create_directories(output_);
  std::ofstream(checkpoints()) << "in the way";
  std::atomic<int> stop{0};
  std::thread user([&] {
    await("an evaluation after two epochs of four steps", [&] {
      return path_exists(output_ + "/metrics.jsonl") &&
             read_file(output_ + "/metrics.jsonl").find("\"step\":8,", 0) != std::string::npos;
    });
    fs::remove(checkpoints());
    await("a checkpoint", [&] { return latest_checkpoint(checkpoints()).has_value(); });
    stop = SIGTERM;
  });
  run(job({"checkpoint.every_steps=1", "checkpoint.keep=0", "checkpoint.keep_best=loss",
           "learning_rate.base=0.001", "train.epochs=1000000"}),
      1, &stop);
  user.join();
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const auto& entry : fs::directory_iterator(checkpoints())) {
    first = std::min(first, step_of_checkpoint(entry.path()));
  }
  const auto state =
      nlohmann::json::parse(read_file(folder_of_step(checkpoints(), first) + "/state.json"));
  EXPECT_THAT(state["evaluations"]["kept"]["step"].get<int64_t>(), AnyOf(-1, first));
}

// As after a return to an older checkpoint, beside which the best one was not kept.
TEST_F(BackgroundSaving, BestThatIsGone_DoesNotCount) {
  const std::vector<std::string> worst = {"checkpoint.keep_best.metric=loss",
                                          "checkpoint.keep_best.mode=max", "checkpoint.keep=0",
                                          "checkpoint.every_epochs=1", "checkpoint.resume=auto"};
  const auto best = [&] { return events("summary").back()["best_step"].get<int64_t>(); };
  run(job(with(worst, {"train.epochs=3"})), 1);
  ASSERT_LT(best(), 12);
  fs::remove_all(folder_of_step(checkpoints(), best()));
  run(job(with(worst, {"train.epochs=4"})), 1);
  EXPECT_TRUE(path_exists(folder_of_step(checkpoints(), best()))) << best();
}

}  // namespace
}  // namespace fleet
