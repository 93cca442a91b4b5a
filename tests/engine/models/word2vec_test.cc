// word2vec with the task skip_gram: the loss and its gradients by their formula.
#include <gmock/gmock.h>

#include <cmath>

#include "exec/executor.h"
#include "models/model.h"
#include "models/task.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

constexpr int64_t kWords = 6, kDim = 3, kSamples = 2, kContext = 3;

TrainingOptions word2vec_options_of(int64_t context) {
  const std::string keys = R"({"ids": 6, "dim": 3, "sparse_embedding": false})";
  return {.model = "word2vec",
          .model_settings =
              ConfigTree::from_json(keys, "test").validate(model_registry().get("word2vec").schema),
          .task = "skip_gram",
          .task_settings = TrainingOptions::default_task_settings("skip_gram"),
          .batch = kSamples,
          .columns = {{"center", DType::kInt64, {1}}, {"context", DType::kInt64, {context}}}};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Word2vec, Step_HasTheLossAndGradientsOfTheFormula) {
  Program program;
  const Training training = build_training(program, word2vec_options_of(kContext));
  make_strategy("").append_backward(program, training.forward, training.loss);
  const VarId in = program.find("embedding.weight"), out = program.find("context.weight");
  const std::vector<VarId> kept = {training.loss, program.gradient(in), program.gradient(out)};
  HostDevice device;
  Executor executor(plan_program(std::move(program), kept), device, nullptr);
  std::vector<float> rows(kWords * kDim), others(kWords * kDim);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<float>(i % 7) / 7 - 0.4f;
    others[i] = static_cast<float>(i % 5) / 5 - 0.3f;
  }
  const std::vector<int64_t> center = {4, 1}, context = {1, 5, 1, 2, 0, 3};
  const std::vector<float> weight = {1, 1}, denominator = {kSamples};
  executor.write(in, rows);
  executor.write(out, others);
  executor.write(training.feed("center"), center);
  executor.write(training.feed("context"), context);
  executor.write(training.feed("weight"), weight);
  executor.write(training.feed("sample_denominator"), denominator);
  executor.run({});
  executor.synchronize();

  double loss = 0;
  std::vector<double> of_rows(rows.size()), of_others(rows.size());
  for (int64_t n = 0; n < kSamples; ++n) {
    for (int64_t c = 0; c < kContext; ++c) {
      const int64_t a = center[n] * kDim, b = context[n * kContext + c] * kDim;
      double logit = 0;
      for (int64_t d = 0; d < kDim; ++d) logit += static_cast<double>(rows[a + d]) * others[b + d];
      const double target = c == 0 ? 1 : 0, slope = (sigmoid(logit) - target) / kSamples;
      loss -= std::log(sigmoid(c == 0 ? logit : -logit)) / kSamples;
      for (int64_t d = 0; d < kDim; ++d) {
        of_rows[a + d] += slope * others[b + d];
        of_others[b + d] += slope * rows[a + d];
      }
    }
  }
  EXPECT_NEAR(executor.values<float>(kept[0])[0], loss, 1e-6);
  for (const auto& [id, wanted] : {std::pair(kept[1], of_rows), {kept[2], of_others}}) {
    const std::vector<float> got = executor.values<float>(id);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  }
}

TEST(Word2vec, OnlyTheNeighbour_IsRefused) {
  Program program;
  EXPECT_THAT(thrown_by([&] { build_training(program, word2vec_options_of(1)); }),
              IsUsageError("the task skip_gram"));
}

}  // namespace
}  // namespace fleet
