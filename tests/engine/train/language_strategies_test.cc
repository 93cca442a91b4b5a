// A small language model whose embedding is its head, trained with each strategy: two ranks give
// what one rank gives, though their rows have different numbers of tokens.
#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

#include "tests/engine/train/trainer_job.h"
#include "text/token_file.h"

namespace fleet {
namespace {

using ::testing::SizeIs;

constexpr int64_t kBatch = 8;  // rows of all ranks in an update
constexpr char kSgd[] = R"({"name": "sgd"})";
constexpr char kMomentum[] = R"({"name": "momentum", "momentum": 0.9})";
constexpr char kAdam[] = R"({"name": "adam"})";
constexpr char kAdamW[] = R"({"name": "adamw", "weight_decay": 0.1})";

struct LanguageStrategy {
  std::string name;
  std::vector<std::string> options;
  std::string optimizer = kAdamW;
  double loss_tolerance = 1e-5;
  // For strategies that change where or when something is computed, but not what.
  bool as_without = false;
  int ranks_of_a_batch = 1;  // a pipeline's stages train the same rows
};

class LanguageStrategies : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = ::testing::TempDir() + "/language_test_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    write_documents("train.bin", 300);
    write_documents("test.bin", 20);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }

  // Documents of 1 to 20 tokens, each token but the first a function of the last one and the
  // document's number, so that there is something to learn. Token 0 ends them.
  void write_documents(const std::string& name, int count) const {
    text::TokenWriter writer(folder_ + "/" + name, text::TokenFormat::kNanoGpt,
                             text::TokenWidth::kUint16);
    for (int i = 0; i < count; ++i) {
      std::vector<uint32_t> document = {static_cast<uint32_t>(1 + i * 11 % 63)};
      for (int t = 0; t < i * 7 % 20; ++t) {
        document.push_back(1 + (document.back() * 5 + i % 3) % 63);
      }
      document.push_back(0);
      writer.add(document);
    }
    writer.finish();
  }

  Job language_job(const std::vector<std::string>& overrides, const std::string& optimizer) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "task": "causal_lm",
      "model": {"name": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
                "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
                "max_position_embeddings": 16, "tie_word_embeddings": true},
      "data": {"source": "tokens", "root": ")" + folder_ +
                                                R"(", "sequence_length": 16,
               "train": {"file": "train.bin"}, "test": {"file": "test.bin"}, "end_of_text": "0"},
      "optimizer": )" + optimizer + R"(,
      "learning_rate": {"name": "constant", "base": 0.002},
      "train": {"max_steps": 20, "fetch_every": 1, "evaluate_every": 0}
    })",
                                            "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return make_job(tree);
  }

  struct Trained {
    Outcome outcome;
    std::vector<double> losses;  // by step
  };
  Trained train(const std::vector<std::string>& options, int world, const std::string& optimizer,
                int batches = 1) {
    std::filesystem::remove_all(output_);
    const std::string rows = std::to_string(kBatch / batches);
    Trained trained{run(language_job(with({"data.batch_size=" + rows}, options), optimizer), world),
                    {}};
    for (const auto& line : events("train")) trained.losses.push_back(line["loss"]);
    return trained;
  }

  static double apart(const std::vector<double>& a, const std::vector<double>& b) {
    return std::transform_reduce(
        a.begin(), a.end(), b.begin(), 0.0,
        [](double x, double y) {
          return std::isnan(x) || std::isnan(y) ? INFINITY : std::max(x, y);
        },
        [](double x, double y) { return std::abs(x - y); });
  }

  // After one step of sgd with rate 1, weights differ as the gradients do.
  static double gradients_apart(const Outcome& a, const Outcome& b) {
    double largest = 0;
    Weights others = together(b);
    for (const auto& [name, values] : together(a)) {
      const std::vector<float>& other = others.at(name);
      for (size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(double(values[i]) - other[i]));
      }
    }
    return largest;
  }

  std::string folder_;
};

