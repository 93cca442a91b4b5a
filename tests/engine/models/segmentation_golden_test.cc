// Networks of segmentation against torchvision's on the same weights
// (scripts/make_golden_segmentation.py computed them in float64).
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "exec/executor.h"
#include "models/model.h"
#include "models/task.h"
#include "models/training.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

// As the script's.
constexpr size_t kStoredLogits = 64;
constexpr float kShift = 2;
const std::vector<float> kWeights = {0.5F, 2, 1, 0.25F, 4};

std::vector<Column> pixel_columns(const Shape& input) {
  return {{"image", DType::kFloat32, {input[1], input[2], input[3]}},
          {"mask", DType::kUInt8, {input[2], input[3]}},
          {"labelled_pixels", DType::kFloat32, {}}};
}

// As the script's: the number behind the last class stands for 255.
std::vector<uint8_t> mask_of(const Shape& input, int64_t classes) {
  std::vector<uint8_t> mask(static_cast<size_t>(input[0] * input[2] * input[3]));
  const uint64_t key = golden::fnv1a("mask"), numbers = static_cast<uint64_t>(classes) + 1;
  for (size_t i = 0; i < mask.size(); ++i) {
    const uint64_t label = golden::splitmix64(key + i) % numbers;
    mask[i] = label + 1 == numbers ? 255 : static_cast<uint8_t>(label);
  }
  return mask;
}

// The bias of a batch norm of the backbone: of a ResNet, or of blocks 1 to 6 of a MobileNet.
bool in_front_of_relu(const std::string& name) {
  static const std::regex kNames(R"(backbone\.(bn1|layer.*|[1-6]\.block\.\d\.1)\.bias)");
  return std::regex_match(name, kNames);
}

class Segmented {
 public:
  Segmented(const golden::Golden& golden, const std::string& keys, bool weighted) {
    const ModelDef& def = model_registry().get(golden.model);
    const std::string json = "{\"num_classes\": " + std::to_string(golden.classes) + keys + "}";
    Program program;
    training_ = build_training(
        program, {.model = golden.model,
                  .model_settings = ConfigTree::from_json(json, "test").validate(def.schema),
                  .task = "segmentation",
                  .task_settings = TrainingOptions::default_task_settings("segmentation"),
                  .batch = golden.input[0],
                  .columns = pixel_columns(golden.input),
                  .class_weights = weighted});
    make_strategy("").append_backward(program, training_.forward, training_.loss);
    std::vector<VarId> keep = {training_.loss,
                               training_.output("pixel_logits"),
                               training_.evaluate_output("pixel_logits"),
                               training_.training_sum("losses"),
                               training_.training_sum("counts"),
                               training_.training_sum("labelled")};
    for (VarId id : program.parameters()) keep.push_back(program.gradient(id));
    executor_ =
        std::make_unique<Executor>(plan_program(std::move(program), keep), device_, nullptr);
    set_weights();
    feed(golden);
  }

  const Training& training() const { return training_; }
  const Program& program() const { return executor_->program(); }
  std::vector<float> floats(VarId id) { return executor_->values<float>(id); }
  void run(const StepInfo& info) {
    executor_->run(info);
    executor_->synchronize();
  }

 private:
  void set_weights() {
    const Program& planned = executor_->program();
    for (VarId id = 0; id < planned.var_count(); ++id) {
      const Var& var = planned.var(id);
      if (var.kind != VarKind::kParameter && var.kind != VarKind::kState) continue;
      std::vector<float> values = golden::tensor(var.name, var.shape);
      if (in_front_of_relu(var.name)) {
        for (float& value : values) value += kShift;
      }
      executor_->write(id, values);
    }
  }

  void feed(const golden::Golden& golden) {
    const auto batch = static_cast<size_t>(golden.input[0]);
    const std::vector<uint8_t> mask = mask_of(golden.input, golden.classes);
    const size_t pixels = mask.size() / batch;
    std::vector<float> labelled(batch);
    for (size_t i = 0; i < mask.size(); ++i) labelled[i / pixels] += mask[i] == 255 ? 0 : 1;
    const std::vector<float> weight(batch, 1);
    const std::vector<int64_t> key(batch, 0);
    const float rate = 0, samples = static_cast<float>(batch);
    executor_->feed(training_.feed("image"), golden::tensor("input", golden.input));
    executor_->feed(training_.feed("mask"), mask);
    executor_->feed(training_.feed("labelled_pixels"), labelled);
    executor_->feed(training_.feed("weight"), weight);
    executor_->feed(training_.feed("sample_key"), key);
    float pixel_weights = 0;
    for (const TrainingFeed& feed : training_.feeds) {
      if (!feed.mean_of) continue;
      pixel_weights = static_cast<float>(feed.mean_of([&](const std::string& column) {
        if (column == "mask") return std::as_bytes(std::span(mask));
        return std::as_bytes(std::span(column == "weight" ? weight : kWeights));
      }));
      executor_->feed(feed.var, std::span(&pixel_weights, 1));
    }
    if (pixel_weights > 0) {
      executor_->feed(training_.feed("class_weights"), kWeights);
    } else {
      executor_->feed(training_.feed("sample_denominator"), std::span(&samples, 1));
    }
    executor_->feed(training_.feed("learning_rate"), std::span(&rate, 1));
    executor_->synchronize();
  }

