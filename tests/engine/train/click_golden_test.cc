// Models of clicks against PyTorch's on the same weights and rows (scripts/make_golden_click.py
// computed them in float64).
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/task.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/errors.h"
#include "tests/golden/golden.h"
#include "train/job.h"
#include "train/session.h"

namespace fleet {
namespace {

constexpr int64_t kSlots = 26, kLength = 2, kDense = 13, kIds = 400, kBatch = 16;

uint64_t draw(const char* name, int64_t i) {
  return golden::splitmix64(golden::fnv1a(name) + static_cast<uint64_t>(i));
}

// The rows of a step: each slot has one id, or two, or none.
struct ClickRows {
  std::vector<int64_t> ids, keys = std::vector<int64_t>(kBatch);
  std::vector<float> dense, label, weight = std::vector<float>(kBatch, 1);

  explicit ClickRows(int64_t step) {
    for (int64_t i = step * kBatch * kSlots; i < (step + 1) * kBatch * kSlots; ++i) {
      const uint64_t kind = draw("clicks.kind", i) % 8;
      ids.push_back(kind == 0 ? -1 : static_cast<int64_t>(draw("clicks.first", i) % kIds));
      ids.push_back(kind == 1 || kind == 2 ? static_cast<int64_t>(draw("clicks.second", i) % kIds)
                                           : -1);
    }
    for (int64_t i = step * kBatch * kDense; i < (step + 1) * kBatch * kDense; ++i) {
      dense.push_back(static_cast<float>(draw("clicks.dense", i) >> 40) / (1 << 24));
    }
    for (int64_t i = step * kBatch; i < (step + 1) * kBatch; ++i) {
      label.push_back(draw("clicks.label", i) % 4 == 0 ? 1 : 0);
    }
  }

  void feed(Executor& executor, const Training& training, float rate) const {
    const auto denominator = static_cast<float>(kBatch);
    executor.feed(training.feed("ids"), ids);
    executor.feed(training.feed("dense"), dense);
    executor.feed(training.feed("label"), label);
    executor.feed(training.feed("weight"), weight);
    executor.feed(training.feed("sample_key"), keys);
    executor.feed(training.feed("sample_denominator"), std::span(&denominator, 1));
    executor.feed(training.feed("learning_rate"), std::span(&rate, 1));
    executor.synchronize();
  }
};

const std::vector<Column>& click_columns() {
  static const std::vector<Column> columns = {{"label", DType::kFloat32, {1}},
                                              {"ids", DType::kInt64, {kSlots, kLength}},
                                              {"dense", DType::kFloat32, {kDense}}};
  return columns;
}

void write_golden_weights(Executor& executor) {
  for (const VarId id : executor.program().parameters()) {
    const Var& var = executor.program().var(id);
    std::vector<float> values = golden::tensor(var.name, var.shape);
    if (var.name.find("embedding") != std::string::npos || var.name.starts_with("first_order")) {
      for (float& value : values) value /= 8;
    }
    executor.write(id, values);
  }
}

nlohmann::json golden_clicks() {
  return nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/clicks.json"));
}

// Sums of thousands of terms: errors against the tensor's root mean square.
void expect_near(const std::vector<float>& ours, const nlohmann::json& theirs,
                 const std::string& what) {
  constexpr double kTolerance = 1e-5;
  const golden::Summary mine = golden::summarize(ours);
  const double norm = theirs.at("norm");
  const std::vector<double> values = theirs.at("values");
  EXPECT_NEAR(mine.norm, norm, kTolerance * norm) << what;
  ASSERT_EQ(mine.values.size(), values.size()) << what;
  const double rms = norm / std::sqrt(static_cast<double>(ours.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(mine.values[i], values[i], kTolerance * std::max(std::abs(values[i]), 10 * rms))
        << what << " " << i;
  }
}

void expect_golden(const std::string& model) {
  const nlohmann::json golden = golden_clicks().at(model);
  const Schema& schema = model_registry().get(model).schema;
  Program program;
  const Training training = build_training(
      program,
      {.model = model,
       .model_settings = ConfigTree::from_json(R"({"ids": 400, "sparse_embedding": false})", "test")
                             .validate(schema),
       .task = "click",
       .task_settings = TrainingOptions::default_task_settings("click"),
       .batch = kBatch,
       .columns = click_columns()});
  make_strategy("").append_backward(program, training.forward, training.loss);
  std::vector<VarId> keep = {training.loss, training.output("logits"),
                             training.training_sum("losses")};
  for (const VarId id : program.parameters()) keep.push_back(program.gradient(id));
  HostDevice device;
  Executor executor(plan_program(std::move(program), keep), device, nullptr);
  write_golden_weights(executor);
  ClickRows(0).feed(executor, training, 0);
  executor.run({.step = 0, .fetch = true});
  executor.synchronize();
  const double loss = golden.at("loss");
  EXPECT_NEAR(executor.values<float>(training.loss)[0], loss, 1e-5 * loss);
  const std::vector<float> sums = executor.values<float>(training.training_sum("losses"));
  EXPECT_NEAR(sums[0] / sums[1], loss, 1e-5 * loss);
  const std::vector<double> logits = golden.at("logits");
  const std::vector<float> ours = executor.values<float>(training.output("logits"));
  ASSERT_EQ(ours.size(), logits.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], logits[i], 1e-5 * std::max(1.0, std::abs(logits[i]))) << i;
  }
  const nlohmann::json& gradients = golden.at("gradients");
  EXPECT_EQ(executor.program().parameters().size(), gradients.size());
  for (const VarId id : executor.program().parameters()) {
    const std::string& name = executor.program().var(id).name;
    ASSERT_TRUE(gradients.contains(name)) << name;
    expect_near(executor.values<float>(executor.program().gradient(id)), gradients.at(name), name);
  }
}

TEST(ClickGolden, WideDeep_MatchesPyTorch) { expect_golden("wide_deep"); }
TEST(ClickGolden, Deepfm_MatchesPyTorch) { expect_golden("deepfm"); }
TEST(ClickGolden, Dlrm_MatchesPyTorch) { expect_golden("dlrm"); }

Job click_job(const std::string& optimizer, bool sparse) {
  return make_job(ConfigTree::from_json(
      R"({"task": "click",
          "model": {"name": "wide_deep", "ids": 400, "sparse_embedding": )" +
          std::string(sparse ? "true" : "false") + R"(},
          "data": {"source": "synthetic", "batch_size": 16},
          "optimizer": )" +
          optimizer + "}",
      "test"));
}

