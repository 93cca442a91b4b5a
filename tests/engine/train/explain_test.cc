#include "train/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cost/rates.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ConfigTree tree(const std::vector<std::string>& overrides = {},
                const std::string& model = R"({"name": "resnet20", "num_classes": 10})") {
  ConfigTree tree = ConfigTree::from_json(R"({
      "model": )" + model + R"(,
      "data": {"source": "synthetic", "batch_size": 16,
               "image": {"channels": 3, "height": 32, "width": 32}, "train": {"samples": 64}},
      "optimizer": {"name": "momentum", "momentum": 0.9}})",
                                          "job.json");
  apply_overrides(tree, overrides);
  return tree;
}

// A machine on which bytes and operations cost the same everywhere.
MachineRates even_rates() {
  MachineRates rates{.device = "a test's machine", .origin = "made up"};
  rates.peak = {{"float32", 1e11}, {"bfloat16", 2e11}};
  rates.bytes_per_second = 2e10;
  rates.op_seconds = 1e-6;
  return rates;
}

ExplainOptions options(int ranks = 1, int nodes = 1) {
  ExplainOptions options{.ranks = ranks, .nodes = nodes};
  options.rates = even_rates();
  return options;
}

TEST(Explain, Parameters_AreTheModels) {
  // 32 x 32 inputs of one value are flattened: 3072 x 5 + 5 + 5 x 10 + 10.
  const Explanation job =
      explain(tree({}, R"({"name": "mlp", "num_classes": 10, "hidden": [5]})"), options());
  EXPECT_EQ(job.parameters, 3072 * 5 + 5 + 5 * 10 + 10);
  EXPECT_EQ(job.trainable, job.parameters);
  EXPECT_GE(static_cast<int64_t>(job.cost.memory.planned.parameters), 4 * job.parameters);
}

TEST(Explain, Passes_HaveTheirOperations) {
  const Explanation job = explain(tree(), options());
  std::map<std::string, PassStep> steps;
  for (const PassStep& step : job.steps) steps[step.name] = step;
  ASSERT_TRUE(steps.contains("fuse_bn_act"));
  ASSERT_TRUE(steps.contains("backward"));
  EXPECT_LT(steps["fuse_bn_act"].after, steps["fuse_bn_act"].before);
  EXPECT_GT(steps["backward"].after, steps["backward"].before);
  // Each step begins where the one before ended.
  for (size_t i = 1; i < job.steps.size(); ++i) {
    EXPECT_EQ(job.steps[i].before, job.steps[i - 1].after) << job.steps[i].name;
  }
  EXPECT_GE(job.operations, job.steps.back().after);
}

TEST(Explain, Groups_HaveTheGradientsBytes) {
  const Explanation job = explain(tree(), options(2));
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].transport, "shm");
  EXPECT_THAT(job.groups[0].name, HasSubstr("ranks 0 1"));
  double bytes = 0;
  for (const double one : job.groups[0].bytes) bytes += one;
  EXPECT_NEAR(bytes, 4.0 * static_cast<double>(job.parameters), 0.02 * bytes + 4096);
  EXPECT_NEAR(job.cost.time->within, bytes, 1);  // 2 (n - 1) / n of it
  EXPECT_EQ(job.cost.time->between, 0);
}

TEST(Explain, TwoNodes_SendBetweenThem) {
  const Explanation job = explain(tree(), options(4, 2));
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].transport, "hierarchical(shm, gloo)");
  EXPECT_NEAR(job.cost.time->between, 4.0 * static_cast<double>(job.parameters) / 2,
              0.03 * job.cost.time->between);
}

ConfigTree pipeline(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"strategy.pipeline=true", "data.batch_size=256",
                                  "strategy.pipeline_configs.accumulate_steps=16",
                                  "strategy.pipeline_configs.cut=[\"fc4\"]"};
  all.insert(all.end(), more.begin(), more.end());
  return tree(all, R"({"name": "mlp", "num_classes": 3072,
                       "hidden": [3072, 3072, 3072, 3072, 3072, 3072, 3072]})");
}

// Operations whose bytes cost nothing, and messages that take next to no time.
ExplainOptions arithmetic(int ranks) {
  ExplainOptions how = options(ranks);
  how.rates->bytes_per_second = 1e15;
  how.rates->op_seconds = 1e-9;
  how.topology.local_bytes = 1e13;
  how.topology.local_seconds = 1e-9;
  return how;
}

