// train.unfreeze_at: frozen parameters that are trained from an epoch or a step on.
#include <gmock/gmock.h>

#include "models/model.h"
#include "tests/captured_log.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using Freezing = TrainerTest;

const std::string kResnet = R"({"name": "resnet18", "num_classes": 4, "width": 8})";
const std::string kMomentum = R"({"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4})";
// Four steps an epoch, the first two epochs with a part of the network.
const std::vector<std::string> kColour = {
    R"(data.image={"channels": 3, "height": 16, "width": 16})",
    "data.batch_size=8",
    "data.train.samples=32",
    "data.test.samples=16",
    "train.epochs=2",
    R"(optimizer.frozen=["conv1.*", "bn1.*", "layer[12].*"])"};
const std::vector<std::string> kFromOne = {"train.unfreeze_at=1"};

// `first` and `second` are added to each other, so their gradients are equal. The layers that
// follow are so small that it matters for the owners whether both count.
FLEET_MODEL(test_equal_gradients) {
  def.help = "a test";
  def.image = {1, 8, 8};
  def.schema = model_schema(4);
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    const auto bias = [&](const std::string& name) {
      return network.parameter(name, {64}, init::uniform(1));
    };
    const auto plus = [&](VarId x, VarId y) {
      return network.relu(network.apply("elementwise_add", {x, y}));
    };
    const VarId first = bias("first"), second = bias("second");
    VarId x = plus(network.flatten(image), network.add(first, second));
    for (const char* name : {"a", "b", "c", "d"}) x = plus(x, bias(name));
    return network.linear("fc", x, {.features = 4});
  });
}

bool is_frozen_first(const std::string& name) {
  return name.starts_with("conv1") || name.starts_with("bn1") || name.starts_with("layer1") ||
         name.starts_with("layer2");
}

// The values that training has besides states of what was frozen.
template <typename Weights>
Weights without_frozen_states(Weights weights) {
  std::erase_if(weights, [](const auto& entry) {
    return is_frozen_first(entry.first) && entry.first.ends_with(".momentum");
  });
  return weights;
}

// Up to the boundary as a job that never trains them; then they move, and their batch norms.
TEST_F(Freezing, UnfreezeAt_FreezesUntilThenAndTrainsAfterwards) {
  const auto first = with(kColour, {"train.epochs=1"});
  const Outcome frozen = run(job(first, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome before = run(job(with(first, kFromOne), kResnet), 1);
  EXPECT_EQ(distance(frozen.weights[0], without_frozen_states(before.weights[0])), 0);
  EXPECT_EQ(frozen.results[0].evaluation.loss(), before.results[0].evaluation.loss());
  for (const auto& [name, values] : before.weights[0]) {
    if (!is_frozen_first(name) || !name.ends_with(".momentum")) continue;
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 0; })) << name;
  }
  std::filesystem::remove_all(output_);
  const Outcome whole = run(job(with(kColour, kFromOne), kResnet), 1);
  for (const std::string name : {"conv1.weight", "bn1.running_mean", "layer2.1.bn2.running_var",
                                 "layer1.0.conv1.weight.momentum", "layer2.0.bn1.bias"}) {
    EXPECT_NE(whole.weights[0].at(name), before.weights[0].at(name)) << name;
  }
}

TEST_F(Freezing, FrozenSteps_LeaveOutTheirBackwardPass) {
  HostDevice device;
  Trainer trainer(job(with(kColour, kFromOne), kResnet), device, {});
  const Executor& executor = trainer.session().executor();
  EXPECT_LT(executor.plan(1).ops.size(), executor.plan(0).ops.size());
  const auto trained = [&](int plan) {
    const Program& program = executor.plan(plan).program;
    return std::ranges::count_if(program.parameters(),
                                 [&](VarId id) { return program.gradient(id) != kNoVar; });
  };
  EXPECT_EQ(trained(0), 62);
  EXPECT_EQ(trained(1), 62 - 3 - 12 - 15);
}

