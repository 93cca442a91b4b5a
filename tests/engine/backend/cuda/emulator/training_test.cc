// Whole networks on the emulated GPU: the losses of a few steps are those of the CPU.
#include "models/training.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "exec/backend.h"
#include "exec/executor.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

constexpr int64_t kBatch = 4;

struct Job {
  std::string model, optimizer;
  Shape image;
  std::optional<DType> low = {};  // mixed precision on the GPU; the CPU computes in float32
  float rate = 0.05f;
};

Settings optimizer_settings(const std::string& json) {
  ConfigTree tree = ConfigTree::from_json(json, "test");
  return tree.validate(optimizer_schema(*tree.peek("name")));
}

struct Built {
  Program program;
  Training training;
};

Built build(const Job& job, bool mixed) {
  Built built;
  ConfigTree tree = ConfigTree::from_json(R"({"num_classes": 10})", "test");
  built.training = build_training(
      built.program, {.model = job.model,
                      .model_settings = tree.validate(model_registry().get(job.model).schema),
                      .batch = kBatch,
                      .columns = image_columns(job.image)});
  PassContext context;
  if (mixed) context.low_types = {*job.low};
  Strategy strategy = make_strategy(mixed ? "amp: true" : "", context);
  strategy.append_backward(built.program, built.training.forward, built.training.loss);
  strategy.append_optimizer(built.training.feed("learning_rate"),
                            optimizer_settings(job.optimizer));
  return built;
}

std::vector<float> losses(const Job& job, const std::string& device_name, int steps) {
  Built built = build(job, job.low && device_name == "cuda");
  const DeviceChoice choice = choose_device(device_name, 0, {.deterministic = true});
  EXPECT_EQ(choice.device->backend(), device_name) << choice.note;
  Executor executor(plan_program(std::move(built.program), {built.training.loss},
                                 {.backend = device_name, .device = choice.device.get()}),
                    *choice.device, nullptr);
  executor.initialize(1);
  std::mt19937 random{7};
  std::uniform_real_distribution<float> draw{-1, 1};
  std::vector<float> found, image(kBatch * job.image.elements());
  executor.feed(built.training.feed("learning_rate"), std::span(&job.rate, 1));
  for (int step = 0; step < steps; ++step) {
    for (float& value : image) value = draw(random);
    const std::vector<int64_t> label{step % 10, 3, (step + 5) % 10, 9}, key{1, 2, 3, 4};
    executor.feed(built.training.feed("image"), image);
    executor.feed(built.training.feed("label"), label);
    if (built.training.feed("sample_key") != kNoVar)
      executor.feed(built.training.feed("sample_key"), key);
    executor.run({.step = step});
    executor.synchronize();
    found.push_back(executor.values<float>(built.training.loss)[0]);
  }
  return found;
}

void expect_same_losses(const Job& job, float tolerance) {
  SCOPED_TRACE(job.model + " " + job.optimizer);
  const int steps = 4;
  const std::vector<float> want = losses(job, "cpu", steps), got = losses(job, "cuda", steps);
  EXPECT_NE(want.front(), want.back());
  for (int i = 0; i < steps; ++i) EXPECT_NEAR(got[i], want[i], tolerance * want[i]) << i;
}

TEST(EmulatedTraining, PerceptronWithEachOptimizer_HasTheLossesOfTheCpu) {
  for (const char* optimizer :
       {R"({"name": "sgd"})", R"({"name": "momentum", "weight_decay": 1e-4, "clip": "norm"})",
        R"({"name": "adam"})", R"({"name": "adamw", "weight_decay": 0.01})"}) {
    expect_same_losses({.model = "mlp", .optimizer = optimizer, .image = {1, 8, 8}}, 1e-4f);
  }
}

TEST(EmulatedTraining, ConvolutionsAndPooling_HaveTheLossesOfTheCpu) {
  expect_same_losses(
      {.model = "lenet", .optimizer = R"({"name": "momentum"})", .image = {1, 28, 28}}, 1e-4f);
}

TEST(EmulatedTraining, ResidualBlocksWithBatchNorm_HaveTheLossesOfTheCpu) {
  expect_same_losses(
      {.model = "resnet20", .optimizer = R"({"name": "momentum"})", .image = {3, 8, 8}}, 1e-3f);
}

TEST(EmulatedTraining, MixedPrecision_StaysCloseToTheLossesOfTheCpu) {
  for (const DType low : {DType::kFloat16, DType::kBFloat16}) {
    for (const Job& job :
         {Job{.model = "mlp",
         .optimizer = R"({"name": "adam"})",
         .image = {1, 8, 8},
         .rate = 1e-3f},
          Job{.model = "lenet", .optimizer = R"({"name": "momentum"})", .image = {1, 28, 28}},
          Job{.model = "resnet20",
          .optimizer = R"({"name": "momentum"})",
          .image = {3, 8, 8},
          .rate = 1e-3f}}) {
      Job mixed = job;
      mixed.low = low;
      expect_same_losses(mixed, low == DType::kFloat16 ? 5e-3f : 3e-2f);
    }
  }
}

}  // namespace
}  // namespace fleet
