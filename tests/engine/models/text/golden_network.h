// A network of transformers' weights that trains: what its tests compare with golden values.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "models/text/language_family.h"
#include "models/text/language_models.h"
#include "optim/optimizer.h"
#include "tensor/host.h"
#include "tests/engine/models/text/golden_text.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet::golden {

// Derived classes build the Program, and finish() it in their constructors.
class TextNetwork {
 public:
  virtual ~TextNetwork() = default;

  void run(const StepInfo& info, float rate = 0) {
    executor_->feed(rate_, std::span(&rate, 1));
    executor_->run(info);
    executor_->synchronize();
  }
  // The parameters and their parts in transformers.
  virtual std::vector<WeightPart> parts() const = 0;
  const Program& program() const { return executor_->program(); }
  std::vector<float> floats(VarId id) { return executor_->values<float>(id); }
  double loss() { return floats(loss_)[0]; }

  // The weights that the script drew.
  void write_weights() {
    const auto weights = joined_parts(parts(), [&](const std::string& theirs) {
      return tensor(theirs, text_.shapes.at("gradient." + theirs));
    });
    for (const auto& [name, values] : weights) {
      ASSERT_NE(program().find(name), kNoVar) << name;
      executor_->write(program().find(name), values);
    }
    ASSERT_EQ(weights.size(), program().parameters().size());
  }

  // Expects transformers' loss, all gradients, and the losses of the steps of AdamW behind it.
  void expect_training_as_transformers() {
    constexpr float kRate = 0.001f;
    run({.step = 0}, kRate);
    EXPECT_NEAR(loss(), text_.losses[0], kTolerance * text_.losses[0]);
    const auto gradients = joined_parts(
        parts(), [&](const std::string& theirs) { return text_.tensors.at("gradient." + theirs); });
    EXPECT_EQ(program().parameters().size(), gradients.size());
    for (const auto& [parameter, theirs] : gradients) {
      const VarId id = program().find(parameter);
      ASSERT_NE(id, kNoVar) << parameter;
      EXPECT_LT(relative_error(floats(program().gradient(id)), theirs), kTolerance) << parameter;
    }
    for (size_t step = 1; step < text_.losses.size(); ++step) {
      run({.step = static_cast<int64_t>(step)}, kRate);
      EXPECT_NEAR(loss(), text_.losses[step], 1e-4 * text_.losses[step]) << "step " << step;
    }
  }

  static constexpr double kTolerance = 1e-5;

 protected:
  explicit TextNetwork(const TextCase& text)
      : text_(text), model_(read_language_model(text.config, "config.json")) {}

  // Appends the backward pass and AdamW; makes the executor. results: more variables to read.
  void finish(Program program, SectionId forward, VarId loss, std::vector<VarId> results) {
    loss_ = loss;
    rate_ = program.feed("learning_rate", DType::kFloat32, {1});
    make_strategy("").append_backward(program, forward, loss);
    const std::string rule = R"({"name": "adamw", "weight_decay": 0.1, "epsilon": 1e-6})";
    const ConfigTree tree = ConfigTree::from_json(rule, "test");
    append_updates(program, program.add_section("optimize", {.training = true}),
                   program.parameters(), rate_, tree.validate(optimizer_schema("adamw")));
    results.push_back(loss);
    for (const VarId id : program.parameters()) results.push_back(program.gradient(id));
    executor_ =
        std::make_unique<Executor>(plan_program(std::move(program), results), device_, nullptr);
    executor_->initialize(1);
  }

  const TextCase& text_;
  const LanguageModel model_;
  NamedVars feeds_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;

 private:
  VarId rate_ = kNoVar, loss_ = kNoVar;
};

}  // namespace fleet::golden
