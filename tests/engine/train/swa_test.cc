// Stochastic weight averaging: optim/swa.h, train.swa.
#include "optim/swa.h"

#include <gmock/gmock.h>

#include "optim/ema.h"
#include "passes/backward.h"
#include "tests/engine/train/trainer_job.h"
#include "train/averaged_statistics.h"
#include "train/job_data.h"

namespace fleet {
namespace {

using SwaJob = TrainerTest;

std::vector<float> waves(size_t count, double phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(0.7 * i + phase));
  return values;
}

// The network of scripts/make_golden_swa.py: fc, batch norm, relu, fc.
constexpr int64_t kBatch = 6, kInputs = 5, kHidden = 7, kClasses = 3;

VarId append_layers(Program& program, SectionId section, VarId x, bool trains) {
  const auto var = [&](const char* name) { return program.find(name); };
  const VarId hidden = program.emit(section, "fc", {x, var("0.weight"), var("0.bias")})[0];
  const VarId mean = var("1.running_mean"), variance = var("1.running_var");
  const VarId normed = program.temporary("normed");
  const std::vector<VarId> outputs =
      trains ? std::vector<VarId>{normed,
                                  mean,
                                  variance,
                                  program.temporary("saved_mean"),
                                  program.temporary("saved_variance"),
                                  kNoVar}
             : std::vector<VarId>{normed, kNoVar, kNoVar, kNoVar, kNoVar, kNoVar};
  program.append(section, "batch_norm", {hidden, var("1.weight"), var("1.bias"), mean, variance},
                 outputs, {{"is_test", !trains}});
  const VarId active = program.emit(section, "relu", {normed})[0];
  return program.emit(section, "fc", {active, var("3.weight"), var("3.bias")}, {}, "logits")[0];
}

TEST(Swa, AverageAndStatistics_AreThoseOfPyTorch) {
  Program program;
  const SectionId forward = program.add_section("forward", {.training = true});
  const SectionId evaluate =
      program.add_section("evaluate", {.training = false, .evaluation = true});
  const VarId x = program.feed("x", DType::kFloat32, {kBatch, kInputs});
  const VarId label = program.feed("label", DType::kInt64, {kBatch});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  const std::vector<VarId> parameters = {program.parameter("0.weight", {kHidden, kInputs}, {}),
                                         program.parameter("0.bias", {kHidden}, {}),
                                         program.parameter("1.weight", {kHidden}, {}),
                                         program.parameter("1.bias", {kHidden}, {}),
                                         program.parameter("3.weight", {kClasses, kHidden}, {}),
                                         program.parameter("3.bias", {kClasses}, {})};
  program.state("1.running_mean", {kHidden}, {});
  program.state("1.running_var", {kHidden}, {Init::kConstant, 1});
  const VarId losses = program.emit(forward, "softmax_with_cross_entropy",
                                    {append_layers(program, forward, x, true), label})[0];
  const VarId loss = program.emit(forward, "mean", {losses})[0];
  const VarId evaluated = append_layers(program, evaluate, x, false);
  append_backward(program, forward, loss, 1);
  ConfigTree tree =
      ConfigTree::from_json(R"({"name": "momentum", "momentum": 0.9, "weight_decay": 0})", "test");
  append_updates(program, program.add_section("optimize", {}), parameters, rate,
                 tree.validate(optimizer_schema("momentum")));
  append_swa(program, forward, evaluate);
  HostDevice device;
  Executor executor(plan_program(program, {loss, evaluated}), device, nullptr);
  executor.initialize(1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto count = static_cast<size_t>(executor.argument(parameters[i]).shape.elements());
    executor.write(parameters[i], waves(count, 1.0 + static_cast<double>(i)));
  }
  std::vector<int64_t> labels(kBatch);
  std::vector<float> images;
  const float own_rate = 0.1f;
  const auto run = [&](int step, const StepInfo& info) {
    for (int64_t n = 0; n < kBatch; ++n) labels[n] = (n + step) % kClasses;
    images = waves(kBatch * kInputs, 5 + step);
    executor.feed(x, images);
    executor.feed(label, labels);
    executor.feed(rate, std::span(&own_rate, 1));
    executor.run(info);
    executor.synchronize();
  };
  for (int step = 0; step < 20; ++step) {
    const bool averages = step >= 10 && (step + 1) % 5 == 0;
    run(step, {.step = step, .flags = averages ? 1u : 0u});
  }
  const int64_t none = 0;
  executor.write(executor.program().find(kStatisticsBatches), std::span(&none, 1));
  for (int n = 0; n < 4; ++n) run(100 + n, {.step = statistics_step(n)});
  run(50, {.evaluate = true});

  const auto expect_end = [&](const std::vector<float>& got, const std::vector<double>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(got[got.size() - wanted.size() + i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])));
    }
  };
  const auto average = [&](const std::string& name) {
    SCOPED_TRACE(name);
    return executor.values<float>(executor.program().find(kEmaPrefix + name));
  };
  expect_end(average("0.weight"), {-0.6110355, -0.9770067, -0.8834763, -0.3744332});
  expect_end(average("1.weight"), {-0.6926286, -0.3160312, 0.1180953, 0.5561795});
  expect_end(average("1.bias"), {-0.2110818, -0.02143, 0.5497777, 0.3941517});
  expect_end(average("1.running_mean"), {-0.629178, -1.179517, -0.5599458, -0.1825009});
  expect_end(average("1.running_var"), {4.792559, 4.355935, 3.480267, 2.91736});
  expect_end(average("3.weight"), {-0.8544544, -0.6223162, -0.1565557, 0.2441232});
  expect_end(average("3.bias"), {-0.2242535, 0.3846458, 0.86375});
  expect_end(executor.values<float>(evaluated), {0.6154908, 0.7662379, 1.157042, 1.070319});
}

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 16, "width": 16})",
    "data.batch_size=8",
    "data.train.samples=32",
    "data.test.samples=16",
    "train.epochs=3",
    "train.swa=1"};