std::vector<double> losses_of(const std::string& optimizer, float rate, bool sparse) {
  HostDevice device;
  const Job job = click_job(optimizer, sparse);
  Session session(job, {.columns = click_columns()}, device, nullptr);
  Executor& executor = session.executor();
  executor.initialize(1);
  write_golden_weights(executor);
  std::vector<double> losses;
  for (int64_t step = 0; step < 100; ++step) {
    ClickRows(step).feed(executor, session.training(), rate);
    executor.run(session.prepare({.step = step}, rate));
    executor.synchronize();
    losses.push_back(executor.values<float>(session.training().loss)[0]);
  }
  return losses;
}

constexpr char kPlainSgd[] = R"({"name": "sgd"})";
constexpr char kPlainAdagrad[] = R"({"name": "adagrad", "initial_accumulator_value": 0.1})";

// EmbeddingBag with sparse gradients there, rows of gradients here.
TEST(ClickGolden, HundredSteps_HavePyTorchsLosses) {
  const nlohmann::json golden = golden_clicks();
  for (const auto& [optimizer, rate, name] : {std::tuple(kPlainSgd, 0.1f, "wide_deep_sgd"),
                                              {kPlainAdagrad, 0.02f, "wide_deep_adagrad"}}) {
    const std::vector<double> wanted = golden.at(name), got = losses_of(optimizer, rate, true);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 1e-5) << name << " step " << i;
    }
  }
}

TEST(ClickGolden, RowsAndWholeGradients_GiveTheSameBits) {
  EXPECT_EQ(losses_of(kPlainAdagrad, 0.02f, true), losses_of(kPlainAdagrad, 0.02f, false));
}

TEST(ClickGolden, AdamWithRows_IsRefusedByTheTable) {
  EXPECT_THAT(thrown_by([] { losses_of(R"({"name": "adam"})", 0.001f, true); }),
              IsUsageError("the sparse embedding 'embedding.weight'"));
  const std::vector<double> whole = losses_of(R"({"name": "adam"})", 0.001f, false);
  EXPECT_TRUE(std::isfinite(whole.back()));
}

}  // namespace
}  // namespace fleet
