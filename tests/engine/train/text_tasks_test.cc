// A small BERT that learns classes and numbers of texts, alone and on two ranks, and predicts them.
#include <gmock/gmock.h>

#include <cstring>

#include "base/env.h"
#include "base/file.h"
#include "exec/backend.h"
#include "tests/engine/models/text/golden_text.h"
#include "tests/engine/train/trainer_job.h"
#include "train/job_check.h"
#include "train/job_data.h"
#include "train/predict.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
class TextTasks : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(output_);
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    for (char c = 'a'; c <= 'p'; ++c) vocabulary += std::string(1, c) + "\n";
    write_file_atomically(output_ + "/vocab.txt", vocabulary);
    write_rows("train.tsv", 96);
    write_rows("test.tsv", 21);
  }

  // Pairs of 1 to 12 words; the class is whether they begin with the same word, the score how many
  // words the first has.
  void write_rows(const std::string& name, int count) const {
    std::string rows = "one\ttwo\tclass\tscore\n";
    for (int i = 0; i < count; ++i) {
      const int words = 1 + i * 7 % 12;
      std::string text(1, static_cast<char>('a' + i * 5 % 16));
      const bool same = i % 2 == 0;
      const std::string other(1, same ? text[0] : static_cast<char>('a' + (i * 5 + 3) % 16));
      for (int w = 1; w < words; ++w) text += std::string(" ") + char('a' + (i + w * 3) % 16);
      rows += text + "\t" + other + " b\t" + (same ? "same" : "other") + "\t" +
              std::to_string(words * 0.25) + "\n";
    }
    write_file_atomically(output_ + "/" + name, rows);
  }

  Job text_job(const std::vector<std::string>& overrides, bool scores = false) const {
    ConfigTree tree = ConfigTree::from_json(
        R"({
      "task": ")" +
            std::string(scores ? "regression" : "sequence_classification") + R"(",
      "model": {"name": "bert", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24,
                "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 40,
                "num_classes": )" +
            (scores ? "1" : "2") + R"(},
      "data": {"source": ")" +
            (scores ? "scored_text" : "labelled_text") + R"(", "root": ")" + output_ +
            R"(", "tokenizer": "vocab.txt", "sequence_length": 24, "text_column": "one",
               "text_pair_column": "two", "label_column": [")" +
            (scores ? "score" : "class") +
            R"("], "train": {"file": "train.tsv"}, "test": {"file": "test.tsv"},
               "batch_size": 16},
      "optimizer": {"name": "adamw"},
      "learning_rate": {"name": "constant", "base": 0.003},
      "train": {"epochs": 2, "fetch_every": 1}
    })",
        "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_ + "/run"}));
    return make_job(tree);
  }

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const auto& line : events("train", "run/metrics.jsonl")) all.push_back(line["loss"]);
    return all;
  }

  void predict_on(int world, const Job& job) {
    run_ranks_well(world, [&](RankThread& rank) {
      HostDevice device;
      predict(
          job, device,
          {.rank = rank.rank, .world = world, .control = rank.communicator, .store = rank.store});
    });
  }
  std::vector<nlohmann::json> lines(const std::string& name) const {
    std::vector<nlohmann::json> all;
    std::ifstream file(output_ + "/" + name);
    for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  std::vector<std::string> predicting(const std::string& input, const std::string& output,
                                      const std::vector<std::string>& more = {}) const {
    return with(
        {"predict.input=" + output_ + "/" + input, "predict.output=" + output_ + "/" + output},
        more);
  }

  // The float32 rows of a .npy file.
  std::vector<std::vector<float>> array(const std::string& name, size_t columns) const {
    const std::string bytes = read_file(output_ + "/" + name);
    uint16_t head = 0;
    std::memcpy(&head, bytes.data() + 8, 2);
    const size_t start = 10 + size_t{head};
    EXPECT_EQ(start % 64, 0u);
    std::vector<std::vector<float>> rows((bytes.size() - start) / (4 * columns));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].resize(columns);
      std::memcpy(rows[i].data(), bytes.data() + start + i * 4 * columns, 4 * columns);
    }
    return rows;
  }
};

TEST_F(TextTasks, TwoRanks_FollowOne) {
  for (const bool scores : {false, true}) {
    std::vector<std::vector<double>> all;
    for (const int world : {1, 2}) {
      fs::remove_all(output_ + "/run");
      run(text_job({"data.batch_size=" + std::to_string(16 / world)}, scores), world);
      all.push_back(losses());
    }
    ASSERT_EQ(all[0].size(), 12u);
    ASSERT_EQ(all[1].size(), 12u);
    for (size_t i = 0; i < all[0].size(); ++i) {
      EXPECT_NEAR(all[0][i], all[1][i], 1e-5 * std::max(1.0, all[0][i])) << i;
    }
    if (scores) {
      EXPECT_LT(all[0].back(), all[0].front());
    }
    const auto evaluations = events("test", "run/metrics.jsonl");
    ASSERT_FALSE(evaluations.empty());
    EXPECT_TRUE(evaluations.back().contains(scores ? "pearson" : "accuracy"));
  }
}

