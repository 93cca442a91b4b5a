// The real weights of SmolLM2-135M, against transformers; skipped where they are not fetched.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/env.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/text/language_models.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"
#include "train/language_weights.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

// "The Battle of Waterloo was fought on Sunday 18 June 1815, near Waterloo. The French army under
// the command of Napoleon"
const std::vector<int64_t> kWaterloo = {504, 9420, 282,  37875, 436, 9221, 335,  10528, 216,  33,
                                        40,  4019, 216,  33,    40,  33,   37,   28,    2141, 37875,
                                        30,  378,  3432, 6237,  656, 260,  3588, 282,   19538};

class SmolLm2 : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = env_or("FLEET_SMOLLM2", "");
    if (folder.empty()) {
      GTEST_SKIP() << "FLEET_SMOLLM2 names no folder (scripts/fetch_smollm2.py)";
    }
    const Settings settings = ConfigTree::from_json(R"({"folder": ")" + folder + R"("})", "test")
                                  .validate(model_registry().get(kHuggingFaceModel).schema);
    model_ = language_model_of(*language_source(kHuggingFaceModel, settings));
    build();
    write_weights(weights_in_folder(folder));
  }

  // The loss of the tokens from `first` on, of all gradients.
  double loss(size_t first) {
    const size_t length = kWaterloo.size();
    std::vector<int64_t> positions, labels(kWaterloo.begin() + 1, kWaterloo.end());
    labels.push_back(-100);
    for (size_t i = 0; i < length; ++i) positions.push_back(static_cast<int64_t>(i));
    for (size_t i = 0; i + 1 < first; ++i) labels[i] = -100;
    const auto counted = static_cast<float>(length - std::max<size_t>(first, 1));
    executor_->feed(feeds_["input_ids"], kWaterloo);
    executor_->feed(feeds_["position_ids"], positions);
    executor_->feed(feeds_["document_ids"], std::vector<int64_t>(length, 0));
    executor_->feed(feeds_["labels"], labels);
    executor_->feed(weight_, std::vector<float>(length, 1 / counted));
    executor_->run({.step = 0});
    executor_->synchronize();
    return executor_->values<float>(loss_)[0];
  }

  double gradient_norm() {
    double sum = 0;
    const Program& program = executor_->program();
    for (const VarId id : program.parameters()) {
      for (const float value : executor_->values<float>(program.gradient(id))) {
        sum += static_cast<double>(value) * value;
      }
    }
    return std::sqrt(sum);
  }

 private:
  void build() {
    Program program;
    const Shape tokens = {1, static_cast<int64_t>(kWaterloo.size())};
    for (const char* name : {"input_ids", "position_ids", "document_ids", "labels"}) {
      feeds_[name] = program.feed(name, DType::kInt64, tokens);
    }
    weight_ = program.feed("row_weight", DType::kFloat32, tokens);
    const SectionId forward = program.add_section("forward", {.training = true});
    Network network(program, forward, true, kNoVar);
    const NamedVars outputs = build_language_model(network, feeds_, model_);
    loss_ = network.apply("linear_cross_entropy",
                          {outputs.at("hidden"), outputs.at("head"), feeds_["labels"], weight_});
    make_strategy("").append_backward(program, forward, loss_);
    std::vector<VarId> keep = {loss_};
    for (const VarId id : program.parameters()) keep.push_back(program.gradient(id));
    executor_ =
        std::make_unique<Executor>(plan_program(std::move(program), keep), device_, nullptr);
    executor_->initialize(1);
  }

  void write_weights(const std::string& path) {
    TensorFile file = read_weights(path);
    fit_language_names(model_, path, &file);
    const Program& program = executor_->program();
    ASSERT_EQ(file.tensors.size(), program.parameters().size());
    for (const auto& [name, tensor] : file.tensors) {
      ASSERT_NE(program.find(name), kNoVar) << name;
      const TensorBytes bytes = tensor.values();
      executor_->write(program.find(name), std::span(reinterpret_cast<const float*>(bytes.data()),
                                                     bytes.size() / sizeof(float)));
    }
  }

  LanguageModel model_;
  NamedVars feeds_;
  VarId weight_ = kNoVar, loss_ = kNoVar;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

// transformers' loss of the same labels, and the norm that clip_grad_norm_() returns.
TEST_F(SmolLm2, LossAndGradients_AreTransformers) {
  EXPECT_NEAR(loss(0), 2.08443, 2e-5);
  EXPECT_NEAR(loss(10), 1.22941, 2e-5);
  EXPECT_NEAR(gradient_norm(), 12.9615, 5e-4);
}

}  // namespace
}  // namespace fleet
