// Runs an optimizer on one or more parameters with gradients that the test feeds, on the device of
// the executable (tests/engine/ops/op_device.h).
#pragma once

#include <gtest/gtest.h>

#include "exec/executor.h"
#include "optim/optimizer.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {

// One parameter: where it begins and its gradient at each step.
struct Trained {
  std::string name;
  std::vector<float> start;
  std::vector<std::vector<float>> gradients;
  bool trainable = true;
};

inline Settings optimizer_settings(const std::string& json) {
  ConfigTree tree = ConfigTree::from_json(json, "test");
  return tree.validate(optimizer_schema(*tree.peek("name")));
}

// The "optimizer" section of each registered rule with its defaults.
inline std::vector<std::string> sections_of_all_rules() {
  std::vector<std::string> sections;
  for (const std::string& name : optimizer_registry().names()) {
    sections.push_back(R"({"name": ")" + name + "\"}");
  }
  return sections;
}

class Rules {
 public:
  // json: an "optimizer" section. shape, layout: of the parameters, where they are no vectors.
  Rules(const std::string& json, std::vector<Trained> trained, const Shape& shape = {},
        const std::optional<Layout>& layout = {})
      : trained_(std::move(trained)) {
    PlanOptions options = op_plan_options();
    Program program;
    const SectionId section = program.add_section("optimize", {});
    rate_ = program.feed("learning_rate", DType::kFloat32, {1});
    for (const Trained& one : trained_) {
      const Shape own = shape.rank() ? shape : Shape{static_cast<int64_t>(one.start.size())};
      parameters_.push_back(program.parameter(one.name, own, {}));
      program.var(parameters_.back()).trainable = one.trainable;
      gradients_.push_back(program.feed(one.name + "@GRAD", DType::kFloat32, own));
      program.set_gradient(parameters_.back(), gradients_.back());
      if (layout) options.initial_layouts[parameters_.back()] = *layout;
    }
    append_updates(program, section, parameters_, rate_, optimizer_settings(json));
    executor_ =
        std::make_unique<Executor>(plan_program(program, {}, options), op_device(), nullptr);
    executor_->initialize(1);
    for (size_t i = 0; i < trained_.size(); ++i) {
      executor_->write(parameters_[i], trained_[i].start);
    }
  }

  void step(float rate) {
    executor_->feed(rate_, std::span(&rate, 1));
    for (size_t i = 0; i < trained_.size(); ++i) {
      executor_->feed(gradients_[i], trained_[i].gradients[steps_]);
    }
    executor_->run({.step = steps_++});
  }

  // After as many steps as there are gradients.
  std::vector<float> run(float rate = 0.1f) {
    for (size_t i = 0; i < trained_[0].gradients.size(); ++i) step(rate);
    return values(trained_[0].name);
  }

  std::vector<float> values(const std::string& name) {
    return executor_->values<float>(executor_->program().find(name));
  }
  Executor& executor() { return *executor_; }

 private:
  std::vector<Trained> trained_;
  VarId rate_ = kNoVar;
  std::vector<VarId> parameters_, gradients_;
  std::unique_ptr<Executor> executor_;
  int64_t steps_ = 0;
};

inline void expect_all_near(const std::vector<float>& got, const std::vector<double>& want,
                            double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// The parameter and gradients of the PyTorch recipe that the tests of the rules name:
//   p = torch.tensor([1., -2., .5], requires_grad=True); o = OPTIMIZER([p], lr=.1, ...)
//   for g in GRADIENTS: p.grad = torch.tensor(g); o.step()
inline Trained torch_recipe(const std::string& name = "w") {
  return {.name = name,
          .start = {1, -2, 0.5},
          .gradients = {{0.1f, -0.2f, 0.3f}, {0.5f, 0.4f, -0.3f}, {-0.25f, 0.125f, 1}}};
}

// ((7 i + offset) % 13 - 6) / divisor, as in scripts/make_golden_optimizers.py.
inline std::vector<float> wave(int64_t count, int64_t offset, double divisor) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(static_cast<double>((7 * i + offset) % 13 - 6) / divisor));
  }
  return values;
}

// The parameter and the 20 gradients of that script's recipe.
inline Trained twenty_steps(int64_t count) {
  Trained trained{.name = "w", .start = wave(count, 1, 4), .gradients = {}};
  for (int64_t step = 0; step < 20; ++step) trained.gradients.push_back(wave(count, step, 5));
  return trained;
}

}  // namespace fleet
