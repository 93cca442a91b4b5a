// Losses, outputs, gradients and running statistics against PyTorch's on the same weights
// (scripts/make_golden.py computed them in float64).
#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double value : values) most = std::max(most, std::abs(value));
  return most;
}

// Each value against the largest of all: float32 sums of thousands of terms lose no more.
void expect_near(const std::vector<double>& ours, const std::vector<double>& theirs,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  const double scale = largest(theirs);
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], theirs[i], tolerance * scale) << what << " [" << i << "]";
  }
}

// Errors in parts of the norm; the sampled values against the tensor's root mean square, which its
// largest element exceeds. `least`: where the norm is smaller, as that of a bias which the next
// batch norm takes out, the sum of its parts cancels, and errors count in parts of this.
void expect_near(const std::vector<float>& ours, const golden::Summary& theirs, double tolerance,
                 const std::string& what, double least = 0) {
  const golden::Summary mine = golden::summarize(ours, theirs.samples);
  if (theirs.norm < 1e-12) {  // 0 but for rounding: a bias in front of batch norm
    EXPECT_LT(mine.norm, 1e-4) << what;
    return;
  }
  const double norm = std::max(theirs.norm, least);
  EXPECT_NEAR(mine.norm, theirs.norm, tolerance * norm) << what;
  EXPECT_EQ(mine.step, theirs.step) << what;
  ASSERT_EQ(mine.values.size(), theirs.values.size()) << what;
  const double rms = norm / std::sqrt(static_cast<double>(ours.size()));
  for (size_t i = 0; i < mine.values.size(); ++i) {
    EXPECT_NEAR(mine.values[i], theirs.values[i],
                tolerance * std::max(std::abs(theirs.values[i]), 10 * rms))
        << what << " [" << i * mine.step << "]";
  }
  // Errors of the elements add up, mostly at random. A maximum that rounds the other way, as one of
  // GoogLeNet does with AVX2, changes a whole filter.
  EXPECT_NEAR(mine.sum, theirs.sum, 16 * tolerance * (std::abs(theirs.sum) + norm)) << what;
}

class Trained {
 public:
  // keys: of the model, behind num_classes. optimizer: a job's section; "": no updates.
  Trained(const golden::Golden& golden, const Shape& input, const std::string& strategy,
          const std::string& keys, const std::string& optimizer = "") {
    const ModelDef& def = model_registry().get(golden.model);
    const std::string json = "{\"num_classes\": " + std::to_string(golden.classes) + keys + "}";
    Program program;
    training_ = build_training(
        program, {.model = golden.model,
                  .model_settings = ConfigTree::from_json(json, "test").validate(def.schema),
                  .batch = input[0],
                  .columns = image_columns({input[1], input[2], input[3]})});
    Strategy built = make_strategy(strategy);
    built.append_backward(program, training_.forward, training_.loss);
    if (!optimizer.empty()) {
      const ConfigTree tree = ConfigTree::from_json(optimizer, "test");
      const std::string rule = nlohmann::json::parse(optimizer).at("name");
      built.append_optimizer(training_.feed("learning_rate"),
                             tree.validate(optimizer_schema(rule)));
    }
    std::vector<VarId> keep = {training_.loss,
                               training_.output("logits"),
                               training_.evaluate_output("logits"),
                               training_.training_sum("losses"),
                               training_.training_sum("counts"),
                               training_.evaluation_sum("losses"),
                               training_.evaluation_sum("counts")};
    for (VarId id : program.parameters()) keep.push_back(program.gradient(id));
    executor_ =
        std::make_unique<Executor>(plan_program(std::move(program), keep), device_, nullptr);
    set_weights(golden);
    const Program& planned = executor_->program();
    const std::vector<float> image =
        golden::tensor("input", planned.var(training_.feed("image")).shape);
    std::vector<int64_t> labels = golden.labels;
    labels.resize(input[0]);
    const std::vector<float> weight(labels.size(), 1);
    const std::vector<int64_t> key(labels.size(), 0);
    const float rate = optimizer.empty() ? 0 : golden.steps.rate;
    executor_->feed(training_.feed("image"), image);
    executor_->feed(training_.feed("label"), labels);
    executor_->feed(training_.feed("weight"), weight);
    executor_->feed(training_.feed("sample_key"), key);
    executor_->feed(training_.feed("learning_rate"), std::span(&rate, 1));
    executor_->synchronize();
  }

