// Pairs of texts, truncation, offsets and words; the values of scripts/make_golden_encodings.py.
#include "text/encoding.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "tests/engine/text/golden_text.h"
#include "tests/errors.h"
#include "text/tokenizer.h"

namespace fleet::text {
namespace {

using ::testing::ElementsAre;
using testing::golden_text;

template <typename T>
std::string numbers(const std::vector<T>& values) {
  std::ostringstream text;
  for (const T& value : values) text << (&value == values.data() ? "" : " ") << int64_t{value};
  return text.str();
}

std::string numbers(const std::vector<TextRange>& ranges) {
  std::vector<uint32_t> values;
  for (const TextRange& range : ranges) values.insert(values.end(), {range.begin, range.end});
  return numbers(values);
}

Tokenizer tokenizer_of(const std::string& name) {
  Tokenizer tokenizer = Tokenizer::from_json(golden_text(name).at("tokenizer").dump(), name);
  tokenizer.disable_truncation();
  tokenizer.disable_padding();
  return tokenizer;
}

Encoding encode(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const Json& test,
                bool offsets) {
  EncodeOptions options;
  options.offsets = offsets;
  options.special_tokens = test.value("special", true);
  if (test.contains("most")) {
    options.truncation = {test.at("most").get<uint64_t>(),
                          *truncation_rule(test.at("rule").get<std::string>()),
                          test.at("left").get<bool>()};
  }
  const std::string& first = texts.at(test.at("first").get<uint64_t>());
  if (!test.contains("second")) return tokenizer.encode(first, options);
  return tokenizer.encode(first, texts.at(test.at("second").get<uint64_t>()), options);
}

class GoldenEncodings : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenEncodings, Encodings_AreThoseOfHuggingFace) {
  const Tokenizer tokenizer = tokenizer_of(GetParam());
  const Json file = golden_text("encodings");
  const auto texts = file.at("texts").get<std::vector<std::string>>();
  const Json& golden = file.at("tokenizers").at(GetParam());
  ASSERT_GT(golden.size(), 20u);
  for (const Json& test : golden.elements()) {
    const std::string what = test.dump();
    for (const bool offsets : {false, true}) {
      if (!test.contains("ids")) {
        EXPECT_EQ(thrown_by([&] { encode(tokenizer, texts, test, offsets); }).code(),
                  ErrorCode::kUsage)
            << what;
        continue;
      }
      const Encoding encoding = encode(tokenizer, texts, test, offsets);
      EXPECT_EQ(numbers(encoding.ids), test.at("ids").get<std::string>()) << what;
      if (test.contains("second")) {
        EXPECT_EQ(numbers(encoding.type_ids), test.at("types").get<std::string>()) << what;
        EXPECT_EQ(numbers(encoding.texts), test.at("texts").get<std::string>()) << what;
      }
      if (test.contains("words")) {
        EXPECT_EQ(numbers(encoding.words), test.at("words").get<std::string>()) << what;
      }
      EXPECT_EQ(numbers(encoding.offsets), offsets ? test.at("offsets").get<std::string>() : "")
          << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenEncodings,
                         ::testing::Values("gpt2", "llama3", "qwen2", "smollm", "llama2", "bert",
                                           "metaspace", "clip", "words"));

TEST(Encoding, BytesThatAreNotUtf8_HaveTheirOwnRange) {
  EncodeOptions options;
  options.offsets = true;
  options.special_tokens = false;
  const Encoding encoding = tokenizer_of("words").encode("a \xE2\x82 a", options);
  EXPECT_THAT(encoding.offsets, ElementsAre(TextRange{0, 1}, TextRange{2, 4}, TextRange{5, 6}));
}

TEST(Encoding, JoinedParts_AreTheEncodingOfBoth) {
  const Tokenizer tokenizer = tokenizer_of("bert");
  EncodeOptions plain;
  plain.special_tokens = false;
  const Encoding first = tokenizer.encode("the text", plain), second = tokenizer.encode("a", plain);
  const Encoding both = tokenizer.joined(first, &second);
  EXPECT_EQ(both.ids, tokenizer.encode("the text", "a", EncodeOptions()).ids);
  EXPECT_EQ(both.size(), first.size() + second.size() + tokenizer.special_tokens(true));
}

TEST(Encoding, TruncatedText_TellsHowManyTokensWent) {
  const Tokenizer tokenizer = tokenizer_of("words");
  EncodeOptions options;
  options.truncation = TruncateTo{3};
  EXPECT_EQ(tokenizer.encode("a b c d e", options).removed, 2u);
  options.truncation = TruncateTo{4};
  EXPECT_EQ(tokenizer.encode("a b c d e", "a b", options).removed, 3u);
}

TEST(Tokenizer, FolderWithVocabularyOnly_IsBertsTokenizer) {
  const Json vocabulary = golden_text("bert").at("tokenizer").at("model").at("vocab");
  std::vector<std::string> lines(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) lines.at(id.get<uint64_t>()) = token;
  std::string content;
  for (const std::string& line : lines) content += line + "\n";
  const std::string folder = ::testing::TempDir() + "/bert_vocabulary";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder + "/vocab.txt", content);
  for (const Json& test : golden_text("encodings").at("vocabulary").elements()) {
    write_file_atomically(folder + "/tokenizer_config.json", test.at("config").dump());
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const std::string text = test.at("text").get<std::string>();
    EXPECT_EQ(numbers(tokenizer.encode(text, true)), test.at("ids").get<std::string>());
    EXPECT_EQ(numbers(tokenizer.encode(text, "the", EncodeOptions()).type_ids),
              test.at("pair").get<std::string>());
  }
  write_file_atomically(folder + "/vocab.txt", "[PAD]\n[UNK]\n");
  EXPECT_THAT(thrown_by([&] { Tokenizer::load(folder); }),
              IsError(ErrorCode::kUsage, folder + "/vocab.txt"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fleet::text