// The mean of what the weights are at the ends of epochs 1 and 2; before, the weights themselves.
TEST_F(SwaJob, Averages_AreTheMeanOverEpochs) {
  std::vector<Weights> ends;
  for (int epochs = 1; epochs <= 3; ++epochs) {
    std::filesystem::remove_all(output_);
    const auto keys = with(kColour, {"train.epochs=" + std::to_string(epochs)});
    ends.push_back(run(job(keys, kResnet), 1).weights[0]);
  }
  int parameters = 0;
  for (const auto& [name, first] : ends[0]) {
    if (!ends[0].contains("ema." + name)) continue;
    EXPECT_EQ(first, ends[0].at("ema." + name)) << name;
    if (name.find("running") != std::string::npos) continue;
    ++parameters;
    const std::vector<float>& average = ends[2].at("ema." + name);
    for (size_t i = 0; i < average.size(); i += 7) {
      const double mean = (double(ends[1].at(name)[i]) + ends[2].at(name)[i]) / 2;
      ASSERT_NEAR(average[i], mean, 1e-6 * (1 + std::abs(mean))) << name;
    }
  }
  EXPECT_EQ(parameters, 62);
  EXPECT_NE(ends[2].at("bn1.running_mean"), ends[2].at("ema.bn1.running_mean"));
}

