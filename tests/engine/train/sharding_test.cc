// Sharding compared with the same job that has whole parameters and states on every rank.
#include <gmock/gmock.h>

#include <filesystem>

#include "exec/backend.h"
#include "tests/captured_log.h"
#include "tests/engine/train/trainer_job.h"
#include "train/trainer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kJob = {"model.dropout=0", "data.batch_size=4", "train.epochs=1"};
constexpr char kShardedAdam[] = R"({"name": "adam"})";
constexpr char kShardedMlp[] = R"({"name": "mlp", "num_classes": 4, "hidden": [32, 16, 24]})";
constexpr char kShardedConvolutions[] = R"({"name": "resnet20", "num_classes": 4})";

std::vector<std::string> sharded(const std::vector<std::string>& configs) {
  std::vector<std::string> options = {"strategy.sharding=true"};
  for (const std::string& config : configs)
    options.push_back("strategy.sharding_configs." + config);
  return options;
}

std::vector<std::string> stage(int number) {
  return sharded({"stage=" + std::to_string(number), "fuse_broadcast_MB=0.001"});
}

class ShardingTest : public TrainerTest {
 protected:
  // Without statistics, which ranks have of their own between two evaluations.
  Weights train(const std::vector<std::string>& options, int world,
                const std::string& model = kShardedMlp,
                const std::string& optimizer = kShardedAdam) {
    return together(run(job(with(kJob, options), model, optimizer), world));
  }
};

TEST_F(ShardingTest, EachStage_TrainsAsWholeStates) {
  const Weights whole = train({}, 4);
  for (const int number : {1, 2, 3}) {
    EXPECT_LE(distance(whole, train(stage(number), 4)), 1e-5) << "stage " << number;
  }
}

TEST_F(ShardingTest, LayoutsOfConvolutions_AreThoseOfTheOwners) {
  const std::vector<std::string> images = {"data.image={'channels': 3, 'height': 8, 'width': 8}",
                                           "train.max_steps=1"};
  const auto trained = [&](const std::vector<std::string>& how) {
    return together(run(job(with(images, how), kShardedConvolutions, kShardedAdam), 2));
  };
  const Weights whole = trained({});
  for (const int number : {1, 2, 3}) {
    EXPECT_LE(distance(whole, trained(stage(number))), 1e-5) << "stage " << number;
  }
}

TEST_F(ShardingTest, ClippingByTheGlobalNorm_CountsEveryRanksGradients) {
  const std::string clipped =
      R"({"name": "adam", "clip": "global_norm", "clip_norm": 0.05, "weight_decay": 0.01})";
  const Weights whole = train({}, 3, kShardedMlp, clipped);
  EXPECT_LE(distance(whole, train(stage(2), 3, kShardedMlp, clipped)), 1e-5);
  EXPECT_LE(distance(whole, train(stage(3), 3, kShardedMlp, clipped)), 1e-5);
}

// The owner of a parameter has all of it.
TEST_F(ShardingTest, RulesThatReadWholeParameters_TrainAsOneCopy) {
  for (const std::string rule :
       {R"({"name": "adam", "clip": "adaptive", "clip_factor": 0.001})", R"({"name": "adafactor"})",
        R"({"name": "muon"})", R"({"name": "schedule_free_adamw"})"}) {
    const Weights whole = train({}, 3, kShardedMlp, rule);
    const bool averages = rule.find("free") != std::string::npos;  // not in stage 3
    for (const int number : averages ? std::vector{1, 2} : std::vector{2, 3}) {
      EXPECT_LE(distance(whole, train(stage(number), 3, kShardedMlp, rule)), 1e-5)
          << rule << ", stage " << number;
    }
  }
}

TEST_F(ShardingTest, TwoGroupsOfTwo_TrainAsFourRanks) {
  const Weights whole = train({}, 4);
  for (const int number : {1, 2, 3}) {
    const auto hybrid = with(stage(number), sharded({"dp_degree=2"}));
    EXPECT_LE(distance(whole, train(hybrid, 4)), 1e-5) << "stage " << number;
  }
}

TEST_F(ShardingTest, RankThatOwnsNothing_TrainsAlong) {
  constexpr char kFourParameters[] = R"({"name": "mlp", "num_classes": 4, "hidden": [8]})";
  const Weights whole = train({}, 5, kFourParameters);
  for (const int number : {1, 2, 3}) {
    EXPECT_LE(distance(whole, train(stage(number), 5, kFourParameters)), 1e-5) << number;
  }
}

