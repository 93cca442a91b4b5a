// Small encoders with dropout, pre-trained and fine-tuned with each strategy:
// two ranks give what one rank gives, though their rows have different numbers
// of masked tokens.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/engine/train/strategy_test.h"

namespace fleet {
namespace {

constexpr char kBert[] =
    R"({"name": "bert", "vocab_size": 21, "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 24)";
constexpr char kRoberta[] =
    R"({"name": "roberta", "vocab_size": 21, "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 24,
        "pad_token_id": 0)";
constexpr char kDistilbert[] =
    R"({"name": "distilbert", "vocab_size": 21, "dim": 16, "hidden_dim": 24, "n_layers": 2,
        "n_heads": 2, "max_position_embeddings": 24)";

std::vector<TrainedStrategy> named(const std::vector<std::string>& names) {
  std::vector<TrainedStrategy> found = exact_strategies("layers.0");
  std::erase_if(found, [&](const TrainedStrategy& strategy) {
    return std::ranges::find(names, strategy.name) == names.end();
  });
  return found;
}

class EncoderStrategies : public StrategyTest {
 protected:
  void SetUp() override {
    StrategyTest::SetUp();
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'p'; ++c) vocabulary += std::string(1, c) + "\n";
    write_file_atomically(folder_ + "/vocab.txt", vocabulary);
    write_documents();
    write_rows();
  }

  // Each word of a sentence is a function of the word before, so that there is
  // something to learn.
  void write_documents() const {
    std::string text;
    for (int d = 0; d < 20; ++d) {
      for (int s = 0; s < 2 + d % 5; ++s) {
        int word = d * 7 % 16;
        for (int w = 0; w < 2 + (d * 3 + s) % 6; ++w) {
          text += std::string(1, static_cast<char>('a' + word)) + " ";
          word = (word * 5 + 1) % 16;
        }
        text += "\n";
      }
      text += "\n";
    }
    write_file_atomically(folder_ + "/documents.txt", text);
  }

  // Pairs of 1 to 10 words and 1; the class and the scores follow from the first word; most have
  // one class, so that 20 steps learn something. The same texts, with a label for each word, and as
  // contexts that have a question's answer.
  void write_rows() const {
    std::string rows = "one\ttwo\tclass\tscore\tother\n", words;
    nlohmann::json paragraphs;
    for (int i = 0; i < 43; ++i) {
      const int first = i * 5 % 16;
      std::string text(1, static_cast<char>('a' + first));
      for (int w = 0; w < i * 7 % 10; ++w) text += std::string(" ") + char('a' + (i + w * 3) % 16);
      rows += text + "\tb\t" + (first < 14 ? "low" : "high") + "\t" + std::to_string(first / 8) +
              "\t0.5\n";
      for (const char c : text) {
        if (c != ' ') words += std::string(1, c) + (c < 'n' ? " O\n" : " B-X\n");
      }
      words += "\n";
      const nlohmann::json answer = {{"text", text.substr(0, 1)}, {"answer_start", 0}};
      paragraphs.push_back(
          {{"context", text},
           {"qas", {{{"id", std::to_string(i)}, {"question", "a b"}, {"answers", {answer}}}}}});
    }
    write_file_atomically(folder_ + "/rows.tsv", rows);
    write_file_atomically(folder_ + "/words.txt", words);
    write_file_atomically(folder_ + "/questions.json",
                          nlohmann::json{{"data", {{{"paragraphs", paragraphs}}}}}.dump());
  }

  // The source of the task, its keys and its file, in JSON.
  std::string data_of_task() const {
    const std::string pairs =
        R"("text_column": "one", "text_pair_column": "two", "label_column": )";
    std::string keys, file;
    if (task_ == "masked_lm") {
      keys = R"("source": "masked_text", "sentences": "lines", "token_cache": ")" + folder_ +
             R"(/cache")";
      if (model_ != kBert) keys += R"(, "next_sentence": false)";
      file = "documents.txt";
    } else if (task_ == "token_classification") {
      keys = R"("source": "token_labels")";
      file = "words.txt";
    } else if (task_ == "question_answering") {
      keys = R"("source": "squad", "stride": 4)";
      file = "questions.json";
    } else if (task_ == "regression") {
      keys = R"("source": "scored_text", )" + pairs + R"(["score", "other"])";
      file = "rows.tsv";
    } else {
      keys = R"("source": "labelled_text", )" + pairs + R"(["class"])";
      file = "rows.tsv";
    }
    return keys + R"(, "train": {"file": ")" + file + R"("}, "test": {"file": ")" + file + "\"}";
  }

  Job strategy_job(const std::vector<std::string>& overrides,
                   const std::string& optimizer) const override {
    const bool classes = task_ != "masked_lm" && task_ != "question_answering";
    ConfigTree tree = ConfigTree::from_json(
        R"({"task": ")" + task_ + R"(", "model": )" + model_ +
            (classes ? R"(, "num_classes": 2})" : "}") + R"(, "data": {"root": ")" + folder_ +
            R"(", "tokenizer": "vocab.txt", "sequence_length": 16, )" + data_of_task() +
            R"(}, "optimizer": )" + optimizer + R"(,
        "learning_rate": {"name": "constant", "base": 0.002},
        "train": {"epochs": 30, "fetch_every": 1, "evaluate_every": 0}})",
        "test");
    std::vector<std::string> own = {"train.output=" + output_};
    if (!lengths_.empty()) own.push_back("data.lengths=" + lengths_);
    apply_overrides(tree,
                    with({"train.max_steps=" + std::to_string(steps_)}, with(overrides, own)));
    return make_job(tree);
  }

  std::string task_ = "masked_lm", model_ = kBert, lengths_;
};

