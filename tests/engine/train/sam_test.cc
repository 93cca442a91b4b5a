// Sharpness-aware minimisation: optim/sam.h, train.sam.
#include "optim/sam.h"

#include <gmock/gmock.h>

#include "passes/backward.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using SamJob = TrainerTest;

std::vector<float> waves(size_t count, double phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(0.7 * i + phase));
  return values;
}

// The network and the steps of scripts/make_golden_sam.py. Returns the last loss and the first
// values of each parameter.
std::vector<float> trained(const SamOptions& options) {
  constexpr int64_t kBatch = 6, kInputs = 5, kHidden = 7, kClasses = 3;
  Program program;
  const SectionId forward = program.add_section("forward", {.training = true});
  const VarId x = program.feed("x", DType::kFloat32, {kBatch, kInputs});
  const VarId label = program.feed("label", DType::kInt64, {kBatch});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  const std::vector<VarId> parameters = {program.parameter("a.weight", {kHidden, kInputs}, {}),
                                         program.parameter("a.bias", {kHidden}, {}),
                                         program.parameter("b.weight", {kClasses, kHidden}, {}),
                                         program.parameter("b.bias", {kClasses}, {})};
  VarId hidden = program.emit(forward, "fc", {x, parameters[0], parameters[1]})[0];
  hidden = program.emit(forward, "relu", {hidden})[0];
  const VarId logits = program.emit(forward, "fc", {hidden, parameters[2], parameters[3]})[0];
  const VarId losses = program.emit(forward, "softmax_with_cross_entropy", {logits, label})[0];
  const VarId loss = program.emit(forward, "mean", {losses})[0];
  const BackwardResult backward = append_backward(program, forward, loss, 1);
  if (options.rho > 0) append_sam(program, backward.section, kNoVar, options);
  ConfigTree tree = ConfigTree::from_json(
      R"({"name": "momentum", "momentum": 0.9, "weight_decay": 0.01})", "test");
  append_updates(program, program.add_section("optimize", {}), parameters, rate,
                 tree.validate(optimizer_schema("momentum")));
  HostDevice device;
  Executor executor(plan_program(program, {loss}), device, nullptr);
  executor.initialize(1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto count = static_cast<size_t>(executor.argument(parameters[i]).shape.elements());
    executor.write(parameters[i], waves(count, 1.0 + static_cast<double>(i)));
  }
  const float own_rate = 0.1f;
  for (int step = 0; step < 20; ++step) {
    std::vector<int64_t> labels(kBatch);
    for (int64_t n = 0; n < kBatch; ++n) labels[n] = (n + step) % kClasses;
    const std::vector<float> images = waves(kBatch * kInputs, 5 + step);
    executor.feed(x, images);
    executor.feed(label, labels);
    executor.feed(rate, std::span(&own_rate, 1));
    executor.run({.step = step});
    executor.synchronize();
  }
  std::vector<float> values = executor.values<float>(loss);
  for (const VarId parameter : parameters) {
    const std::vector<float> all = executor.values<float>(parameter);
    values.insert(values.end(), all.begin(), all.begin() + std::min<size_t>(all.size(), 4));
  }
  return values;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

TEST(Sam, TwentySteps_FollowPyTorch) {
  expect_near(
      trained({.rho = 0}),
      {1.120299, 0.5318887, 0.549579, 0.3087936, -0.07722206, 0.5049345, 0.1737758, -0.5592971,
       -1.553697, 0.4868422, 0.4255688, -0.1224151, -0.2748061, -0.9424081, -0.7462123, -0.544279});
  expect_near(trained({.rho = 0.05}),
              {1.12437, 0.4890133, 0.505874, 0.2848144, -0.07019809, 0.4448037, 0.09409421,
               -0.5682295, -1.568903, 0.4988855, 0.4401805, -0.0938109, -0.2500418, -0.9350942,
               -0.7319965, -0.5658088});
  expect_near(trained({.rho = 0.5, .adaptive = true}),
              {1.10612, 0.2652761, 0.2856579, 0.1716905, -0.02302568, 0.1029438, -0.1485253,
               -0.8876246, -1.886096, 0.5630642, 0.478722, -0.01360455, -0.09753756, -0.8835947,
               -0.6800781, -0.6692265});
}

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 16, "width": 16})", "data.batch_size=8",
    "data.train.samples=32", "data.test.samples=16", "train.epochs=1"};

// The gradient is that of all ranks before its norm is taken.
TEST_F(SamJob, TwoRanks_TrainAsOne) {
  for (const char* adaptive : {"false", "true"}) {
    const std::vector<std::string> keys = {"train.sam=0.05", "model.dropout=0",
                                           "train.sam.adaptive=" + std::string(adaptive)};
    std::filesystem::remove_all(output_);
    const Outcome one = run(job(keys), 1);
    std::filesystem::remove_all(output_);
    const Outcome two = run(job(with(keys, {"data.batch_size=8"})), 2);
    EXPECT_LE(distance(parameters(one.weights[0]), parameters(two.weights[0])), 1e-5);
    EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  }
}

// The statistics of the first step are those of a step without it; the weights are not.
TEST_F(SamJob, SecondPass_LeavesRunningStatistics) {
  const auto keys = with(kColour, {"train.max_steps=1"});
  const Outcome plain = run(job(keys, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome sam = run(job(with(keys, {"train.sam=0.05"}), kResnet), 1);
  for (const auto& [name, values] : plain.weights[0]) {
    if (name.find("running") != std::string::npos) {
      EXPECT_EQ(values, sam.weights[0].at(name)) << name;
    }
  }
  EXPECT_NE(plain.weights[0].at("conv1.weight"), sam.weights[0].at("conv1.weight"));
}

TEST_F(SamJob, Interrupted_EndsInTheSameBits) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {},
           {"strategy.amp=true"},
           {"train.ema.decay=0.8", "strategy.sync_batch_norm=true"},
           {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"},
           {"optimizer.frozen=['conv1.*', 'bn1.*', 'layer1.*']", "train.unfreeze_at=2 steps"}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    const auto keys = with(with(kColour, more), {"checkpoint.every_steps=1", "train.sam.rho=0.05"});
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(keys, kResnet), 2);
    std::filesystem::remove_all(output_);
    run(job(with(keys, {"train.max_steps=1"}), kResnet), 2);
    const Outcome resumed = run(job(with(keys, {"checkpoint.resume=auto"}), kResnet), 2);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
  }
}

// The weights of a step that overflows stay as they were; amp_test.cc tests loss scales.
TEST_F(SamJob, OverflowOfTheFirstPass_LeavesTheWeights) {
  const std::vector<std::string> keys = {"train.sam=0.05", "train.on_nan=skip",
                                         "learning_rate.base=1e6", "train.epochs=3"};
  const Outcome all = run(job(keys), 1);
  EXPECT_GT(all.results[0].skipped, 0);
  for (const auto& [name, values] : all.weights[0]) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_F(SamJob, StrategiesWithoutTheWholeGradient_AreRefused) {
  for (const auto& strategy : std::vector<std::vector<std::string>>{
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.localsgd=true"},
           {"strategy.dgc=true"},
           {"strategy.pipeline=true"},
           {"strategy.sharding=true"},
           {"strategy.build_strategy.reduce_strategy=Reduce"}}) {
    const Job wrong = job(with(with(kColour, strategy), {"train.sam=0.05"}), kResnet);
    for (const std::string& message : start_two(wrong, wrong)) {
      EXPECT_THAT(message, ::testing::HasSubstr("train.sam.rho")) << strategy[0];
    }
  }
}

}  // namespace
}  // namespace fleet
