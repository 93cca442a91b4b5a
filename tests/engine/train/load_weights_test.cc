// Weights that PyTorch saved as safetensors, read as a user would (checkpoint.weights).
#include <gtest/gtest.h>

#include "models/model.h"
#include "models/training.h"
#include "tensor/host.h"
#include "tests/golden/golden.h"
#include "tests/test_paths.h"
#include "train/initial_weights.h"

namespace fleet {
namespace {

TEST(LoadWeights, OfPyTorch_GiveItsLogits) {
  const golden::Golden golden = golden::load("lenet");
  const Settings settings =
      ConfigTree::from_json("{}", "test").validate(model_registry().get("lenet").schema);
  Program program;
  const Training training = build_training(
      program, {.model = "lenet",
                .model_settings = settings,
                .batch = golden.input[0],
                .columns = image_columns({golden.input[1], golden.input[2], golden.input[3]})});
  HostDevice device;
  Executor executor(plan_program(program, {training.evaluate_output("logits")}), device, nullptr);
  executor.initialize(5);
  load_weights(source_folder() + "/tests/golden/lenet.safetensors", {}, executor);

  const std::vector<float> image =
      golden::tensor("input", executor.program().var(training.feed("image")).shape);
  const std::vector<float> weight(golden.labels.size(), 1);
  executor.feed(training.feed("image"), image);
  executor.feed(training.feed("label"), golden.labels);
  executor.feed(training.feed("weight"), weight);
  executor.run({.evaluate = true});
  const std::vector<float> logits = executor.values<float>(training.evaluate_output("logits"));
  ASSERT_EQ(logits.size(), golden.eval_logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(logits[i], golden.eval_logits[i], 1e-4 * std::abs(golden.eval_logits[i]) + 1e-5);
  }
}

}  // namespace
}  // namespace fleet
