// The source `text`: documents and their tokens, and the cache that one process makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "data/pipeline.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

// A byte-level BPE of the letters a to f, blank and line end; "ab" is one token.
constexpr char kTokenizer[] = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [{"id": 9, "content": "<|endoftext|>", "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                    "use_regex": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
              "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false,
            "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "Ġ": 6, "Ċ": 7, "ab": 8},
            "merges": ["a b"]}})";

class TextSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::write(folder_ / "tokenizer.json", kTokenizer); }

  std::string json(const std::string& files, const std::string& more = "") const {
    return R"({"root": ")" + folder_.path() + R"(", "tokenizer": "tokenizer.json",
              "token_cache": ")" +
           folder_.path() + R"(/cache", "sequence_length": 8,
              "shuffle": false, "batch_size": 1, "train": {"file": )" +
           files + "}" + more + "}";
  }
  // The weighted inputs and their labels in all rows, in order.
  std::vector<std::pair<int64_t, int64_t>> pairs(const std::string& files,
                                                 const std::string& more = "") const {
    const auto pipeline = make_pipeline(testing::settings_of("text", json(files, more)), true, {});
    std::vector<std::pair<int64_t, int64_t>> all;
    pipeline->start_epoch(0);
    for (const Batch* batch = pipeline->next(); batch; batch = pipeline->next()) {
      const auto* inputs = reinterpret_cast<const int64_t*>(batch->column("input_ids").data());
      const auto* labels = reinterpret_cast<const int64_t*>(batch->column("labels").data());
      for (int i = 0; i < 8; ++i) {
        if (labels[i] >= 0) all.emplace_back(inputs[i], labels[i]);
      }
    }
    return all;
  }
  int64_t caches() const {
    std::error_code none;
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache", none)) {
      EXPECT_EQ(entry.path().extension(), ".bin") << entry.path();
      ++count;
    }
    return count;
  }
  testing::TempFolder folder_;
};

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

TEST_F(TextSourceTest, PlainFile_IsADocumentThatEnds) {
  testing::write(folder_ / "a.txt", "ab c");
  EXPECT_EQ(pairs(R"(["a.txt"])"), (Pairs{{8, 6}, {6, 2}, {2, 9}}));
}

TEST_F(TextSourceTest, JsonLines_AreADocumentEach) {
  testing::write(folder_ / "a.jsonl", "{\"text\": \"abc\"}\n\n{\"text\": \"de\", \"id\": 4}\n");
  const Pairs wanted = {{8, 2}, {2, 9}, {3, 4}, {4, 9}};
  EXPECT_EQ(pairs(R"(["a.jsonl"])"), wanted);
  testing::write(folder_ / "b.jsonl", "{\"body\": \"abc\"}\n{\"body\": \"de\"}\n");
  EXPECT_EQ(pairs(R"(["b.jsonl"])", R"(, "text_key": "body")"), wanted);
}

TEST_F(TextSourceTest, SeveralFilesAndFolders_AreReadInOrder) {
  std::filesystem::create_directories(folder_ / "texts");
  testing::write(folder_ / "texts/2.txt", "ef");
  testing::write(folder_ / "texts/1.txt", "cd");
  testing::write(folder_ / "z.txt", "a");
  EXPECT_EQ(pairs(R"(["z.txt", "texts"])", R"(, "packing": "none")"),
            (Pairs{{0, 9}, {2, 3}, {3, 9}, {4, 5}, {5, 9}}));
}

TEST_F(TextSourceTest, OneFile_NeedsNoList) {
  testing::write(folder_ / "a.txt", "ab c");
  EXPECT_EQ(pairs(R"("a.txt")"), (Pairs{{8, 6}, {6, 2}, {2, 9}}));
}

TEST_F(TextSourceTest, TokenizerLargerThanTheVocabulary_IsRefusedBeforeTheTextsAreRead) {
  testing::write(folder_ / "a.txt", "ab c");
  const Settings settings = testing::settings_of("text", json(R"(["a.txt"])"));
  EXPECT_NO_THROW(check_data_settings(settings, {.vocabulary = 10}));
  for (const auto& message :
       {testing::message_of([&] { check_data_settings(settings, {.vocabulary = 9}); }),
        testing::message_of([&] { make_pipeline(settings, true, {.vocabulary = 9}); })}) {
    EXPECT_THAT(message,
                ::testing::HasSubstr("tokenizer.json has 10 tokens, but model.vocab_size is 9"));
  }
  EXPECT_EQ(caches(), 0);
}

TEST_F(TextSourceTest, NumberBeyondTheVocabulary_IsRefusedByItsKey) {
  testing::write(folder_ / "a.txt", "ab c");
  const auto refused = [&](const std::string& more, const std::string& where) {
    const Settings settings = testing::settings_of("text", json(R"(["a.txt"])", more));
    EXPECT_THAT(thrown_by([&] { check_data_settings(settings, {.vocabulary = 12}); }),
                IsUsageError(where));
  };
  refused(R"(, "end_of_text": "12")", "data.end_of_text");
  refused(R"(, "evaluation": {"windows": "rolling", "prefix": "12"})", "data.evaluation.prefix");
}

