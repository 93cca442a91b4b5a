// Jobs whose optimizer averages the weights (optim/schedule_free.cc): their evaluations and their
// checkpoints.
#include <gmock/gmock.h>

#include "tests/engine/train/trainer_job.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

using ScheduleFree = TrainerTest;

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::string kAdamw = R"({"name": "schedule_free_adamw", "weight_decay": 0.01})";
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 32, "width": 32})", "data.batch_size=8",
    "data.train.samples=32", "learning_rate.base=0.01"};

TEST_F(ScheduleFree, Evaluation_IsOfTheAverages) {
  const Outcome trained = run(job(kColour, kResnet, kAdamw), 1);
  const std::string saved = output_ + "/checkpoints/step_00000008/";
  const auto evaluate = [&](const std::string& file) {
    return run(job(with(kColour,
                        {"train.evaluate_only=true", "checkpoint.weights=" + saved + file}),
                   kResnet),
               1)
        .results[0]
        .evaluation.loss();
  };
  const double loss = trained.results[0].evaluation.loss();
  EXPECT_NEAR(evaluate("ema.safetensors"), loss, 1e-5);
  EXPECT_GT(std::abs(evaluate("model.safetensors") - loss), 1e-4);
  // Statistics are those of the last step.
  for (const auto& [name, values] : trained.weights[0]) {
    if (name.find("running_") == std::string::npos || name.starts_with("ema.")) continue;
    EXPECT_EQ(values, trained.weights[0].at("ema." + name)) << name;
  }
}

TEST_F(ScheduleFree, InterruptedRun_EndsInTheSameBits) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {"strategy.amp=true"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.build_strategy.reduce_strategy=Reduce"}}) {
    SCOPED_TRACE(more.back());
    const auto keys = with(with(kColour, more), {"checkpoint.every_steps=1"});
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(keys, kResnet, kAdamw), 2);
    for (const auto& [name, values] : whole.weights[0]) {
      if (!name.starts_with("ema.")) continue;
      EXPECT_EQ(values, whole.weights[1].at(name)) << name;
    }
    std::filesystem::remove_all(output_);
    run(job(with(keys, {"train.max_steps=3"}), kResnet, kAdamw), 2);
    const Outcome resumed = run(job(with(keys, {"checkpoint.resume=auto"}), kResnet, kAdamw), 2);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
    EXPECT_EQ(whole.results[0].evaluation.loss(), resumed.results[0].evaluation.loss());
  }
}

// The weights of training are not those of evaluations.
TEST_F(ScheduleFree, CheckpointWithoutItsAverages_IsRefused) {
  const Job all = job(kColour, kResnet, kAdamw);
  run(all, 1);
  const std::string saved = output_ + "/checkpoints/step_00000008";
  std::filesystem::remove(saved + "/ema.safetensors");
  EXPECT_THROW(read_trained_weights(all, saved, "predict.checkpoint"), DamagedFile);
}

}  // namespace
}  // namespace fleet
