// A job whose data folder goes away, as a file server's does: it waits and goes on, or it ends with
// a code that the launcher restarts.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/encode_image.h"
#include "tests/chaos/wait_until.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = R"({
  "model": {"name": "mlp", "num_classes": 2, "hidden": [8]},
  "data": {"source": "image_folder", "root": "photos", "batch_size": 4, "test": {"folder": ""},
           "image": {"channels": 1, "height": 8, "width": 8}},
  "train": {"epochs": 1000000, "evaluate_every": 0, "output": "out"},
  "checkpoint": {"every_steps": 100}
})";

class DataAway : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(job_.path("photos.json"), kJob);
    for (int i = 0; i < 40; ++i) {
      const std::string path = "photos/train/" + std::to_string(i % 2);
      fs::create_directories(job_.path(path));
      const std::vector<uint8_t> pixels(64, static_cast<uint8_t>(6 * i));
      write_file_atomically(job_.path(path + "/" + std::to_string(i) + ".png"),
                            data::encode_png(pixels, 8, 8, 1));
    }
  }
  // Started, and at its first checkpoint.
  void start(const std::vector<std::string>& overrides) {
    run_ = job_.start("run", {"--nproc_per_node=1"}, overrides, "photos.json");
    job_.folder().wait_for("out/checkpoints/step_00000100/state.json");
  }
  void take_away() const { fs::rename(job_.path("photos"), job_.path("away")); }
  void bring_back() const { fs::rename(job_.path("away"), job_.path("photos")); }
  // Waits for the line with which the job begins to wait.
  void wait_until_it_waits() const {
    ASSERT_TRUE(chaos::wait_until(chaos::kStartLimit, [&] {
      return job_.folder().read("log.run/workerlog.0").find("data.read_timeout") !=
             std::string::npos;
    })) << run_->output();
  }
  int64_t saved_steps() const {
    const auto newest = latest_checkpoint(job_.path("out/checkpoints"));
    return newest ? step_of_checkpoint(*newest) : 0;
  }
  nlohmann::json summary() const {
    nlohmann::json found;
    std::ifstream lines(job_.path("out/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == "summary") found = event;
    }
    return found;
  }

  TrainingJob job_;
  std::unique_ptr<Fleetrun> run_;
};

TEST_F(DataAway, ForAMoment_LosesNoSample) {
  start({});
  take_away();
  wait_until_it_waits();
  bring_back();
  // Batches that were read before may be trained meanwhile, but not hundreds.
  const int64_t before = saved_steps();
  EXPECT_TRUE(chaos::wait_until(chaos::kStartLimit, [&] { return saved_steps() > before + 500; }))
      << run_->output();
  run_->signal(SIGTERM);
  EXPECT_EQ(run_->wait(), 128 + SIGTERM) << run_->output();
  ASSERT_TRUE(summary().is_object());
  EXPECT_EQ(summary()["damaged"], 0);
}

TEST_F(DataAway, BeyondTheTimeout_EndsWithACodeThatIsRestarted) {
  start({"data.read_timeout=1", "data.on_damaged=skip"});
  take_away();
  EXPECT_EQ(run_->wait(), 1) << run_->output();
  EXPECT_GE(saved_steps(), 100) << "it saves first";
}

}  // namespace
}  // namespace fleet
