// Results of a job with a strategy, compared with the same job without it.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "exec/backend.h"
#include "tests/engine/train/trainer_job.h"
#include "train/trainer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

class TrainerStrategies : public TrainerTest {};

const std::vector<std::string> kMergeTwo = {
    "strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2", "model.dropout=0"};

// Two batches of 8 make one update, as one of 16 does; on two ranks two of 4 each.
TEST_F(TrainerStrategies, GradientMerge_TrainsAsOneLargerBatch) {
  const Outcome plain = run(job({"data.batch_size=16", "model.dropout=0"}), 1);
  const Outcome merged = run(job(with(kMergeTwo, {"data.batch_size=8"})), 1);
  const Outcome two = run(job(with(kMergeTwo, {"data.batch_size=4"})), 2);
  EXPECT_EQ(plain.results[0].steps, 8);
  EXPECT_EQ(merged.results[0].steps, 16);
  for (const Outcome* outcome : {&merged, &two}) {
    Weights weights = outcome->weights[0];
    for (const auto& [name, values] : plain.weights[0]) weights.try_emplace(name, values);
    EXPECT_LE(distance(plain.weights[0], weights), 1e-5);
  }
}

TEST_F(TrainerStrategies, TrafficOfGradientMerge_IsOfEveryKthStep) {
  const auto merged = with(kMergeTwo, {"data.batch_size=4", "train.fetch_every=1"});
  run(job(merged), 2);
  const auto lines = events("train");
  for (size_t i = 0; i < lines.size(); i += 2) {
    const int64_t first = lines[i]["sent_bytes"], second = lines[i + 1]["sent_bytes"];
    EXPECT_LT(first, 512);
    EXPECT_GE(second - first, 2212 * 4);
  }
}

// Ranks that stop within a round continue with their own accumulated gradients.
TEST_F(TrainerStrategies, GradientMergeInterrupted_GoesOnBitIdentically) {
  const auto merge = with(kMergeTwo, {"data.batch_size=4", "train.evaluate_every=0"});
  const Outcome whole = run(job(with(merge, {"checkpoint.every_steps=1"})), 2);
  for (const char* cut : {"3", "4"}) {
    fs::remove_all(output_);
    run(job(with(merge, {std::string("train.max_steps=") + cut})), 2);
    const Outcome resumed = run(job(with(merge, {"checkpoint.resume=auto"})), 2);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(distance(whole.weights[rank], resumed.weights[rank]), 0) << "cut after " << cut;
    }
  }
}

const std::vector<std::string> kLocal = {"strategy.localsgd=true",
                                         "strategy.localsgd_configs.k_steps=2", "model.dropout=0",
                                         "data.batch_size=8", "train.evaluate_every=0"};

// All rules are linear in the gradients: averaging parameters in each step is averaging gradients.
TEST_F(TrainerStrategies, LocalSgdInEachStep_TrainsAsSummedGradients) {
  const Outcome plain = run(job({"data.batch_size=8", "model.dropout=0"}), 2);
  const Outcome local = run(job(with(kLocal, {"strategy.localsgd_configs.k_steps=1"})), 2);
  EXPECT_LE(distance(parameters(plain.weights[0]), parameters(local.weights[0])), 1e-5);
}

// Averages after steps 1, 3, 5, ...; in between ranks drift apart.
TEST_F(TrainerStrategies, LocalSgd_RanksDriftAndMeetAgain) {
  for (const int steps : {3, 4, 5}) {
    const Outcome outcome = run(
        job(with(kLocal, {"train.max_steps=" + std::to_string(steps), "checkpoint.at_end=false"})),
        2);
    const double apart = distance(parameters(outcome.weights[0]), parameters(outcome.weights[1]));
    if (steps % 2 == 1) {
      EXPECT_EQ(apart, 0) << steps;
    } else {
      EXPECT_GT(apart, 0) << steps;
    }
  }
}

// Evaluation and saving bring ranks together.
TEST_F(TrainerStrategies, LocalSgdAtItsEnd_RanksAreTogether) {
  const Outcome outcome = run(job(with(kLocal, {"train.max_steps=4"})), 2);
  EXPECT_EQ(distance(parameters(outcome.weights[0]), parameters(outcome.weights[1])), 0);
}