TEST_F(TextSourceTest, MissingFiles_AreNamedWithTheirKeys) {
  const auto missing = [&](const Settings& settings, const std::string& where) {
    EXPECT_THAT(thrown_by([&] { check_data_settings(settings, {}); }), IsUsageError(where));
    EXPECT_THAT(thrown_by([&] { make_pipeline(settings, true, {}); }), IsUsageError(where));
  };
  missing(testing::settings_of("text", json(R"(["nosuchfolder"])")), "data.train.file");
  testing::write(folder_ / "a.txt", "ab c");
  std::filesystem::remove(folder_ / "tokenizer.json");
  missing(testing::settings_of("text", json(R"(["a.txt"])")), "data.tokenizer");
}

TEST_F(TextSourceTest, DamagedLine_TellsHowToLeaveItOut) {
  testing::write(folder_ / "a.jsonl", "{\"text\": \"abc\"}\n{oops\n");
  const std::string message = testing::message_of([&] { pairs(R"(["a.jsonl"])"); });
  EXPECT_THAT(message, ::testing::HasSubstr("use the source tokens"));
  EXPECT_THAT(message, ::testing::Not(::testing::HasSubstr("give --on_damaged")));
}

TEST_F(TextSourceTest, EndOfText_CanBeNamedOrNone) {
  testing::write(folder_ / "a.txt", "abc");
  EXPECT_EQ(pairs(R"(["a.txt"])", R"(, "end_of_text": "f")"), (Pairs{{8, 2}, {2, 5}}));
  EXPECT_EQ(pairs(R"(["a.txt"])", R"(, "end_of_text": "none")"), (Pairs{{8, 2}}));
  EXPECT_THAT(thrown_by([&] { pairs(R"(["a.txt"])", R"(, "end_of_text": "<eot>")"); }),
              IsError(ErrorCode::kUsage, "data.end_of_text"));
}

TEST_F(TextSourceTest, Cache_IsMadeOncePerFilesTokenizerAndSettings) {
  testing::write(folder_ / "a.txt", "abc");
  testing::write(folder_ / "b.txt", "abc d");
  pairs(R"(["a.txt"])");
  EXPECT_EQ(caches(), 1);
  EXPECT_EQ(captured_log([&] { pairs(R"(["a.txt"])"); }).find("tokenizing"), std::string::npos);
  EXPECT_EQ(caches(), 1);
  pairs(R"(["b.txt"])");
  EXPECT_EQ(caches(), 2);
  pairs(R"(["a.txt"])", R"(, "end_of_text": "f")");
  EXPECT_EQ(caches(), 3);
  std::string other = kTokenizer;
  other.replace(other.find("\"a b\""), 5, "");
  testing::write(folder_ / "tokenizer.json", other);
  EXPECT_EQ(pairs(R"(["a.txt"])"), (Pairs{{0, 1}, {1, 2}, {2, 9}}));
  EXPECT_EQ(caches(), 4);
  testing::write(folder_ / "a.txt", "abd");
  EXPECT_EQ(pairs(R"(["a.txt"])"), (Pairs{{0, 1}, {1, 3}, {3, 9}}));
}

TEST_F(TextSourceTest, SeveralRanks_OneTokenizes) {
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += "{\"text\": \"abc def\"}\n";
  testing::write(folder_ / "a.jsonl", lines);
  const std::string log = captured_log([&] {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto pipeline = make_pipeline(testing::settings_of("text", json(R"(["a.jsonl"])")),
                                            true, {.rank = rank, .ranks = 4});
        EXPECT_EQ(pipeline->samples(), 20000);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  });
  const std::string made = "tokenized ";
  const size_t first = log.find(made);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(made, first + 1), std::string::npos) << log;
  EXPECT_EQ(caches(), 1);
}

TEST_F(TextSourceTest, DamagedLine_IsNamedAndLeavesNoCache) {
  testing::write(folder_ / "a.jsonl", "{\"text\": \"abc\"}\n{\"text\": 4}\n");
  EXPECT_THAT(thrown_by([&] { pairs(R"(["a.jsonl"])"); }),
              IsError(ErrorCode::kUsage, ::testing::HasSubstr("a.jsonl:2")));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    EXPECT_NE(entry.path().extension(), ".bin") << entry.path();
  }
}

TEST_F(TextSourceTest, SpecialTokensInTheText_AreTokensIfAsked) {
  testing::write(folder_ / "a.txt", "abc<|endoftext|>de");
  EXPECT_EQ(pairs(R"(["a.txt"])", R"(, "parse_special": true)"),
            (Pairs{{8, 2}, {2, 9}, {3, 4}, {4, 9}}));
}

TEST_F(TextSourceTest, MissingTokenizer_IsRefusedBeforeDataAreOpened) {
  const Settings settings = testing::settings_of("text", R"({"train": {"file": ["no.txt"]}})");
  EXPECT_THAT(thrown_by([&] { check_data_settings(settings, {}); }),
              IsError(ErrorCode::kUsage, "data.tokenizer"));
}

}  // namespace
}  // namespace fleet::data
