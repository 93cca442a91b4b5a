// train.class_weights, data.sampling and data.validation_split in whole jobs.
#include "train/class_weights.h"

#include "base/file.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kMlp[] = R"({"name": "mlp", "num_classes": 4, "hidden": [32], "dropout": 0})";

class ClassWeights : public TrainerTest {
 protected:
  Job weighted(const std::vector<std::string>& overrides) const { return job(overrides, kMlp); }
};

// Shards of a global batch hold other classes: only the weights of all of it divide its loss.
TEST_F(ClassWeights, OnAnyNumberOfRanks_TrainAlike) {
  const std::string weights = "train.class_weights=[1, 0.25, 3, 8]";
  const Outcome one = run(weighted({weights, "data.batch_size=32", "train.fetch_every=1"}), 1);
  const auto whole = events("train"), tested = events("test");
  fs::remove_all(output_);
  const Outcome four = run(weighted({weights, "data.batch_size=8", "train.fetch_every=1"}), 4);
  EXPECT_LT(distance(one.weights[0], four.weights[0]), 1e-5);
  const auto parts = events("train");
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i]["loss"], parts[i]["loss"], 1e-5);
  EXPECT_NEAR(tested.back()["loss"], events("test").back()["loss"], 1e-5);
}

std::vector<std::string> merged(int k, const std::vector<std::string>& more = {}) {
  return with({"strategy.gradient_merge=true",
               "strategy.gradient_merge_configs.k_steps=" + std::to_string(k)},
              more);
}

// k micro-batches, on any number of ranks, train as one large batch: the weights of all of them
// divide the loss of an update.
TEST_F(ClassWeights, Parts_TrainAsOneLargeBatch) {
  const std::vector<std::string> four = {"data.batch_size=4"}, two = {"data.batch_size=2"};
  struct Parts {
    std::vector<std::string> keys;
    int ranks;
  };
  const std::vector<Parts> parts = {
      {merged(4, four), 1},
      {merged(2, four), 2},
      {merged(4, two), 2},
      {{"data.batch_size=16", "strategy.pipeline=true",
        "strategy.pipeline_configs.accumulate_steps=4"},
       1},
      {{"data.batch_size=16", "strategy.pipeline=true",
        "strategy.pipeline_configs.accumulate_steps=4"},
       2},
      {with(two, {"strategy.sharding=true", "strategy.sharding_configs.gradient_merge_acc_step=4"}),
       2}};
  const std::string clip = R"({"name": "momentum", "clip": "global_norm", "clip_norm": 0.5})";
  for (const std::string more : {"train.label_smoothing=0.1", "train.ignore_index=2"}) {
    const std::vector<std::string> all = {"train.class_weights=[1, 0.25, 3, 8]",
                                          "train.evaluate_every=0", more};
    const auto train = [&](const std::vector<std::string>& keys, int ranks) {
      std::filesystem::remove_all(output_);
      return together(run(job(with(all, keys), kMlp, clip), ranks));
    };
    const Weights whole = train({"data.batch_size=16"}, 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_LT(distance(whole, train(parts[i].keys, parts[i].ranks)), 1e-6) << more << " " << i;
    }
  }
}

TEST_F(ClassWeights, MergedSteps_AverageWeightsAsOneLargeBatch) {
  const std::vector<std::string> all = {"train.class_weights=[1, 0.25, 3, 8]",
                                        "train.ema.decay=0.8"};
  const Outcome whole = run(weighted(with(all, {"data.batch_size=16"})), 1);
  fs::remove_all(output_);
  const Outcome parts = run(weighted(with(all, merged(4, {"data.batch_size=4"}))), 1);
  ASSERT_TRUE(whole.weights[0].contains("ema.fc1.weight"));
  EXPECT_LT(distance(whole.weights[0], parts.weights[0]), 1e-6);
  EXPECT_NEAR(whole.results[0].evaluation.mean_loss(), parts.results[0].evaluation.mean_loss(),
              1e-5);
}

// An update that an epoch's end divides, or a stop.
TEST_F(ClassWeights, MergedStepsOfAResumedRun_EndInTheSameBits) {
  const std::vector<std::string> all =
      merged(3, {"train.class_weights=[1, 0.25, 3, 8]", "data.batch_size=8"});
  const Outcome whole = run(weighted(all), 1);
  for (const char* steps : {"train.max_steps=4", "train.max_steps=8"}) {
    fs::remove_all(output_);
    run(weighted(with(all, {steps})), 1);
    const Outcome resumed = run(weighted(with(all, {"checkpoint.resume=auto"})), 1);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0) << steps;
  }
}

