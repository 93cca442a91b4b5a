// A small language model whose embedding is its head, trained with each strategy: two ranks give
// what one rank gives, though their rows have different numbers of tokens.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/engine/train/strategy_test.h"
#include "text/token_file.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

using ::testing::SizeIs;

class LanguageStrategies : public StrategyTest {
 protected:
  void SetUp() override {
    StrategyTest::SetUp();
    write_documents("train.bin", 300);
    write_documents("test.bin", 20);
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

  Job strategy_job(const std::vector<std::string>& overrides,
                   const std::string& optimizer) const override {
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
};

// Two ranks' rows have different numbers of tokens.
TEST_F(LanguageStrategies, TwoRanks_TrainAsOne) {
  std::vector<TrainedStrategy> strategies = exact_strategies("layers.1");
  strategies.push_back({"dropout", {"model.attention_dropout=0.2"}});
  expect_two_ranks_train_as_one(strategies);
}

TEST_F(LanguageStrategies, GradientsOfTwoRanks_AreThoseOfOne) {
  expect_gradients_of_one_rank(exact_strategies("layers.1"));
}

TEST_F(LanguageStrategies, Accumulations_TrainAsOneBatch) {
  expect_merged_steps_train_as_one_batch();
}

// After one step of sgd, a parameter moved by its layer's factor times what it moves without. The
// embedding is the head too.
TEST_F(LanguageStrategies, LayerDecay_ScalesTheStepOfEachLayer) {
  const auto factor = [](const std::string& name) {
    const size_t layer = name.find("layers.");
    if (layer != std::string::npos) return std::pow(0.5, 4 - (name[layer + 7] - '0'));
    return name.find("embed") != std::string::npos ? std::pow(0.5, 5) : 1;
  };
  const std::vector<std::string> first = {"train.max_steps=1", "learning_rate.base=1"};
  const Weights start = together(train(with(first, {"learning_rate.base=0"}), 1, kSgd).outcome);
  for (const auto& strategy : std::vector<std::vector<std::string>>{
           {},
           {"strategy.amp=true"},
           {"strategy.sharding=true", "strategy.sharding_configs.stage=3"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2",
            "train.max_steps=2"}}) {
    SCOPED_TRACE(strategy.empty() ? "" : strategy.back());
    const auto options = with(first, strategy);
    const Weights whole = together(train(options, 2, kSgd, 2).outcome);
    const Weights decayed =
        together(train(with(options, {"optimizer.layer_decay=0.5"}), 2, kSgd, 2).outcome);
    double moved = 0;
    for (const auto& [name, values] : start) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double step = double(whole.at(name)[i]) - values[i];
        EXPECT_NEAR(double(decayed.at(name)[i]) - values[i], factor(name) * step, 1e-6) << name;
        moved = std::max(moved, std::abs(step));
      }
    }
    EXPECT_GT(moved, 1e-2);
  }
}

TEST_F(LanguageStrategies, FrozenLayers_StayAsTheyBegan) {
  const std::vector<std::string> frozen = {
      R"(optimizer.frozen=["model.embed_tokens.*", "model.layers.[01].*"])"};
  const Weights start = together(train(with(frozen, {"learning_rate.base=0"}), 1, kSgd).outcome);
  const Weights end =
      together(train(with(frozen, {"optimizer.layer_decay=0.8"}), 2, kSgd, 2).outcome);
  for (const auto& [name, values] : start) {
    const bool stays = name.starts_with("model.embed") || name.starts_with("model.layers.0") ||
                       name.starts_with("model.layers.1");
    EXPECT_EQ(values == end.at(name), stays) << name;
  }
}

TEST_F(LanguageStrategies, StrategiesThatApproximate_Train) { expect_approximations_train(0.2); }

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

