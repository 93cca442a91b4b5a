// Pipelines compared with one rank that merges the gradients of the same micro-batches.
#include <gmock/gmock.h>

#include <filesystem>

#include "exec/backend.h"
#include "tests/engine/train/trainer_job.h"
#include "train/trainer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// 64 samples: 16 micro-batches of 4.
const std::vector<std::string> kPipelineJob = {"train.epochs=1", "train.evaluate_every=0"};
constexpr char kAdam[] = R"({"name": "adam"})";
constexpr char kPipelineMlp[] =
    R"({"name": "mlp", "num_classes": 4, "hidden": [32, 16, 24], "dropout": 0.2})";
constexpr char kConvolutions[] = R"({"name": "resnet20", "num_classes": 4})";

std::vector<std::string> pipeline(int micro_batches, const std::vector<std::string>& configs = {}) {
  std::vector<std::string> options = {
      "strategy.pipeline=true", "data.batch_size=" + std::to_string(4 * micro_batches),
      "strategy.pipeline_configs.accumulate_steps=" + std::to_string(micro_batches)};
  for (const std::string& config : configs) {
    options.push_back("strategy.pipeline_configs." + config);
  }
  return options;
}

std::vector<std::string> merged(int steps) {
  return {"data.batch_size=4", "strategy.gradient_merge=true",
          "strategy.gradient_merge_configs.k_steps=" + std::to_string(steps)};
}

class PipelineTest : public TrainerTest {
 protected:
  Weights train(const std::vector<std::string>& options, int world,
                const std::string& model = kPipelineMlp, const std::string& optimizer = kAdam) {
    return together(run(job(with(kPipelineJob, options), model, optimizer), world));
  }
};

TEST_F(PipelineTest, Mlp_TrainsBitIdenticallyToMergedGradients) {
  const Weights whole = train(merged(4), 1);
  for (const char* mode :
       {"schedule_mode=F-then-B", "schedule_mode=1F1B", "schedule_mode=Eager1F1B"}) {
    for (const int stages : {1, 2, 3, 4}) {
      const Weights ours = train(pipeline(4, {mode}), stages);
      EXPECT_EQ(whole.size(), ours.size());
      EXPECT_EQ(distance(whole, ours), 0) << mode << " of " << stages << " stages";
    }
  }
}

TEST_F(PipelineTest, CutByTheJob_TrainsBitIdentically) {
  const Weights whole = train(merged(8), 1);
  for (const char* cut : {"cut=['fc1']", "cut=['fc3']", "cut=['flatten.out']"}) {
    EXPECT_EQ(distance(whole, train(pipeline(8, {cut}), 2)), 0) << cut;
  }
}

TEST_F(PipelineTest, FewerMicroBatchesThanStages_Train) {
  EXPECT_EQ(distance(train(merged(2), 1), train(pipeline(2), 4)), 0);
}

TEST_F(PipelineTest, BatchNorm_CountsMicroBatches) {
  // Small steps: Adam would turn the rounding of a gradient near 0 into a whole step.
  const std::vector<std::string> images = {"data.image={'channels': 3, 'height': 8, 'width': 8}",
                                           "learning_rate.base=0.001"};
  const auto trained = [&](const std::vector<std::string>& how, int world, const char* steps) {
    return train(with(with(images, how), {std::string("train.max_steps=") + steps}), world,
                 kConvolutions, R"({"name": "sgd"})");
  };
  const Weights whole = trained(merged(4), 1, "8");
  for (const int stages : {2, 3}) {
    EXPECT_LE(distance(whole, trained(pipeline(4), stages, "2")), 1e-5) << stages;
  }
  // Within a residual block, two values cross.
  EXPECT_LE(distance(whole, trained(pipeline(4, {"cut=['layer2.1.conv1.out']"}), 2, "2")), 1e-5);
}

TEST_F(PipelineTest, ClippingByTheGlobalNorm_CountsEveryStage) {
  const std::string clipped =
      R"({"name": "adam", "clip": "global_norm", "clip_norm": 0.05, "weight_decay": 0.01})";
  const Weights whole = train(merged(4), 1, kPipelineMlp, clipped);
  EXPECT_LE(distance(whole, train(pipeline(4), 3, kPipelineMlp, clipped)), 1e-5);
}

TEST_F(PipelineTest, TwoPipelinesOfTwoStages_AverageTheirGradients) {
  const Weights whole = train(merged(2), 2, kPipelineMlp);
  const auto two = pipeline(2, {"stages=2"});
  EXPECT_LE(distance(whole, train(two, 4)), 1e-5);
  const auto sharded = with(two, {"strategy.sharding=true", "strategy.sharding_configs.stage=1"});
  EXPECT_LE(distance(whole, train(sharded, 4)), 1e-5);
}