  void run(const StepInfo& info) {
    executor_->run(info);
    executor_->synchronize();
  }
  const Training& training() const { return training_; }
  const Program& program() const { return executor_->program(); }
  std::vector<float> floats(VarId id) { return executor_->values<float>(id); }
  std::vector<double> doubles(VarId id) {
    const std::vector<float> values = floats(id);
    return {values.begin(), values.end()};
  }

 private:
  void set_weights(const golden::Golden& golden) {
    const Program& planned = executor_->program();
    for (VarId id = 0; id < planned.var_count(); ++id) {
      const Var& var = planned.var(id);
      const bool statistics =
          var.name.ends_with("running_mean") || var.name.ends_with("running_var");
      if (var.kind != VarKind::kParameter && !statistics) continue;  // as are an optimizer's states
      executor_->write(id, golden.weight(var.name, var.shape));
    }
  }

  Training training_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

void expect_golden(const std::string& model, const std::string& strategy,
                   const std::string& keys = "") {
  const golden::Golden golden = golden::load(model);
  Trained ours(golden, golden.input, strategy, keys);
  const Training& training = ours.training();

  ours.run({.evaluate = true});  // before training moves the running statistics
  expect_near(ours.doubles(training.evaluate_output("logits")), golden.eval_logits, 1e-4,
              "eval logits");
  ours.run({.step = 0, .fetch = true});
  const double loss = ours.floats(training.loss)[0];
  EXPECT_NEAR(loss, golden.loss, 1e-4 * golden.loss);
  expect_near(ours.doubles(training.output("logits")), golden.logits, 1e-4, "logits");
  const std::vector<float> losses = ours.floats(training.training_sum("losses"));
  EXPECT_NEAR(losses[0] / losses[1], loss, 1e-5 * loss);

  const Program& program = ours.program();
  EXPECT_EQ(program.parameters().size(), golden.parameters);
  for (const auto& [name, gradient] : golden.gradients) {
    const VarId parameter = program.find(name);
    ASSERT_NE(parameter, kNoVar) << name;
    expect_near(ours.floats(program.gradient(parameter)), gradient, 1e-4, "gradient of " + name,
                1e-3 * golden.gradient_norm);
  }
  for (const auto& [name, statistics] : golden.running_after) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    expect_near(ours.floats(program.find(name)), statistics, 1e-4, name);
  }
  for (const golden::Evaluation& other : golden.other_sizes) {
    Trained there(golden, other.input, strategy, keys);
    there.run({.evaluate = true});
    expect_near(there.doubles(there.training().evaluate_output("logits")), other.logits, 1e-4,
                "eval logits of " + other.input.text());
  }
}

// Losses of training steps on one batch, in parts of the first.
void expect_steps(const std::string& model, const std::string& keys = "") {
  const golden::Golden golden = golden::load(model);
  const std::vector<double>& theirs = golden.steps.losses;
  ASSERT_EQ(theirs.size(), 20u);
  ASSERT_LT(theirs.back(), 0.1 * theirs.front());
  Trained ours(golden, golden.input, "", keys, golden.steps.optimizer);
  for (size_t step = 0; step < theirs.size(); ++step) {
    ours.run({.step = static_cast<int64_t>(step), .fetch = true});
    EXPECT_NEAR(ours.floats(ours.training().loss)[0], theirs[step], 1e-4 * theirs.front())
        << model << ", step " << step;
  }
}

const std::string kUnfused =
    "build_strategy { fuse_bn_act_ops: false fuse_elewise_add_act_ops: false "
    "fuse_bn_add_act_ops: false enable_auto_fusion: false }";

TEST(Golden, Lenet_MatchesPyTorch) { expect_golden("lenet", ""); }
TEST(Golden, Resnet18_MatchesPyTorch) { expect_golden("resnet18", ""); }
TEST(Golden, Resnet18Unfused_MatchesPyTorch) { expect_golden("resnet18", kUnfused); }
TEST(Golden, MobilenetV1_MatchesPyTorch) { expect_golden("mobilenet_v1", ""); }

const std::string kNoDropout = R"(, "dropout": 0)";
// Winograd's method rounds more; with AVX2 the error exceeds these tolerances in some networks.
const std::string kDirect = R"(, "winograd": false)";