const std::vector<LanguageStrategy> kStrategies = {
    {"none", {}},
    {"dropout", {"model.attention_dropout=0.2"}},
    {"amp", {"strategy.amp=true"}, kAdamW, 2e-2},  // 8 bits of a loss of 4
    {"pure_amp", {"strategy.amp=true", "strategy.amp_configs.use_pure_bf16=true"}, kAdamW, 2e-2},
    {"recompute",
     {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['every block']"},
     kAdamW,
     1e-5,
     true},
    {"sharding_1",
     {"strategy.sharding=true", "strategy.sharding_configs.stage=1"},
     kAdamW,
     1e-5,
     true},
    {"sharding_2",
     {"strategy.sharding=true", "strategy.sharding_configs.stage=2"},
     kAdamW,
     1e-5,
     true},
    {"sharding_3",
     {"strategy.sharding=true", "strategy.sharding_configs.stage=3"},
     kAdamW,
     1e-5,
     true},
    {"pipeline",
     {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=4",
      "strategy.pipeline_configs.cut=['layers.1']"},
     kAdamW,
     1e-5,
     true,
     2},
    {"lamb", {"strategy.lamb=true"}, kAdam},
    {"lars", {"strategy.lars=true"}, kMomentum},
    // Gradients travel with 11 bits.
    {"fp16_allreduce", {"strategy.fp16_allreduce=true"}, kAdamW, 1e-3},
    {"ema", {"train.ema=0.9", "train.evaluate_every=1"}},
    {"clip_global_norm", {"optimizer.clip=global_norm", "optimizer.clip_norm=0.1"}},
    {"clip_value", {"optimizer.clip=value", "optimizer.clip_value=0.001"}},
    {"localsgd",
     {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=1",
      "strategy.localsgd_configs.begin_step=1"},
     kMomentum},
};

TEST_F(LanguageStrategies, TwoRanks_TrainAsOne) {
  const Trained plain = train({}, 1, kAdamW);
  EXPECT_LT(plain.losses.back(), plain.losses.front());
  for (const LanguageStrategy& strategy : kStrategies) {
    SCOPED_TRACE(strategy.name);
    const bool as_without = strategy.as_without;
    const Trained one = as_without ? plain : train(strategy.options, 1, strategy.optimizer);
    const Trained two =
        train(strategy.options, 2, strategy.optimizer, 2 / strategy.ranks_of_a_batch);
    ASSERT_THAT(one.losses, SizeIs(20));
    ASSERT_THAT(two.losses, SizeIs(20));
    EXPECT_LE(apart(one.losses, two.losses), strategy.loss_tolerance);
    if (strategy.loss_tolerance > 1e-5) continue;
    EXPECT_LE(std::abs(one.losses[0] - two.losses[0]), 2e-6);  // a few bits of a loss of 4
  }
}

TEST_F(LanguageStrategies, GradientsOfTwoRanks_AreThoseOfOne) {
  const std::vector<std::string> first = {"train.max_steps=1", "learning_rate.base=1"};
  const Trained one = train(first, 1, kSgd);
  EXPECT_GT(gradients_apart(one.outcome,
                            train({"train.max_steps=2", "learning_rate.base=1"}, 1, kSgd).outcome),
            1e-3);
  for (const LanguageStrategy& strategy : kStrategies) {
    if (!strategy.as_without && strategy.name != "none") continue;
    SCOPED_TRACE(strategy.name);
    const Trained two =
        train(with(first, strategy.options), 2, kSgd, 2 / strategy.ranks_of_a_batch);
    EXPECT_LE(gradients_apart(one.outcome, two.outcome), 1e-6);
  }
}

// Four batches of two rows each have other numbers of tokens than two of four, and one of eight.
TEST_F(LanguageStrategies, Accumulations_TrainAsOneBatch) {
  const auto merged = [](int steps) {
    return std::vector<std::string>{
        "strategy.gradient_merge=true",
        "strategy.gradient_merge_configs.k_steps=" + std::to_string(steps),
        "train.max_steps=" + std::to_string(4 * steps), "learning_rate.base=0.1"};
  };
  const Trained whole = train({"train.max_steps=4", "learning_rate.base=0.1"}, 1, kMomentum);
  EXPECT_LE(gradients_apart(whole.outcome, train(merged(4), 1, kMomentum, 4).outcome), 1e-6);
  EXPECT_LE(gradients_apart(whole.outcome, train(merged(2), 2, kMomentum, 4).outcome), 1e-6);
}

// These train ranks apart, or send a part of the gradients.
TEST_F(LanguageStrategies, StrategiesThatApproximate_Train) {
  const std::vector<std::vector<std::string>> options = {
      {"strategy.dgc=true", "strategy.dgc_configs.rampup_begin_step=2",
       "strategy.dgc_configs.sparsity=[0.9]"},
      {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=2"},
      {"strategy.adaptive_localsgd=true", "strategy.adaptive_localsgd_configs.begin_step=2"}};
  for (const std::vector<std::string>& strategy : options) {
    SCOPED_TRACE(strategy[0]);
    const Trained two = train(with(strategy, {"learning_rate.base=0.1"}), 2, kMomentum, 2);
    ASSERT_THAT(two.losses, SizeIs(20));
    EXPECT_LT(two.losses.back(), two.losses.front() - 0.2);
    EXPECT_EQ(distance(parameters(two.outcome.weights[0]), parameters(two.outcome.weights[1])), 0);
  }
}

// The last batch of an epoch has one row: the second rank has no token with weight.
TEST_F(LanguageStrategies, RankWithoutTokens_AddsNothing) {
  text::TokenWriter writer(folder_ + "/few.bin", text::TokenFormat::kNanoGpt,
                           text::TokenWidth::kUint16);
  for (uint32_t i = 0; i < kBatch + 1; ++i) writer.add(std::vector<uint32_t>{i + 1, i + 2, 0});
  writer.finish();
  const std::vector<std::string> few = {"data.train.file=few.bin", "data.packing=none",
                                        "train.epochs=2", "learning_rate.base=0.1"};
  const Trained one = train(few, 1, kMomentum), two = train(few, 2, kMomentum, 2);
  EXPECT_EQ(one.outcome.results[0].steps, 4);  // two epochs
  ASSERT_THAT(two.losses, SizeIs(4));
  EXPECT_LE(gradients_apart(one.outcome, two.outcome), 1e-6);
  EXPECT_LE(apart(one.losses, two.losses), 1e-5);
}

// The first run loses the step behind its last checkpoint, in the middle of an epoch.
TEST_F(LanguageStrategies, Interrupted_GoesOnBitIdentically) {
  const std::vector<LanguageStrategy> strategies = {
      {"plain", {"strategy.amp=true"}},
      {"sharding", {"strategy.sharding=true", "strategy.sharding_configs.stage=2"}},
      {"pipeline",
       {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"},
       kAdamW,
       0,
       true,
       2}};
  for (const LanguageStrategy& strategy : strategies) {
    SCOPED_TRACE(strategy.name);
    const int batches = 2 / strategy.ranks_of_a_batch;
    const auto options = with(strategy.options, {"model.attention_dropout=0.1",
                                                 "checkpoint.every_steps=2", "train.max_steps=8"});
    const Trained whole = train(options, 2, strategy.optimizer, batches);
    train(with(options, {"train.max_steps=5", "checkpoint.at_end=false"}), 2, strategy.optimizer,
          batches);
    const std::string rows = "data.batch_size=" + std::to_string(kBatch / batches);
    const Outcome resumed =
        run(language_job(with(options, {"checkpoint.resume=auto", rows}), strategy.optimizer), 2);
    EXPECT_EQ(distance(together(whole.outcome), together(resumed)), 0);
  }
}

}  // namespace
}  // namespace fleet
