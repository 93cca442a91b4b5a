// Logits, every gradient and 20 steps of AdamW against transformers on the same weights
// (scripts/make_golden_language_models.py computed them in float64).
#include <gtest/gtest.h>

#include "tests/engine/models/text/golden_network.h"

namespace fleet {
namespace {

class DecoderNetwork : public golden::TextNetwork {
 public:
  explicit DecoderNetwork(const golden::TextCase& text) : TextNetwork(text) {
    Program program;
    const Shape tokens = {text.batch, text.length};
    for (const char* name : {"input_ids", "position_ids", "document_ids", "labels"}) {
      feeds_[name] = program.feed(name, DType::kInt64, tokens);
    }
    weight_ = program.feed("row_weight", DType::kFloat32, tokens);
    append(std::move(program));
    feed();
  }

  std::vector<WeightPart> parts() const override { return weight_parts(model_); }
  std::vector<float> logits() { return floats(logits_); }

 private:
  void append(Program program) {
    const SectionId forward = program.add_section("forward", {.training = true});
    Network network(program, forward, true, kNoVar);
    const NamedVars outputs = build_language_model(network, feeds_, model_);
    const VarId loss =
        network.apply("linear_cross_entropy",
                      {outputs.at("hidden"), outputs.at("head"), feeds_["labels"], weight_});
    const SectionId evaluate =
        program.add_section("evaluate", {.training = false, .evaluation = true});
    Network evaluation(program, evaluate, false, kNoVar);
    const NamedVars evaluated = build_language_model(evaluation, feeds_, model_);
    logits_ = evaluation.apply("fc", {evaluated.at("hidden"), evaluated.at("head")},
                               {{"axis", int64_t{2}}});
    finish(std::move(program), forward, loss, {logits_});
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

  VarId weight_ = kNoVar, logits_ = kNoVar;
};

void expect_as_transformers(const std::string& name) {
  const golden::TextCase text = golden::load_text(name);
  DecoderNetwork ours(text);
  ours.write_weights();
  ours.run({.evaluate = true});
  EXPECT_LT(golden::relative_error(ours.logits(), text.tensors.at("logits")), ours.kTolerance);
  ours.expect_training_as_transformers();
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