TEST_F(TextTasks, Predictions_KeepTheOrderOfTheInputOnAnyNumberOfRanks) {
  run(text_job({}), 1);
  write_file_atomically(output_ + "/new.tsv",
                        "two\tone\na\ta b c d e f g h i j k l m n o p\nb\tc\nx\t \nd\tc d\n");
  std::string first;
  for (const int world : {1, 2}) {
    predict_on(world, text_job(predicting("new.tsv", "lines.jsonl", {"data.batch_size=2"})));
    const std::vector<nlohmann::json> all = lines("lines.jsonl");
    ASSERT_EQ(all.size(), 4u);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(all[i]["file"], output_ + "/new.tsv:" + std::to_string(i + 2));
      EXPECT_EQ(all[i].contains("error"), i == 2);
    }
    EXPECT_EQ(all[0]["class_name"], all[0]["class"] == 0 ? "other" : "same");
    EXPECT_NEAR(all[0]["top"][0]["probability"].get<double>() +
                    all[0]["top"][1]["probability"].get<double>(),
                1, 1e-6);
    const std::string text = read_file(output_ + "/lines.jsonl");
    if (world == 1) first = text;
    EXPECT_EQ(text, first);
  }
  // Batches by length are for training: predictions have lengths of their own.
  predict_on(1, text_job(predicting("new.tsv", "scores.npy", {"data.lengths=[12,24]"})));
  const auto scores = array("scores.npy", 2);
  ASSERT_EQ(scores.size(), 4u);
  EXPECT_TRUE(std::isnan(scores[2][0]));
  const nlohmann::json line = lines("lines.jsonl")[3];
  EXPECT_NEAR(scores[3][line["class"].get<size_t>()], line["probability"].get<double>(), 1e-6);
}

TEST_F(TextTasks, Regression_PredictsNumbers) {
  run(text_job({}, true), 1);
  predict_on(1, text_job(predicting("test.tsv", "values.csv"), true));
  const std::string text = read_file(output_ + "/values.csv");
  EXPECT_EQ(text.substr(0, text.find('\n')), "file,value,error");
  EXPECT_EQ(std::ranges::count(text, '\n'), 22);
  predict_on(1, text_job(predicting("test.tsv", "values.jsonl"), true));
  EXPECT_TRUE(lines("values.jsonl").at(0)["value"].is_number());
}