TEST_F(ShardingTest, MergedGradients_TrainAsGradientMerge) {
  const Weights whole =
      train({"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}, 2);
  for (const int number : {1, 3}) {
    const auto merged = with(stage(number), sharded({"gradient_merge_acc_step=2"}));
    EXPECT_LE(distance(whole, train(merged, 2)), 1e-5) << "stage " << number;
  }
}

TEST_F(ShardingTest, MergedGradientsOnOneRank_TrainAsOnSeveral) {
  const auto merged = with(stage(3), sharded({"gradient_merge_acc_step=2"}));
  const Weights several = train(merged, 2);
  EXPECT_LE(distance(several, train(with(merged, {"data.batch_size=8"}), 1)), 1e-5);
}

TEST_F(ShardingTest, ShardingAmpRecomputeLamb_TrainAsWithoutSharding) {
  const std::vector<std::string> chain = {"strategy.amp=true", "strategy.recompute=true",
                                          "strategy.recompute_configs.checkpoints=['every block']",
                                          "strategy.lamb=true"};
  const Weights whole = train(chain, 2);
  for (const int number : {1, 2, 3}) {
    EXPECT_LE(distance(whole, train(with(chain, stage(number)), 2)), 0.02) << "stage " << number;
  }
}

TEST_F(ShardingTest, Checkpoint_IsAnOrdinaryOne) {
  for (const int number : {1, 2, 3}) {
    fs::remove_all(output_);
    const Weights ours = train(stage(number), 4);
    const std::string folder = latest_checkpoint(output_ + "/checkpoints").value();
    EXPECT_FALSE(fs::exists(folder + "/shard_00000.safetensors"));
    EXPECT_FALSE(fs::exists(folder + "/rank_00000.safetensors"));
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      for (const auto& [name, tensor] : read_safetensors(folder + file).tensors) {
        if (tensor.dtype != DType::kFloat32) continue;
        const auto* values = reinterpret_cast<const float*>(tensor.data.data());
        const std::vector<float> saved(values, values + tensor.shape.elements());
        EXPECT_EQ(saved, ours.at(name)) << name;
      }
    }
  }
}

// With another number of ranks, another stage, or none.
TEST_F(ShardingTest, Checkpoint_GoesOnInEveryOtherWay) {
  const auto batch = [](int ranks) { return "data.batch_size=" + std::to_string(16 / ranks); };
  const auto part = [&](const std::vector<std::string>& how, int ranks, const char* steps) {
    return train(with(how, {batch(ranks), std::string("train.max_steps=") + steps,
                            "checkpoint.resume=auto", "train.evaluate_every=0"}),
                 ranks);
  };
  const Weights whole = part({}, 4, "4");
  const std::vector<std::pair<std::vector<std::string>, int>> ways = {
      {stage(3), 4},
      {{}, 1},
      {stage(1), 2},
      {with(stage(3), sharded({"dp_degree=2"})), 4},
      {stage(2), 8}};
  for (size_t i = 0; i + 1 < ways.size(); ++i) {
    fs::remove_all(output_);
    part(ways[i].first, ways[i].second, "2");
    EXPECT_LE(distance(whole, part(ways[i + 1].first, ways[i + 1].second, "4")), 1e-5) << i;
  }
}

// Within a round of merged gradients and after it, on one rank, on others, and without sharding.
TEST_F(ShardingTest, CheckpointWithMergedGradients_GoesOnInEveryOtherWay) {
  const auto merged = with(stage(3), sharded({"gradient_merge_acc_step=2"}));
  std::string log;
  const auto part = [&](const std::vector<std::string>& how, int ranks, const char* steps) {
    Weights weights;
    log = captured_log([&] {
      weights = train(with(how, {"data.batch_size=" + std::to_string(16 / ranks),
                                 std::string("train.max_steps=") + steps, "checkpoint.resume=auto",
                                 "train.evaluate_every=0"}),
                      ranks);
    });
    return weights;
  };
  const auto resumed = [&](const char* cut, const std::vector<std::string>& how, int ranks) {
    fs::remove_all(output_);
    part(merged, 2, cut);
    return part(how, ranks, "4");
  };
  const std::string dropped = "the gradients that it merged since its last update are dropped";
  const Weights whole = part(merged, 4, "4");
  for (const int ranks : {1, 4}) {
    EXPECT_LE(distance(whole, resumed("3", merged, ranks)), 1e-5) << ranks;
    EXPECT_THAT(log, Not(HasSubstr(dropped)));
  }
  const Weights alone = resumed("2", {}, 1);
  EXPECT_THAT(log, Not(HasSubstr(dropped)));
  EXPECT_LE(distance(alone, resumed("2", {}, 2)), 1e-5);
  resumed("3", {}, 2);
  EXPECT_THAT(log, HasSubstr(dropped));
  fs::remove_all(output_);
  part({}, 2, "2");
  EXPECT_EQ(part(merged, 2, "4").size(), whole.size());  // it begins a round
}

TEST_F(ShardingTest, Interrupted_GoesOnBitIdentically) {
  for (const int number : {1, 2, 3}) {
    const auto options = with(with(stage(number), sharded({"gradient_merge_acc_step=2"})),
                              {"checkpoint.every_steps=1"});
    fs::remove_all(output_);
    const Weights whole = train(options, 2);
    fs::remove_all(output_);
    train(with(options, {"train.max_steps=3"}), 2);
    const Weights resumed = train(with(options, {"checkpoint.resume=auto"}), 2);
    EXPECT_EQ(distance(whole, resumed), 0) << "stage " << number;
  }
}

TEST_F(ShardingTest, WeightsOfAFile_GoToTheirOwners) {
  train({}, 1);
  const std::string file = output_ + "_weights.safetensors";
  fs::copy_file(latest_checkpoint(output_ + "/checkpoints").value() + "/model.safetensors", file,
                fs::copy_options::overwrite_existing);
  fs::remove_all(output_);
  const std::vector<std::string> from = {"checkpoint.weights=" + file};
  const Weights whole = train(from, 2);
  EXPECT_LE(distance(whole, train(with(from, stage(3)), 2)), 1e-5);
  fs::remove(file);
}

TEST_F(ShardingTest, EvaluationOfParts_IsThatOfTheWhole) {
  const Outcome whole = run(job(kJob, kShardedMlp, kShardedAdam), 4);
  const Outcome ours = run(job(with(kJob, stage(3)), kShardedMlp, kShardedAdam), 4);
  EXPECT_NEAR(whole.results[0].evaluation.mean_loss(), ours.results[0].evaluation.mean_loss(),
              1e-4);
}

TEST_F(ShardingTest, AverageOfWeights_WorksBelowStage3) {
  const std::vector<std::string> average = {"train.ema.decay=0.5"};
  const Weights whole = train(average, 2);
  EXPECT_LE(distance(whole, train(with(average, stage(2)), 2)), 1e-5);
  const Job refused = job(with(with(kJob, average), stage(3)), kShardedMlp, kShardedAdam);
  EXPECT_THAT(start_two(refused, refused)[0],
              ::testing::AllOf(HasSubstr("train.ema.decay"), HasSubstr("sharding")));
}

// Plans of a net that is nearly all parameters.
class ShardingPlan : public ::testing::Test {
 protected:
  static Plan plan(const std::vector<std::string>& options, int rank, int world) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp", "num_classes": 4, "hidden": [512, 512, 512, 512, 512, 512, 512, 512,
                      512, 512, 512, 512, 512, 512, 512, 512]},
            "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 64}},
            "optimizer": {"name": "adam"}})",
        "test");
    apply_overrides(tree, options);
    BuiltProgram built = build_program(
        make_job(tree), {.columns = image_columns({1, 16, 32}), .rank = rank, .world = world});
    return plan_program(std::move(built.program), built.keep, {});
  }
};

