// A network trained on made-up images on the CPU, for tests that compare strategies.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "optim/sam.h"
#include "tensor/host.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {

using Values = std::map<std::string, std::vector<float>>;

// Each step is the same for the same number.
class SmallNet {
 public:
  SmallNet(const std::string& model, const std::string& strategy_text,
           const std::string& optimizer = kMomentum, const std::string& settings = "{}",
           DType weights = DType::kFloat32, double sam_rho = 0)
      : def_(model_registry().get(model)) {
    Program program;
    training_ = build_training(program, {.model = model,
                                         .model_settings = model_settings(settings),
                                         .batch = kBatch,
                                         .columns = image_columns(def_.image)});
    ConfigTree tree = ConfigTree::from_json(optimizer, "test");
    Strategy strategy = make_strategy(strategy_text, {.low_types = {DType::kBFloat16},
                                                      .no_low_type = {},
                                                      .host_memory = !offloads(strategy_text),
                                                      .optimizer = *tree.peek("name"),
                                                      .weights = weights,
                                                      .scale_low_loss = scales(strategy_text)});
    const BackwardResult& backward = strategy.append_backward(
        program, training_.forward, training_.loss, {.blocks = training_.blocks});
    if (sam_rho > 0) {
      append_sam(program, backward.section, backward.loss_scaling, {.rho = sam_rho});
    }
    strategy.append_optimizer(training_.feed("learning_rate"),
                              tree.validate(optimizer_schema(*tree.peek("name"))));
    executor_ =
        std::make_unique<Executor>(plan_program(program, {training_.loss}), device_, nullptr);
    executor_->initialize(3);
  }

  // Returns the loss. spoil: an infinite pixel, whose weights' gradients are infinite or undefined.
  float step(int number, bool spoil = false) {
    std::vector<float> images(kBatch * def_.image.elements());
    std::vector<int64_t> labels(kBatch);
    for (size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<float>((i * 31 + number * 17) % 127) / 64 - 1;
    }
    if (spoil) images[500] = INFINITY;
    std::vector<int64_t> keys(kBatch);
    for (int64_t i = 0; i < kBatch; ++i) {
      labels[i] = (i + number) % 10;
      keys[i] = number * kBatch + i;
    }
    const std::vector<float> weights(kBatch, 1);
    const float rate = 0.05f;
    executor_->feed(training_.feed("image"), images);
    executor_->feed(training_.feed("label"), labels);
    executor_->feed(training_.feed("weight"), weights);
    executor_->feed(training_.feed("sample_key"), keys);
    executor_->feed(training_.feed("learning_rate"), std::span(&rate, 1));
    executor_->run({.step = number});
    return executor_->values<float>(training_.loss)[0];
  }

  // The content of a checkpoint.
  std::map<std::string, std::vector<float>> saved() {
    std::map<std::string, std::vector<float>> all;
    for (VarId id = 0; id < executor_->program().var_count(); ++id) {
      const Var& var = executor_->program().var(id);
      if (is_saved(var) && var.dtype == DType::kFloat32) {
        all[var.name] = executor_->values<float>(id);
      }
    }
    return all;
  }
  float scale() {
    return executor_->values<float>(executor_->program().find("optimizer.loss_scaling"))[0];
  }
  int64_t counter(const std::string& name) {
    return executor_->values<int64_t>(executor_->program().find("optimizer." + name))[0];
  }
  Executor& executor() { return *executor_; }

  static constexpr const char* kMomentum = R"({"name": "momentum", "weight_decay": 1e-4})";

 private:
  Settings model_settings(const std::string& json) const {
    ConfigTree tree = ConfigTree::from_json(json, "test");
    tree.set("num_classes", "10", "test");
    return tree.validate(def_.schema);
  }
  // Strategies leave out what CPUs have no use for; it runs there all the same.
  static bool offloads(const std::string& strategy_text) {
    return strategy_text.find("enable_offload") != std::string::npos;
  }
  static bool scales(const std::string& strategy_text) {
    return strategy_text.find("init_loss_scaling") != std::string::npos;
  }
  static constexpr int64_t kBatch = 16;
  const ModelDef& def_;
  Training training_;
  HostDevice device_;
  std::unique_ptr<Executor> executor_;
};

// Names of those that are not the same bits.
inline std::string differences(const Values& a, const Values& b) {
  std::string names;
  for (const auto& [name, values] : a) {
    if (b.at(name) != values) names += name + " ";
  }
  return names;
}

}  // namespace fleet
