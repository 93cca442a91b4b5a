// Sentences: where texts are divided, and the files of their tokens.
#include "text/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/errors.h"
#include "text/token_file.h"
#include "text/tokenize_corpus.h"

namespace fleet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

Texts sentences_of(std::string_view text) {
  Texts all;
  split_sentences(text, [&](std::string_view one) { all.emplace_back(one); });
  return all;
}

TEST(Sentences, Stops_EndThem) {
  EXPECT_THAT(sentences_of("One. Two! Three?  Four"),
              ElementsAre("One.", "Two!", "Three?", "Four"));
  EXPECT_THAT(sentences_of("He said \"Go.\" Then (she left.) Why?!"),
              ElementsAre("He said \"Go.\"", "Then (she left.)", "Why?!"));
  EXPECT_THAT(sentences_of("Wait... What"), ElementsAre("Wait...", "What"));
  EXPECT_THAT(sentences_of("一つ。二つ！三"), ElementsAre("一つ。", "二つ！", "三"));
}

TEST(Sentences, StopsInsideWords_DoNotEndThem) {
  EXPECT_THAT(sentences_of("Pi is 3.14 or so."), ElementsAre("Pi is 3.14 or so."));
  EXPECT_THAT(sentences_of("See e.g. Mr. J. Smith (U.S. army)."),
              ElementsAre("See e.g. Mr. J. Smith (U.S. army)."));
  EXPECT_THAT(sentences_of("It stopped. then it went on."),
              ElementsAre("It stopped. then it went on."));
  EXPECT_THAT(sentences_of("So did I. Then we left."), ElementsAre("So did I.", "Then we left."));
}

TEST(Sentences, EmptyLines_EndThemAndLineBreaksDoNot) {
  EXPECT_THAT(sentences_of("A title\n\nfirst line\nsecond line\n \t\nend\n"),
              ElementsAre("A title", "first line\nsecond line", "end"));
  EXPECT_THAT(sentences_of(" \n\n "), IsEmpty());
}

// A byte-level vocabulary of three letters: ids of a text are its letters.
constexpr char kLetters[] = R"({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                    "use_regex": true},
  "post_processor": null, "decoder": null,
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": {"A": 0, "b": 1, ".": 2, "Ġ": 3}, "merges": []}})";
constexpr uint32_t kSentence = 4, kDocument = 5;

TEST(Sentences, Encoder_WritesSpacesAndMarks) {
  const Tokenizer tokenizer = Tokenizer::from_json(kLetters, "test");
  SentenceEncoder encoder(tokenizer, SentenceForm::kSplit);
  std::vector<uint32_t> ids;
  EXPECT_FALSE(encoder.end_document(ids));
  encoder.add("bA. A\n   b", ids);
  EXPECT_TRUE(encoder.end_document(ids));
  encoder.add("b", ids);
  EXPECT_THAT(ids, ElementsAre(1, 0, 2, kSentence, 3, 0, 3, 1, kSentence, kDocument, 1, kSentence));
}

class SentenceFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/sentences_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    write("tokenizer.json", kLetters);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::vector<uint32_t> tokens(const std::string& name, SentenceForm form,
                               int64_t part_bytes = 1 << 20) const {
    const std::string output = folder_ + "/out.bin";
    tokenize_corpus(find_corpus({folder_ + "/" + name}),
                    {.tokenizer = folder_ + "/tokenizer.json",
                     .output = output,
                     .eos = EosPlace::kNone,
                     .sentences = form,
                     .threads = 1,
                     .part_bytes = part_bytes},
                    {});
    const TokenFile file(output);
    std::vector<uint32_t> ids(static_cast<size_t>(file.size()));
    file.copy(0, std::span(ids));
    return ids;
  }
  std::string folder_;
};

TEST_F(SentenceFiles, Lines_AreSentencesAndEmptyLinesEndDocuments) {
  write("a.txt", "\nA.\nb b\n\n\n \nb\n");
  EXPECT_THAT(
      tokens("a.txt", SentenceForm::kLines),
      ElementsAre(0, 2, kSentence, 3, 1, 3, 1, kSentence, kDocument, 1, kSentence, kDocument));
}

TEST_F(SentenceFiles, JsonLines_AreDocuments) {
  write("a.jsonl", "{\"text\": \"bA. A\"}\n{\"text\": \"b\"}\n");
  EXPECT_THAT(tokens("a.jsonl", SentenceForm::kSplit),
              ElementsAre(1, 0, 2, kSentence, 3, 0, kSentence, kDocument, 1, kSentence, kDocument));
}

TEST_F(SentenceFiles, Parts_DoNotChangeTheTokens) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += i % 7 == 0 ? "\n" : i % 3 == 0 ? "A b. A\nb\n" : "b A.\n";
    if (i % 11 == 0) text += " \n\n";
  }
  write("a.txt", text);
  for (const SentenceForm form : {SentenceForm::kSplit, SentenceForm::kLines}) {
    const std::vector<uint32_t> whole = tokens("a.txt", form);
    EXPECT_GT(std::ranges::count(whole, kSentence), 20);
    EXPECT_EQ(std::ranges::count(whole, kDocument) > 1, form == SentenceForm::kLines);
    for (const int64_t bytes : {5, 33}) EXPECT_EQ(tokens("a.txt", form, bytes), whole);
  }
}

TEST_F(SentenceFiles, LineThatIsNotUtf8_IsNamed) {
  write("a.txt", "A\n\nb\n\xFF\n");
  EXPECT_THAT(thrown_by([&] { tokens("a.txt", SentenceForm::kLines); }),
              IsUsageError(::testing::EndsWith("a.txt:4")));
}

}  // namespace
}  // namespace fleet::text