TEST_F(PipelineTest, PipelineAmpRecomputeLamb_TrainAsMergedGradients) {
  const std::vector<std::string> chain = {"strategy.amp=true", "strategy.recompute=true",
                                          "strategy.recompute_configs.checkpoints=['fc3']",
                                          "strategy.lamb=true"};
  const Weights whole = train(with(chain, merged(4)), 1);
  EXPECT_LE(distance(whole, train(with(chain, pipeline(4)), 2)), 0.02);
  EXPECT_LE(distance(whole, train(with(chain, pipeline(4, {"cut=['fc1']"})), 2)), 0.02);
}

TEST_F(PipelineTest, Recompute_KeepsTheBits) {
  const std::vector<std::string> recompute = {"strategy.recompute=true",
                                              "strategy.recompute_configs.checkpoints=['fc3']"};
  const Weights whole = train(merged(4), 1);
  EXPECT_EQ(distance(whole, train(with(recompute, pipeline(4, {"cut=['fc1']"})), 2)), 0);
}

TEST_F(PipelineTest, Checkpoint_IsAnOrdinaryOne) {
  for (const int stages : {2, 3}) {
    fs::remove_all(output_);
    const Weights ours = train(pipeline(4), stages);
    const std::string folder = latest_checkpoint(output_ + "/checkpoints").value();
    EXPECT_FALSE(fs::exists(folder + "/shard_00000.safetensors"));
    size_t count = 0;
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      for (const auto& [name, tensor] : read_safetensors(folder + file).tensors) {
        if (tensor.dtype != DType::kFloat32) continue;
        const auto* values = reinterpret_cast<const float*>(tensor.data.data());
        const std::vector<float> saved(values, values + tensor.shape.elements());
        EXPECT_EQ(saved, ours.at(name)) << name;
        ++count;
      }
    }
    EXPECT_EQ(count, ours.size());
  }
}

TEST_F(PipelineTest, Checkpoint_GoesOnWithOtherStagesOrWithout) {
  const auto part = [&](const std::vector<std::string>& how, int ranks, const char* steps) {
    return train(with(how, {std::string("train.max_steps=") + steps, "checkpoint.resume=auto"}),
                 ranks);
  };
  const std::vector<std::string> plain = {"data.batch_size=16"};
  const auto two_by_two = with(pipeline(4, {"stages=2"}), {"data.batch_size=8"});
  const Weights whole = part(plain, 1, "4");
  const std::vector<std::pair<std::vector<std::string>, int>> ways = {
      {pipeline(4), 2}, {pipeline(4), 4}, {plain, 1},
      {pipeline(4), 3}, {two_by_two, 4},  {plain, 1}};
  for (size_t i = 0; i + 1 < ways.size(); ++i) {
    fs::remove_all(output_);
    part(ways[i].first, ways[i].second, "2");
    // Sums are in another order, and adam divides small gradients by small roots.
    EXPECT_LE(distance(whole, part(ways[i + 1].first, ways[i + 1].second, "4")), 3e-5) << i;
  }
}

TEST_F(PipelineTest, Interrupted_GoesOnBitIdentically) {
  const auto options = with(pipeline(4), {"checkpoint.every_steps=1"});
  const Weights whole = train(options, 2);
  fs::remove_all(output_);
  train(with(options, {"train.max_steps=3"}), 2);
  EXPECT_EQ(distance(whole, train(with(options, {"checkpoint.resume=auto"}), 2)), 0);
}

TEST_F(PipelineTest, WeightsOfAFile_GoToTheirStages) {
  train(merged(4), 1);
  const std::string file = output_ + "_weights.safetensors";
  fs::copy_file(latest_checkpoint(output_ + "/checkpoints").value() + "/model.safetensors", file,
                fs::copy_options::overwrite_existing);
  fs::remove_all(output_);
  const std::vector<std::string> from = {"checkpoint.weights=" + file};
  EXPECT_EQ(distance(train(with(from, merged(4)), 1), train(with(from, pipeline(4)), 2)), 0);
  fs::remove(file);
}

// Also with samples that do not fill the last batch.
TEST_F(PipelineTest, MetricsAndEvaluation_AreThoseOfOneRank) {
  const std::vector<std::string> evaluates = {"train.evaluate_every=1", "train.fetch_every=1",
                                              "train.evaluate_classes=true"};
  const auto outcome = [&](int stages) {
    fs::remove_all(output_);
    return run(job(with(with(kPipelineJob, evaluates), pipeline(4)), kPipelineMlp, kAdam), stages);
  };
  const Outcome whole = outcome(1);
  const auto lines = events("train"), tests = events("test");
  for (const int stages : {2, 3}) {
    const Outcome ours = outcome(stages);
    for (const TrainResult& result : ours.results) {
      EXPECT_NEAR(result.evaluation.mean_loss(), whole.results[0].evaluation.mean_loss(), 1e-5);
      EXPECT_EQ(result.evaluation.items(), 37);
    }
    ASSERT_EQ(events("train").size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const char* key : {"loss", "acc1", "learning_rate"}) {
        EXPECT_NEAR(events("train")[i][key], lines[i][key], 1e-5) << key;
      }
    }
    EXPECT_EQ(events("test")[0]["class_samples"], tests[0]["class_samples"]);
    EXPECT_EQ(events("test")[0]["class_acc1"], tests[0]["class_acc1"]);
  }
}

