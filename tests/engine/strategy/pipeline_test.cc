#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two layers on each of two devices.
FLEET_MODEL(test_two_devices) {
  def.image = {1, 4, 4};
  def.schema = model_schema(10);
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    network.device("gpu:0");
    VarId x = network.relu(network.linear("a", network.flatten(image), {.features = 8}));
    x = network.linear("b", x, {.features = 8});
    network.device("gpu:1");
    x = network.relu(network.linear("c", x, {.features = 8}));
    return network.linear("d", x, {.features = 10});
  });
}

constexpr char kFour[] = "pipeline: true pipeline_configs { accumulate_steps: 4 ";

struct Stage {
  Stage(const std::string& configs, int rank, int ranks, const std::string& more = "",
        TrainingSetup setup = {.model = "mlp"}) {
    program =
        trained_program(kFour + configs + " } " + more, {.rank = rank, .ranks = ranks}, setup);
  }
  std::vector<Op> all(const std::string& type, const std::string& in) const {
    std::vector<Op> found;
    for (const Op& op : program.ops()) {
      if (op.type() == type && program.sections()[op.section].name == in) found.push_back(op);
    }
    return found;
  }
  // Names of the parameters whose updates this rank runs.
  std::set<std::string> updated() const {
    std::set<std::string> names;
    for (const Op& op : program.ops()) {
      if (program.sections()[op.section].name != "optimize") continue;
      for (const VarId id : op.outputs) {
        if (id != kNoVar && program.var(id).kind == VarKind::kParameter) {
          names.insert(program.var(id).name);
        }
      }
    }
    return names;
  }
  Program program;
};

TEST(Pipeline, Rank_ComputesItsStageForEachMicroBatch) {
  const Stage first("cut: 'fc1'", 0, 2), last("cut: 'fc1'", 1, 2);
  EXPECT_EQ(first.all("fc", "forward").size(), 4u);
  EXPECT_EQ(last.all("fc", "forward").size(), 8u);
  EXPECT_EQ(first.all("send", "forward").size(), 4u);
  EXPECT_EQ(last.all("recv", "forward").size(), 4u);
  EXPECT_EQ(last.all("send", "backward").size(), 4u);
  EXPECT_EQ(first.all("recv", "backward").size(), 4u);
  EXPECT_EQ(first.all("send", "evaluate").size(), 4u);
  EXPECT_THAT(first.updated(), ElementsAre("fc1.bias", "fc1.weight"));
  EXPECT_THAT(last.updated(), ElementsAre("fc2.bias", "fc2.weight", "fc3.bias", "fc3.weight"));
}

TEST(Pipeline, Directions_HaveStreamsAndGroupsOfTheirOwn) {
  const Stage middle("cut: ['fc1', 'fc2']", 1, 3);
  std::set<int> streams;
  std::set<int64_t> groups;
  for (const char* section : {"forward", "backward"}) {
    for (const char* type : {"send", "recv"}) {
      for (const Op& op : middle.all(type, section)) {
        streams.insert(op.stream);
        groups.insert(op.attributes.integer("communicator"));
      }
    }
  }
  EXPECT_EQ(streams.size(), 4u);
  EXPECT_FALSE(streams.contains(0));
  EXPECT_EQ(groups.size(), 4u);
}

TEST(Pipeline, Devices_OfTheModelAreStages) {
  const TrainingSetup model{.model = "test_two_devices"};
  const Stage first("", 0, 2, "", model);
  EXPECT_THAT(first.updated(), ElementsAre("a.bias", "a.weight", "b.bias", "b.weight"));
  EXPECT_THAT(usage_failure([&] { Stage("", 0, 3, "", model); }),
              AllOf(HasSubstr("uses 2 devices"), HasSubstr("has 3 stages"),
                    HasSubstr("pipeline_configs.cut")));
  const Stage cut("cut: ['a.out']", 0, 2, "", model);
  EXPECT_THAT(cut.updated(), ElementsAre("a.bias", "a.weight")) << "the job decides";
}

TEST(Pipeline, Pipelines_SumTheGradientsOfAStage) {
  const Stage stage("stages: 2", 3, 4);
  const auto sums = stage.all("all_reduce", "backward");
  ASSERT_FALSE(sums.empty());
  for (const Op& op : sums) {
    EXPECT_THAT(stage.program.groups()[op.attributes.integer("communicator")].ranks,
                ElementsAre(1, 3));
  }
}

TEST(Pipeline, InfiniteGradients_AreLookedForInAllStages) {
  const Program program = trained_program(
      std::string(kFour) + "} amp: true",
      {.rank = 1, .ranks = 2, .low_types = {DType::kBFloat16}, .scale_low_loss = true},
      {.model = "mlp"});
  int found = 0;
  for (const Op& op : program.ops()) {
    if (op.type() != "all_reduce" || op.attributes.text("op") != "max") continue;
    EXPECT_THAT(program.groups()[op.attributes.integer("communicator")].ranks, ElementsAre(0, 1));
    ++found;
  }
  EXPECT_EQ(found, 1);
}

// Not the sum after each micro-batch.
TEST(Pipeline, Fp16AllReduce_CastsTheSumOfAllMicroBatches) {
  const Stage stage("stages: 2", 0, 4, "fp16_allreduce: true");
  EXPECT_EQ(stage.all("cast", "backward").size(), stage.updated().size());
  size_t summed = 0;
  for (const Op& op : stage.all("all_reduce", "backward")) {
    for (const VarId id : op.inputs) {
      EXPECT_EQ(stage.program.var(id).dtype, DType::kFloat16);
      ++summed;
    }
  }
  EXPECT_EQ(summed, stage.updated().size());
}

