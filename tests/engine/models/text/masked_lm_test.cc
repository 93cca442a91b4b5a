// The task masked_lm: what it feeds, and its loss, metrics and gradients of one batch against
// transformers' BertForPreTraining and BertForMaskedLM (scripts/make_golden_encoders.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/executor.h"
#include "models/model.h"
#include "models/task.h"
#include "models/text/language_family.h"
#include "models/text/language_models.h"
#include "models/training.h"
#include "tensor/host.h"
#include "tests/engine/models/text/golden_text.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using golden::relative_error;
using ::testing::ElementsAre;

constexpr int64_t kNoToken = -100;

// The columns that the source masked_text has.
std::vector<Column> masked_text_columns(int64_t length, int64_t slots, bool pairs) {
  std::vector<Column> columns = {
      {"input_ids", DType::kInt64, {length}},       {"position_ids", DType::kInt64, {length}},
      {"document_ids", DType::kInt64, {length}},    {"token_type_ids", DType::kInt64, {length}},
      {"masked_positions", DType::kInt64, {slots}}, {"masked_labels", DType::kInt64, {slots}},
      {"loss_weight", DType::kFloat32, {slots}}};
  if (pairs) columns.push_back({"next_sentence_label", DType::kInt64, {}});
  return columns;
}

TrainingOptions masked_options(const std::string& model, const std::string& settings,
                               std::vector<Column> columns, int64_t batch) {
  const Schema& schema = model_registry().get(model).schema;
  return {.model = model,
          .model_settings = ConfigTree::from_json(settings, "test").validate(schema),
          .task = "masked_lm",
          .task_settings = TrainingOptions::default_task_settings("masked_lm"),
          .batch = batch,
          .columns = std::move(columns)};
}

constexpr char kSmall[] = R"({"vocab_size": 23, "hidden_size": 12, "num_hidden_layers": 1,
                             "num_attention_heads": 3, "intermediate_size": 10})";
constexpr char kSmallDistil[] = R"({"vocab_size": 23, "dim": 12, "n_layers": 1, "n_heads": 3,
                                   "hidden_dim": 10})";

std::vector<std::string> feeds_of_task(const TrainingOptions& options) {
  Program program;
  std::vector<std::string> names;
  for (const TrainingFeed& feed : build_training(program, options).feeds)
    names.push_back(feed.name);
  return names;
}

TEST(MaskedLmTask, Feeds_DependOnThePairsOfTheData) {
  EXPECT_THAT(
      feeds_of_task(masked_options("bert", kSmall, masked_text_columns(8, 3, true), 2)),
      ElementsAre("input_ids", "position_ids", "document_ids", "token_type_ids", "masked_positions",
                  "masked_labels", "loss_weight", "next_sentence_label", "weight", "sample_key",
                  "learning_rate", "denominator", "sample_denominator"));
  EXPECT_THAT(
      feeds_of_task(
          masked_options("distilbert", kSmallDistil, masked_text_columns(8, 3, false), 2)),
      ElementsAre("input_ids", "position_ids", "document_ids", "masked_positions", "masked_labels",
                  "loss_weight", "sample_key", "learning_rate", "denominator"));
}

TEST(MaskedLmTask, PairsForAModelWithoutThem_AreRefused) {
  Program program;
  EXPECT_THAT(thrown_by([&] {
                build_training(program, masked_options("distilbert", kSmallDistil,
                                                       masked_text_columns(8, 3, true), 2));
              }),
              IsUsageError("data.next_sentence"));
}