// The types of the tensors in a file of the last checkpoint, by name.
std::map<std::string, DType> types_in(const std::string& output, const std::string& file) {
  std::map<std::string, DType> types;
  const auto folder = latest_checkpoint(output + "/checkpoints");
  for (const auto& [name, tensor] : read_safetensors(folder.value() + "/" + file).tensors) {
    types[name] = tensor.dtype;
  }
  return types;
}

// Rates at which 10 steps train without jumps.
TEST_F(LanguageStrategies, BFloat16Weights_TrainLikeFloat32) {
  const std::map<std::string, std::string> rates = {{"sgd", "0.1"},
                                                    {"momentum", "0.1"},
                                                    {"lars", "0.1"},
                                                    {"lamb", "0.02"},
                                                    {"rmsprop", "0.0002"}};
  int fell = 0;
  for (const std::string& name : optimizer_registry().names()) {
    SCOPED_TRACE(name);
    const std::string optimizer = R"({"name": ")" + name + "\"}";
    const auto given = rates.find(name);
    const std::string rate =
        "learning_rate.base=" + (given == rates.end() ? "0.002" : given->second);
    const std::vector<std::string> options = {rate, "train.max_steps=10"};
    const Trained wide = train(options, 1, optimizer);
    const Trained narrow = train(with(options, {"train.weights_dtype=bfloat16"}), 1, optimizer);
    ASSERT_THAT(narrow.losses, SizeIs(10));
    EXPECT_LE(apart(wide.losses, narrow.losses), 3e-2);
    fell += narrow.losses.back() < narrow.losses.front() - 0.1;
  }
  EXPECT_GE(fell, 2);  // adam and adamw at least
}

// All but the scales of norms; moments, too.
TEST_F(LanguageStrategies, BFloat16Weights_AreSavedAsSuch) {
  train({"train.weights_dtype=bfloat16", "train.max_steps=2"}, 1, kAdamW);
  for (const auto& [file, count] :
       {std::pair("model.safetensors", 1), std::pair("optimizer.safetensors", 2)}) {
    int norms = 0;
    for (const auto& [name, type] : types_in(output_, file)) {
      if (name == "optimizer.step") continue;
      const bool norm = name.find("norm") != std::string::npos;
      norms += norm;
      EXPECT_EQ(type, norm ? DType::kFloat32 : DType::kBFloat16) << name;
    }
    EXPECT_EQ(norms, 9 * count);  // two a layer and the last one
  }
}

// Which rank updates a parameter changes nothing.
TEST_F(LanguageStrategies, BFloat16WeightsOfShards_AreTheSameBits) {
  const std::vector<std::string> narrow = {"train.weights_dtype=bfloat16", "strategy.amp=true",
                                           "train.max_steps=6"};
  const Trained plain = train(narrow, 2, kAdamW, 2);
  for (const char* stage : {"1", "2", "3"}) {
    const Trained sharded = train(
        with(narrow,
             {"strategy.sharding=true", "strategy.sharding_configs.stage=" + std::string(stage)}),
        2, kAdamW, 2);
    EXPECT_EQ(plain.losses, sharded.losses) << stage;
    EXPECT_EQ(distance(together(plain.outcome), together(sharded.outcome)), 0) << stage;
  }
}

TEST_F(LanguageStrategies, BFloat16WeightsOfAPipeline_TrainAsOnOneRank) {
  const std::vector<std::string> cut = {"train.weights_dtype=bfloat16", "strategy.pipeline=true",
                                        "strategy.pipeline_configs.accumulate_steps=4",
                                        "strategy.pipeline_configs.cut=['layers.1']"};
  const Trained one = train({"train.weights_dtype=bfloat16"}, 1, kAdamW);
  EXPECT_LE(apart(one.losses, train(cut, 2, kAdamW).losses), 3e-2);
}

