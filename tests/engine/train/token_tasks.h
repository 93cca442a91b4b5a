// A small BERT with tasks of tokens on data of its own: the fixture of their tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/train/trainer_job.h"
#include "tests/test_paths.h"

namespace fleet {

inline nlohmann::json golden_rows() {
  return nlohmann::json::parse(
      std::ifstream(source_folder() + "/tests/golden/text/question_rows.json"));
}

class TokenTasks : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = ::testing::TempDir() + "/token_tasks_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    write("tokenizer.json", golden_.at("tokenizer").dump());
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name) << content;
  }

  // Words of which some are tagged: "cats" begins a B-X, which "it" and "was" continue.
  std::string tagged(int texts) const {
    const std::vector<std::string> lines = {"the O", "cats B-X", "on O", "mat O", "a O", "who B-Y"};
    std::string content;
    for (int i = 0; i < texts; ++i) {
      for (int w = 0; w <= i % 7; ++w) {
        content += lines[(i * 5 + w * w) % 6] + "\n";
        if ((i * 5 + w * w) % 6 == 1) content += "it I-X\nwas I-X\n";
      }
      content += "\n";
    }
    return content;
  }

  // The answer is the word behind "in".
  std::string questions(int count) const {
    const std::vector<std::string> words = {"paris", "cafe", "mat", "cats", "a b", "1998"};
    nlohmann::json paragraphs;
    for (int i = 0; i < count; ++i) {
      const std::string before = i % 2 ? "the cat sat in " : "it was the mat, on a mat in ";
      const std::string& answer = words[i * 7 % 6];
      nlohmann::json qas = {{"id", std::to_string(i)},
                            {"question", "where?"},
                            {"answers", {{{"text", answer}, {"answer_start", before.size()}}}}};
      paragraphs.push_back({{"context", before + answer + ", it was."}, {"qas", {qas}}});
    }
    return nlohmann::json{{"data", {{{"paragraphs", paragraphs}}}}}.dump();
  }

  Job text_job(const std::string& task, const std::string& source, const std::string& file,
               const std::vector<std::string>& overrides) const {
    ConfigTree tree =
        ConfigTree::from_json(R"({
      "task": ")" + task + R"(",
      "model": {"name": "bert", "vocab_size": 34, "hidden_size": 16, "num_hidden_layers": 2,
                "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 32,
                "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
      "data": {"source": ")" + source +
                                  R"(", "root": ")" + folder_ +
                                  R"(", "tokenizer": "tokenizer.json",
               "sequence_length": 20, "train": {"file": "train)" +
                                  file + R"("}, "test": {"file": "test)" + file + R"("}},
      "optimizer": {"name": "adamw"},
      "learning_rate": {"name": "linear", "base": 0.01, "warmup_steps": 10},
      "train": {"epochs": 10, "fetch_every": 1, "evaluate_every": 10}
    })",
                              "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return make_job(tree);
  }

  struct Trained {
    std::vector<double> losses;
    nlohmann::json test;  // the last evaluation
  };
  // Two ranks with half the batch each follow one.
  Trained train(const std::string& task, const std::string& source, const std::string& file,
                const std::vector<std::string>& overrides = {}) {
    std::vector<Trained> all;
    for (const int world : {1, 2}) {
      std::filesystem::remove_all(output_);
      const std::string rows = "data.batch_size=" + std::to_string(8 / world);
      run(text_job(task, source, file, with(overrides, {rows})), world);
      Trained& trained = all.emplace_back();
      for (const auto& line : events("train")) trained.losses.push_back(line["loss"]);
      trained.test = events("test").back();
    }
    EXPECT_EQ(all[0].losses.size(), all[1].losses.size());
    for (size_t i = 0; i < std::min<size_t>(all[1].losses.size(), 20); ++i) {
      EXPECT_NEAR(all[0].losses[i], all[1].losses[i], 1e-5) << i;
    }
    EXPECT_EQ(all[0].test.value("samples", 0.0), all[1].test.value("samples", 0.0));
    EXPECT_EQ(all[0].test.value("tokens", 0.0), all[1].test.value("tokens", 0.0));
    return all[1];
  }

  std::string folder_;
  const nlohmann::json golden_ = golden_rows();
};

}  // namespace fleet
