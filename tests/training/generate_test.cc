// fleetrun generate, started as a user would, with a model that fleetrun has trained before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGenerateJob[] = R"({
  "task": "causal_lm",
  "model": {"name": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 96, "tie_word_embeddings": true},
  "data": {"source": "tokens", "train": {"file": "train.bin"}, "sequence_length": 96,
           "batch_size": 4},
  "optimizer": {"name": "adamw"},
  "learning_rate": {"name": "constant", "base": 0.01},
  "train": {"max_steps": 60}
})";

class GenerateCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 400; ++i) lines += "{\"text\": \"the cat sat on the green mat.\"}\n";
    write_file_atomically(folder_.path() + "/a.jsonl", lines);
    write_file_atomically(folder_.path() + "/job.json", kGenerateJob);
    run({"train_tokenizer", "a.jsonl", "-o", "tokenizer.json", "--vocabulary_size", "300"});
    run({"tokenize", "a.jsonl", "--tokenizer", "tokenizer.json", "-o", "train.bin"});
  }
  // fleetrun with these words; its output.
  std::string run(const std::vector<std::string>& words, int code = 0) {
    Fleetrun fleetrun(folder_, "run" + std::to_string(++runs_), words);
    EXPECT_EQ(fleetrun.wait(), code) << fleetrun.output();
    return fleetrun.output();
  }
  std::string generate(std::vector<std::string> more, int code = 0) {
    std::vector<std::string> words = {"generate", "job.json", "--tokenizer=tokenizer.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, code);
  }
  // The lines that are no log.
  std::string text(const std::vector<std::string>& more) {
    std::string kept;
    for (const std::string& line : split(generate(more), '\n')) {
      if (!line.starts_with("INFO ")) kept += line + "\n";
    }
    return kept;
  }

  JobFolder folder_;
  int runs_ = 0;
};

TEST_F(GenerateCommand, TrainedModel_ContinuesAsItsTexts) {
  run({"--nproc_per_node=1", "job.json"});
  // It ends with the end-of-text token, behind which another document would begin.
  EXPECT_EQ(text({"--prompt=the cat", "--temperature=0"}), "the cat sat on the green mat.\n\n");
  EXPECT_EQ(text({"--prompt=the cat", "--temperature=0", "--tokens=1"}).find("mat"),
            std::string::npos);
  write_file_atomically(folder_.path() + "/p.txt", std::string(300, 'q') + "\xFF");
  const std::string cut = generate({"--prompt_file=p.txt", "--max_new_tokens=1"});
  EXPECT_THAT(cut, AllOf(HasSubstr("not UTF-8"), HasSubstr("only the last 96"),
                         Not(HasSubstr("training runs"))));
  const std::vector<std::string> wild = {"--prompt=the", "--temperature=5", "--tokens=40"};
  const auto with_seed = [&](const std::string& seed) {
    std::vector<std::string> words = wild;
    words.push_back("--seed=" + seed);
    return text(words);
  };
  const std::string once = with_seed("1");
  EXPECT_EQ(with_seed("1"), once);
  EXPECT_NE(with_seed("2"), once);
}

TEST_F(GenerateCommand, WithoutWeights_IsRefused) {
  EXPECT_THAT(generate({"--prompt=the"}, 2), HasSubstr("checkpoint"));
  EXPECT_THAT(generate({}, 2), HasSubstr("--prompt"));
}

TEST_F(GenerateCommand, TokenizerOfAnotherModel_IsRefused) {
  EXPECT_THAT(generate({"--prompt=the", "--set=model.vocab_size=260"}, 2),
              AllOf(HasSubstr(" tokens, the model 260"), HasSubstr("tokenizer.json")));
  EXPECT_THAT(generate({"--prompt=the", "--set=model.vocab_size=600"}, 2),
              HasSubstr("another tokenizer"));
  write_file_atomically(folder_.path() + "/broken.json", "{");
  EXPECT_THAT(run({"generate", "job.json", "--tokenizer=broken.json", "--prompt=a"}, 2),
              AllOf(HasSubstr("broken.json"), Not(HasSubstr("[json."))));
}

TEST_F(GenerateCommand, WrongWords_AreRefused) {
  EXPECT_THAT(run({"generate", "job.json"}, 2), HasSubstr("--tokenizer"));
  EXPECT_THAT(run({"generate", "nothing.json"}, 2), HasSubstr("nothing.json"));
  EXPECT_THAT(generate({"--temperature=-1"}, 2), HasSubstr("temperature"));
  EXPECT_THAT(generate({"--prompt=a", "--prompt_file=a.jsonl"}, 2), HasSubstr("--prompt_file"));
  write_file_atomically(folder_.path() + "/image.json", R"({"model": {"name": "lenet"}})");
  EXPECT_THAT(run({"generate", "image.json", "--tokenizer=tokenizer.json"}, 2),
              HasSubstr("language model"));
}

}  // namespace
}  // namespace fleet