// A file of float32 weights starts a job that stores them in bfloat16; its checkpoint starts a job
// in float32.
TEST_F(LanguageStrategies, BFloat16Weights_AreConvertedWhenLoaded) {
  const std::string kept = folder_ + "/model.safetensors";
  const auto keep = [&] {
    const auto folder = latest_checkpoint(output_ + "/checkpoints");
    std::filesystem::copy_file(folder.value() + "/model.safetensors", kept,
                               std::filesystem::copy_options::overwrite_existing);
  };
  const Trained wide = train({}, 1, kAdamW);
  keep();
  const std::vector<std::string> from = {"checkpoint.weights=" + kept};
  const Trained narrow = train(with(from, {"train.weights_dtype=bfloat16"}), 1, kAdamW);
  EXPECT_NEAR(narrow.losses.front(), wide.losses.back(), 0.3);  // another batch
  EXPECT_LT(narrow.losses.front(), wide.losses.front() - 0.3);
  keep();
  const Trained again = train(from, 1, kAdamW);
  EXPECT_LT(again.losses.front(), narrow.losses.front());
}

// Rows instead of the whole gradient: on one rank the same bits; on two, what one rank gives.
TEST_F(LanguageStrategies, SparseEmbedding_TrainsAsTheWholeOne) {
  const std::vector<std::string> untied = {"model.tie_word_embeddings=false",
                                           "learning_rate.base=0.1"};
  const std::vector<std::string> sparse = with(untied, {"model.sparse_embedding=true"});
  for (const char* optimizer : {kSgd, R"({"name": "adagrad"})",
                                R"({"name": "sgd", "clip": "global_norm", "clip_norm": 0.1})"}) {
    SCOPED_TRACE(optimizer);
    const Trained whole = train(untied, 1, optimizer), rows = train(sparse, 1, optimizer);
    EXPECT_LE(apart(whole.losses, rows.losses), 1e-6);
    EXPECT_LE(distance(together(whole.outcome), together(rows.outcome)), 1e-6);
    const Trained two = train(sparse, 2, optimizer, 2);
    ASSERT_THAT(two.losses, SizeIs(20));
    // adagrad's first step is the sign of a gradient, also of one near 0.
    const bool smooth = std::string(optimizer).find("sgd") != std::string::npos;
    const Trained other = smooth ? rows : train(untied, 2, optimizer, 2);
    EXPECT_LE(apart(other.losses, two.losses), 1e-5);
    EXPECT_EQ(distance(two.outcome.weights[0], two.outcome.weights[1]), 0);
  }
  const Trained low = train(with(sparse, {"strategy.amp=true"}), 2, kSgd, 2);
  EXPECT_LT(low.losses.back(), low.losses.front());
}

TEST_F(LanguageStrategies, SparseEmbeddingThatCannotBe_IsRefused) {
  const std::string place = "the sparse embedding 'model.embed_tokens.weight'";
  const std::vector<std::string> sparse = {"model.tie_word_embeddings=false",
                                           "model.sparse_embedding=true", "data.batch_size=4"};
  const auto refused = [&](const std::vector<std::string>& options, const char* optimizer) {
    return refusal(strategy_job(with(sparse, options), optimizer));
  };
  EXPECT_THAT(refused({}, kAdam), IsUsageError(place));
  EXPECT_THAT(refused({"train.weights_dtype=bfloat16"}, kSgd), IsUsageError(place));
  EXPECT_THAT(
      refused({"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"}, kSgd),
      IsUsageError(place));
  EXPECT_THAT(refused({"model.tie_word_embeddings=true"}, kSgd), IsUsageError(place));
}

TEST_F(LanguageStrategies, Interrupted_GoesOnBitIdentically) {
  const std::string dropout = "model.attention_dropout=0.1";
  expect_bits_of_whole_runs(
      {{"plain", {dropout, "strategy.amp=true"}},
       {"sharding", {dropout, "strategy.sharding=true", "strategy.sharding_configs.stage=2"}},
       {"bfloat16_weights",
        {dropout, "train.weights_dtype=bfloat16", "strategy.amp=true", "train.ema=0.9"}},
       {"pipeline",
        {dropout, "strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"},
        kAdamW,
        0,
        true,
        2}});
}

}  // namespace
}  // namespace fleet
