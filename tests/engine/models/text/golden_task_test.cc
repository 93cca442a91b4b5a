// The losses of the tasks of encoders against those of transformers' classes on the same weights
// (scripts/make_golden_encoders.py).
#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "models/model.h"
#include "models/task.h"
#include "models/text/language_models.h"
#include "tensor/host.h"
#include "tests/engine/models/text/golden_text.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

constexpr int64_t kUnlabelled = -100;

// The keys of a job file for a config.json.
Settings settings_of(const std::string& model, const golden::TextCase& text) {
  const Schema& schema = model_registry().get(model).schema;
  ConfigTree tree;
  for (const ConfigKey& key : schema.keys()) {
    const Json* value = text.config.find(key.path);
    if (value && !value->is_null())
      tree.set(key.path, value->is_string() ? value->get<std::string>() : value->dump(),
               "config.json");
  }
  if (text.head != "spans") tree.set("num_classes", "3", "test");
  return tree.validate(schema);
}

// The column of an input of transformers.
std::string column_of(const std::string& input) {
  return input == "labels" ? "token_labels" : input;
}

std::vector<Column> columns_of(const golden::TextCase& text) {
  std::vector<Column> columns;
  for (const auto& [name, values] : text.inputs) {
    const auto count = static_cast<int64_t>(values.size());
    columns.push_back({column_of(name), DType::kInt64,
                       count == text.batch ? Shape() : Shape{count / text.batch}});
  }
  columns.push_back({"loss_weight", DType::kFloat32, {text.length}});
  columns.push_back({"targets", DType::kFloat32, {3}});
  for (const char* name : {"text", "part", "question", "token_begin", "token_end"}) {
    columns.push_back({name, DType::kInt64, {}});
  }
  return columns;
}

// targets: of a regression, [batch, 3].
double loss_of_task(const std::string& model, const std::string& task, const golden::TextCase& text,
                    const std::vector<float>& targets = {}) {
  Program program;
  const TrainingOptions options{.model = model,
                                .model_settings = settings_of(model, text),
                                .task = task,
                                .task_settings = TrainingOptions::default_task_settings(task),
                                .batch = text.batch,
                                .columns = columns_of(text)};
  const Training training = build_training(program, options);
  make_strategy("").append_backward(program, training.forward, training.loss);
  HostDevice device;
  Executor executor(plan_program(std::move(program), {training.loss}), device, nullptr);
  executor.initialize(1);
  const auto source = language_source(model, options.model_settings);
  const auto parts = weight_parts(language_model_of(*source), wanted_outputs({options}));
  const auto weights = golden::joined_parts(parts, [&](const std::string& theirs) {
    return golden::tensor(theirs, text.shapes.at("gradient." + theirs));
  });
  for (const auto& [name, values] : weights) executor.write(executor.program().find(name), values);
  for (const auto& [name, values] : text.inputs) {
    const VarId feed = training.feed(column_of(name));
    if (feed != kNoVar) executor.feed(feed, values);
  }
  if (!targets.empty()) executor.feed(training.feed("targets"), targets);
  std::vector<float> counts(static_cast<size_t>(text.batch), 1);  // of samples, or of tokens
  if (text.head == "tokens") {
    counts.clear();
    for (const int64_t label : text.inputs.at("labels"))
      counts.push_back(label == kUnlabelled ? 0 : 1);
  }
  const auto sum = static_cast<float>(std::ranges::count(counts, 1.0f));
  executor.feed(training.feed(text.head == "tokens" ? "loss_weight" : "weight"), counts);
  executor.feed(training.feed(text.head == "tokens" ? "denominator" : "sample_denominator"),
                std::span(&sum, 1));
  executor.run({.step = 0});
  executor.synchronize();
  return executor.values<float>(training.loss)[0];
}

TEST(GoldenTask, Losses_AreThoseOfTransformers) {
  for (const std::string model : {"bert", "roberta", "distilbert"}) {
    for (const auto& [head, task] : {std::pair{"_sequence", "sequence_classification"},
                                     std::pair{"_tokens", "token_classification"},
                                     std::pair{"_spans", "question_answering"}}) {
      const golden::TextCase text = golden::load_text("encoder_" + model + head);
      EXPECT_NEAR(loss_of_task(model, task, text), text.losses[0], 1e-5) << model << head;
    }
  }
}

// MSELoss of the logits of transformers.
TEST(GoldenTask, Regression_IsTheMeanSquaredErrorOfAllTargets) {
  const golden::TextCase text = golden::load_text("encoder_bert_sequence");
  const std::vector<float>& logits = text.tensors.at("logits");
  std::vector<float> targets;
  double expected = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    targets.push_back(0.25f * static_cast<float>(i) - 1);
    expected += std::pow(logits[i] - targets[i], 2) / static_cast<double>(logits.size());
  }
  EXPECT_NEAR(loss_of_task("bert", "regression", text, targets), expected, 1e-5 * expected);
}

}  // namespace
}  // namespace fleet
