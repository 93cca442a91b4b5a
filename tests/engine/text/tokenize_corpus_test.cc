#include "text/tokenize_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "tests/captured_log.h"
#include "tests/errors.h"
#include "text/bpe_trainer.h"
#include "text/text_cutter.h"
#include "text/text_splitter.h"
#include "text/tokenizer.h"

namespace fleet::text {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Lines of many kinds: some may be cut before, others not.
std::string varied_text() {
  constexpr const char* kLines[] = {"The model reads the text.",
                                    "",
                                    "  indented: it's 12345",
                                    "caf\u00e9 \u4e2d\u6587\uff0c",
                                    "ends in a blank ",
                                    "\t",
                                    "x\r",
                                    "<|endoftext|>"};
  uint64_t state = 7;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += kLines[(state >> 33) % std::size(kLines)];
    text += '\n';
  }
  return text;
}

class TokenizeCorpusTest : public ::testing::Test {
 protected:
  TokenizeCorpusTest() : folder_(::testing::TempDir() + "/tokenize_corpus_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const SplitStyle style = split_style("gpt2");
    const TextSplitter splitter(Json::parse(style.normalizer), Json::parse(style.pre_tokenizer),
                                "style");
    WordTable table;
    splitter.pieces(varied_text(), [&](std::string_view piece) { table.add(piece); });
    WordCounts counts;
    counts.add(table);
    const BpeTrainerSettings settings{.vocabulary_size = 400};
    options_.tokenizer =
        put("tokenizer.json", tokenizer_json(train_bpe(counts.words(), settings), settings, style));
    options_.output = folder_ + "/train.bin";
    options_.threads = 3;
    options_.part_bytes = 4000;
  }
  ~TokenizeCorpusTest() override { fs::remove_all(folder_); }

  std::string put(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    write_file_atomically(path, text);
    return path;
  }
  TokenizeResult run(const std::vector<std::string>& words) const {
    return tokenize_corpus(find_corpus(words), options_, {});
  }
  static std::vector<uint32_t> ids(const std::string& path) {
    const TokenFile file(path);
    std::vector<uint32_t> all(static_cast<size_t>(file.size()));
    file.copy(0, std::span(all));
    return all;
  }
  std::vector<uint32_t> encoded(const std::string& text) const {
    std::vector<uint32_t> all;
    Tokenizer::load(options_.tokenizer).encode_as_text(text, all);
    return all;
  }
  // "ab", each behind a zero: the id of <|endoftext|>.
  std::vector<uint32_t> documents(const std::vector<std::string>& texts) const {
    std::vector<uint32_t> all;
    for (const std::string& text : texts) {
      const std::vector<uint32_t> one = encoded(text);
      all.insert(all.end(), one.begin(), one.end());
      all.push_back(0);
    }
    return all;
  }
  std::string error_of(const std::vector<std::string>& words) const {
    return usage_failure([&] { run(words); });
  }

  const std::string folder_;
  TokenizeOptions options_;
};

TEST_F(TokenizeCorpusTest, TextInParts_HasTheTokensOfTheWhole) {
  const std::string text = varied_text();
  const std::string path = put("x.txt", text);
  for (const int64_t bytes : {9000, 1 << 20}) {
    options_.part_bytes = bytes;
    const TokenizeResult result = run({path});
    EXPECT_EQ(result.documents, 1);
    EXPECT_EQ(ids(options_.output), documents({text})) << bytes;
  }
}

TEST_F(TokenizeCorpusTest, Cuts_KeepTheTokens) {
  const Tokenizer tokenizer = Tokenizer::load(options_.tokenizer);
  const std::string text = varied_text();
  const std::vector<uint32_t> whole = encoded(text);
  for (const size_t bytes : {30, 100, 1000}) {
    const TextCutter cutter(tokenizer, text, 0, bytes);
    std::vector<uint32_t> pieces;
    size_t cuts = 0;
    for (size_t slot = 0; slot < cutter.slots(); ++slot) {
      const std::optional<size_t> begin = cutter.cut(slot);
      if (!begin) continue;
      tokenizer.encode_as_text(text.substr(*begin, cutter.next_cut(slot + 1) - *begin), pieces);
      ++cuts;
    }
    EXPECT_EQ(pieces, whole) << bytes;
    EXPECT_GT(cuts, cutter.slots() / 5) << bytes;
  }
}

TEST_F(TokenizeCorpusTest, JsonLines_AreADocumentEach) {
  const std::string path =
      put("x.jsonl",
          "{\"text\": \"one\\n\"}\n\n{\"text\": \"\"}\n{\"id\": 1, \"text\": \"two \\u00e9\"}");
  EXPECT_EQ(run({path, put("y.txt", "three")}).documents, 3);
  EXPECT_EQ(ids(options_.output), documents({"one\n", "two \u00e9", "three"}));
  EXPECT_FALSE(fs::exists(options_.output + ".parts"));
}

