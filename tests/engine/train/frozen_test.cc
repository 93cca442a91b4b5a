// Frozen layers and parameter groups in a job.
#include <gmock/gmock.h>

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using Frozen = TrainerTest;
using ::testing::HasSubstr;

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 32, "width": 32})", "data.batch_size=8",
    "data.train.samples=32", "train.epochs=1"};

// Every way to train leaves them as they began, and trains the others.
TEST_F(Frozen, Layers_StayAsTheyBegan) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {},
           {"strategy.amp=true"},
           {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"},
           {"strategy.build_strategy.reduce_strategy=Reduce"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
           {"strategy.localsgd=true", "strategy.localsgd_configs={'k_steps': 2}"}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    const auto keys =
        with(with(kColour, more), {R"(optimizer.frozen=["conv1.*", "bn1.*", "layer[123].*"])"});
    std::filesystem::remove_all(output_);
    const Outcome begun = run(job(with(keys, {"learning_rate.base=0"}), kResnet), 2);
    std::filesystem::remove_all(output_);
    const Outcome trained = run(job(keys, kResnet), 2);
    for (const auto& [name, values] : trained.weights[0]) {
      const bool frozen = name.starts_with("conv1") || name.starts_with("bn1") ||
                          name.starts_with("layer1") || name.starts_with("layer2") ||
                          name.starts_with("layer3");
      if (name.find("running") != std::string::npos || name.find("@") != std::string::npos)
        continue;
      EXPECT_FALSE(frozen && name.ends_with(".momentum")) << name;
      if (frozen) {
        EXPECT_EQ(values, begun.weights[0].at(name)) << name;
      } else if (name.ends_with("weight") && !name.starts_with("optimizer")) {
        EXPECT_NE(values, begun.weights[0].at(name)) << name;
      }
    }
  }
}

// Layers between trained ones pass the gradient on.
TEST_F(Frozen, LayersInTheMiddle_PassTheGradientOn) {
  const auto keys = with(kColour, {R"(optimizer.frozen=["layer2.*"])", "train.max_steps=1",
                                   "train.frozen_batch_norm=false"});
  const Outcome trained = run(job(keys, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome whole = run(job(with(kColour, {"train.max_steps=1"}), kResnet), 1);
  EXPECT_EQ(trained.weights[0].at("conv1.weight"), whole.weights[0].at("conv1.weight"));
  EXPECT_NE(trained.weights[0].at("layer2.0.conv1.weight"),
            whole.weights[0].at("layer2.0.conv1.weight"));
}

// The same with fixed statistics, whose batch norms are fused with what follows them.
TEST_F(Frozen, FixedNormsInTheMiddle_PassTheGradientOn) {
  const auto keys = with(kColour, {R"(optimizer.frozen=["layer*"])", "train.max_steps=2"});
  const Outcome fused = run(job(keys, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome plain = run(job(with(keys, {"strategy.build_strategy.fuse_bn_add_act_ops=false",
                                            "strategy.build_strategy.fuse_bn_act_ops=false"}),
                                kResnet),
                            1);
  EXPECT_LE(distance(fused.weights[0], plain.weights[0]), 1e-5);
}

// Running statistics of frozen layers stay, unless the key says otherwise; those of others change.
TEST_F(Frozen, BatchNorms_KeepTheirStatistics) {
  const auto keys = with(kColour, {R"(optimizer.frozen=["conv1.*", "bn1.*", "layer1.*"])"});
  for (const auto& [more, stays] : std::vector<std::pair<std::vector<std::string>, bool>>{
           {{}, true},
           {{"strategy.amp=true"}, true},
           {{"strategy.sync_batch_norm=true"}, true},
           {{"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"},
            true},
           {{"train.frozen_batch_norm=false"}, false}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    std::filesystem::remove_all(output_);
    const Outcome trained = run(job(with(keys, more), kResnet), 2);
    const auto begins_with = [&](const std::string& name, float value) {
      const auto& values = trained.weights[0].at(name);
      return std::ranges::all_of(values, [&](float one) { return one == value; });
    };
    for (const std::string layer : {"bn1", "layer1.0.bn2"}) {
      EXPECT_EQ(begins_with(layer + ".running_mean", 0), stays) << layer;
      EXPECT_EQ(begins_with(layer + ".running_var", 1), stays) << layer;
    }
    EXPECT_FALSE(begins_with("layer2.0.bn1.running_mean", 0));
  }
}

TEST_F(Frozen, InterruptedWithGroups_IsBitIdentical) {
  const auto keys =
      with(kColour, {R"(optimizer.frozen=["conv1.*"])",
                     R"(optimizer.groups=["fc.*: rate=10 weight_decay=0", "*.bias: rate=2"])"});
  const Outcome whole = run(job(with(keys, {"checkpoint.every_steps=1"}), kResnet), 1);
  std::filesystem::remove_all(output_);
  run(job(with(keys, {"train.max_steps=2"}), kResnet), 1);
  const Outcome resumed = run(job(with(keys, {"checkpoint.resume=auto"}), kResnet), 1);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
}

TEST_F(Frozen, GroupsWithStrategiesOfOneRate_AreRefused) {
  for (const char* strategy : {"strategy.lars=true", "strategy.dgc=true"}) {
    const Job wrong =
        job(with(kColour, {strategy, R"(optimizer.groups=["fc.*: rate=10"])"}), kResnet);
    for (const std::string& message : start_two(wrong, wrong)) {
      EXPECT_THAT(message, HasSubstr("optimizer.groups")) << strategy;
    }
  }
}

}  // namespace
}  // namespace fleet
