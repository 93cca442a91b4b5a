// Losses that train.loss names, and those of distillation, against PyTorch's, torchvision's and
// timm's (scripts/make_golden_losses.py, which draws the same values).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "exec/executor.h"
#include "models/distillation.h"
#include "models/losses.h"
#include "models/model.h"
#include "models/training.h"
#include "passes/backward.h"
#include "tensor/host.h"
#include "tests/errors.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

constexpr int64_t kSamples = 6, kGoldenClasses = 5;
constexpr double kTolerance = 1e-6;

// A network whose logits are its parameter.
FLEET_MODEL(test_logits) {
  def.help = "a test";
  def.schema = model_schema(kGoldenClasses);
  def.build = [](Network& network, const NamedVars& inputs, const Settings&) -> NamedVars {
    const int64_t samples = network.shape(inputs.at("image"))[0];
    return {{"logits", network.parameter("logits", {samples, kGoldenClasses}, init::constant(0))}};
  };
}

std::vector<float> drawn(const std::string& name) {
  std::vector<float> values;
  const uint64_t at = golden::fnv1a(name);
  for (uint64_t i = 0; i < kSamples * kGoldenClasses; ++i) {
    const auto number = static_cast<int64_t>((golden::splitmix64(at + i) >> 11) % 8192) - 4096;
    values.push_back(static_cast<float>(number) / 1024);
  }
  return values;
}

const nlohmann::json& goldens() {
  static const nlohmann::json file = [] {
    std::ifstream in(source_folder() + "/tests/golden/losses.json");
    return nlohmann::json::parse(in);
  }();
  return file;
}

Settings settings_for(const std::string& task, const nlohmann::json& keys) {
  ConfigTree tree;
  for (const auto& [key, value] : keys.items()) {
    tree.set(key, value.is_string() ? value.get<std::string>() : value.dump(), "test");
  }
  return tree.validate(task_schema(task));
}

struct Case {
  std::string task, labels;
  nlohmann::json keys;
};

TrainingOptions options_for(const Case& one) {
  const Shape values = {kGoldenClasses};
  std::vector<Column> columns = image_columns({1, 2, 2});
  if (one.labels == "shares") columns.push_back({kLabelShares, DType::kFloat32, values});
  if (one.labels == "targets" || one.labels == "numbers") {
    columns = {{"image", DType::kFloat32, {1, 2, 2}}, {"targets", DType::kFloat32, values}};
  }
  return {.model = "test_logits",
          .model_settings = ConfigTree().validate(model_registry().get("test_logits").schema),
          .task = one.task,
          .task_settings = settings_for(one.task, one.keys),
          .batch = kSamples,
          .columns = columns,
          .mixed_labels = one.labels == "mixed"};
}

// The loss and the gradient of the logits.
class LossRun {
 public:
  explicit LossRun(const Case& one, bool distils = false) : one_(one) {
    const TrainingOptions options = options_for(one);
    training_ = build_training(program_, options);
    if (distils) {
      teacher_ = program_.feed("teacher", DType::kFloat32, {kSamples, kGoldenClasses});
      append_distillation_loss(program_, options.task_settings, teacher_, &training_);
    }
    append_backward(program_, training_.forward, training_.loss, 1);
    logits_ = program_.find("logits");
    gradient_ = program_.gradient(logits_);
    executor_ = std::make_unique<Executor>(
        plan_program(std::move(program_), {training_.loss, gradient_}), device_, nullptr);
    executor_->initialize(1);
    feed_all();
    executor_->run({});
    executor_->synchronize();
  }

