// Logits, every gradient and 20 steps of AdamW against transformers on the same weights
// (scripts/make_golden_language_models.py computed them in float64).
#include "tests/engine/models/text/golden_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "exec/executor.h"
#include "models/text/language_family.h"
#include "models/text/language_models.h"
#include "optim/optimizer.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

// The largest error, of the largest value.
double relative_error(const std::vector<float>& ours, const std::vector<float>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double error = 0, largest = 0;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    error = std::max(error, std::abs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
  }
  return error / largest;
}

class TextNetwork {
 public:
  explicit TextNetwork(const golden::TextCase& text)
      : text_(text), model_(read_language_model(text.config, "config.json")) {
    Program program;
    const Shape tokens = {text.batch, text.length};
    for (const char* name : {"input_ids", "position_ids", "document_ids", "labels"}) {
      feeds_[name] = program.feed(name, DType::kInt64, tokens);
    }
    weight_ = program.feed("row_weight", DType::kFloat32, tokens);
    rate_ = program.feed("learning_rate", DType::kFloat32, {1});
    append(&program);
    std::vector<VarId> keep = {loss_, logits_};
    for (const VarId id : program.parameters()) keep.push_back(program.gradient(id));
    executor_ =
        std::make_unique<Executor>(plan_program(std::move(program), keep), device_, nullptr);
    executor_->initialize(1);
    feed();
  }

  void run(const StepInfo& info, float rate = 0) {
    executor_->feed(rate_, std::span(&rate, 1));
    executor_->run(info);
    executor_->synchronize();
  }
  const LanguageModel& model() const { return model_; }
  const Program& program() const { return executor_->program(); }
  std::vector<float> floats(VarId id) { return executor_->values<float>(id); }
  std::vector<float> logits() { return floats(logits_); }
  double loss() { return floats(loss_)[0]; }
  void write(const std::map<std::string, std::vector<float>>& weights) {
    for (const auto& [name, values] : weights) {
      ASSERT_NE(program().find(name), kNoVar) << name;
      executor_->write(program().find(name), values);
    }
    ASSERT_EQ(weights.size(), program().parameters().size());
  }

 private:
  void append(Program* program) {
    const SectionId forward = program->add_section("forward", {.training = true});
    Network network(*program, forward, true, kNoVar);
    const NamedVars outputs = build_language_model(network, feeds_, model_);
    loss_ = network.apply("linear_cross_entropy",
                          {outputs.at("hidden"), outputs.at("head"), feeds_["labels"], weight_});
    const SectionId evaluate =
        program->add_section("evaluate", {.training = false, .evaluation = true});
    Network evaluation(*program, evaluate, false, kNoVar);
    const NamedVars evaluated = build_language_model(evaluation, feeds_, model_);
    logits_ = evaluation.apply("fc", {evaluated.at("hidden"), evaluated.at("head")},
                               {{"axis", int64_t{2}}});
    Strategy strategy = make_strategy("");
    strategy.append_backward(*program, forward, loss_);
    const std::string rule = R"({"name": "adamw", "weight_decay": 0.1, "epsilon": 1e-6})";
    ConfigTree tree = ConfigTree::from_json(rule, "test");
    append_updates(*program, program->add_section("optimize", {.training = true}),
                   program->parameters(), rate_, tree.validate(optimizer_schema("adamw")));
  }

  void feed() {
    const std::vector<int64_t> ids = golden::text_tokens(text_, model_.vocabulary);
    std::vector<int64_t> positions, labels;
    for (int64_t i = 0; i < text_.batch * text_.length; ++i) {
      const bool last = i % text_.length == text_.length - 1;
      positions.push_back(i % text_.length);
      labels.push_back(last ? -100 : ids[static_cast<size_t>(i) + 1]);
    }
    const std::vector<int64_t> documents(ids.size(), 0);
    const auto counted = static_cast<float>(text_.batch * (text_.length - 1));
    const std::vector<float> weights(ids.size(), 1 / counted);
    executor_->feed(feeds_["input_ids"], ids);
    executor_->feed(feeds_["position_ids"], positions);
    executor_->feed(feeds_["document_ids"], documents);
    executor_->feed(feeds_["labels"], labels);
    executor_->feed(weight_, weights);
    executor_->synchronize();
  }

  const golden::TextCase& text_;
  LanguageModel model_;
  NamedVars feeds_;
  VarId weight_, rate_, loss_, logits_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

void expect_as_transformers(const std::string& name) {
  constexpr double kTolerance = 1e-5;
  constexpr float kRate = 0.001f;
  const golden::TextCase text = golden::load_text(name);
  TextNetwork ours(text);
  ours.write(golden::joined_parts(ours.model(), [&](const std::string& theirs) {
    return golden::tensor(theirs, text.shapes.at("gradient." + theirs));
  }));
  ours.run({.evaluate = true});
  EXPECT_LT(relative_error(ours.logits(), text.tensors.at("logits")), kTolerance);

  ours.run({.step = 0}, kRate);
  EXPECT_NEAR(ours.loss(), text.losses[0], kTolerance * text.losses[0]);
  const auto gradients = golden::joined_parts(ours.model(), [&](const std::string& theirs) {
    return text.tensors.at("gradient." + theirs);
  });
  const Program& program = ours.program();
  EXPECT_EQ(program.parameters().size(), gradients.size());
  for (const auto& [parameter, theirs] : gradients) {
    const VarId id = program.find(parameter);
    ASSERT_NE(id, kNoVar) << parameter;
    EXPECT_LT(relative_error(ours.floats(program.gradient(id)), theirs), kTolerance) << parameter;
  }
  for (size_t step = 1; step < text.losses.size(); ++step) {
    ours.run({.step = static_cast<int64_t>(step)}, kRate);
    EXPECT_NEAR(ours.loss(), text.losses[step], 1e-4 * text.losses[step]) << "step " << step;
  }
}

TEST(GoldenText, Gpt2_MatchesTransformers) { expect_as_transformers("gpt2"); }
TEST(GoldenText, LlamaWithLlama3Rope_MatchesTransformers) { expect_as_transformers("llama_rope"); }
TEST(GoldenText, LlamaTiedWithPadding_MatchesTransformers) { expect_as_transformers("llama_tied"); }
TEST(GoldenText, LlamaWithYarn_MatchesTransformers) { expect_as_transformers("llama_yarn"); }
TEST(GoldenText, MistralWithWindow_MatchesTransformers) { expect_as_transformers("mistral"); }
TEST(GoldenText, Qwen2WithWindows_MatchesTransformers) { expect_as_transformers("qwen2"); }
TEST(GoldenText, Qwen3_MatchesTransformers) { expect_as_transformers("qwen3"); }

}  // namespace
}  // namespace fleet