// The statistics are those of a pass: of another number of batches they are others, and the
// evaluation uses them.
TEST_F(SwaJob, Statistics_AreThoseOfThePass) {
  std::vector<double> losses;
  std::vector<std::vector<float>> means;
  for (const char* batches : {"0", "2", "-1"}) {
    std::filesystem::remove_all(output_);
    const auto keys = with(kColour, {std::string("train.swa.statistics_batches=") + batches});
    const Outcome trained = run(job(keys, kResnet), 1);
    losses.push_back(trained.results[0].evaluation.loss());
    means.push_back(trained.weights[0].at("ema.layer1.0.bn1.running_mean"));
    if (batches == std::string("-1")) {
      EXPECT_EQ(means.back(), trained.weights[0].at("layer1.0.bn1.running_mean"));
    }
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NE(losses[0], losses[2]);
  EXPECT_NE(means[0], means[1]);
  EXPECT_NE(means[0], means[2]);
}

// Also if a pass of a part of an epoch follows the last step of another one.
TEST_F(SwaJob, Training_DoesNotNotice) {
  const Outcome without = run(job(with(kColour, {"train.swa=0"}), kResnet), 1);
  for (const auto& more : std::vector<std::vector<std::string>>{
           {},
           {"train.swa.statistics_batches=2", "train.evaluate_every=2",
            "train.evaluate_every_steps=4"}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    std::filesystem::remove_all(output_);
    const Outcome with_average = run(job(with(kColour, more), kResnet), 1);
    for (const auto& [name, values] : without.weights[0]) {
      EXPECT_EQ(values, with_average.weights[0].at(name)) << name;
    }
  }
}

// A signal ends the pass. Training then continues where it was.
TEST_F(SwaJob, PassThatRanksEnd_LeavesTheDataWhereTheyWere) {
  const Job all = job(kColour, kResnet);
  HostDevice device;
  JobData data(all, device, {});
  StepRunner runner(all, &data, device, {});
  runner.begin();
  int batches = 0;
  AveragedStatistics statistics(all, runner, data.train(),
                                {.next_batch = [&] { return data.train().next(); },
                                 .agree_on_step = [&](bool) { return batches < 2; },
                                 .batch_done = [&] { ++batches; }});
  Executor& executor = runner.executor();
  const int64_t one = 1;
  executor.write(executor.program().find(kEmaUpdates), std::span(&one, 1));
  data.train().start_epoch(0);
  const auto next_samples = [&] {
    const data::Batch* batch = data.train().next();
    return std::vector<int64_t>(batch->samples.begin(), batch->samples.end());
  };
  const std::vector<int64_t> first = next_samples(), second = next_samples();
  runner.position().batch = runner.position().step = 1;
  statistics.update();
  EXPECT_EQ(batches, 2);
  EXPECT_NE(first, second);
  EXPECT_EQ(next_samples(), second);
}

TEST_F(SwaJob, Interrupted_EndsInTheSameBits) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {"train.swa.learning_rate=0.02", "train.swa.anneal_epochs=2"},
           {"train.swa.every_steps=2", "train.evaluate_every_steps=1"},
           {"strategy.amp=true"},
           {"strategy.sync_batch_norm=true"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.build_strategy.reduce_strategy=Reduce"},
           {"optimizer.frozen=['conv1.*', 'bn1.*']", "train.unfreeze_at=2"}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    const auto keys = with(with(kColour, more), {"checkpoint.every_steps=1"});
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(keys, kResnet), 2);
    for (const auto& [name, values] : whole.weights[0]) {
      if (!name.starts_with("ema.")) continue;
      EXPECT_EQ(values, whole.weights[1].at(name)) << name;
    }
    // Before the averages begin, and in their midst; the former needs no strategy.
    for (const int steps : more.empty() ? std::vector{1, 5} : std::vector{5}) {
      std::filesystem::remove_all(output_);
      run(job(with(keys, {"train.max_steps=" + std::to_string(steps)}), kResnet), 2);
      const Outcome resumed = run(job(with(keys, {"checkpoint.resume=auto"}), kResnet), 2);
      EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0) << steps;
      EXPECT_EQ(whole.results[0].evaluation.loss(), resumed.results[0].evaluation.loss());
    }
  }
}

// Before its epoch nothing changes; a rate that is the schedule's changes nothing at all.
TEST_F(SwaJob, LearningRate_IsOfTheAveragedEpochs) {
  const auto trained = [&](const std::vector<std::string>& more) {
    std::filesystem::remove_all(output_);
    const auto keys = with(kColour, {"train.swa.statistics_batches=-1", "learning_rate.base=0.05"});
    return run(job(with(keys, more), kResnet), 1).weights[0];
  };
  const std::string own = "train.swa.learning_rate=0.01", at_once = "train.swa.anneal_epochs=0";
  const Weights plain = trained({});
  EXPECT_EQ(distance(plain, trained({"train.swa.learning_rate=0.05", at_once})), 0);
  const Weights annealed = trained({own, "train.swa.anneal_epochs=2"}),
                low = trained({own, at_once});
  EXPECT_NE(distance(plain, annealed), 0);
  EXPECT_NE(distance(low, annealed), 0);
  EXPECT_EQ(distance(trained({"train.epochs=1"}), trained({"train.epochs=1", own, at_once})), 0);
}

// What the last evaluation saw is what the checkpoint holds.
TEST_F(SwaJob, Checkpoint_HasTheEvaluatedWeights) {
  const Outcome trained = run(job(kColour, kResnet), 1);
  const std::string saved = output_ + "/checkpoints/step_00000012/ema.safetensors";
  const auto keys =
      with(kColour, {"train.swa=0", "train.evaluate_only=true", "checkpoint.weights=" + saved});
  EXPECT_NEAR(run(job(keys, kResnet), 1).results[0].evaluation.loss(),
              trained.results[0].evaluation.loss(), 1e-5);
}

TEST_F(SwaJob, OtherAverages_AreRefused) {
  EXPECT_EQ(refusal(job(with(kColour, {"train.ema=0.9"}), kResnet)).where(),
            "train.swa.from_epoch");
  for (const char* strategy : {"strategy.localsgd=true", "strategy.pipeline=true"}) {
    const Job wrong = job(with(kColour, {strategy}), kResnet);
    for (const std::string& message : start_two(wrong, wrong)) {
      EXPECT_THAT(message, ::testing::HasSubstr("train.swa.from_epoch")) << strategy;
    }
  }
}

}  // namespace
}  // namespace fleet