// Padding and the other texts of a batch do not count.
TEST_F(TextTasks, Embeddings_DoNotDependOnTheBatch) {
  run(text_job({}), 1);
  write_file_atomically(output_ + "/new.tsv", "one\ttwo\na b c\td\ne\tf\na b c d e f g\th\n");
  const std::vector<std::string> mean = {"predict.embedding=mean", "predict.normalize=true"};
  predict_on(1, text_job(predicting("new.tsv", "all.npy", mean)));
  predict_on(2, text_job(predicting("new.tsv", "all.jsonl", with(mean, {"data.batch_size=1"}))));
  const auto rows = array("all.npy", 16);
  const std::vector<nlohmann::json> alone = lines("all.jsonl");
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(alone.size(), 3u);
  for (size_t i = 0; i < rows.size(); ++i) {
    double squares = 0;
    for (size_t f = 0; f < 16; ++f) {
      EXPECT_NEAR(rows[i][f], alone[i]["embedding"][f].get<double>(), 1e-6);
      squares += double(rows[i][f]) * rows[i][f];
    }
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  predict_on(1, text_job(predicting("new.tsv", "first.npy", {"predict.embedding=cls"})));
  EXPECT_NE(array("first.npy", 16)[0], rows[0]);
}

// As those of a pre-training: the check before the start accepts what the training accepts.
TEST_F(TextTasks, WeightsWithoutAHead_PassTheCheckAndTrain) {
  run(text_job({"train.max_steps=1"}), 1);
  TensorFile file = read_safetensors(output_ + "/run/checkpoints/step_00000001/model.safetensors");
  ASSERT_EQ(file.tensors.erase("classifier.weight"), 1u);
  ASSERT_EQ(file.tensors.erase("classifier.bias"), 1u);
  const std::string path = output_ + "/encoder.safetensors";
  write_safetensors(path, file);
  const Job job = text_job({"train.max_steps=1", "checkpoint.weights=" + path});
  check_training(job, {});
  run(job, 1);
  file.tensors.erase("bert.embeddings.LayerNorm.bias");
  write_safetensors(path, file);
  EXPECT_THAT(thrown_by([&] { check_training(job, {}); }), IsUsageError(path));
}

// A pattern may name the head of another task, whether the file has it or not.
TEST_F(TextTasks, WeightsSkip_MayNameAnUnusedHead) {
  run(text_job({"train.max_steps=1"}), 1);
  const std::string path =
      "checkpoint.weights=" + output_ + "/run/checkpoints/step_00000001/model.safetensors";
  const auto job = [&](const std::string& pattern, bool scores) {
    return text_job({"train.max_steps=1", path, "train.output=" + output_ + "/other",
                     "checkpoint.weights_skip=['classifier.*', '" + pattern + "']"},
                    scores);
  };
  for (const char* pattern : {"qa_outputs.*", "cls.predictions.*"}) {
    check_training(job(pattern, true), {});
    run(job(pattern, true), 1);
  }
  EXPECT_THAT(thrown_by([&] { check_training(job("qa_output.*", true), {}); }),
              IsUsageError("checkpoint.weights_skip"));
}

// The errors of several targets are squared and added in float32.
TEST_F(TextTasks, RegressionOfSeveralTargets_KeepsFloat32UnderAmp) {
  std::string why;
  if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  const Job job = text_job({"model.num_classes=2", "data.label_column=['score', 'score']",
                            "strategy.amp=true", "train.max_steps=1"},
                           true);
  run_ranks_well(1, [&](RankThread& rank) {
    HostDevice device;
    Trainer trainer(job, device, options_of(rank));
    const Program& program = trainer.session().executor().program();
    int low = 0;
    for (VarId id = 0; id < program.var_count(); ++id) {
      const std::string& name = program.var(id).name;
      low += program.var(id).dtype == DType::kBFloat16 ? 1 : 0;
      const bool of_loss = name.starts_with("target_errors") || name.starts_with("squared_error") ||
                           name.starts_with("error_loss") || name.starts_with("sample_sums") ||
                           name.starts_with("sample_means");
      if (!of_loss) continue;
      EXPECT_EQ(program.var(id).dtype, DType::kFloat32) << name;
    }
    EXPECT_GT(low, 0);
  });
}

// Other texts, as many as before, are other data.
TEST_F(TextTasks, OtherTexts_AreOtherDataForAResume) {
  const auto order = [&] {
    HostDevice device;
    const Job job = text_job({});
    return open_data(job, device, {0, 1}, nullptr)->order(job);
  };
  const std::string before = order();
  EXPECT_EQ(order(), before);
  std::string rows = read_file(output_ + "/train.tsv");
  rows.replace(rows.find("\nf "), 3, "\ng ");
  write_file_atomically(output_ + "/train.tsv", rows);
  EXPECT_NE(order(), before);
}

TEST_F(TextTasks, MiniLm_GivesTheEmbeddingsOfSentenceTransformers) {
  const std::string folder = env_or("FLEET_MINILM", "");
  if (folder.empty()) GTEST_SKIP() << "FLEET_MINILM names no folder (scripts/fetch_minilm.py)";
  constexpr size_t kFeatures = 384, kStep = 16;
  ConfigTree tree = ConfigTree::from_json(R"({"task": "sequence_classification",
    "model": {"name": "hf", "folder": ")" + folder +
                                              R"("},
    "data": {"source": "labelled_text", "tokenizer": ")" +
                                              folder + R"("},
    "predict": {"embedding": "mean", "normalize": true}})",
                                          "test");
  // Those of scripts/make_golden_minilm.py, and a longer one.
  write_file_atomically(output_ + "/new.txt",
                        "The capital of France is Paris.\n" + std::string(300, 'x') +
                            " and more words, so that the row is long: one two three four five\n"
                            "Berlin has trams, and they run all night at week-ends.\n");
  apply_overrides(tree,
                  with({"train.output=" + output_ + "/run"}, predicting("new.txt", "vectors.npy")));
  predict_on(1, make_job(tree));
  const auto rows = array("vectors.npy", kFeatures);
  const std::vector<float> expected = golden::load_text("minilm").tensors.at("embedding");
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(expected.size(), 2 * kFeatures / kStep);
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t row = i < kFeatures / kStep ? 0 : 2;
    EXPECT_NEAR(rows[row][i * kStep % kFeatures], expected[i], 1e-5) << i;
  }
}

TEST_F(TextTasks, KeysOfOtherPredictions_AreRefused) {
  run(text_job({}), 1);
  const auto refusal = [&](const std::string& output, const std::vector<std::string>& more) {
    HostDevice device;
    return thrown_by([&] { predict(text_job(predicting("test.tsv", output, more)), device, {}); });
  };
  EXPECT_THAT(refusal("a.csv", {"predict.embedding=mean"}), IsUsageError("predict.format"));
  EXPECT_THAT(refusal("a.jsonl", {"predict.normalize=true"}), IsUsageError("predict.normalize"));
  EXPECT_THAT(refusal("a.npy", {"predict.top_k=2"}), IsUsageError("predict.top_k"));
  HostDevice device;
  const Job images = job({"predict.input=x.png", "predict.embedding=mean"});
  EXPECT_THAT(thrown_by([&] { predict(images, device, {}); }), IsUsageError("predict.embedding"));
  EXPECT_THAT(refusal("a.npy", {"predict.embedding=features"}), IsUsageError("predict.embedding"));
}

}  // namespace
}  // namespace fleet