TEST_F(ShardingPlan, RanksAgreeOnWhatTheySend) {
  for (const int number : {1, 2, 3}) {
    for (const auto& more : {sharded({}), sharded({"dp_degree=2"})}) {
      const auto options = with(stage(number), more);
      const CollectiveSequences first = plan(options, 0, 4).collective_sequences(0);
      for (int rank = 1; rank < 4; ++rank) {
        for (const auto& [name, sequence] : plan(options, rank, 4).collective_sequences(rank)) {
          const auto found = first.find(name);
          if (found == first.end()) continue;
          EXPECT_EQ(found->second.operations, sequence.operations) << name << " of rank " << rank;
        }
      }
    }
  }
}

TEST_F(ShardingPlan, Memory_ShrinksWithEachStage) {
  const auto buckets = std::vector<std::string>{"strategy.fuse_grad_size_in_MB=1",
                                                "strategy.sharding_configs.fuse_broadcast_MB=1"};
  const PlannedMemory whole = plan(buckets, 0, 4).memory();
  const auto share = [](size_t part, size_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  for (int rank = 0; rank < 4; ++rank) {
    const auto of_stage = [&](int number) {
      return plan(with(with(stage(number), buckets), {}), rank, 4).memory();
    };
    const PlannedMemory one = of_stage(1), two = of_stage(2), three = of_stage(3);
    EXPECT_LE(share(one.states, whole.states), 0.3);
    EXPECT_EQ(one.parameters, whole.parameters);
    const size_t gradients = whole.gradients + whole.activations;
    EXPECT_LE(share(two.gradients + two.activations, gradients), 0.6);
    EXPECT_LE(share(three.parameters + three.states, whole.parameters + whole.states), 0.3);
    // A quarter of the gradients, the bucket that is being sent, two segments.
    EXPECT_LE(share(three.gradients + three.activations, gradients), 0.75);
    EXPECT_LE(share(three.total(), whole.total()), 0.4);
  }
}

}  // namespace
}  // namespace fleet