TEST_F(PipelineTest, BatchNormOfTwoPipelines_SavesTheFirstOnesStatistics) {
  const std::vector<std::string> options =
      with(pipeline(2, {"stages=2"}), {"data.image={'channels': 3, 'height': 8, 'width': 8}",
                                       "train.evaluate_every=1", "train.max_steps=2"});
  const Outcome outcome = run(job(with(kPipelineJob, options), kConvolutions, kAdam), 4);
  together(outcome);
  EXPECT_EQ(outcome.results[0].evaluation.items(), 37);
}

TEST_F(PipelineTest, NotFiniteLoss_EndsAllStages) {
  const Job diverges = job(with(with(kPipelineJob, pipeline(4)),
                                {"learning_rate.base=1e6", "train.on_nan=stop", "train.epochs=4"}),
                           kPipelineMlp, R"({"name": "sgd"})");
  for (const RankEnd& end : ends_of(diverges, 2))
    EXPECT_THAT(end.message, HasSubstr("is not finite"));
}

TEST_F(PipelineTest, Average_IsRefused) {
  const Job refused =
      job(with(with(kPipelineJob, pipeline(4)), {"train.ema.decay=0.5"}), kPipelineMlp, kAdam);
  EXPECT_THAT(start_two(refused, refused)[0],
              AllOf(HasSubstr("train.ema.decay"), HasSubstr("pipeline")));
}

// Plans of single ranks.
class PipelinePlan : public ::testing::Test {
 protected:
  static Plan plan(const std::vector<std::string>& options, int rank, int world) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp", "num_classes": 4, "hidden": [64, 64, 64, 64, 64, 64, 64, 64]},
            "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 64}},
            "optimizer": {"name": "adam"}})",
        "test");
    apply_overrides(tree, options);
    BuiltProgram built = build_program(
        make_job(tree), {.columns = image_columns({1, 8, 8}), .rank = rank, .world = world});
    return plan_program(std::move(built.program), built.keep, {});
  }
};

TEST_F(PipelinePlan, RanksAgreeOnWhatTheySend) {
  for (const auto& options :
       {pipeline(8), pipeline(8, {"stages=2"}), pipeline(8, {"schedule_mode=Eager1F1B"}),
        pipeline(8, {"schedule_mode=F-then-B"})}) {
    std::vector<CollectiveSequences> all;
    for (int rank = 0; rank < 4; ++rank) {
      all.push_back(plan(options, rank, 4).collective_sequences(rank));
    }
    size_t compared = 0;
    for (const CollectiveSequences& one : all) {
      for (const CollectiveSequences& other : all) {
        for (const auto& [name, sequence] : one) {
          const auto found = other.find(name);
          if (found == other.end()) continue;
          EXPECT_EQ(found->second.operations, sequence.operations) << name;
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, all.size());
  }
}

TEST_F(PipelinePlan, OneForwardOneBackward_KeepsAsManyMicroBatchesAsStages) {
  const auto activations = [](const std::string& mode, int micro_batches, int rank) {
    return plan(with(pipeline(micro_batches, {"schedule_mode=" + mode}),
                     {"data.batch_size=" + std::to_string(64 * micro_batches)}),
                rank, 4)
        .memory()
        .activations;
  };
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_LE(static_cast<double>(activations("1F1B", 16, rank)),
              1.1 * static_cast<double>(activations("1F1B", 8, rank)))
        << rank;
    EXPECT_LT(activations("1F1B", 16, rank), activations("F-then-B", 16, rank)) << rank;
    EXPECT_LT(activations("Eager1F1B", 16, rank), activations("F-then-B", 16, rank)) << rank;
  }
  EXPECT_LT(activations("1F1B", 16, 3), activations("1F1B", 16, 0));
  EXPECT_LT(activations("1F1B", 16, 0), activations("Eager1F1B", 16, 0));
  EXPECT_EQ(activations("1F1B", 16, 3), activations("Eager1F1B", 16, 3));
}

TEST_F(PipelinePlan, Rank_HoldsItsStageOnly) {
  size_t parameters = 0;
  const size_t whole = plan({}, 0, 1).memory().parameters;
  for (int rank = 0; rank < 4; ++rank) {
    const size_t own = plan(pipeline(8), rank, 4).memory().parameters;
    EXPECT_LT(own, whole / 2);
    parameters += own;
  }
  EXPECT_EQ(parameters, whole);
}

}  // namespace
}  // namespace fleet
