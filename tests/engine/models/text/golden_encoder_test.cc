// Outputs, every gradient and 20 steps of AdamW of each head against transformers on the same
// weights (scripts/make_golden_encoders.py computed them in float64), on texts of different
// lengths.
#include <gtest/gtest.h>

#include <set>

#include "tests/engine/models/text/golden_network.h"

namespace fleet {
namespace {

constexpr int64_t kNoLabel = -100;

std::set<std::string> outputs_of(const std::string& head) {
  if (head == "pretraining") return {"masked_hidden", "head", "head_bias", "next_sentence_logits"};
  if (head == "masked") return {"masked_hidden", "head", "head_bias"};
  if (head == "sequence") return {"logits"};
  return {head == "tokens" ? "token_logits" : "span_logits"};
}

// A network with one head and the loss of transformers' class.
class EncoderNetwork : public golden::TextNetwork {
 public:
  explicit EncoderNetwork(const golden::TextCase& text)
      : TextNetwork(text), wanted_(outputs_of(text.head)) {
    Program program;
    for (const auto& [name, values] : text.inputs) {
      feeds_[name] = program.feed(name, DType::kInt64, shape_of_input(values.size()));
    }
    if (masks()) weight_ = program.feed("row_weight", DType::kFloat32, {text.batch, slots()});
    append(std::move(program));
    feed();
  }

  std::vector<WeightPart> parts() const override { return weight_parts(model_, wanted_); }

  // An output as the file has it: 0 for padding.
  std::vector<float> result(const std::string& name) {
    std::vector<float> values = floats(results_.at(name));
    const char* unused = name == "masked_logits" ? "masked_labels" : "document_ids";
    if (name == "logits" || name == "next_sentence_logits") return values;
    const std::vector<int64_t>& marks = text_.inputs.at(unused);
    const size_t row = values.size() / marks.size();
    for (size_t i = 0; i < values.size(); ++i) {
      if (marks[i / row] < 0) values[i] = 0;
    }
    return values;
  }
  std::vector<std::string> result_names() const {
    std::vector<std::string> names;
    for (const auto& [name, var] : results_) names.push_back(name);
    return names;
  }

 private:
  bool masks() const { return wanted_.contains("masked_hidden"); }
  int64_t slots() const {
    return static_cast<int64_t>(text_.inputs.at("masked_labels").size()) / text_.batch;
  }
  Shape shape_of_input(size_t size) const {
    const auto count = static_cast<int64_t>(size);
    return count == text_.batch ? Shape{count} : Shape{text_.batch, count / text_.batch};
  }

  NamedVars network(Network* network) {
    network->set_wanted_outputs(wanted_);
    return build_language_model(*network, feeds_, model_);
  }

  void append(Program program) {
    const SectionId forward = program.add_section("forward", {.training = true});
    Network training(program, forward, true, kNoVar);
    const VarId loss = loss_of(&training, network(&training));
    const SectionId evaluate =
        program.add_section("evaluate", {.training = false, .evaluation = true});
    Network evaluation(program, evaluate, false, kNoVar);
    const NamedVars evaluated = network(&evaluation);
    for (const std::string& name : wanted_) {
      if (name == "head" || name == "head_bias") continue;
      if (name != "masked_hidden") {
        results_[name] = evaluated.at(name);
        continue;
      }
      results_["masked_logits"] = evaluation.apply(
          "fc", {evaluated.at(name), evaluated.at("head"), evaluated.at("head_bias")},
          {{"axis", int64_t{2}}});
    }
    std::vector<VarId> results;
    for (const auto& [name, var] : results_) results.push_back(var);
    finish(std::move(program), forward, loss, results);
  }

  // The mean cross entropy of the labels that are not ignored.
  VarId mean_loss(Network* net, VarId logits, const std::string& labels) {
    const VarId losses = net->apply("softmax_with_cross_entropy", {logits, feeds_.at(labels)});
    const std::vector<int64_t>& all = text_.inputs.at(labels);
    const auto rows = static_cast<double>(all.size());
    const double counted = rows - static_cast<double>(std::ranges::count(all, kNoLabel));
    return net->apply("scale", {net->apply("mean", {losses})}, {{"scale", rows / counted}});
  }

  VarId span_loss(Network* net, VarId logits, int64_t side, const std::string& labels) {
    const VarId of_side =
        net->apply("slice", {logits}, {{"axis", int64_t{2}}, {"start", side}, {"end", side + 1}});
    return mean_loss(net, net->reshape(of_side, {0, text_.length}), labels);
  }

  VarId loss_of(Network* net, const NamedVars& outputs) {
    if (text_.head == "sequence") return mean_loss(net, outputs.at("logits"), "label");
    if (text_.head == "tokens") {
      return mean_loss(net, outputs.at("token_logits"), "labels");
    }
    if (text_.head == "spans") {
      const VarId logits = outputs.at("span_logits");
      const VarId start = span_loss(net, logits, 0, "start_position");
      const VarId sum = net->add(start, span_loss(net, logits, 1, "end_position"));
      return net->apply("scale", {sum}, {{"scale", 0.5}});
    }
    const VarId masked = net->apply("linear_cross_entropy",
                                    {outputs.at("masked_hidden"), outputs.at("head"),
                                     feeds_.at("masked_labels"), weight_, outputs.at("head_bias")},
                                    {{"ignore_index", kNoLabel}});
    if (text_.head == "masked") return masked;
    return net->add(masked,
                    mean_loss(net, outputs.at("next_sentence_logits"), "next_sentence_label"));
  }

  void feed() {
    for (const auto& [name, values] : text_.inputs) {
      if (executor_->program().find(name) != kNoVar) executor_->feed(feeds_.at(name), values);
    }
    if (!masks()) return;
    const std::vector<int64_t>& labels = text_.inputs.at("masked_labels");
    const auto counted = labels.size() - static_cast<size_t>(std::ranges::count(labels, kNoLabel));
    std::vector<float> weights(labels.size(), 0);
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] != kNoLabel) weights[i] = 1 / static_cast<float>(counted);
    }
    executor_->feed(weight_, weights);
  }

  const std::set<std::string> wanted_;
  NamedVars results_;
  VarId weight_ = kNoVar;
};

class GoldenEncoder : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenEncoder, OutputsGradientsAndSteps_MatchTransformers) {
  const golden::TextCase text = golden::load_text(std::string("encoder_") + GetParam());
  EncoderNetwork ours(text);
  ours.write_weights();
  ours.run({.evaluate = true});
  for (const std::string& name : ours.result_names()) {
    EXPECT_LT(golden::relative_error(ours.result(name), text.tensors.at(name)), ours.kTolerance)
        << name;
  }
  ours.expect_training_as_transformers();
}

INSTANTIATE_TEST_SUITE_P(Heads, GoldenEncoder,
                         ::testing::Values("bert_pretraining", "bert_masked", "bert_sequence",
                                           "bert_tokens", "bert_spans", "roberta_masked",
                                           "roberta_sequence", "roberta_tokens", "roberta_spans",
                                           "distilbert_masked", "distilbert_sequence",
                                           "distilbert_tokens", "distilbert_spans"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fleet
