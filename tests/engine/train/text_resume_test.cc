// A language job that trains on texts and goes on with another tokenizer, or with nothing left.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/captured_log.h"
#include "tests/engine/train/trainer_job.h"
#include "train/generate.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A byte-level BPE whose token "ab" has this id.
std::string tokenizer(int ab, int c) {
  return R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<|endoftext|>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
              "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
              "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "c": )" +
         std::to_string(c) + R"(, "ab": )" + std::to_string(ab) + R"(}, "merges": ["a b"]}})";
}

class TextResume : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = ::testing::TempDir() + "/text_resume_" + std::to_string(::getpid());
    for (const char* node : {"/0", "/1"}) {
      std::filesystem::create_directories(folder_ + node);
      write_file_atomically(folder_ + node + "/tokenizer.json", tokenizer(2, 3));
      std::string text;
      for (int i = 0; i < 40; ++i) text += std::string("abc").substr(0, 1 + i % 3);
      write_file_atomically(folder_ + node + "/text.txt", text);
    }
    write_file_atomically(folder_ + "/other.json", tokenizer(3, 2));
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }

  Job text_job(const std::vector<std::string>& overrides, int node = 0) const {
    const std::string here = folder_ + "/" + std::to_string(node);
    ConfigTree tree = ConfigTree::from_json(R"({
      "task": "causal_lm",
      "model": {"name": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
                "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
                "max_position_embeddings": 8},
      "data": {"source": "text", "tokenizer": ")" +
                                                here + R"(/tokenizer.json", "token_cache": ")" +
                                                here + R"(/cache", "train": {"file": ")" + here +
                                                R"(/text.txt"},
               "sequence_length": 8, "batch_size": 1},
      "learning_rate": {"name": "constant", "base": 0.01},
      "train": {"max_steps": 2, "fetch_every": 1}})",
                                            "test");
    apply_overrides(tree, with(overrides, {"train.output=" + output_}));
    return make_job(tree);
  }

  std::string folder_;
};

TEST_F(TextResume, OtherTokenizer_IsRefused) {
  run(text_job({}), 1);
  const std::string other = "data.tokenizer=" + folder_ + "/other.json";
  const Error error = refusal(text_job({"checkpoint.resume=auto", "train.max_steps=3", other}));
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.failure(), AllOf(HasSubstr("/0/tokenizer.json"), HasSubstr("/other.json")));
  // A copy of it is the same.
  EXPECT_EQ(failure(text_job({"checkpoint.resume=auto", "train.max_steps=3"}, 1)), "");
}

TEST_F(TextResume, EvaluationAndGenerationWithAnotherTokenizer_AreWarnedOf) {
  run(text_job({}), 1);
  const std::string other = folder_ + "/other.json", here = folder_ + "/0/tokenizer.json";
  const auto evaluated = [&](const std::string& tokenizer) {
    return captured_log([&] {
      run(text_job({"train.evaluate_only=true", "data.test.file=" + folder_ + "/0/text.txt",
                    "data.tokenizer=" + tokenizer}),
          1);
    });
  };
  EXPECT_THAT(evaluated(here), Not(HasSubstr("with the tokenizer")));
  EXPECT_THAT(evaluated(other), HasSubstr("with the tokenizer " + here));
  const auto generated = [&](const std::string& tokenizer) {
    return captured_log([&] {
      const Job job = text_job({});
      HostDevice device;
      generate(job, device, {.prompt = "ab", .tokens = 1, .sampling = {}, .tokenizer = tokenizer},
               [](std::string_view) {});
    });
  };
  EXPECT_THAT(generated(here), Not(HasSubstr("with the tokenizer")));
  EXPECT_THAT(generated(other), HasSubstr("with the tokenizer " + here));
}

TEST_F(TextResume, NodesWithCopies_TrainTogether) {
  EXPECT_THAT(start_two(text_job({}, 0), text_job({}, 1)), ::testing::Each(IsEmpty()));
  write_file_atomically(folder_ + "/1/tokenizer.json", tokenizer(3, 2));
  EXPECT_THAT(start_two(text_job({}, 0), text_job({}, 1)),
              ::testing::Each(HasSubstr("data.train's tokenizer")));
}

TEST_F(TextResume, FinishedJob_SaysWhichKeyToRaise) {
  const auto log = [&](const std::vector<std::string>& overrides) {
    return captured_log([&] { run(text_job(overrides), 1); });
  };
  EXPECT_THAT(log({}), Not(HasSubstr("raise train.")));
  EXPECT_THAT(log({"checkpoint.resume=auto"}), HasSubstr("raise train.max_steps"));
  EXPECT_THAT(log({"checkpoint.resume=auto", "train.max_steps=3"}), Not(HasSubstr("raise train.")));
}

}  // namespace
}  // namespace fleet