TEST_F(TrainerStrategies, LocalSgdInterrupted_GoesOnBitIdentically) {
  const Outcome whole = run(job(with(kLocal, {"checkpoint.every_steps=2"})), 2);
  fs::remove_all(output_);
  run(job(with(kLocal, {"checkpoint.every_steps=2", "train.max_steps=4"})), 2);
  const Outcome resumed =
      run(job(with(kLocal, {"checkpoint.every_steps=2", "checkpoint.resume=auto"})), 2);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(distance(whole.weights[rank], resumed.weights[rank]), 0) << rank;
  }
}

const std::string kNormedModel = R"({"name": "resnet20", "num_classes": 4})";
const std::vector<std::string> kNormed = {"data.image={'channels': 3, 'height': 8, 'width': 8}",
                                          "train.max_steps=3", "train.evaluate_every=0"};

std::map<std::string, std::vector<float>> running_statistics(
    std::map<std::string, std::vector<float>> weights) {
  std::erase_if(weights,
                [](const auto& one) { return one.first.find("running_") == std::string::npos; });
  return weights;
}

// Two ranks with half a batch each take the steps of one rank with the whole, whatever is fused;
// with statistics of their own they do not. Of 64 images the statistics of one step: sums in
// another order move some activation across relu's kink, and the gradients behind that differ by
// more.
TEST_F(TrainerStrategies, SyncBatchNorm_TrainsAsOneRank) {
  const std::vector<std::string> kUnfused = {
      "strategy.build_strategy={'fuse_bn_act_ops': False, 'fuse_bn_add_act_ops': False, "
      "'enable_auto_fusion': False, 'fuse_elewise_add_act_ops': False}"};
  for (const auto& [batch, steps] : {std::pair(16, 3), std::pair(64, 1)}) {
    SCOPED_TRACE(batch);
    const auto sized = [&, steps = steps](int images) {
      return with(kNormed, {"data.batch_size=" + std::to_string(images),
                            "train.max_steps=" + std::to_string(steps)});
    };
    const Outcome one = run(job(sized(batch), kNormedModel), 1);
    const auto synced = with(sized(batch / 2), {"strategy.sync_batch_norm=true"});
    for (const auto& fused : {std::vector<std::string>{}, kUnfused}) {
      const Outcome two = run(job(with(synced, fused), kNormedModel), 2);
      EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);  // running statistics too
      const auto compared = [&, batch = batch](const Outcome& of) {
        return batch == 16 ? of.weights[0] : running_statistics(of.weights[0]);
      };
      EXPECT_LE(distance(compared(one), compared(two)), 1e-5);
    }
    const Outcome apart = run(job(sized(batch / 2), kNormedModel), 2);
    EXPECT_GT(distance(one.weights[0], apart.weights[0]), 1e-3);
  }
}

TEST_F(TrainerStrategies, SyncBatchNormWithAmp_TrainsAsOneRank) {
  const auto low = with(kNormed, {"strategy.amp=true", "train.max_steps=1"});
  const Outcome one = run(job(with(low, {"data.batch_size=16"}), kNormedModel), 1);
  const auto half = with(low, {"data.batch_size=8"});
  const Outcome two = run(job(with(half, {"strategy.sync_batch_norm=true"}), kNormedModel), 2);
  const Outcome apart = run(job(half, kNormedModel), 2);
  EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  EXPECT_LE(distance(one.weights[0], two.weights[0]), 0.01);
  EXPECT_GT(distance(one.weights[0], apart.weights[0]),
            2 * distance(one.weights[0], two.weights[0]));
}