TEST(Explain, PipelineOfEvenStages_WaitsAsItsFormulaSays) {
  // The first layer has no gradient of its input, so that stage 0 computes 11 twelfths of stage 1.
  const Explanation job = explain(pipeline(), arithmetic(2));
  ASSERT_TRUE(job.cost.time);
  const StepTime& time = *job.cost.time;
  ASSERT_EQ(time.stages.size(), 2U);
  EXPECT_NEAR(time.stages[0] / time.stages[1], 11.0 / 12, 0.01);
  // 16 micro-batches and one more turn of stage 0, at the pace of stage 1.
  EXPECT_NEAR(time.total / time.stages[1], 1 + (1.0 / 16) * 11 / 12, 0.02);
  EXPECT_NEAR(time.waiting, time.total - time.host - time.stages[0], 0.02 * time.total);
  const std::string text = explanation_text(job);
  EXPECT_THAT(text, AllOf(HasSubstr("waiting for stages"), HasSubstr("stages compute")));
}

TEST(Explain, PipelineWithFewerMicroBatches_WaitsLonger) {
  const auto part = [](const char* steps) {
    const StepTime time =
        *explain(pipeline({std::string("strategy.pipeline_configs.accumulate_steps=") + steps}),
                 arithmetic(2))
             .cost.time;
    return time.waiting / time.total;
  };
  EXPECT_GT(part("2"), 1.8 * part("8"));
}

TEST(Explain, MicroBatchesOfAPipeline_SharePreparedOperations) {
  const auto kernels = [](const char* steps) {
    ExplainOptions how = arithmetic(2);
    how.rates->kernel_bytes = 1000;
    return explain(pipeline({std::string("strategy.pipeline_configs.accumulate_steps=") + steps}),
                   how)
        .cost.memory.kernels;
  };
  EXPECT_NEAR(static_cast<double>(kernels("16")) / static_cast<double>(kernels("4")), 1, 0.2);
}

TEST(Explain, EachStageOfAPipeline_PredictsTheSameStep) {
  ExplainOptions last = arithmetic(2);
  last.rank = 1;
  const Explanation first = explain(pipeline(), arithmetic(2)), other = explain(pipeline(), last);
  EXPECT_NEAR(first.cost.time->total, other.cost.time->total, 1e-9);
  EXPECT_GT(first.cost.time->waiting, other.cost.time->waiting);
}

TEST(Explain, LargerBatch_TakesMoreActivationsAndTime) {
  const Explanation small = explain(tree(), options());
  const Explanation large = explain(tree({"data.batch_size=64"}), options());
  EXPECT_EQ(large.cost.memory.planned.parameters, small.cost.memory.planned.parameters);
  EXPECT_GT(large.cost.memory.planned.activations, 3 * small.cost.memory.planned.activations);
  EXPECT_GT(large.cost.time->total, 3 * small.cost.time->total);
}

// It reads its own state before each step: the job begins with init_k_steps.
TEST(Explain, AdaptiveLocalSgd_AveragesAsOftenAsItsFirstInterval) {
  const auto communication = [](const std::string& strategy, const std::string& steps) {
    return explain(tree({"strategy." + strategy + "=true",
                         "strategy." + strategy + "_configs." + steps}),
                   options(2))
        .cost.time->communication;
  };
  const double every_fourth = communication("localsgd", "k_steps=4");
  EXPECT_LT(communication("adaptive_localsgd", "init_k_steps=4"), 1.5 * every_fourth);
  EXPECT_GT(communication("adaptive_localsgd", "init_k_steps=1"), 2 * every_fourth);
}

TEST(Explain, WithoutRates_HasNoTimes) {
  ExplainOptions without = options();
  without.rates.reset();
  const Explanation job = explain(tree(), without);
  EXPECT_FALSE(job.cost.time);
  EXPECT_THAT(explanation_text(job), HasSubstr("time of a step: unknown"));
  EXPECT_TRUE(nlohmann::json::parse(explanation_json(job))["step"].is_null());
}