TEST_F(TokenizeCorpusTest, EndOfText_IsBeforeOrNowhere) {
  const std::string path = put("x.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  const uint32_t a = encoded("a")[0], b = encoded("b")[0];
  options_.eos = EosPlace::kPrepend;
  run({path});
  EXPECT_THAT(ids(options_.output), ::testing::ElementsAre(0, a, 0, b));
  options_.eos = EosPlace::kNone;
  run({path});
  EXPECT_THAT(ids(options_.output), ::testing::ElementsAre(a, b));
  options_.eos = EosPlace::kAppend;
  options_.eos_token = "<none>";
  EXPECT_THAT(thrown_by([&] { run({path}); }), IsUsageError(options_.tokenizer));
}

TEST_F(TokenizeCorpusTest, SpecialTokenInAText_IsATokenIfAsked) {
  const std::string path = put("x.txt", "a<|endoftext|>");
  options_.eos = EosPlace::kNone;
  run({path});
  EXPECT_EQ(ids(options_.output), encoded("a<|endoftext|>"));
  options_.parse_special = true;
  run({path});
  EXPECT_THAT(ids(options_.output), ::testing::ElementsAre(encoded("a")[0], 0));
}

TEST_F(TokenizeCorpusTest, LlmC_IsTheSameIdsBehindAHeader) {
  options_.format = TokenFormat::kLlmC;
  options_.width = TokenWidth::kUint32;
  run({put("x.txt", "some text")});
  EXPECT_EQ(TokenFile(options_.output).format(), TokenFormat::kLlmC);
  EXPECT_EQ(TokenFile(options_.output).width(), TokenWidth::kUint32);
  EXPECT_EQ(ids(options_.output), documents({"some text"}));
}

TEST_F(TokenizeCorpusTest, Validation_TakesDocumentsAndTheEndsOfTexts) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "{\"text\": \"" + std::to_string(i) + "\"}\n";
  options_.validation = 0.1;
  options_.eos = EosPlace::kNone;
  const TokenizeResult result = run({put("x.jsonl", lines)});
  const auto share = static_cast<double>(result.validation_tokens) /
                     static_cast<double>(result.validation_tokens + result.tokens);
  EXPECT_NEAR(share, 0.1, 0.03);
  EXPECT_EQ(ids(folder_ + "/val.bin").size(), static_cast<size_t>(result.validation_tokens));

  const std::string text = varied_text();
  options_.eos = EosPlace::kAppend;
  run({put("y.txt", text)});
  const std::string tail = text.substr(text.size() - text.size() / 10);
  const size_t begin = text.size() - tail.size() + tail.find('\n') + 1;
  EXPECT_EQ(ids(options_.output), documents({text.substr(0, begin)}));
  EXPECT_EQ(ids(folder_ + "/val.bin"), documents({text.substr(begin)}));

  EXPECT_THAT(error_of({put("z.jsonl", "{\"text\": \"one\"}\n")}), HasSubstr("none is left"));
  EXPECT_FALSE(fs::exists(options_.output + ".parts"));
}

TEST_F(TokenizeCorpusTest, DamagedLine_IsNamedOrLeftOut) {
  const std::string lines =
      put("x.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"\n{\"body\": \"c\"}\n");
  EXPECT_THAT(error_of({lines}), HasSubstr(lines + ":2: "));
  const std::string text = put("y.txt", "first\nsec\xFFond\nthird\n");
  fs::remove_all(options_.output + ".parts");
  EXPECT_THAT(error_of({text}), HasSubstr(text + ":2: "));
  fs::remove_all(options_.output + ".parts");
  options_.skip_damaged = true;
  EXPECT_EQ(run({lines, text}).damaged, 3);
  EXPECT_EQ(ids(options_.output), documents({"a", "first\nthird\n"}));
}

TEST_F(TokenizeCorpusTest, SecondRun_TakesUpTheFinishedParts) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "{\"text\": \"line " + std::to_string(i) + "\"}\n";
  const std::string good = put("a.jsonl", lines), bad = put("b.jsonl", "{}\n");
  EXPECT_NE(error_of({good, bad}), "");
  EXPECT_FALSE(fs::exists(options_.output));
  // As a kill in the middle of a part leaves it.
  const std::string part = options_.output + ".parts/00000002";
  fs::remove(part + ".json");
  write_file_atomically(part + ".train.partial", "x");
  fs::resize_file(options_.output + ".parts/00000003.train", 2);
  put("b.jsonl", "{\"text\": \"corrected\"}\n");
  const TokenizeResult result = run({good, bad});
  EXPECT_GT(result.found_parts, 0);
  EXPECT_LE(result.found_parts, result.parts - 3);
  const std::vector<uint32_t> resumed = ids(options_.output);
  const TokenizeResult again = run({good, bad});
  EXPECT_EQ(again.found_parts, 0);
  EXPECT_EQ(ids(options_.output), resumed);
  EXPECT_EQ(result.tokens, again.tokens);
}

