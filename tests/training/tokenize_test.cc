// fleetrun train_tokenizer and fleetrun tokenize, started as a user would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TokenizeCommand : public ::testing::Test {
 protected:
  TokenizeCommand() {
    std::string lines;
    for (int i = 0; i < 50; ++i)
      lines += "{\"text\": \"the text of line " + std::to_string(i) + "\"}\n";
    write_file_atomically(folder_.path() + "/a.jsonl", lines);
    write_file_atomically(folder_.path() + "/b.txt", "The text.\nAnother line.\n");
  }
  // fleetrun with these words; its output.
  std::string run(const std::vector<std::string>& words, int code = 0) {
    Fleetrun fleetrun(folder_, "run" + std::to_string(++runs_), words);
    EXPECT_EQ(fleetrun.wait(), code) << fleetrun.output();
    return fleetrun.output();
  }
  void train() {
    EXPECT_THAT(run({"train_tokenizer", "a.jsonl", "b.txt", "-o", "tokenizer.json",
                     "--vocabulary_size", "270", "--special_token=<end>"}),
                HasSubstr("tokenizer.json: 270 tokens"));
  }

  JobFolder folder_;
  int runs_ = 0;
};

TEST_F(TokenizeCommand, TrainedTokenizer_EncodesTexts) {
  train();
  EXPECT_THAT(run({"tokenize", "a.jsonl", "b.txt", "--tokenizer=tokenizer.json", "-o", "x.bin",
                   "--eos_token=<end>", "--validation=0.1"}),
              HasSubstr("51 documents of 2 files"));
  const std::string ids = folder_.read("x.bin");
  ASSERT_GE(ids.size(), 2u);
  EXPECT_EQ(ids.substr(ids.size() - 2), std::string(2, '\0'));  // <end>
  EXPECT_FALSE(folder_.read("x_val.bin").empty());
}

TEST_F(TokenizeCommand, DamagedLine_IsNamedWithExitCode2) {
  train();
  write_file_atomically(folder_.path() + "/bad.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n");
  const std::vector<std::string> words = {"tokenize", "bad.jsonl", "--tokenizer", "tokenizer.json",
                                          "--output", "y.bin",     "--eos=none"};
  EXPECT_THAT(run(words, 2), HasSubstr("bad.jsonl:2: "));
  EXPECT_EQ(folder_.read("y.bin"), "");
}

TEST_F(TokenizeCommand, WrongWords_AreRefusedBeforeAnythingIsRead) {
  EXPECT_THAT(run({"tokenize"}, 2), HasSubstr("missing argument"));
  EXPECT_EQ(run({"table", "nowhere"}, 2).rfind("fleetrun: ", 0), 0u);
  EXPECT_THAT(run({"tokenize", "a.jsonl", "--tokeniser=x"}, 2), HasSubstr("--tokenizer"));
  // The unknown option takes its value along, so nothing is left to propose.
  EXPECT_THAT(run({"generate", "job.json", "--xyzzy", "5"}, 2), Not(HasSubstr("corrected:")));
  EXPECT_THAT(run({"tokenize", "-", "--tokenizer=x", "-o", "x.bin"}, 2),
              HasSubstr("standard input"));
  EXPECT_THAT(run({"train_tokenizer", "b.txt", "-o", "b.txt"}, 2), HasSubstr("b.txt: the result"));
  EXPECT_THAT(run({"train_tokenizer", "b.txt", "-o", "none/x"}, 2), HasSubstr("does not exist"));
  EXPECT_THAT(run({"tokenize", "a.jsonl", "-o", "x.bin"}, 2), HasSubstr("--tokenizer"));
  EXPECT_THAT(run({"train_tokenizer", "b.txt", "-o", "t.json", "--special_token", ""}, 2),
              HasSubstr("--special_token"));
  EXPECT_THAT(
      run({"train_tokenizer", "a.jsonl", "-o", "t.json", "--special_token=x", "--special_token=x"},
          2),
      HasSubstr("twice"));
}

}  // namespace
}  // namespace fleet