TEST(Explain, TextIsAtMost80Columns_AndJsonHasIt) {
  Explanation job = explain(tree(), options(8, 2));
  explain_what_if(tree(), options(8, 2), &job);
  const std::string text = explanation_text(job);
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(line.size(), 80U) << line;
  }
  const auto json = nlohmann::json::parse(explanation_json(job));
  EXPECT_EQ(json["text"].size(), count);
  EXPECT_EQ(json["parameters"], job.parameters);
  EXPECT_EQ(json["memory"]["total"], job.cost.memory.total());
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["step"]["seconds"], job.cost.time->total);
}

TEST(Explain, StepOfSeveralRanks_HasItsBand) {
  const auto step_of = [](const Explanation& job) {
    return nlohmann::json::parse(explanation_json(job))["step"];
  };
  const Explanation two = explain(tree(), options(2));
  const auto step = step_of(two);
  EXPECT_LT(step["band"]["low"], step["seconds"]);
  EXPECT_GT(step["band"]["high"], step["seconds"]);
  EXPECT_NE(step["band"]["source"], "");
  EXPECT_THAT(explanation_text(two), HasSubstr("predictions.md"));
  const Explanation one = explain(tree(), options(1));
  EXPECT_TRUE(step_of(one)["band"].is_null());
  EXPECT_THAT(explanation_text(one), Not(HasSubstr("predictions.md")));
}

const WhatIf* find(const Explanation& job, const std::string& option) {
  for (const WhatIf& one : job.what_if) {
    if (one.option == option) return &one;
  }
  return nullptr;
}

TEST(WhatIf, Recompute_SavesActivationsAndCostsTime) {
  Explanation job = explain(tree(), options(2));
  explain_what_if(tree(), options(2), &job);
  const WhatIf* recompute = find(job, "recompute");
  ASSERT_TRUE(recompute);
  EXPECT_EQ(recompute->obstacle, "");
  EXPECT_LT(recompute->cost.memory.planned.activations, job.cost.memory.planned.activations);
  EXPECT_GT(recompute->cost.time->total, job.cost.time->total);
}

TEST(WhatIf, ShardingAndMicroBatches_SaveWhatTheySay) {
  Explanation job = explain(tree(), options(2));
  explain_what_if(tree(), options(2), &job);
  const WhatIf* sharding = find(job, "sharding, stage 1");
  ASSERT_TRUE(sharding);
  ASSERT_EQ(sharding->obstacle, "");
  EXPECT_LT(sharding->cost.memory.planned.states, job.cost.memory.planned.states);
  const WhatIf* parts = find(job, "4 micro-batches");
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->obstacle, "");
  EXPECT_EQ(parts->cost.batch, 4);
  EXPECT_LT(parts->cost.memory.planned.activations, job.cost.memory.planned.activations);
  // Four steps of a quarter: about the same arithmetic.
  EXPECT_NEAR(parts->cost.time->compute / job.cost.time->compute, 1, 0.5);
}

// By Paddle's rules gradient_merge switches off localsgd, which switches off recompute.
TEST(WhatIf, StrategiesThatCannotBeCombined_AreNotPossible) {
  const ConfigTree local = tree({"strategy.localsgd=true"});
  Explanation job = explain(local, options(2));
  explain_what_if(local, options(2), &job);
  const WhatIf* parts = find(job, "4 micro-batches");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->obstacle, "it would switch off localsgd");
  const WhatIf* recompute = find(job, "recompute");
  ASSERT_TRUE(recompute);
  EXPECT_THAT(recompute->obstacle, HasSubstr("other strategies"));
  EXPECT_THAT(explanation_text(job), HasSubstr("recompute: not possible: the job's other"));
}

TEST(WhatIf, WhatTheJobHas_IsNotTried) {
  const ConfigTree with =
      tree({"strategy.recompute=true", "strategy.recompute_configs.checkpoints=[\"every block\"]"});
  Explanation job = explain(with, options());
  explain_what_if(with, options(), &job);
  EXPECT_EQ(find(job, "recompute"), nullptr);
  const WhatIf* sharding = find(job, "sharding");
  ASSERT_TRUE(sharding);
  EXPECT_THAT(sharding->obstacle, HasSubstr("several ranks"));
}

TEST(ExplainForACard, IsAnEstimateAndLabelled) {
  ExplainOptions how;
  how.rates = rates_of_card("h200");
  const std::string text = explanation_text(explain(tree(), how));
  EXPECT_THAT(text, AllOf(HasSubstr("ESTIMATE"), HasSubstr("H200"), HasSubstr("lower bound")));
}

}  // namespace
}  // namespace fleet
