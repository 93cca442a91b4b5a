// Jobs whose training samples have two labels (data.augment.mixup_alpha, cutmix_alpha).
#include "models/model.h"
#include "models/training.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kMlp[] = R"({"name": "mlp", "num_classes": 4, "hidden": [32], "dropout": 0})";

class MixedLabels : public TrainerTest {
 protected:
  Job mixed(std::vector<std::string> overrides) const {
    overrides.insert(overrides.end(), {"data.augment.mixup_alpha=0.4",
                                       "data.augment.cutmix_alpha=1", "train.fetch_every=1"});
    return job(overrides, kMlp);
  }
};

TEST_F(MixedLabels, OnAnyNumberOfRanks_TrainAlike) {
  for (const std::string more :
       {"train.label_smoothing=0", "train.label_smoothing=0.1",
        "train.class_weights=[1, 0.25, 3, 8]", "strategy.gradient_merge=true"}) {
    const Outcome one = run(mixed({more, "data.batch_size=32"}), 1);
    const auto whole = events("train");
    fs::remove_all(output_);
    const Outcome four = run(mixed({more, "data.batch_size=8"}), 4);
    const auto parts = events("train");
    EXPECT_LT(distance(one.weights[0], four.weights[0]), 1e-5) << more;
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(whole[i]["loss"], parts[i]["loss"], 1e-5) << more;
    }
    fs::remove_all(output_);
  }
}

TEST_F(MixedLabels, Loss_HasTheSharesOfBothLabels) {
  Program program;
  const ModelDef& def = model_registry().get("mlp");
  const Training training = build_training(
      program,
      {.model = "mlp",
       .model_settings = ConfigTree::from_json(R"({"num_classes": 3, "hidden": []})", "test")
                             .validate(def.schema),
       .batch = 2,
       .columns = image_columns({1, 1, 3}),
       .mixed_labels = true});
  ASSERT_NE(training.feed("other_label"), kNoVar);
  HostDevice device;
  Executor executor(plan_program(std::move(program), {training.loss, training.output("logits")}),
                    device, nullptr);
  executor.initialize(3);
  const std::vector<float> image = {0.1f, 0.9f, -0.4f, 0.7f, 0.2f, 0.3f}, share = {0.3f, 1.0f};
  const std::vector<float> weight = {1, 1}, rate = {0};
  const std::vector<int64_t> label = {0, 2}, other = {1, 0};
  const std::vector<uint64_t> key = {1, 2};
  executor.feed(training.feed("image"), image);
  executor.feed(training.feed("label"), label);
  executor.feed(training.feed("other_label"), other);
  executor.feed(training.feed("own_share"), share);
  executor.feed(training.feed("weight"), weight);
  executor.feed(training.feed("sample_key"), key);
  executor.feed(training.feed("learning_rate"), rate);
  executor.run({});
  const auto logits = executor.values<float>(training.output("logits"));
  double wanted = 0;
  for (int n = 0; n < 2; ++n) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += std::exp(logits[n * 3 + c]);
    const auto loss = [&](int64_t c) { return std::log(sum) - logits[n * 3 + c]; };
    wanted += (share[n] * loss(label[n]) + (1 - share[n]) * loss(other[n])) / 2;
  }
  EXPECT_NEAR(executor.values<float>(training.loss)[0], wanted, 1e-5);
}

TEST_F(MixedLabels, Evaluation_MixesNothing) {
  const Outcome with = run(mixed({"train.epochs=1", "learning_rate.base=0"}), 1);
  const auto mixed_test = events("test").back();
  fs::remove_all(output_);
  const Outcome without = run(job({"train.epochs=1", "learning_rate.base=0"}, kMlp), 1);
  EXPECT_EQ(mixed_test["loss"], events("test").back()["loss"]);
}

}  // namespace
}  // namespace fleet