// Interrupted before, at and after the boundary, in every way to train.
TEST_F(Freezing, InterruptedAroundTheBoundary_EndsInTheSameBits) {
  const std::string adam = R"({"name": "adam"})";
  for (const auto& [optimizer, more] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {adam, {}},
           {adam, {"strategy.sharding=true", "strategy.sharding_configs={'stage': 2}"}},
           {adam, {"train.unfreeze_at=['1: layer2.*', '2: *']", "train.epochs=3"}},
           {kMomentum, {"strategy.amp=true"}},
           {kMomentum, {"train.ema.decay=0.8"}},
           {kMomentum,
            {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=3"}},
           {kMomentum,
            {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"}},
           {kMomentum, {"strategy.localsgd=true", "strategy.localsgd_configs={'k_steps': 2}"}}}) {
    SCOPED_TRACE(optimizer + (more.empty() ? "" : more[0]));
    const auto keys = with(with(kColour, kFromOne), with(more, {"checkpoint.every_steps=1"}));
    std::filesystem::remove_all(output_);
    const Outcome whole = run(job(keys, kResnet, optimizer), 2);
    for (const int steps : {1, 2, 3}) {
      SCOPED_TRACE(steps);
      std::filesystem::remove_all(output_);
      run(job(with(keys, {"train.max_steps=" + std::to_string(steps)}), kResnet, optimizer), 2);
      const Outcome resumed =
          run(job(with(keys, {"checkpoint.resume=auto"}), kResnet, optimizer), 2);
      for (const int rank : {0, 1}) {
        EXPECT_EQ(distance(whole.weights[rank], resumed.weights[rank]), 0) << rank;
      }
      EXPECT_EQ(whole.results[0].evaluation.loss(), resumed.results[0].evaluation.loss());
    }
  }
}

// Of Adam's bias correction: the first update of each value is one learning rate.
TEST_F(Freezing, UpdatesOfUnfrozenParameters_CountFromThere) {
  const auto keys = with(kColour, {"train.unfreeze_at=7 steps", "learning_rate.base=0.001",
                                   "checkpoint.at_end=false"});
  const std::string adam = R"({"name": "adam"})";
  const Outcome before = run(job(with(keys, {"train.max_steps=7"}), kResnet, adam), 1);
  const Outcome after = run(job(with(keys, {"train.max_steps=8"}), kResnet, adam), 1);
  const std::vector<float>& begun = before.weights[0].at("conv1.weight");
  const std::vector<float>& moved = after.weights[0].at("conv1.weight");
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_NEAR(std::abs(moved[i] - begun[i]), 0.001, 2e-5) << i;
  }
}

// Two ranks with half the batch train as one, through the boundary.
TEST_F(Freezing, TwoRanks_TrainAsOne) {
  const std::vector<std::string> keys = {"train.unfreeze_at=1", "optimizer.frozen=['fc1.*']",
                                         "model.dropout=0"};
  const Outcome one = run(job(keys), 1);
  std::filesystem::remove_all(output_);
  const Outcome two = run(job(with(keys, {"data.batch_size=8"})), 2);
  EXPECT_LE(distance(parameters(one.weights[0]), parameters(two.weights[0])), 1e-5);
}

// The ranks divide the states of all parameters that are trained at some time. Stage 1 sends sums
// to owners, stage 2 also frees their memory, and neither changes what is computed.
TEST_F(Freezing, Sharding_TrainsAsWithoutIt) {
  const std::string adam = R"({"name": "adam"})";
  const auto keys = with(kColour, {"train.unfreeze_at=['1: layer2.*', '2: *']", "train.epochs=3",
                                   "strategy.sync_batch_norm=true", "learning_rate.base=0.001"});
  const Outcome plain = run(job(keys, kResnet, adam), 2);
  for (const std::string stage : {"1", "2"}) {
    std::filesystem::remove_all(output_);
    const std::string configs = "strategy.sharding_configs={'stage': " + stage + "}";
    const Outcome sharded =
        run(job(with(keys, {"strategy.sharding=true", configs}), kResnet, adam), 2);
    EXPECT_LE(distance(plain.weights[0], together(sharded)), 1e-5) << stage;
  }
}

// What is frozen lies between what is trained, so an owner's message has a gap at first.
TEST_F(Freezing, ShardingWithAFrozenMiddle_TrainsAsWithoutIt) {
  const std::string adam = R"({"name": "adam"})";
  for (const std::string frozen : {R"(["layer2.*"])", R"(["layer1.*.bn*", "layer3.*"])"}) {
    const auto keys = with(kColour, {"optimizer.frozen=" + frozen, "train.unfreeze_at=1",
                                     "strategy.sync_batch_norm=true", "learning_rate.base=0.001"});
    std::filesystem::remove_all(output_);
    const Outcome plain = run(job(keys, kResnet, adam), 2);
    std::filesystem::remove_all(output_);
    const Outcome sharded =
        run(job(with(keys, {"strategy.sharding=true", "strategy.sharding_configs={'stage': 2}"}),
                kResnet, adam),
            2);
    EXPECT_LE(distance(plain.weights[0], together(sharded)), 1e-5) << frozen;
  }
}

// Each parameter keeps the owner, and so the states, that it has from its first update on.
TEST_F(Freezing, ShardingOfEqualGradients_TrainsAsWithoutIt) {
  const std::string model = R"({"name": "test_equal_gradients", "num_classes": 4})",
                    adam = R"({"name": "adam"})";
  for (const std::string frozen : {"['first']", "['second']", "['first', 'b', 'fc.*']"}) {
    for (const std::string amp : {"false", "true"}) {
      SCOPED_TRACE(frozen + amp);
      const int ranks = amp == "true" ? 3 : 2;
      const std::vector<std::string> keys = {"optimizer.frozen=" + frozen, "train.unfreeze_at=1",
                                             "learning_rate.base=0.01", "strategy.amp=" + amp};
      std::filesystem::remove_all(output_);
      const Outcome plain = run(job(keys, model, adam), ranks);
      std::filesystem::remove_all(output_);
      const Outcome sharded =
          run(job(with(keys, {"strategy.sharding=true", "strategy.sharding_configs={'stage': 2}"}),
                  model, adam),
              ranks);
      EXPECT_LE(distance(plain.weights[0], together(sharded)), 1e-5);
    }
  }
}

// Between two updates nothing changes: the new phase begins with the next whole update.
TEST_F(Freezing, BoundaryWithinAnUpdate_WaitsForTheNextOne) {
  const auto keys =
      with(kColour, {"train.unfreeze_at=4 steps", "train.epochs=3", "strategy.gradient_merge=true",
                     "strategy.gradient_merge_configs.k_steps=3"});
  const auto moved = [&](int steps) {
    std::filesystem::remove_all(output_);
    const Outcome outcome =
        run(job(with(keys, {"train.max_steps=" + std::to_string(steps)}), kResnet), 1);
    const std::vector<float>& velocity = outcome.weights[0].at("conv1.weight.momentum");
    return std::ranges::any_of(velocity, [](float value) { return value != 0; });
  };
  EXPECT_FALSE(moved(6));
  EXPECT_FALSE(moved(8));
  EXPECT_TRUE(moved(9));
}

// The checkpoint of a run that never trained them has no states of theirs.
TEST_F(Freezing, RunWithFrozenLayers_GoesOnWithThem) {
  run(job(with(kColour, {"train.epochs=1"}), kResnet), 1);
  const auto keys = with(with(kColour, kFromOne), {"checkpoint.resume=auto"});
  const Outcome resumed = run(job(keys, kResnet), 1);
  std::filesystem::remove_all(output_);
  const Outcome whole = run(job(with(kColour, kFromOne), kResnet), 1);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
}

TEST_F(Freezing, Log_SaysWhatIsFrozenUntilWhen) {
  const LogCapture log;
  run(job(with(kColour, {"train.unfreeze_at=['1: layer2.*', '2: layer1.*']", "train.epochs=3"}),
          kResnet),
      1);
  for (const char* part : {"15 until epoch 1", "12 until epoch 2", "3 to the end",
                           "from epoch 1 on", "from epoch 2 on", "59 in all"}) {
    EXPECT_THAT(log.captured_log(), ::testing::HasSubstr(part));
  }
}

TEST_F(Freezing, NumberOfAJobFile_IsAnEpoch) {
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": "mlp"}, "data": {"source": "synthetic"},
          "optimizer": {"name": "sgd", "frozen": ["fc1.*"]}, "train": {"unfreeze_at": 2}})",
      "test");
  const FreezingPhases phases(make_job(tree));
  EXPECT_EQ(phases.count(), 2);
  EXPECT_EQ(phases.phase_at({.step = 19, .epoch = 1, .batch = 9, .batches = 10}), 0);
  EXPECT_EQ(phases.phase_at({.step = 20, .epoch = 2, .batch = 0, .batches = 10}), 1);
}

TEST_F(Freezing, WrongKeys_AreRefused) {
  for (const char* text :
       {"train.unfreeze_at=0", "train.unfreeze_at=soon", "train.unfreeze_at=2 weeks",
        "train.unfreeze_at=['2', '1']", "train.unfreeze_at=['2', '300 steps']",
        "train.unfreeze_at=1: fc.*", "train.unfreeze_at=1: layer9.*"}) {
    const Error error = refusal(job(with(kColour, {text}), kResnet));
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << text;
    EXPECT_EQ(error.where(), "train.unfreeze_at") << text;
  }
  const Error nothing = refusal(job({"train.unfreeze_at=1"}));
  EXPECT_EQ(nothing.where(), "train.unfreeze_at");
  for (const char* strategy :
       {"strategy.pipeline=true", "strategy.sharding=true", "strategy.dgc=true",
        "strategy.build_strategy.reduce_strategy=Reduce"}) {
    const Job wrong = job(with(with(kColour, kFromOne), {strategy}), kResnet);
    for (const std::string& message : start_two(wrong, wrong)) {
      EXPECT_THAT(message, ::testing::HasSubstr("train.unfreeze_at")) << strategy;
    }
  }
}

}  // namespace
}  // namespace fleet