TEST_F(ClassWeights, AllAlike_AreNoWeights) {
  const Outcome none = run(weighted({}), 2);
  const auto loss = events("test").back()["loss"];
  fs::remove_all(output_);
  const Outcome alike = run(weighted({"train.class_weights=[3, 3, 3, 3]"}), 2);
  EXPECT_LT(distance(none.weights[0], alike.weights[0]), 1e-5);
  EXPECT_NEAR(events("test").back()["loss"], loss, 1e-5);
}

TEST_F(ClassWeights, OfNothing_LeaveAClassUntrained) {
  const Outcome with = run(weighted({"train.class_weights=[1, 1, 0, 1]"}), 1);
  const Outcome other = run(weighted({"train.class_weights=[1, 1, 1, 1]"}), 1);
  EXPECT_GT(distance(with.weights[0], other.weights[0]), 1e-3);
}

class FewLabels : public data::Source {
 public:
  int64_t size() const override { return 8; }
  int64_t label(int64_t index) const override { return index < 5 ? 0 : index < 7 ? 3 : -100; }
  data::Sample read(int64_t, std::vector<uint8_t>&) const override { return {}; }
  std::string name(int64_t) const override { return "label"; }
};

// sklearn.utils.class_weight.compute_class_weight("balanced", [0, 3], [0] * 5 + [3] * 2) is [0.7,
// 1.75].
TEST_F(ClassWeights, Balanced_AreScikitLearns) {
  const auto weights = class_weights(weighted({"train.class_weights=balanced"}), FewLabels());
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_FLOAT_EQ(weights[0], 0.7f);
  EXPECT_EQ(weights[1], 0);
  EXPECT_FLOAT_EQ(weights[3], 1.75f);
}

TEST_F(ClassWeights, ThatDoNotFit_AreRefused) {
  for (const char* weights : {"[1, 2]", "[1, 2, -1, 0]", "[1, 2, 1e40, 0]", "[0, 0, 0, 0]"}) {
    EXPECT_THAT(refusal(weighted({std::string("train.class_weights=") + weights})),
                IsUsageError("train.class_weights"))
        << weights;
  }
}

TEST_F(ClassWeights, BalancedSampling_TrainsAlikeOnAnyNumberOfRanks) {
  const Outcome one = run(weighted({"data.sampling=balanced", "data.batch_size=32"}), 1);
  fs::remove_all(output_);
  const Outcome four = run(weighted({"data.sampling=balanced", "data.batch_size=8"}), 4);
  EXPECT_LT(distance(one.weights[0], four.weights[0]), 1e-5);
  EXPECT_THAT(refusal(weighted({"data.sampling=balanced", "data.shuffle=false"})),
              IsUsageError("data.shuffle"));
}

TEST_F(ClassWeights, RepeatsThatWouldLeaveImagesOut_AreRefused) {
  EXPECT_THAT(refusal(weighted({"data.repeats=2", "data.shuffle=false"})),
              IsUsageError("data.repeats"));
}

class ValidationSplit : public ClassWeights {
 protected:
  // 64 samples without test data of their own.
  Job split(const std::vector<std::string>& overrides) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": )" + std::string(kMlp) + R"(,
      "data": {"source": "synthetic", "batch_size": 16, "image": {"channels": 1, "height": 8, "width": 8},
               "train": {"samples": 64}, "validation_split": 0.25},
      "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 0.05},
      "train": {"epochs": 1}})",
                                            "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return make_job(tree);
  }
};

TEST_F(ValidationSplit, IsEvaluatedOnAndNotTrainedOn) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    const Outcome outcome = run(split({"data.batch_size=" + std::to_string(16 / world)}), world);
    EXPECT_EQ(outcome.results[0].steps, 3);  // 48 samples
    EXPECT_EQ(events("test").back()["samples"], 16);
  }
}

TEST_F(ValidationSplit, OfAnotherSeedOrSize_IsNotResumedWith) {
  run(split({}), 1);
  for (const std::string other : {"data.validation_seed=2", "data.validation_split=0.3"}) {
    EXPECT_THAT(refusal(split({other, "train.epochs=2", "checkpoint.resume=auto"})),
                IsUsageError());
  }
  EXPECT_EQ(failure(split({"train.seed=1", "train.epochs=2", "checkpoint.resume=auto"})), "");
  EXPECT_EQ(events("summary").back()["steps"], 6);
}

TEST_F(ValidationSplit, WithTestData_IsRefused) {
  EXPECT_THAT(refusal(split({"data.test.samples=8"})), IsUsageError("data.validation_split"));
}

}  // namespace
}  // namespace fleet