// The batch's statistics are kept: when the forward part is recomputed, the running ones have
// changed.
TEST_F(TrainerStrategies, SyncBatchNormWithRecompute_GivesTheSameBits) {
  const auto synced = with(kNormed, {"data.batch_size=8", "strategy.sync_batch_norm=true"});
  const Outcome plain = run(job(synced, kNormedModel), 2);
  const Outcome again = run(job(with(synced, {"strategy.recompute=true",
                                              "strategy.recompute_configs.checkpoints=['every "
                                              "block']"}),
                                kNormedModel),
                            2);
  EXPECT_EQ(distance(plain.weights[0], again.weights[0]), 0);
}

const std::string kReduceMode = "strategy.build_strategy.reduce_strategy=Reduce";

// On two ranks a sum has one order: parameters and states, which owners sent before saving.
TEST_F(TrainerStrategies, ReduceMode_GivesTheBitsOfAllReduceMode) {
  const std::string kModel = R"({"name": "mlp", "num_classes": 4, "hidden": [32]})";
  const std::string kMomentum = R"({"name": "momentum", "weight_decay": 1e-4})";
  const std::string kAdam = R"({"name": "adam", "weight_decay": 1e-4})";
  std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {kMomentum, {}},
      {kMomentum, {"strategy.build_strategy.fuse_broadcast_ops=true"}},
      {kAdam, {"strategy.fuse_all_reduce_ops=false"}},
      {kMomentum, {"strategy.amp=true", "optimizer.clip=value"}},
      {kMomentum, {"strategy.amp=true", "optimizer.clip=adaptive"}},
      {R"({"name": "rmsprop", "centered": true, "momentum": 0.9})", {"strategy.amp=true"}},
      {R"({"name": "adagrad", "initial_accumulator_value": 0.1})", {}},
      {R"({"name": "adam", "amsgrad": true})", {}},
      {R"({"name": "adan", "weight_decay": 1e-4})", {}},
      {kAdam, {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}}};
  for (const std::string& name : optimizer_registry().names()) {
    cases.push_back({R"({"name": ")" + name + "\"}", {}});
  }
  for (const auto& [optimizer, more] : cases) {
    SCOPED_TRACE(optimizer + (more.empty() ? "" : more[0]));
    const auto base = with(more, {"data.batch_size=8"});
    fs::remove_all(output_);
    const Outcome all = run(job(base, kModel, optimizer), 2);
    fs::remove_all(output_);
    const Outcome owned = run(job(with(base, {kReduceMode}), kModel, optimizer), 2);
    for (const int rank : {0, 1}) {
      ASSERT_EQ(all.weights[rank].size(), owned.weights[rank].size());
      EXPECT_EQ(distance(all.weights[rank], owned.weights[rank]), 0) << rank;
    }
  }
}

// More ranks than some have parameters; the norm of all gradients is a sum over owners.
TEST_F(TrainerStrategies, ReduceModeWithGlobalNorm_TrainsAsAllReduceMode) {
  const std::vector<std::string> base = {"optimizer.clip=global_norm", "optimizer.clip_norm=0.1",
                                         "model.hidden=[]", "model.dropout=0", "data.batch_size=4"};
  const Outcome all = run(job(base), 4);
  const Outcome owned = run(job(with(base, {kReduceMode})), 4);
  EXPECT_LE(distance(all.weights[0], owned.weights[3]), 1e-5);
  EXPECT_EQ(distance(owned.weights[0], owned.weights[3]), 0);
}

TEST_F(TrainerStrategies, ReduceModeInterrupted_GoesOnWithAnyNumberOfRanks) {
  const std::vector<std::string> base = {"data.batch_size=8", "model.dropout=0", kReduceMode,
                                         "checkpoint.every_steps=2"};
  const Outcome whole = run(job(base), 2);
  const auto cut = with(base, {"train.max_steps=4"});
  fs::remove_all(output_);
  run(job(cut), 2);
  const Outcome resumed = run(job(with(base, {"checkpoint.resume=auto"})), 2);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
  EXPECT_EQ(distance(whole.weights[1], resumed.weights[1]), 0);
  fs::remove_all(output_);
  run(job(cut), 2);
  const Outcome alone = run(job(with(base, {"checkpoint.resume=auto", "data.batch_size=16"})), 1);
  EXPECT_EQ(alone.results[0].steps, 8);
  EXPECT_LE(distance(whole.weights[0], alone.weights[0]), 1e-5);
}

