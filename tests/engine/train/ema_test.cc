// train.ema: the average of the weights in a job, its checkpoints and its evaluations.
#include <gmock/gmock.h>

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using Ema = TrainerTest;
using ::testing::HasSubstr;

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 32, "width": 32})", "data.batch_size=8",
    "data.train.samples=32", "train.ema.decay=0.8"};

// The averages as a naive loop makes them from what the weights are after each step.
TEST_F(Ema, Averages_FollowTheWeightsOfEachStep) {
  Weights average;
  for (int step = 1; step <= 5; ++step) {
    std::filesystem::remove_all(output_);
    const Outcome trained =
        run(job(with(kColour, {"train.max_steps=" + std::to_string(step)}), kResnet), 1);
    for (const auto& [name, values] : trained.weights[0]) {
      if (!trained.weights[0].contains("ema." + name)) continue;
      const bool first = !average.contains(name);
      std::vector<float>& own = average[name];
      if (first) own = values;
      for (size_t i = 0; i < values.size(); ++i) own[i] += 0.2f * (values[i] - own[i]);
      const std::vector<float>& got = trained.weights[0].at("ema." + name);
      for (size_t i = 0; i < got.size(); i += 7) {
        ASSERT_NEAR(got[i], own[i], 1e-5 * (1 + std::abs(own[i]))) << name << " " << step;
      }
    }
  }
  EXPECT_TRUE(average.contains("layer4.1.bn2.running_var"));
  EXPECT_TRUE(average.contains("fc.bias"));
  EXPECT_EQ(average.size(), 62u + 40u);  // parameters and statistics of ResNet-18
}

// Training does not notice; evaluation is that of the averages.
TEST_F(Ema, Evaluation_IsOfTheAverages) {
  const auto plain = with(kColour, {"train.ema.decay=0", "checkpoint.every_epochs=1"});
  const Outcome without = run(job(plain, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome trained = run(job(kColour, kResnet), 1);
  for (const auto& [name, values] : without.weights[0]) {
    EXPECT_EQ(values, trained.weights[0].at(name)) << name;
  }
  EXPECT_NE(without.results[0].evaluation.loss(), trained.results[0].evaluation.loss());
  const std::string saved = output_ + "/checkpoints/step_00000008/";
  const auto evaluate = [&](const std::string& file) {
    return run(job(with(kColour, {"train.ema.decay=0", "train.evaluate_only=true",
                                  "checkpoint.weights=" + saved + file}),
                   kResnet),
               1)
        .results[0]
        .evaluation.loss();
  };
  EXPECT_NEAR(evaluate("ema.safetensors"), trained.results[0].evaluation.loss(), 1e-5);
  EXPECT_NEAR(evaluate("model.safetensors"), without.results[0].evaluation.loss(), 1e-5);
}

TEST_F(Ema, InterruptedRun_EndsInTheSameBits) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {},
           {"train.ema.warmup=true", "strategy.amp=true"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.build_strategy.reduce_strategy=Reduce"},
           {"strategy.dgc=true", "strategy.dgc_configs.rampup_begin_step=1"},
           {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"}}) {
    SCOPED_TRACE(more.empty() ? "" : more.back());
    const auto keys = with(with(kColour, more), {"checkpoint.every_steps=1"});
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(keys, kResnet), 2);
    for (const auto& [name, values] : whole.weights[0]) {
      if (!name.starts_with("ema.")) continue;
      EXPECT_EQ(values, whole.weights[1].at(name)) << name;
    }
    std::filesystem::remove_all(output_);
    run(job(with(keys, {"train.max_steps=3"}), kResnet), 2);
    const Outcome resumed = run(job(with(keys, {"checkpoint.resume=auto"}), kResnet), 2);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
    EXPECT_EQ(whole.results[0].evaluation.loss(), resumed.results[0].evaluation.loss());
  }
}

// A rate that makes weights so large that the losses behind some steps are not finite.
TEST_F(Ema, StepsLeftOut_LeaveTheAverage) {
  const std::vector<std::string> keys = {"train.ema.decay=0.8", "train.epochs=3",
                                         "train.on_nan=skip", "learning_rate.base=1e6"};
  const Outcome all = run(job(keys), 1);
  const int64_t good = 12 - all.results[0].skipped;
  ASSERT_GT(good, 0);
  ASSERT_LT(good, 12);
  std::filesystem::remove_all(output_);
  const Outcome before = run(job(with(keys, {"train.max_steps=" + std::to_string(good)})), 1);
  EXPECT_EQ(before.results[0].skipped, 0);
  int averages = 0;
  for (const auto& [name, values] : before.weights[0]) {
    if (!name.starts_with("ema.")) continue;
    ++averages;
    EXPECT_EQ(values, all.weights[0].at(name)) << name;
  }
  EXPECT_EQ(averages, 4);
}

TEST_F(Ema, CheckpointWithoutAverage_BeginsWithTheWeights) {
  const auto one = with(kColour, {"train.epochs=1"});
  run(job(with(one, {"train.ema.decay=0"}), kResnet), 1);
  const Outcome resumed = run(job(with(one, {"checkpoint.resume=auto"}), kResnet), 1);
  EXPECT_EQ(resumed.weights[0].at("ema.fc.weight"), resumed.weights[0].at("fc.weight"));
}

TEST_F(Ema, CheckpointWithAverage_GoesOnWithoutIt) {
  run(job(with(kColour, {"train.epochs=1"}), kResnet), 1);
  const Outcome resumed =
      run(job(with(kColour, {"train.ema.decay=0", "checkpoint.resume=auto"}), kResnet), 1);
  EXPECT_EQ(resumed.results[0].steps, 8);
  EXPECT_FALSE(resumed.weights[0].contains("ema.fc.weight"));
}

TEST_F(Ema, CheckpointWhoseAverageIsGone_IsDamaged) {
  run(job(with(kColour, {"checkpoint.every_epochs=1"}), kResnet), 1);
  std::filesystem::remove(output_ + "/checkpoints/step_00000008/ema.safetensors");
  const Outcome resumed = run(job(with(kColour, {"checkpoint.resume=auto"}), kResnet), 1);
  EXPECT_EQ(resumed.results[0].steps, 8);  // from step 4
}

TEST_F(Ema, LocalSgd_IsRefused) {
  const Job wrong = job(with(kColour, {"strategy.localsgd=true"}), kResnet);
  for (const std::string& message : start_two(wrong, wrong)) {
    EXPECT_THAT(message, HasSubstr("train.ema.decay: cannot be combined with localsgd"));
  }
}

TEST_F(Ema, PartsOfTheModel_AreRefusedWithTheirOwnRemedy) {
  for (const auto& [strategy, remedy, other] :
       {std::tuple("strategy.pipeline=true", "strategy.pipeline", "stage"),
        {"strategy.sharding=true", "sharding_configs.stage", "pipeline"}}) {
    const Job wrong = job(with(kColour, {strategy}), kResnet);
    for (const std::string& message : start_two(wrong, wrong)) {
      EXPECT_THAT(message,
                  AllOf(HasSubstr("train.ema.decay"), HasSubstr(remedy), Not(HasSubstr(other))));
    }
  }
}

TEST_F(Ema, OneNumber_IsTheDecay) {
  EXPECT_EQ(job({"train.ema=0.99"}).train.number("ema.decay"), 0.99);
}

}  // namespace
}  // namespace fleet