TEST(Pipeline, OneRank_IsOneStage) {
  const Stage whole("stages: 2", 0, 1);
  EXPECT_EQ(whole.updated().size(), 6u);
  EXPECT_EQ(whole.all("fc", "forward").size(), 12u);
  EXPECT_TRUE(whole.program.groups().empty());
}

TEST(Pipeline, MicroBatches_FollowFromTheBatch) {
  const auto parts = [](const std::string& configs, int64_t batch) {
    const std::string text = "pipeline: true pipeline_configs { " + configs + " }";
    return divide(strategy_proto(text), {.ranks = 2, .batch = batch}).micro_batches;
  };
  EXPECT_EQ(parts("accumulate_steps: 4", 32), 4);
  EXPECT_EQ(parts("micro_batch_size: 4", 32), 8);
  EXPECT_EQ(parts("micro_batch_size: 8 accumulate_steps: 4", 32), 4);
  EXPECT_EQ(parts("micro_batch: 4", 32), 4);
  EXPECT_EQ(parts("", 32), 1);
  const auto refused = [&](const std::string& configs) {
    return usage_failure([&] { parts(configs, 32); });
  };
  EXPECT_THAT(refused("micro_batch_size: 4 accumulate_steps: 4"),
              AllOf(HasSubstr("4 micro-batches of 4"), HasSubstr("set data.batch_size to 16")));
  EXPECT_THAT(refused("micro_batch_size: 5"),
              AllOf(HasSubstr("micro_batch_size is 5"), HasSubstr("data.batch_size is 32")));
  EXPECT_THAT(refused("accumulate_steps: 5"),
              AllOf(HasSubstr("5 micro-batches"), HasSubstr("data.batch_size is 32")));
  EXPECT_THAT(refused("accumulate_steps: 0"), HasSubstr("pipeline_configs.accumulate_steps is 0"));
}

TEST(Pipeline, OneMicroBatchOnAGpu_IsRefused) {
  const auto refused = [](const std::string& configs, bool host_memory) {
    const std::string text = "pipeline: true pipeline_configs { " + configs + " }";
    return usage_failure([&] {
      trained_program(text, {.rank = 0, .ranks = 2, .host_memory = host_memory}, {.model = "mlp"});
    });
  };
  EXPECT_THAT(refused("accumulate_steps: 1", false), HasSubstr("one micro-batch on GPUs"));
  EXPECT_EQ(refused("accumulate_steps: 2", false), "");
  EXPECT_EQ(refused("accumulate_steps: 1", true), "");
}

TEST(Pipeline, WrongStages_AreRefused) {
  const auto refused = [](const std::string& configs, int ranks) {
    return usage_failure([&] { Stage(configs, 0, ranks); });
  };
  EXPECT_THAT(refused("stages: 2", 3), HasSubstr("2 stages, the job 3 ranks"));
  EXPECT_THAT(refused("stages: 3 cut: 'fc1'", 3),
              AllOf(HasSubstr("stages is 3"), HasSubstr("cut has 1 places")));
  EXPECT_THAT(refused("cut: 'fc7'", 2),
              AllOf(HasSubstr("no variable 'fc7'"), HasSubstr("did you mean 'fc1'?"),
                    HasSubstr("its blocks: fc1, fc2")));
  // One rank has one stage, but a wrong name is a mistake there too.
  EXPECT_THAT(refused("cut: 'fc7'", 1), HasSubstr("pipeline_configs.cut"));
  EXPECT_THAT(refused("cut: ['fc2', 'fc1']", 1), HasSubstr("pipeline_configs.cut"));
  EXPECT_EQ(refused("cut: 'fc1'", 1), "");
  EXPECT_THAT(refused("cut: ['fc2', 'fc1']", 3),
              AllOf(HasSubstr("pipeline_configs.cut"), HasSubstr("not in the order")));
  EXPECT_THAT(refused("", 40),
              AllOf(HasSubstr("pipeline_configs.cut"), HasSubstr("for 40 stages")));
  EXPECT_EQ(
      refused("schedule_mode: '1B1F'", 2),
      "strategy: pipeline_configs.schedule_mode is '1B1F'; set it to 1F1B, Eager1F1B or F-then-B");
}

TEST(Pipeline, WhatItCannotBeCombinedWith_IsNamed) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"gradient_merge: true gradient_merge_configs { k_steps: 2 }", "gradient_merge"},
      {"localsgd: true", "localsgd"},
      {"adaptive_localsgd: true", "adaptive_localsgd"},
      {"dgc: true", "dgc"},
      {"sharding: true", "sharding_configs.stage to 1"},
      {"sharding: true sharding_configs { stage: 2 }", "sharding_configs.stage to 1"},
      {"build_strategy { enable_auto_fusion: true }", "enable_auto_fusion"},
      {"build_strategy { reduce_strategy: 1 }", "reduce_strategy"},
      {"sync_batch_norm: true", "sync_batch_norm"}};
  for (const auto& [with, named] : all) {
    EXPECT_THAT(usage_failure([&] { Stage("stages: 2", 0, 4, with); }),
                AllOf(HasSubstr("pipeline cannot be combined with"), HasSubstr(named)));
  }
}

TEST(Pipeline, FewMicroBatches_AreReported) {
  EXPECT_THAT(
      captured_log([] { Stage("", 0, 5, "", {.model = "lenet"}); }),
      AllOf(HasSubstr("pipeline: 5 stages, cut after"), HasSubstr("some stage always waits")));
}

}  // namespace
}  // namespace fleet