TEST_F(TokenizeCorpusTest, FailureWithoutAFinishedPart_LeavesNoFolder) {
  options_.text_key = "txt";
  EXPECT_NE(error_of({put("a.jsonl", "{\"text\": \"a\"}\n")}), "");
  EXPECT_FALSE(fs::exists(options_.output + ".parts"));
}

TEST_F(TokenizeCorpusTest, PartsOfOtherOptions_AreMadeAgain) {
  const std::string good = put("a.jsonl", "{\"text\": \"one\", \"body\": \"two\"}\n");
  const std::string bad = put("b.jsonl", "{}\n");
  options_.threads = 1;
  EXPECT_NE(error_of({good, bad}), "");
  ASSERT_TRUE(fs::exists(options_.output + ".parts/00000000.json"));
  const std::string own = options_.output + ".parts/note";  // not of this command
  write_file_atomically(own, "mine");
  options_.text_key = "body";
  TokenizeResult result;
  EXPECT_THAT(captured_log([&] { result = run({good}); }), HasSubstr("made again"));
  EXPECT_EQ(result.found_parts, 0);
  EXPECT_EQ(ids(options_.output), documents({"two"}));
  EXPECT_EQ(read_file(own), "mine");
  EXPECT_FALSE(fs::exists(options_.output + ".parts/manifest.json"));
}

TEST_F(TokenizeCorpusTest, OtherActionForDamage_KeepsThePartsWithoutDamage) {
  const std::string good = put("a.jsonl", "{\"text\": \"one\"}\n"), bad = put("b.jsonl", "{}\n");
  const std::string wide = put("c.txt",
                               "\xFF\xFE"
                               "a");  // refused in any case
  options_.threads = 1;
  options_.skip_damaged = true;
  EXPECT_THAT(error_of({good, bad, wide}), HasSubstr(wide));
  options_.skip_damaged = false;  // the damage is found again
  EXPECT_THAT(error_of({good, bad, wide}), HasSubstr(bad + ":1: "));
  options_.skip_damaged = true;
  const TokenizeResult result = run({good, bad});
  EXPECT_EQ(result.found_parts, 1);
  EXPECT_EQ(result.damaged, 1);
  EXPECT_EQ(ids(options_.output), documents({"one"}));
}

TEST_F(TokenizeCorpusTest, ManyDamagedLines_AreNamedTenTimes) {
  std::string lines;
  for (int i = 0; i < 25; ++i) lines += "{\"body\": 1}\n";
  const std::string bad = put("b.jsonl", lines), good = put("a.txt", "text");
  options_.skip_damaged = true;
  TokenizeResult result;
  const std::string log = captured_log([&] { result = run({bad, good}); });
  EXPECT_EQ(result.damaged, 25);
  EXPECT_THAT(log, ::testing::AllOf(HasSubstr("b.jsonl:10: "), HasSubstr("are counted"),
                                    ::testing::Not(HasSubstr("b.jsonl:11: "))));
  const LogCapture quiet;
  const Error error = thrown_by([&] { run({bad}); });
  EXPECT_THAT(error, IsUsageError(bad + ":1"));
  EXPECT_THAT(error.failure(), ::testing::AllOf(HasSubstr("25"), HasSubstr("no key 'text'")));
  EXPECT_FALSE(fs::exists(options_.output + ".parts"));
}

TEST_F(TokenizeCorpusTest, OutputThatIsAnInput_IsRefused) {
  const std::string text = put("val.bin", "some text"), link = folder_ + "/link.txt";
  fs::create_symlink(text, link);
  const auto refused = [&](const std::string& output, double validation, const std::string& where) {
    TokenizeOptions options = options_;
    options.output = output;
    options.validation = validation;
    EXPECT_THAT(thrown_by([&] { tokenize_corpus(find_corpus({text}), options, {}); }),
                IsUsageError(where));
    EXPECT_FALSE(fs::exists(output + ".parts"));
  };
  refused(text, 0, text);
  refused(link, 0, link);
  refused(options_.tokenizer, 0, options_.tokenizer);
  refused(options_.output, 0.5, text);  // train.bin's validation file
  refused("-", 0, "--output -");
  refused(folder_ + "/none/x.bin", 0, folder_ + "/none");
  EXPECT_FALSE(fs::exists(folder_ + "/none"));
  EXPECT_EQ(read_file(text), "some text");
}

TEST_F(TokenizeCorpusTest, NoText_IsRefused) {
  EXPECT_THAT(error_of({put("x.txt", "")}), HasSubstr("no text"));
}

TEST(ValidationPath, IsNextToTheOutput) {
  EXPECT_EQ(validation_path("data/train.bin"), "data/val.bin");
  EXPECT_EQ(validation_path("wiki_train_1.bin"), "wiki_val_1.bin");
  EXPECT_EQ(validation_path("a/x.bin"), "a/x_val.bin");
}

}  // namespace
}  // namespace fleet::text
