// Jobs whose training diverges at a known step: what they do and what they leave.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tensor/host.h"
#include "tests/engine/train/trainer_job.h"
#include "train/safetensors.h"
#include "train/trainer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class NotFiniteTest : public TrainerTest {
 protected:
  // The fifth step's update takes the parameters to where the sixth step's loss is NaN (rate 1e30),
  // or to where they are infinite themselves (1e39).
  Job job(const std::string& on_nan, const std::string& rate, int world,
          const std::vector<std::string>& overrides = {}) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "mlp", "num_classes": 4, "hidden": [32]},
      "data": {"source": "synthetic", "image": {"channels": 1, "height": 8, "width": 8}, "train": {"samples": 256}},
      "optimizer": {"name": "momentum"},
      "train": {"fetch_every": 4, "evaluate_every": 0, "max_steps": 10, "on_nan": ")" +
                                                on_nan + R"("},
      "checkpoint": {"every_steps": 2, "keep": 2},
      "learning_rate": {"name": "piecewise", "boundaries": [0.25, 0.3125],
                        "values": [0.01, )" + rate +
                                                R"(, 0.01]}})",
                                            "test");
    std::vector<std::string> all = overrides;
    all.push_back("train.output=" + output_);
    all.push_back("data.batch_size=" + std::to_string(16 / world));  // 16 steps an epoch
    apply_overrides(tree, all);
    return make_job(tree);
  }

  struct Outcome {
    TrainResult result;
    std::string error;
  };
  std::vector<Outcome> run(const Job& job, int world) const {
    std::vector<Outcome> outcomes(world);
    const auto ends = ends_of(job, world, [&](Trainer& trainer, int rank) {
      try {
        outcomes[rank].result = trainer.run();
      } catch (const NotFiniteError& error) {
        outcomes[rank].error = error.what();
      }
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.message, "");
    return outcomes;
  }

  // With these, logits are so far apart that a loss is infinite although all gradients are finite.
  static inline const std::vector<float> kInfiniteLoss = {3e38f, -3e38f, -3e38f, -3e38f};

  // The ends of ranks of which one has damaged parameters from the start, the first of fc2.bias.
  // moved: on each rank, whether fc1.weight is another one in the end.
  static std::vector<RankEnd> run_damaged(const Job& job, int world, int damaged,
                                          const std::vector<float>& damage = {INFINITY},
                                          std::vector<char>* moved = nullptr) {
    return ends_of(job, world, [&](Trainer& trainer, int rank) {
      Executor& executor = trainer.session().executor();
      if (rank == damaged) {
        const VarId bias = executor.program().find("fc2.bias");
        std::vector<float> values = executor.values<float>(bias);
        std::copy(damage.begin(), damage.end(), values.begin());
        executor.write(bias, values);
      }
      const VarId weight = executor.program().find("fc1.weight");
      const std::vector<float> before = executor.values<float>(weight);
      trainer.run();
      if (moved) (*moved)[rank] = executor.values<float>(weight) != before;
    });
  }
  static bool is_not_finite(const RankEnd& end) {
    try {
      if (end.thrown) std::rethrow_exception(end.thrown);
    } catch (const NotFiniteError&) {
      return true;
    } catch (const Error&) {
    }
    return false;
  }

  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(output_ + "/checkpoints")) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void expect_finite(const std::string& checkpoint) const {
    const std::string path = output_ + "/checkpoints/" + checkpoint + "/model.safetensors";
    for (const auto& [name, tensor] : read_safetensors(path).tensors) {
      const auto* values = reinterpret_cast<const float*>(tensor.data.data());
      for (size_t i = 0; i < tensor.data.size() / sizeof(float); ++i) {
        ASSERT_TRUE(std::isfinite(values[i])) << name << " of " << checkpoint;
      }
    }
  }
};

TEST_F(NotFiniteTest, Stop_EndsTheJobAndKeepsTheGoodCheckpoints) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    for (const Outcome& outcome : run(job("stop", "1e30", world), world)) {
      EXPECT_THAT(outcome.error, AllOf(HasSubstr("step 5: the loss"),
                                       HasSubstr("the newest good checkpoint is " + output_ +
                                                 "/checkpoints/step_00000004")))
          << world;
    }
    EXPECT_THAT(checkpoints(), ElementsAre("step_00000002", "step_00000004"));
    expect_finite("step_00000004");
    ASSERT_EQ(events("not_finite").size(), 1U);
    const auto event = events("not_finite")[0];
    EXPECT_EQ(event["step"], 5);
    EXPECT_EQ(event["what"], "loss");
    EXPECT_EQ(event["updates"], 1);
  }
}

// The parameters are what step 5 found, to the end.
TEST_F(NotFiniteTest, Skip_LeavesUpdatesOutAndCountsThem) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    for (const Outcome& outcome : run(job("skip", "1e30", world), world)) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.result.steps, 10);
      EXPECT_EQ(outcome.result.skipped, 5);
    }
    expect_finite("step_00000010");
    const auto lines = events("train");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0]["skipped_updates"], 0);
    EXPECT_EQ(lines[1]["skipped_updates"], 3);
    EXPECT_TRUE(lines[0]["loss"].is_number());
    EXPECT_TRUE(lines[1]["loss"].is_null());
    EXPECT_EQ(events("summary")[0]["skipped_updates"], 5);
  }
}

TEST_F(NotFiniteTest, Skip_EndsTheJobIfNoUpdateIsApplied) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    for (const Outcome& outcome :
         run(job("skip", "1e30", world, {"train.max_skipped_updates=3"}), world)) {
      EXPECT_THAT(outcome.error, AllOf(HasSubstr("step 8: the loss or a gradient of the last 3 "),
                                       HasSubstr("the newest good checkpoint is " + output_)));
    }
    for (const std::string& name : checkpoints()) expect_finite(name);
  }
  fs::remove_all(output_);
  EXPECT_EQ(run(job("skip", "1e30", 1, {"train.max_skipped_updates=0"}), 1)[0].error, "");
}

