// checkpoint.resume=auto where the newest checkpoint is damaged.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "tensor/host.h"
#include "tests/engine/train/trainer_job.h"
#include "train/trainer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DamagedCheckpoint : public TrainerTest {
 protected:
  Job job(int64_t max_steps, const std::string& resume, bool per_rank,
          const std::vector<std::string>& more = {}) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "mlp", "num_classes": 4, "hidden": [16]},
      "data": {"source": "synthetic", "batch_size": 8,
               "image": {"channels": 1, "height": 8, "width": 8}, "train": {"samples": 256}},
      "train": {"evaluate_every": 0},
      "checkpoint": {"every_steps": 2},
      "optimizer": {"name": "momentum"},
      "learning_rate": {"base": 0.01}})",
                                            "test");
    std::vector<std::string> overrides = {"train.max_steps=" + std::to_string(max_steps),
                                          "checkpoint.resume=" + resume, "train.output=" + output_};
    overrides.insert(overrides.end(), more.begin(), more.end());
    if (per_rank) overrides.emplace_back("strategy.localsgd=true");
    apply_overrides(tree, overrides);
    return make_job(tree);
  }

  // By rank: the weights at the end, or the error.
  struct Outcome {
    std::vector<float> weights;
    std::string error;
  };
  std::vector<Outcome> run(const Job& job, int world) const {
    std::vector<Outcome> outcomes(world);
    const auto ends = ends_of(job, world, [&](Trainer& trainer, int rank) {
      trainer.run();
      Executor& executor = trainer.session().executor();
      outcomes[rank].weights = executor.values<float>(executor.program().find("fc1.weight"));
    });
    for (int rank = 0; rank < world; ++rank) outcomes[rank].error = ends[rank].message;
    return outcomes;
  }

  void flip_a_bit(const std::string& file) const {
    const std::string path = output_ + "/checkpoints/" + file;
    std::string content = read_file(path);
    content[content.size() - 5] = static_cast<char>(content[content.size() - 5] ^ 4);
    write_file_atomically(path, content);
  }
};

// From the one before training ends where it would have ended.
TEST_F(DamagedCheckpoint, Auto_GoesOnFromTheOneBefore) {
  for (const bool per_rank : {false, true}) {
    fs::remove_all(output_);
    const auto whole = run(job(8, "no", per_rank), 2);
    fs::remove_all(output_);
    run(job(6, "no", per_rank), 2);
    // Of one rank only, where each has a part.
    flip_a_bit(per_rank ? "step_00000006/rank_00001.safetensors"
                        : "step_00000006/model.safetensors");
    const auto resumed = run(job(8, "auto", per_rank), 2);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(resumed[rank].error, "");
      EXPECT_EQ(resumed[rank].weights, whole[rank].weights) << rank;
    }
  }
}

// The newest checkpoint, which rank 1 cannot read, knows an evaluation; the one before knows none.
TEST_F(DamagedCheckpoint, OfOneRank_LeavesNothingOnTheOthers) {
  const std::vector<std::string> stopping = {"train.epochs=10",
                                             "data.train.samples=48",
                                             "data.test.samples=16",
                                             "train.evaluate_every=1",
                                             "train.early_stopping.metric=loss",
                                             "train.early_stopping.patience=1"};
  const auto whole = run(job(5, "no", true, stopping), 2);
  fs::remove_all(output_);
  run(job(4, "no", true, stopping), 2);
  flip_a_bit("step_00000004/rank_00001.safetensors");
  const auto resumed = run(job(5, "auto", true, stopping), 2);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(resumed[rank].error, "");
    EXPECT_EQ(resumed[rank].weights, whole[rank].weights) << rank;
  }
}

TEST_F(DamagedCheckpoint, Named_IsRefused) {
  run(job(4, "no", false), 1);
  flip_a_bit("step_00000004/optimizer.safetensors");
  const auto outcome = run(job(6, output_ + "/checkpoints/step_00000004", false), 1);
  EXPECT_THAT(outcome[0].error, HasSubstr("optimizer.safetensors: its content"));
}

TEST_F(DamagedCheckpoint, AllOfThem_AreNotTakenForNone) {
  run(job(4, "no", false), 2);
  for (const char* step : {"step_00000002", "step_00000004"}) {
    flip_a_bit(std::string(step) + "/model.safetensors");
  }
  for (const Outcome& outcome : run(job(6, "auto", false), 2)) {
    EXPECT_THAT(outcome.error, HasSubstr("every checkpoint is damaged"));
  }
}

}  // namespace
}  // namespace fleet
