// A small model whose gradients the test feeds: as a trainer's Program, and as the one that a rank
// of a collective job runs.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "exec/backend.h"
#include "exec/executor.h"
#include "optim/check_finite.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "tensor/float16.h"

namespace fleet::ps {

struct UpdateJob {
  std::string optimizer = R"({"name": "sgd"})";
  bool checks = false;  // train.on_nan=skip
  bool averages = false;
  bool keeps = false;  // a frozen parameter and a statistic
  DType gradients = DType::kFloat32;
};

// By step, rank and parameter.
using Gradients = std::vector<std::vector<std::vector<std::vector<float>>>>;

inline const std::vector<std::pair<std::string, Shape>>& parameters_of_mlp() {
  static const std::vector<std::pair<std::string, Shape>> kParameters = {
      {"fc1.weight", {37, 19}}, {"fc1.bias", {37}},   {"fc2.weight", {23, 37}},
      {"fc2.bias", {23}},       {"fc3.weight", {23}}, {"fc3.bias", {1}}};
  return kParameters;
}

// Values of very different sizes, so that another order of a sum has other bits.
inline Gradients random_gradients(int steps, int ranks) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Gradients all(steps);
  for (auto& step : all) {
    step.resize(ranks);
    for (auto& rank : step) {
      for (const auto& [name, shape] : parameters_of_mlp()) {
        std::vector<float>& one = rank.emplace_back(shape.elements());
        for (float& value : one) value = normal(random) * std::exp(3 * normal(random));
      }
    }
  }
  return all;
}

// The Program. served: its updates run on servers.
inline Program program_of(const UpdateJob& job, bool served) {
  ConfigTree tree = ConfigTree::from_json(job.optimizer, "test");
  const Settings settings = tree.validate(optimizer_schema(*tree.peek("name")));
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const SectionId evaluate =
      program.add_section("evaluate", {.training = false, .evaluation = true});
  Predicate when;
  if (served) when.flag = program.add_flag("local_update");
  const SectionId optimize = program.add_section("optimize", when);
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  const VarId loss = program.feed("loss", DType::kFloat32, {1});
  std::vector<VarId> parameters, gradients;
  for (const auto& [name, shape] : parameters_of_mlp()) {
    parameters.push_back(program.parameter(name, shape, {Init::kNormal, 0, 1}));
    gradients.push_back(program.feed(name + "@GRAD", job.gradients, shape));
    program.set_gradient(parameters.back(), gradients.back());
    if (job.averages) program.emit(evaluate, "relu", {parameters.back()});
  }
  if (job.keeps) {
    const VarId frozen = program.parameter("frozen", {5}, {Init::kNormal, 0, 1});
    program.var(frozen).trainable = false;
    const VarId mean = program.state("running_mean", {3}, {Init::kNormal, 0, 1});
    program.emit(forward, "relu", {frozen});
    program.emit(forward, "relu", {mean});
  }
  GradientScaling scaling;
  if (job.checks) {
    scaling.found_inf = append_check_finite(program, optimize, loss, gradients);
    const VarId skipped = program.state(kSkippedUpdatesName, {1}, Init(), DType::kInt64);
    program.append(optimize, "count_skipped_updates", {skipped, scaling.found_inf, loss, kNoVar},
                   {skipped});
  }
  append_updates(program, optimize, parameters, rate, settings, scaling);
  if (job.averages) {
    append_ema(program, forward, evaluate, optimize, scaling.found_inf,
               {.decay = 0.9, .warmup = true});
  }
  return program;
}

// An executor of such a Program.
class UpdateExecutor {
 public:
  UpdateExecutor(const Program& program, uint64_t seed,
                 std::unique_ptr<Device> device = choose_device("cpu", 0).device)
      : device_(std::move(device)) {
    executor_ = std::make_unique<Executor>(plan_program(program, {}, {.device = device_.get()}),
                                           *device_, nullptr);
    executor_->initialize(seed);
  }

  Executor& executor() { return *executor_; }
  void feed(const std::vector<std::vector<float>>& gradients, float rate, float loss = 1) {
    feed_one("learning_rate", {rate});
    feed_one("loss", {loss});
    for (size_t p = 0; p < gradients.size(); ++p) {
      feed_one(parameters_of_mlp()[p].first + "@GRAD", gradients[p]);
    }
  }
  void run(int64_t step) { executor_->run({.step = step}); }

  // All states, also those of this process, as bytes by name.
  std::map<std::string, std::vector<std::byte>> saved() {
    std::map<std::string, std::vector<std::byte>> all;
    const Program& program = executor_->program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (var.kind != VarKind::kParameter && var.kind != VarKind::kState) continue;
      std::vector<std::byte>& bytes = all[var.name];
      bytes.resize(static_cast<size_t>(var.shape.elements()) * size_of(var.dtype));
      executor_->read(id, bytes);
    }
    return all;
  }
  void load(const std::map<std::string, std::vector<std::byte>>& values) {
    for (const auto& [name, bytes] : values) {
      executor_->write(executor_->program().find(name), bytes);
    }
  }

 private:
  void feed_one(const std::string& name, const std::vector<float>& values) {
    const VarId id = executor_->program().find(name);
    if (executor_->program().var(id).dtype == DType::kBFloat16) {
      const std::vector<BFloat16> narrow(values.begin(), values.end());
      executor_->feed(id, narrow);
    } else {
      executor_->feed(id, values);
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace fleet::ps