// A rank that left out an update alone would drift away from the others.
TEST_F(NotFiniteTest, Skip_LossOfOneRankAlone_LeavesTheUpdateOutOnAllRanks) {
  for (const std::vector<std::string>& strategy : std::vector<std::vector<std::string>>{
           {"train.max_steps=1"},
           {"train.max_steps=1", "strategy.build_strategy.reduce_strategy=1"},
           {"train.max_steps=1", "strategy.sharding=true", "strategy.sharding_configs.stage=1"},
           {"train.max_steps=2", "strategy.gradient_merge=true",
            "strategy.gradient_merge_configs.k_steps=2"}}) {
    for (const int damaged : {0, 1}) {
      fs::remove_all(output_);
      std::vector<std::string> overrides = strategy;
      overrides.push_back("train.compare_ranks_every=0");
      std::vector<char> moved(2, 2);
      const auto ends =
          run_damaged(job("skip", "0.01", 2, overrides), 2, damaged, kInfiniteLoss, &moved);
      for (const RankEnd& end : ends) EXPECT_EQ(end.message, "");
      EXPECT_THAT(moved, ElementsAre(0, 0)) << strategy.back() << ", rank " << damaged;
      EXPECT_EQ(events("summary")[0]["skipped_updates"], 1) << strategy.back();
    }
  }
}

TEST_F(NotFiniteTest, Continue_NeverSavesWhatIsNotFinite) {
  for (const std::string strategy : {"{}", R"({"localsgd": true})"}) {
    fs::remove_all(output_);
    for (const Outcome& outcome :
         run(job("continue", "1e39", 2, {"checkpoint.keep=1", "strategy=" + strategy}), 2)) {
      EXPECT_THAT(outcome.error, HasSubstr("step_00000004"));
    }
    EXPECT_THAT(checkpoints(), ElementsAre("step_00000004"));
    expect_finite("step_00000004");
    EXPECT_EQ(events("summary").size(), 1U) << "it trained to the end";
  }
}

TEST_F(NotFiniteTest, InfiniteParameters_EndAJobThatStops) {
  const auto outcomes = run(job("stop", "1e39", 1, {"checkpoint.every_steps=1"}), 1);
  EXPECT_THAT(outcomes[0].error, HasSubstr("step_00000004"));
  EXPECT_THAT(checkpoints(), ElementsAre("step_00000003", "step_00000004"));
}

// The launcher takes the rank for the cause that does not only report another one.
TEST_F(NotFiniteTest, DamagedRank_IsNamedInsteadOfTheLearningRate) {
  const std::vector<std::string> kLate = {"checkpoint.every_steps=100"};
  const std::vector<std::string> kSkipped = {"checkpoint.every_steps=100",
                                             "train.max_skipped_updates=3"};
  struct Case {
    int world, damaged;
    std::string on_nan;
    std::vector<std::string> overrides;
    std::vector<float> damage = {INFINITY};  // all bits of an exponent
  };
  for (const Case& one : std::vector<Case>{{3, 1, "stop", kLate},
                                           {3, 0, "stop", kLate},
                                           {2, 0, "stop", kLate},
                                           {2, 1, "stop", kLate},
                                           {3, 2, "skip", kSkipped},
                                           {3, 2, "skip", kSkipped, kInfiniteLoss},
                                           {2, 1, "skip", kSkipped, kInfiniteLoss}}) {
    fs::remove_all(output_);
    const auto ends = run_damaged(job(one.on_nan, "0.01", one.world, one.overrides), one.world,
                                  one.damaged, one.damage);
    for (int rank = 0; rank < one.world; ++rank) {
      EXPECT_EQ(ends[rank].code, rank == one.damaged ? ErrorCode::kInternal : ErrorCode::kPeerLost);
      EXPECT_FALSE(is_not_finite(ends[rank]));
      EXPECT_THAT(ends[rank].message,
                  AllOf(HasSubstr("rank " + std::to_string(one.damaged)), HasSubstr("fc2.bias"),
                        Not(HasSubstr("learning_rate"))));
    }
  }
}

// Ranks of which machines differ are not compared, and averages hide which rank began.
TEST_F(NotFiniteTest, RanksThatMayDiffer_AreNotCompared) {
  for (const std::string setting : {"train.compare_ranks_every=0", "strategy.localsgd=true"}) {
    fs::remove_all(output_);
    const auto ends =
        run_damaged(job("stop", "0.01", 2, {"checkpoint.every_steps=100", setting}), 2, 1);
    for (const RankEnd& end : ends) EXPECT_TRUE(is_not_finite(end)) << setting << end.message;
  }
}

TEST_F(NotFiniteTest, EveryStrategy_StopsOnAllRanks) {
  const std::vector<std::vector<std::string>> strategies = {
      {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=2"},
      {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=5"},
      {"strategy.build_strategy.reduce_strategy=1"},
      {"strategy.fuse_all_optimizer_ops=true"},
      {"strategy.dgc=true", "model.hidden=1024"},
      {"optimizer.clip=global_norm"},
  };
  for (const auto& strategy : strategies) {
    fs::remove_all(output_);
    std::vector<std::string> overrides = strategy;
    for (const Outcome& outcome : run(job("stop", "1e30", 2, overrides), 2)) {
      EXPECT_NE(outcome.error, "") << strategy[0];
    }
    for (const std::string& name : checkpoints()) expect_finite(name);
  }
}

}  // namespace
}  // namespace fleet
