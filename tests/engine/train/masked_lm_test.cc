// Pre-training of a small BERT: two ranks give what one gives, an interrupted run goes on with the
// same bits, and a second phase with longer rows goes on from the first.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using ::testing::SizeIs;

// Words of a letter in front of others; "##" pieces continue them.
std::string tokenizer_of_letters() {
  std::string vocabulary, added;
  int id = 0;
  const auto add = [&](const std::string& token) {
    vocabulary += (id ? ", \"" : "\"") + token + "\": " + std::to_string(id);
    ++id;
  };
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    added += (id ? ", {\"id\": " : "{\"id\": ") + std::to_string(id) + R"(, "content": ")" + token +
             R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
             "special": true})";
    add(token);
  }
  for (char c = 'a'; c <= 'z'; ++c) add(std::string(1, c));
  for (char c = 'a'; c <= 'z'; ++c) add(std::string("##") + c);
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [)" + added +
         R"(], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": null, "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {)" +
         vocabulary + "}}}";
}

class MaskedLm : public TrainerTest {
 protected:
  static constexpr int kBatch = 8;  // rows of all ranks in an update

  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = ::testing::TempDir() + "/masked_lm_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/tokenizer.json") << tokenizer_of_letters();
    // Each word of a sentence is a function of the word before, so that there is something to
    // learn; sentences of a document begin alike.
    std::ofstream text(folder_ + "/a.txt");
    for (int d = 0; d < 30; ++d) {
      for (int s = 0; s < 2 + d % 5; ++s) {
        int word = d * 7 % 26;
        for (int w = 0; w < 2 + (d * 3 + s) % 6; ++w) {
          text << static_cast<char>('a' + word) << (w % 3 == 2 ? "b " : " ");
          word = (word * 5 + 1) % 26;
        }
        text << "\n";
      }
      text << "\n";
    }
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }

  Job masked_job(const std::vector<std::string>& overrides) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "task": "masked_lm",
      "model": {"name": "bert", "vocab_size": 57, "hidden_size": 16, "intermediate_size": 32,
                "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 32},
      "data": {"source": "masked_text", "root": ")" +
                                                folder_ + R"(", "token_cache": ")" + folder_ +
                                                R"(/cache",
               "tokenizer": "tokenizer.json", "sequence_length": 16, "sentences": "lines",
               "train": {"file": "a.txt"}, "test": {"file": "a.txt"}},
      "optimizer": {"name": "adamw", "weight_decay": 0.01},
      "learning_rate": {"name": "constant", "base": 0.003},
      "train": {"epochs": 30, "max_steps": 20, "fetch_every": 1, "evaluate_every": 0}
    })",
                                            "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return make_job(tree);
  }

  struct Trained {
    Outcome outcome;
    std::vector<double> losses;  // by step
  };
  // rows: of a rank in a step.
  Trained train(const std::vector<std::string>& options, int world, int rows) {
    std::filesystem::remove_all(output_);
    Trained trained{
        run(masked_job(with({"data.batch_size=" + std::to_string(rows)}, options)), world), {}};
    for (const auto& line : events("train")) trained.losses.push_back(line["loss"]);
    return trained;
  }
  static double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b.at(i)));
    return largest;
  }

  std::string folder_;
};

const std::vector<std::vector<std::string>> kData = {
    {},
    {"data.next_sentence=false"},
    {"data.whole_word_masking=true", "data.masking_rate=0.3", "data.short_sequences=0.5"}};

// Rows have different numbers of masked tokens, and epochs end within the 20 steps, with padding.
TEST_F(MaskedLm, TwoRanks_TrainAsOne) {
  for (const std::vector<std::string>& data : kData) {
    SCOPED_TRACE(data.empty() ? "pairs" : data[0]);
    const Trained one = train(data, 1, kBatch), two = train(data, 2, kBatch / 2);
    ASSERT_THAT(one.losses, SizeIs(20));
    ASSERT_THAT(two.losses, SizeIs(20));
    EXPECT_LE(largest_difference(one.losses, two.losses), 1e-5);
    EXPECT_LT(one.losses.back(), one.losses.front());
    EXPECT_GT(events("train").back()["epoch"], 0);
  }
}