TEST_F(EncoderStrategies, TwoRanks_PretrainBertAsOne) {
  expect_two_ranks_train_as_one(exact_strategies("layers.0"));
}

// In batches of two lengths: a Plan for each.
TEST_F(EncoderStrategies, TwoRanks_FineTuneBertAsOne) {
  task_ = "sequence_classification";
  lengths_ = "[8, 16]";
  expect_two_ranks_train_as_one(exact_strategies("layers.0"));
}

// The sums of the other heads and losses take part in each of these in another way.
TEST_F(EncoderStrategies, TwoRanks_TrainNumbersLabelsAndAnswersAsOne) {
  steps_ = 6;
  for (const char* task : {"regression", "token_classification", "question_answering"}) {
    SCOPED_TRACE(task);
    task_ = task;
    expect_two_ranks_train_as_one(
        named({"none", "amp", "recompute", "gradient_merge", "lamb", "sharding_1", "sharding_2",
               "sharding_3", "pipeline", "ema"}));
  }
}

TEST_F(EncoderStrategies, LayerDecay_IsThatOfOneRank) {
  steps_ = 6;
  task_ = "sequence_classification";
  const std::vector<std::string> decay = {"optimizer.layer_decay=0.5"};
  const std::vector<std::string> sharded =
      with(decay, {"strategy.sharding=true", "strategy.sharding_configs.stage=2"});
  const Trained whole = train({}, 1, kAdamW), one = train(decay, 1, kAdamW);
  EXPECT_GT(apart(whole.losses, one.losses), 1e-4);
  EXPECT_LE(apart(one.losses, train(decay, 2, kAdamW, 2).losses), 1e-5);
  EXPECT_LE(apart(one.losses, train(sharded, 2, kAdamW, 2).losses), 1e-5);
}

TEST_F(EncoderStrategies, GradientsOfTwoRanks_AreThoseOfOne) {
  for (const char* task : {"masked_lm", "sequence_classification"}) {
    SCOPED_TRACE(task);
    task_ = task;
    expect_gradients_of_one_rank(exact_strategies("layers.0"));
  }
}

TEST_F(EncoderStrategies, MergedSteps_TrainAsOneBatch) {
  for (const char* task : {"masked_lm", "sequence_classification"}) {
    SCOPED_TRACE(task);
    task_ = task;
    expect_merged_steps_train_as_one_batch();
  }
}

TEST_F(EncoderStrategies, StrategiesThatApproximate_Train) {
  for (const char* task : {"masked_lm", "sequence_classification"}) {
    SCOPED_TRACE(task);
    task_ = task;
    expect_approximations_train(0.01);
  }
}

TEST_F(EncoderStrategies, Interrupted_GoesOnBitIdentically) {
  for (const char* task : {"masked_lm", "sequence_classification"}) {
    SCOPED_TRACE(task);
    task_ = task;
    expect_bits_of_whole_runs(named({"sharding_3", "pipeline", "bfloat16_weights"}));
  }
}

TEST_F(EncoderStrategies, OtherFamilies_TrainOnTwoRanksAsOnOne) {
  for (const char* task : {"masked_lm", "sequence_classification"}) {
    for (const char* model : {kRoberta, kDistilbert}) {
      SCOPED_TRACE(std::string(task) + model);
      task_ = task;
      model_ = model;
      expect_two_ranks_train_as_one(named({"sharding_3", "pipeline"}));
    }
  }
}

}  // namespace
}  // namespace fleet