const std::vector<std::string> kAdaptive = {"strategy.adaptive_localsgd=true",
                                            "strategy.adaptive_localsgd_configs.init_k_steps=3",
                                            "model.dropout=0",
                                            "data.batch_size=4",
                                            "train.fetch_every=1",
                                            "train.evaluate_every=0"};

TEST_F(TrainerStrategies, AdaptiveLocalSgdInterrupted_GoesOnBitIdentically) {
  const auto often = with(kAdaptive, {"checkpoint.every_steps=1"});
  const Outcome whole = run(job(often), 2);
  EXPECT_EQ(whole.weights[0].at("optimizer.adaptive_localsgd_steps"),
            whole.weights[1].at("optimizer.adaptive_localsgd_steps"));
  for (const char* cut : {"1", "5", "6", "7", "8"}) {
    fs::remove_all(output_);
    run(job(with(often, {std::string("train.max_steps=") + cut})), 2);
    const Outcome resumed = run(job(with(often, {"checkpoint.resume=auto"})), 2);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(distance(whole.weights[rank], resumed.weights[rank]), 0) << "cut after " << cut;
    }
  }
}

TEST_F(TrainerStrategies, AdaptiveLocalSgd_SaysHowManyStepsItChose) {
  run(job(kAdaptive), 2);
  for (const auto& line : events("train")) {
    const double steps = line["local_steps"];
    EXPECT_TRUE(steps >= 1 && steps <= 16) << steps;
  }
}

TEST_F(TrainerStrategies, WeightsOfAdaptiveLocalSgd_AreThoseOfTheModelOnly) {
  run(job(kAdaptive), 2);
  const std::string weights =
      "checkpoint.weights=" + latest_checkpoint(output_ + "/checkpoints").value() +
      "/model.safetensors";
  EXPECT_EQ(run(job({weights, "train.max_steps=1"}), 1).results[0].steps, 1);
}

// A weight of 64 x 256 elements travels as its largest ones, from step 2 on in two stages.
const std::vector<std::string> kDgc = {"strategy.dgc=true",
                                       "strategy.dgc_configs.rampup_begin_step=2",
                                       "strategy.dgc_configs.rampup_step=4",
                                       "strategy.dgc_configs.sparsity=[0.9, 0.99]",
                                       "model.hidden=[256]",
                                       "data.batch_size=8",
                                       "train.evaluate_every=0"};

TEST_F(TrainerStrategies, Dgc_RanksStayTogether) {
  const Outcome outcome = run(job(kDgc), 4);
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(outcome.weights[0].at("fc1.weight"), outcome.weights[rank].at("fc1.weight"));
    EXPECT_NE(outcome.weights[0].at("fc1.weight.residual"),
              outcome.weights[rank].at("fc1.weight.residual"));
  }
}

TEST_F(TrainerStrategies, DgcInterrupted_GoesOnBitIdentically) {
  const Outcome whole = run(job(with(kDgc, {"checkpoint.every_steps=1"})), 2);
  for (const char* cut : {"1", "3", "5"}) {
    fs::remove_all(output_);
    run(job(with(kDgc, {std::string("train.max_steps=") + cut})), 2);
    const Outcome resumed = run(job(with(kDgc, {"checkpoint.resume=auto"})), 2);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(distance(whole.weights[rank], resumed.weights[rank]), 0) << "cut after " << cut;
    }
  }
}

// The large weight: 2 x 4 bytes of 1638, then of 163 elements to each other rank. 256 + 256 x 16 +
// 16 elements are summed whole: a ring of 2 ranks sends all of them once.
TEST_F(TrainerStrategies, TrafficOfDgc_IsWhatIsSent) {
  run(job(with(kDgc, {"train.fetch_every=1", "model.num_classes=16"})), 2);
  const auto lines = events("train");
  ASSERT_GE(lines.size(), 6u);
  constexpr int64_t kDense = 4 * (256 + 256 * 16 + 16), kMetrics = 512;
  const int64_t expected[] = {4 * 64 * 256, 4 * 64 * 256, 8 * 1638, 8 * 1638, 8 * 163, 8 * 163};
  for (int step = 0; step < 6; ++step) {
    const int64_t sent = lines[step]["sent_bytes"];
    EXPECT_GE(sent, kDense + expected[step]) << step;
    EXPECT_LT(sent, kDense + expected[step] + kMetrics) << step;
  }
}