  void expect(const nlohmann::json& golden) {
    const std::string name = one_.task + " " + one_.labels + " " + one_.keys.dump();
    const double loss = golden["loss"];
    EXPECT_NEAR(executor_->values<float>(training_.loss)[0], loss, kTolerance * std::max(loss, 1.0))
        << name;
    const std::vector<float> gradient = executor_->values<float>(gradient_);
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(gradient[i], golden["gradient"][i], kTolerance) << name << " [" << i << "]";
    }
  }

 private:
  template <typename T>
  void feed(const std::string& name, const std::vector<T>& values) {
    const VarId var = training_.feed(name);
    if (var != kNoVar) executor_->feed(var, values);
  }

  void feed_all() {
    executor_->write(logits_, drawn("logits"));
    const VarId weights = executor_->program().find(kPositiveWeights);
    if (weights != kNoVar) {
      const std::vector<float> values = one_.keys["positive_weights"].get<std::vector<float>>();
      executor_->write(weights, values);
    }
    if (teacher_ != kNoVar) executor_->feed(teacher_, drawn("teacher"));
    feed("image", std::vector<float>(kSamples * 4));
    feed("label", std::vector<int64_t>{0, 3, 4, 1, 2, 2});
    feed("other_label", std::vector<int64_t>{1, 3, 0, 2, 4, 0});
    feed("own_share", std::vector<float>{0.75f, 0.5f, 0.25f, 1.0f, 0.625f, 0.125f});
    feed(kLabelShares, goldens()["shares"].get<std::vector<float>>());
    std::vector<float> targets = drawn(one_.labels);
    if (one_.labels == "targets") {
      for (float& target : targets) target = target > 0 ? 1 : 0;
    }
    feed("targets", targets);
    feed("weight", std::vector<float>(kSamples, 1));
    feed("sample_denominator", std::vector<float>{kSamples});
    feed("sample_key", std::vector<int64_t>(kSamples));
    feed("learning_rate", std::vector<float>{0});
  }

  const Case one_;
  Program program_;
  Training training_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
  VarId logits_ = kNoVar, gradient_ = kNoVar, teacher_ = kNoVar;
};

TEST(LossesGolden, LossesAndGradients_AreThoseOfPyTorch) {
  for (const nlohmann::json& golden : goldens()["losses"]) {
    LossRun({.task = golden["task"], .labels = golden["labels"], .keys = golden["keys"]})
        .expect(golden);
  }
}

// The mean over the samples, as that of images, which count all samples.
TEST(LossesGolden, LossesOfTexts_AreThoseOfPyTorch) {
  int texts = 0;
  for (const nlohmann::json& golden : goldens()["losses"]) {
    if (golden["task"] != "image_classification" || golden["labels"] != "label") continue;
    if (golden["keys"].contains("ignore_index")) continue;
    LossRun({.task = "sequence_classification", .labels = "label", .keys = golden["keys"]})
        .expect(golden);
    ++texts;
  }
  EXPECT_GE(texts, 4);
}

TEST(LossesGolden, Distillation_IsTimms) {
  for (const nlohmann::json& golden : goldens()["distillation"]) {
    nlohmann::json keys = golden["keys"];
    keys["distillation.weights"] = "teacher.safetensors";
    LossRun({.task = "image_classification", .labels = "label", .keys = keys}, true).expect(golden);
  }
}

TEST(Losses, KeyOfAnotherLoss_IsRefused) {
  const auto failure = [](const Case& one) {
    Program program;
    return thrown_by([&] { build_training(program, options_for(one)); });
  };
  EXPECT_THAT(failure({"image_classification", "label", {{"focal_gamma", 1}}}),
              IsUsageError("train.focal_gamma"));
  EXPECT_THAT(
      failure({"image_classification", "label", {{"loss", "focal"}, {"label_smoothing", 0.1}}}),
      IsUsageError("train.label_smoothing"));
  EXPECT_THAT(
      failure(
          {"image_classification", "label", {{"loss", "bce"}, {"class_weights.rule", "balanced"}}}),
      IsUsageError("train.class_weights.rule"));
  EXPECT_THAT(failure({"sequence_classification",
                       "label",
                       {{"loss", "bce"}, {"class_weights.rule", "balanced"}}}),
              IsUsageError("train.class_weights.rule"));
  EXPECT_THAT(failure({"regression", "numbers", {{"smooth_l1_beta", 2}}}),
              IsUsageError("train.smooth_l1_beta"));
  EXPECT_THAT(failure({"multi_label", "targets", {{"positive_weights", {1, 2}}}}),
              IsUsageError("train.positive_weights"));
  EXPECT_THAT(failure({"image_classification", "label", {{"distillation.alpha", 0.3}}}),
              IsUsageError("train.distillation.alpha"));
}

TEST(Losses, MixedNumbersAndShares_AreRefused) {
  for (const char* labels : {"numbers", "shares"}) {
    const bool shares = labels == std::string("shares");
    TrainingOptions options =
        options_for({shares ? "image_classification" : "regression", labels, {}});
    options.mixed_labels = true;
    Program program;
    EXPECT_THAT(thrown_by([&] { build_training(program, options); }),
                IsUsageError("data.augment (mixup_alpha, cutmix_alpha)"))
        << labels;
  }
}

}  // namespace
}  // namespace fleet
