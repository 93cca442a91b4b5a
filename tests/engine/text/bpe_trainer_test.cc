#include "text/bpe_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/errors.h"
#include "tests/test_paths.h"
#include "text/text_splitter.h"
#include "text/tokenizer.h"
#include "text/train_corpus.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

// The generators of scripts/make_golden_trainer.py.
class GoldenNumbers {
 public:
  uint64_t below(uint64_t most) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % most;
  }

 private:
  uint64_t state_ = 1;
};

std::string few_letters() {
  GoldenNumbers numbers;
  std::string text;
  for (int i = 0; i < 800; ++i) {
    for (uint64_t left = 1 + numbers.below(14); left > 0; --left) text += "ab"[numbers.below(2)];
    text += " \n"[numbers.below(2)];
  }
  return text;
}

std::string many_scripts() {
  constexpr char32_t kStarts[] = {0x20, 0x61, 0xE0, 0x300, 0x430, 0x914, 0x4E00, 0xAC00, 0x1F600};
  constexpr const char* kBetween[] = {"\n", "\r\n", "  ", "\t", "'ll", "12345", " ", "\u3000"};
  GoldenNumbers numbers;
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    const char32_t start = kStarts[numbers.below(std::size(kStarts))];
    append_utf8(start + static_cast<char32_t>(numbers.below(12)), text);
    if (numbers.below(9) == 0) text += kBetween[numbers.below(8)];
  }
  return text;
}

std::string corpus_named(const std::string& name) {
  if (name == "few_letters") return few_letters();
  if (name == "many_scripts") return many_scripts();
  return read_file(source_folder() + "/LICENSE");
}

class BpeTrainerTest : public ::testing::Test {
 protected:
  BpeTrainerTest() : path_(::testing::TempDir() + "/bpe_trainer_corpus.txt") {}
  ~BpeTrainerTest() override { std::filesystem::remove(path_); }

  // The whole way, from a file to a tokenizer.json. Parts are small, so that threads meet.
  std::string train(const std::string& corpus, const std::string& style_name,
                    const BpeTrainerSettings& settings) const {
    write_file_atomically(path_, corpus_named(corpus));
    const SplitStyle style = split_style(style_name);
    const TextSplitter splitter(Json::parse(style.normalizer), Json::parse(style.pre_tokenizer),
                                "style");
    WordCounts counts;
    count_corpus(find_corpus({path_}), splitter, {.threads = 3, .part_bytes = 1000}, &counts, {});
    return tokenizer_json(train_bpe(counts.words(), settings), settings, style);
  }

  const std::string path_;
};

Json golden_trainer() {
  return Json::parse(read_file(source_folder() + "/tests/golden/text/trainer.json"));
}

TEST_F(BpeTrainerTest, SmallVocabulary_IsTheFileOfHuggingFace) {
  EXPECT_EQ(train("license", "qwen2", {.vocabulary_size = 270}),
            golden_trainer().at("license_qwen2_270").get<std::string>());
}

TEST_F(BpeTrainerTest, Corpora_GiveTheFilesOfHuggingFace) {
  const Json all = golden_trainer();
  for (const Json& golden : all.at("cases")) {
    const std::string file =
        train(golden.at("corpus").get<std::string>(), golden.at("style").get<std::string>(),
              {.vocabulary_size = golden.at("vocabulary_size").get<uint64_t>(),
               .min_frequency = golden.at("min_frequency").get<uint64_t>(),
               .special_tokens = golden.at("special_tokens").get<std::vector<std::string>>()});
    EXPECT_EQ(file.size(), golden.at("bytes").get<uint64_t>()) << golden.dump();
    EXPECT_EQ(crc32c(file), golden.at("crc32c").get<uint64_t>()) << golden.dump();
  }
}

TEST(BpeTrainer, EqualCounts_ThePairOfSmallerIdsFirst) {
  const std::vector<WordCount> words = {{"cd", 3}, {"ab", 3}, {"ef", 4}};
  const TrainedBpe bpe = train_bpe(words, {.vocabulary_size = 259, .special_tokens = {}});
  ASSERT_EQ(bpe.tokens.size(), 259u);
  EXPECT_EQ(bpe.tokens[256], "ef");
  EXPECT_EQ(bpe.tokens[257], "ab");
  EXPECT_EQ(bpe.tokens[258], "cd");
}

TEST(BpeTrainer, RarePair_IsNoToken) {
  const std::vector<WordCount> words = {{"ab", 3}, {"cd", 2}};
  EXPECT_EQ(train_bpe(words, {.vocabulary_size = 300, .min_frequency = 3}).tokens.size(), 258u);
}

TEST(BpeTrainer, MoreThanTwoBillionOccurrences_AreCounted) {
  const std::vector<WordCount> words = {{"ab", uint64_t{3} << 31}, {"cd", 5}};
  EXPECT_EQ(train_bpe(words, {.vocabulary_size = 258, .special_tokens = {}}).tokens[256], "ab");
}

TEST(BpeTrainer, WrongSettings_AreRefused) {
  const auto refused = [](const BpeTrainerSettings& settings) {
    EXPECT_THAT(thrown_by([&] { train_bpe({}, settings); }), IsUsageError());
  };
  refused({.vocabulary_size = 256});
  refused({.special_tokens = {"x", "x"}});
  refused({.special_tokens = {""}});
  refused({.special_tokens = {"<s>", "</s>"}, .cls_token = "<s>"});
  refused({.special_tokens = {"<s>", "</s>"}, .sep_token = "</s>"});
  refused({.special_tokens = {"<s>", "</s>"}, .cls_token = "<s>", .sep_token = "<sep>"});
  EXPECT_THAT(thrown_by([] { split_style("gpt3"); }), Advises(::testing::HasSubstr("gpt2")));
}

TEST(BpeTrainer, TokensAroundATextAndAPair_AreThoseOfBert) {
  const BpeTrainerSettings settings{.vocabulary_size = 259,
                                    .special_tokens = {"<pad>", "<s>", "</s>"},
                                    .cls_token = "<s>",
                                    .sep_token = "</s>"};
  const Tokenizer tokenizer = Tokenizer::from_json(
      tokenizer_json(train_bpe({}, settings), settings, split_style("gpt2")), "test");
  const EncodeOptions options;
  const auto ids = tokenizer.encode("a", options).ids,
             pair = tokenizer.encode("a", "a", options).ids;
  ASSERT_EQ(ids.size(), 3u);
  const uint32_t a = ids[1];
  EXPECT_THAT(ids, ::testing::ElementsAre(1, a, 2));
  EXPECT_THAT(pair, ::testing::ElementsAre(1, a, 2, a, 2));
}

TEST(WordCounts, Tables_AreAddedUp) {
  WordCounts counts;
  for (int i = 0; i < 2; ++i) {
    WordTable table;
    for (int word = 0; word < 5000; ++word) table.add(std::to_string(word));
    table.add("7", 40);
    counts.add(table);
  }
  const std::vector<WordCount> words = counts.words();
  ASSERT_EQ(words.size(), 5000u);
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end(),
                             [](const auto& a, const auto& b) { return a.word < b.word; }));
  for (const WordCount& word : words) EXPECT_EQ(word.count, word.word == "7" ? 82u : 2u);
}

}  // namespace
}  // namespace fleet::text