TEST_F(MaskedLm, MergedSteps_TrainAsOneBatch) {
  const std::vector<std::string> sgd = {"optimizer={\"name\": \"momentum\", \"momentum\": 0.9}",
                                        "learning_rate.base=0.1", "model.hidden_dropout_prob=0",
                                        "model.attention_probs_dropout_prob=0"};
  const Trained whole = train(with(sgd, {"train.max_steps=8"}), 1, kBatch);
  const Trained merged =
      train(with(sgd, {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2",
                       "train.max_steps=16"}),
            2, kBatch / 4);
  const Weights ones = parameters(together(whole.outcome));
  const Weights others = parameters(together(merged.outcome));
  for (const auto& [name, values] : ones) {
    const std::vector<float>& other = others.at(name);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], other[i], 1e-6) << name;
  }
}

// The first run loses the steps behind its last checkpoint, in the middle of an epoch.
TEST_F(MaskedLm, Interrupted_GoesOnBitIdentically) {
  const std::vector<std::string> options = {"checkpoint.every_steps=2", "train.max_steps=12"};
  const Trained whole = train(options, 2, kBatch / 2);
  train(with(options, {"train.max_steps=7", "checkpoint.at_end=false"}), 2, kBatch / 2);
  const Outcome resumed =
      run(masked_job(with(options, {"checkpoint.resume=auto", "data.batch_size=4"})), 2);
  EXPECT_EQ(distance(together(whole.outcome), together(resumed)), 0);
}

TEST_F(MaskedLm, Evaluation_IsTheSameForAnyRanksAndEpoch) {
  const std::vector<std::string> options = {"train.max_steps=12", "learning_rate.base=0",
                                            "train.evaluate_every=1"};
  std::vector<nlohmann::json> tests;
  for (const int world : {1, 2}) {
    train(options, world, kBatch / world);
    for (const auto& line : events("test")) tests.push_back(line);
  }
  ASSERT_GE(tests.size(), 4u);
  for (const auto& line : tests) {
    for (const char* metric : {"loss", "masked_loss", "next_sentence_loss", "masked_accuracy",
                               "next_sentence_accuracy", "perplexity"}) {
      EXPECT_NEAR(line[metric].get<double>(), tests[0][metric].get<double>(), 1e-4) << metric;
    }
    EXPECT_NEAR(line["loss"].get<double>(),
                line["masked_loss"].get<double>() + line["next_sentence_loss"].get<double>(), 1e-5);
    EXPECT_NEAR(line["perplexity"].get<double>(), std::exp(line["masked_loss"].get<double>()),
                1e-2);
  }
}

// The second phase has longer rows and another batch; its optimizer, schedule and steps go on.
TEST_F(MaskedLm, LongerRows_GoOnFromTheFirstPhase) {
  const std::vector<std::string> second = {"data.sequence_length=32", "checkpoint.resume=auto",
                                           "data.batch_size=2", "checkpoint.every_steps=1"};
  const Trained first = train({"train.max_steps=7"}, 1, kBatch);
  const int64_t epoch = events("train").back()["epoch"];
  EXPECT_THAT(refusal(masked_job(with(second, {"train.max_steps=12"}))),
              IsError(ErrorCode::kUsage));
  const auto phase = [&](const std::string& steps) {
    return masked_job(with(second, {"checkpoint.new_data=true", "train.max_steps=" + steps}));
  };
  const Outcome whole = run(phase("12"), 2);
  const std::vector<nlohmann::json> lines = events("train");
  ASSERT_THAT(lines, SizeIs(12));
  EXPECT_EQ(lines.back()["step"], 11);
  EXPECT_EQ(lines[7]["epoch"], epoch + 1);
  EXPECT_EQ(whole.results[0].steps, 12);
  EXPECT_LT(lines.back()["loss"].get<double>(), first.losses.front());
}

// A phase that is interrupted goes on where it was, not at another new epoch.
TEST_F(MaskedLm, InterruptedSecondPhase_GoesOnBitIdentically) {
  const auto phase = [&](const std::string& steps, const std::string& from) {
    return masked_job({"data.sequence_length=32", "checkpoint.resume=" + from, "data.batch_size=4",
                       "checkpoint.every_steps=1", "checkpoint.new_data=true", "checkpoint.keep=0",
                       "train.max_steps=" + steps});
  };
  train({"train.max_steps=3"}, 1, kBatch);
  const std::string first = output_ + "/checkpoints/step_00000003";
  ASSERT_TRUE(std::filesystem::exists(first));
  const Outcome whole = run(phase("8", "auto"), 1);
  const Outcome restarted = run(phase("8", output_ + "/checkpoints/step_00000005"), 1);
  EXPECT_EQ(distance(together(whole), together(restarted)), 0);
}

}  // namespace
}  // namespace fleet