  Training training_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

void expect_logits(const std::vector<float>& ours, const std::vector<double>& theirs,
                   double tolerance = 1e-4) {
  double largest = 0;
  for (const double value : theirs) largest = std::max(largest, std::abs(value));
  const size_t step = ours.size() / kStoredLogits;
  for (size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_NEAR(ours[i * step], theirs[i], tolerance * largest) << i * step;
  }
}

// Errors against the norm, or that of a typical element.
void expect_summary(const std::vector<float>& ours, const golden::Summary& theirs, double tolerance,
                    const std::string& what) {
  const golden::Summary mine = golden::summarize(ours, theirs.samples);
  if (theirs.norm < 1e-12) {  // 0 but for rounding: a bias in front of batch norm
    EXPECT_LT(mine.norm, 1e-4) << what;
    return;
  }
  EXPECT_NEAR(mine.norm, theirs.norm, tolerance * theirs.norm) << what;
  const double rms = theirs.norm / std::sqrt(static_cast<double>(ours.size()));
  ASSERT_EQ(mine.values.size(), theirs.values.size()) << what;
  for (size_t i = 0; i < mine.values.size(); ++i) {
    EXPECT_NEAR(mine.values[i], theirs.values[i],
                tolerance * std::max(std::abs(theirs.values[i]), 10 * rms))
        << what;
  }
}

void expect_segmentation(const std::string& file, const std::string& keys = R"(, "dropout": 0)") {
  const golden::Golden golden = golden::load(file);
  Segmented ours(golden, keys, file.ends_with("_weighted"));
  const Training& training = ours.training();
  ours.run({.evaluate = true});
  expect_logits(ours.floats(training.evaluate_output("pixel_logits")), golden.eval_logits);
  ours.run({.step = 0, .fetch = true});
  EXPECT_NEAR(ours.floats(training.loss)[0], golden.loss, 1e-4 * golden.loss);
  expect_logits(ours.floats(training.output("pixel_logits")), golden.logits);
  const Program& program = ours.program();
  EXPECT_EQ(program.parameters().size(), golden.parameters);
  for (const auto& [name, gradient] : golden.gradients) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    expect_summary(ours.floats(program.gradient(program.find(name))), gradient, 1e-4, name);
  }
  for (const auto& [name, statistics] : golden.running_after) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    expect_summary(ours.floats(program.find(name)), statistics, 1e-4, name);
  }
}

TEST(SegmentationGolden, FcnResnet50_MatchesTorchvision) { expect_segmentation("fcn_resnet50"); }
TEST(SegmentationGolden, Deeplabv3Resnet50_MatchesTorchvision) {
  expect_segmentation("deeplabv3_resnet50");
}
TEST(SegmentationGolden, Deeplabv3MobilenetV3_MatchesTorchvision) {
  expect_segmentation("deeplabv3_mobilenet_v3_large");
}
TEST(SegmentationGolden, LrasppMobilenetV3_MatchesTorchvision) {
  expect_segmentation("lraspp_mobilenet_v3_large", "");
}
// CrossEntropyLoss(weight=..., ignore_index=255), of both heads.
TEST(SegmentationGolden, ClassWeights_MatchPyTorch) {
  expect_segmentation("deeplabv3_mobilenet_v3_large_weighted");
}

// torchvision's counts, with the auxiliary head and 21 classes.
TEST(SegmentationNetworks, Default_HaveTheKnownNumberOfParameters) {
  const auto count = [](const std::string& model) {
    const ModelDef& def = model_registry().get(model);
    Program program;
    build_training(program,
                   {.model = model,
                    .model_settings = ConfigTree().validate(def.schema),
                    .task = "segmentation",
                    .task_settings = TrainingOptions::default_task_settings("segmentation"),
                    .batch = 2,
                    .columns = pixel_columns({2, 3, 64, 64})});
    int64_t elements = 0;
    for (VarId id : program.parameters()) elements += program.var(id).shape.elements();
    return elements;
  };
  EXPECT_EQ(count("fcn_resnet50"), 35322218);
  EXPECT_EQ(count("fcn_resnet101"), 54314346);
  EXPECT_EQ(count("deeplabv3_resnet50"), 42004074);
  EXPECT_EQ(count("deeplabv3_resnet101"), 60996202);
  EXPECT_EQ(count("deeplabv3_mobilenet_v3_large"), 11029328);
  EXPECT_EQ(count("lraspp_mobilenet_v3_large"), 3221538);
}

}  // namespace
}  // namespace fleet