TEST(BuildProgram, StrategyLooksAtTheJobsOptimizer) {
  const Job job = make_job(ConfigTree::from_json(R"({
    "model": {"name": "mlp", "num_classes": 4},
    "data": {"source": "synthetic", "batch_size": 4, "image": {"channels": 1, "height": 8, "width": 8}},
    "optimizer": {"name": "adam"},
    "strategy": {"lars": true, "lamb": true}
  })",
                                                 "test"));
  const BuiltProgram built = build_program(job, {.columns = image_columns({1, 8, 8}), .world = 2});
  std::set<std::string> types;
  for (const Op& op : built.program.ops()) types.insert(op.type());
  EXPECT_TRUE(types.contains("lamb"));
  for (const char* other : {"lars", "adam", "momentum"}) EXPECT_FALSE(types.contains(other));
}

TEST(BuildProgram, ParametersDriftWithLocalSgdOnly) {
  for (const auto& [strategy, drift] :
       {std::pair(R"({})", false),
        {R"({"localsgd": true})", true},
        {R"({"adaptive_localsgd": true})", true},
        {R"({"build_strategy": {"reduce_strategy": "Reduce"}})", false}}) {
    const Job job = make_job(ConfigTree::from_json(std::string(R"({
      "model": {"name": "mlp", "num_classes": 4},
      "data": {"source": "synthetic", "batch_size": 4,
               "image": {"channels": 1, "height": 8, "width": 8}},
      "strategy": )") + strategy + "}",
                                                   "test"));
    const BuiltProgram built =
        build_program(job, {.columns = image_columns({1, 8, 8}), .world = 2});
    EXPECT_EQ(weights_drift(built.program), drift) << strategy;
  }
}

// Gradients are summed in the low type: ranks agree with each other bit by bit, with one rank to
// that type's rounding.
TEST_F(TrainerStrategies, MixedPrecisionOnOneAndTwoRanks_Agrees) {
  const Outcome one = run(job({"data.batch_size=16", "strategy.amp=true"}), 1);
  const Outcome two = run(job({"data.batch_size=8", "strategy.amp=true"}), 2);
  EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  EXPECT_LE(distance(one.weights[0], two.weights[0]), 5e-3);
  EXPECT_NEAR(one.results[0].evaluation.loss(), two.results[0].evaluation.loss(), 0.1);
}

TEST_F(TrainerStrategies, MixedPrecisionInterruptedAndResumed_IsBitIdentical) {
  const Outcome whole = run(job({"strategy.amp=true"}), 2);
  fs::remove_all(output_);
  run(job({"strategy.amp=true", "train.max_steps=3"}), 2);
  const Outcome resumed = run(job({"strategy.amp=true", "checkpoint.resume=auto"}), 2);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
}

TEST_F(TrainerStrategies, Float16Allreduce_RanksAgree) {
  const Outcome two = run(job({"data.batch_size=8", "strategy.fp16_allreduce=true"}), 2);
  const Outcome one = run(job({"data.batch_size=16"}), 1);
  EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  EXPECT_GT(distance(one.weights[0], two.weights[0]), 0);
  EXPECT_LE(distance(one.weights[0], two.weights[0]), 1e-3);
}

TEST_F(TrainerStrategies, Bfloat16Allreduce_RanksAgree) {
  const Outcome two = run(job({"data.batch_size=8", "strategy.bf16_allreduce=true"}), 2);
  const Outcome one = run(job({"data.batch_size=16"}), 1);
  EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  EXPECT_GT(distance(one.weights[0], two.weights[0]), 0);
  EXPECT_LE(distance(one.weights[0], two.weights[0]), 1e-2);
}

}  // namespace
}  // namespace fleet