// A batch of the golden file through the task, in parts micro-batches of which one runs.
class MaskedBatch {
 public:
  explicit MaskedBatch(const golden::TextCase& text)
      : text_(text), model_(read_language_model(text.config, "config.json")) {
    const auto slots = static_cast<int64_t>(text.inputs.at("masked_labels").size()) / text.batch;
    const bool pairs = text.inputs.contains("next_sentence_label");
    Json settings = Json::object();
    for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                            "intermediate_size", "max_position_embeddings"}) {
      settings[key] = text.config.at(key);
    }
    settings["hidden_dropout_prob"] = settings["attention_probs_dropout_prob"] = 0;
    for (const char* key : {"tie_word_embeddings", "hidden_act"}) {
      if (const Json* value = text.config.find(key)) settings[key] = *value;
    }
    training_ = build_training(
        program_, masked_options("bert", settings.dump_lossy(),
                                 masked_text_columns(text.length, slots, pairs), text.batch));
    make_strategy("").append_backward(program_, training_.forward, training_.loss);
    for (const TrainingFeed& feed : training_.feeds) feeds_[feed.name] = feed.var;
    std::vector<VarId> keep = {training_.loss};
    for (const TrainingSum& sum : training_.training_sums) keep.push_back(sum.var);
    for (const TrainingSum& sum : training_.evaluation_sums) keep.push_back(sum.var);
    for (const VarId id : program_.parameters()) keep.push_back(program_.gradient(id));
    executor_ = std::make_unique<Executor>(plan_program(program_, keep), device_, nullptr);
    executor_->initialize(1);
    write_weights();
    feed();
  }

  void run(const StepInfo& info) {
    executor_->run(info);
    executor_->synchronize();
  }
  double loss() { return executor_->values<float>(training_.loss)[0]; }
  MetricSums sums(const std::vector<TrainingSum>& of) {
    MetricSums all(training_.metrics);
    for (const TrainingSum& sum : of) {
      const std::vector<float> values = executor_->values<float>(sum.var);
      for (size_t i = 0; i < values.size(); ++i) {
        all.sums()[training_.metrics->sum_index(sum.parts[i])] += values[i];
      }
    }
    return all;
  }
  const Training& training() const { return training_; }
  std::map<std::string, std::vector<float>> gradients() {
    std::map<std::string, std::vector<float>> all;
    const Program& program = executor_->program();
    for (const VarId id : program.parameters()) {
      all[program.var(id).name] = executor_->values<float>(program.gradient(id));
    }
    return all;
  }
  std::vector<WeightPart> parts() const {
    return weight_parts(model_, wanted_outputs({options_of_feeds()}));
  }

 private:
  TrainingOptions options_of_feeds() const {
    return masked_options("bert", kSmall,
                          masked_text_columns(8, 3, feeds_.contains("next_sentence_label")), 1);
  }
  void write_weights() {
    const auto weights = golden::joined_parts(parts(), [&](const std::string& theirs) {
      return golden::tensor(theirs, text_.shapes.at("gradient." + theirs));
    });
    ASSERT_EQ(weights.size(), executor_->program().parameters().size());
    for (const auto& [name, values] : weights) {
      ASSERT_NE(executor_->program().find(name), kNoVar) << name;
      executor_->write(executor_->program().find(name), values);
    }
  }
  void feed() {
    for (const auto& [name, values] : text_.inputs) executor_->feed(feeds_.at(name), values);
    const std::vector<int64_t>& labels = text_.inputs.at("masked_labels");
    std::vector<float> weights;
    for (const int64_t label : labels) weights.push_back(label == kNoToken ? 0 : 1);
    executor_->feed(feeds_.at("loss_weight"), weights);
    const auto give = [&](const std::string& name, std::vector<float> values) {
      if (feeds_.contains(name)) executor_->feed(feeds_.at(name), values);
    };
    const auto used = static_cast<float>(std::ranges::count(weights, 1.0f));
    give("denominator", {used});
    give("sample_denominator", {static_cast<float>(text_.batch)});
    give("weight", std::vector<float>(static_cast<size_t>(text_.batch), 1));
    give("learning_rate", {0});
    executor_->feed(feeds_.at("sample_key"), std::vector<int64_t>(text_.batch));
  }

  const golden::TextCase& text_;
  LanguageModel model_;
  Program program_;
  Training training_;
  std::map<std::string, VarId> feeds_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

class GoldenMaskedLm : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenMaskedLm, LossMetricsAndGradients_MatchTransformers) {
  const golden::TextCase text = golden::load_text(std::string("encoder_") + GetParam());
  MaskedBatch batch(text);
  batch.run({.step = 0, .fetch = true});
  EXPECT_NEAR(batch.loss(), text.losses[0], 1e-5);
  const auto theirs = golden::joined_parts(
      batch.parts(), [&](const std::string& name) { return text.tensors.at("gradient." + name); });
  const auto ours = batch.gradients();
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [name, values] : theirs) {
    EXPECT_LT(relative_error(ours.at(name), values), 1e-5) << name;
  }
  // The metrics, from transformers' logits.
  const MetricSums sums = batch.sums(batch.training().training_sums);
  EXPECT_NEAR(sums.loss(), text.losses[0], 1e-5);
  const auto hits = [](const std::vector<float>& logits, const std::vector<int64_t>& labels) {
    const size_t classes = logits.size() / labels.size();
    double hit = 0, all = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == kNoToken) continue;
      const auto row = logits.begin() + static_cast<int64_t>(i * classes);
      hit += std::max_element(row, row + static_cast<int64_t>(classes)) - row == labels[i] ? 1 : 0;
      ++all;
    }
    return hit / all;
  };
  EXPECT_NEAR(sums.value("masked_accuracy"),
              hits(text.tensors.at("masked_logits"), text.inputs.at("masked_labels")), 1e-6);
  batch.run({.evaluate = true});
  const MetricSums evaluated = batch.sums(batch.training().evaluation_sums);
  EXPECT_NEAR(evaluated.loss(), text.losses[0], 1e-5);
  if (!text.inputs.contains("next_sentence_label")) return;
  EXPECT_NEAR(evaluated.value("next_sentence_accuracy"),
              hits(text.tensors.at("next_sentence_logits"), text.inputs.at("next_sentence_label")),
              1e-6);
}

INSTANTIATE_TEST_SUITE_P(Heads, GoldenMaskedLm,
                         ::testing::Values("bert_pretraining", "bert_masked"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fleet
