// Networks of segmentation against torchvision's on the same weights
// (scripts/make_golden_segmentation.py computed them in float64).
#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "models/model.h"
#include "models/task.h"
#include "models/training.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

constexpr size_t kStoredLogits = 64;

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

class Segmented {
 public:
  Segmented(const golden::Golden& golden, const std::string& keys) {
    const ModelDef& def = model_registry().get(golden.model);
    const std::string json = "{\"num_classes\": " + std::to_string(golden.classes) + keys + "}";
    Program program;
    training_ = build_training(
        program, {.model = golden.model,
                  .model_settings = ConfigTree::from_json(json, "test").validate(def.schema),
                  .task = "segmentation",
                  .task_settings = TrainingOptions::default_task_settings("segmentation"),
                  .batch = golden.input[0],
                  .columns = pixel_columns(golden.input)});
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
      executor_->write(id, golden::tensor(var.name, var.shape));
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
    executor_->feed(training_.feed("sample_denominator"), std::span(&samples, 1));
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

void expect_segmentation(const std::string& model, double gradient_tolerance,
                         const std::string& keys = R"(, "dropout": 0)",
                         double logits_tolerance = 1e-4) {
  const golden::Golden golden = golden::load(model);
  Segmented ours(golden, keys);
  const Training& training = ours.training();
  ours.run({.evaluate = true});
  expect_logits(ours.floats(training.evaluate_output("pixel_logits")), golden.eval_logits);
  ours.run({.step = 0, .fetch = true});
  EXPECT_NEAR(ours.floats(training.loss)[0], golden.loss, 1e-4 * golden.loss);
  expect_logits(ours.floats(training.output("pixel_logits")), golden.logits, logits_tolerance);
  const Program& program = ours.program();
  EXPECT_EQ(program.parameters().size(), golden.parameters);
  for (const auto& [name, gradient] : golden.gradients) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    expect_summary(ours.floats(program.gradient(program.find(name))), gradient, gradient_tolerance,
                   name);
  }
  for (const auto& [name, statistics] : golden.running_after) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    expect_summary(ours.floats(program.find(name)), statistics, 1e-4, name);
  }
}

// In training, 53 batch norms of few values amplify the rounding of float32.
const std::string kExact = R"(, "dropout": 0, "winograd": false)";
TEST(SegmentationGolden, FcnResnet50_MatchesTorchvision) {
  expect_segmentation("fcn_resnet50", 1e-2, kExact, 3e-4);
}
TEST(SegmentationGolden, Deeplabv3Resnet50_MatchesTorchvision) {
  expect_segmentation("deeplabv3_resnet50", 1e-2, kExact, 3e-4);
}
TEST(SegmentationGolden, Deeplabv3MobilenetV3_MatchesTorchvision) {
  expect_segmentation("deeplabv3_mobilenet_v3_large", 1e-2);
}
TEST(SegmentationGolden, LrasppMobilenetV3_MatchesTorchvision) {
  expect_segmentation("lraspp_mobilenet_v3_large", 1e-2, "");
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