TEST(Golden, Vgg11WithBatchNorm_MatchesTorchvision) { expect_golden("vgg11_bn", "", kNoDropout); }
TEST(Golden, MobilenetV2_MatchesTorchvision) { expect_golden("mobilenet_v2", "", kNoDropout); }
TEST(Golden, Densenet121_MatchesTorchvision) { expect_golden("densenet121", ""); }
TEST(Golden, Googlenet_MatchesTorchvision) { expect_golden("googlenet", "", kNoDropout + kDirect); }
TEST(Golden, MobilenetV3Small_MatchesTorchvision) {
  expect_golden("mobilenet_v3_small", "", kNoDropout);
}
TEST(Golden, MobilenetV3Large_MatchesTorchvision) {
  expect_golden("mobilenet_v3_large", "", kNoDropout);
}
TEST(Golden, EfficientnetB0_MatchesTorchvision) {
  expect_golden("efficientnet_b0", "", kNoDropout + R"(, "stochastic_depth": 0)");
}
TEST(Golden, ConvnextTiny_MatchesTorchvision) {
  expect_golden("convnext_tiny", "", R"(, "stochastic_depth": 0)");
}
TEST(Golden, VitB16_MatchesTorchvision) { expect_golden("vit_b_16", ""); }
const std::string kNoDepth = R"(, "stochastic_depth": 0)";
TEST(Golden, SwinT_MatchesTorchvision) { expect_golden("swin_t", "", kNoDepth); }
TEST(Golden, SwinV2T_MatchesTorchvision) { expect_golden("swin_v2_t", "", kNoDepth); }

class Timms : public ::testing::TestWithParam<const char*> {};
TEST_P(Timms, VisionTransformer_MatchesIt) { expect_golden(GetParam(), ""); }
INSTANTIATE_TEST_SUITE_P(Golden, Timms,
                         ::testing::Values("vit_tiny_patch16_224",
                                           "deit_tiny_distilled_patch16_224",
                                           "deit3_small_patch16_224", "vit_small_patch14_dinov2",
                                           "vit_small_patch14_reg4_dinov2"),
                         [](const auto& name) { return std::string(name.param); });

TEST(Golden, Resnext50_MatchesTorchvision) { expect_golden("resnext50_32x4d", ""); }
TEST(Golden, WideResnet50_MatchesTorchvision) { expect_golden("wide_resnet50_2", ""); }
TEST(Golden, RegnetY400mf_MatchesTorchvision) { expect_golden("regnet_y_400mf", ""); }
TEST(Golden, EfficientnetB5_MatchesTorchvision) {
  expect_golden("efficientnet_b5", "", kNoDropout + kNoDepth);
}
TEST(Golden, EfficientnetV2Small_MatchesTorchvision) {
  expect_golden("efficientnet_v2_s", "", kNoDropout + kNoDepth);
}
TEST(Golden, EfficientnetV2Medium_MatchesTorchvision) {
  expect_golden("efficientnet_v2_m", "", kNoDropout + kNoDepth);
}
TEST(Golden, Resnet18d_MatchesTimm) { expect_golden("resnet18d", ""); }
TEST(Golden, Resnet50d_MatchesTimm) { expect_golden("resnet50d", ""); }
TEST(Golden, ConvnextAtto_MatchesTimm) { expect_golden("convnext_atto", "", kNoDepth); }
TEST(Golden, ConvnextV2Atto_MatchesTimm) { expect_golden("convnext_v2_atto", "", kNoDepth); }
TEST(Golden, ConvnextV2Tiny_MatchesTimm) { expect_golden("convnext_v2_tiny", "", kNoDepth); }
TEST(Golden, EfficientnetLite0_MatchesTimm) {
  expect_golden("efficientnet_lite0", "", kNoDropout + kNoDepth);
}
TEST(Golden, MobilenetV4Small_MatchesTimm) {
  expect_golden("mobilenet_v4_conv_small", "", kNoDropout);
}
TEST(Golden, MobilenetV4Medium_MatchesTimm) {
  expect_golden("mobilenet_v4_conv_medium", "", kNoDropout);
}

TEST(GoldenSteps, Resnet18_FollowPyTorchs) { expect_steps("resnet18"); }
TEST(GoldenSteps, MobilenetV3Small_FollowPyTorchs) {
  expect_steps("mobilenet_v3_small", kNoDropout);
}
TEST(GoldenSteps, VitTiny_FollowPyTorchs) { expect_steps("vit_tiny_patch16_224"); }

}  // namespace
}  // namespace fleet
