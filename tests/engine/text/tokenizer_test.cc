#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/engine/text/golden_text.h"
#include "tests/errors.h"

namespace fleet::text {
namespace {

using ::testing::ElementsAre;
using testing::golden_text;

std::vector<uint32_t> ids_of(const Json& json) {
  std::vector<uint32_t> ids;
  for (const Json& id : json.elements()) ids.push_back(static_cast<uint32_t>(id.get<int>()));
  return ids;
}

class GoldenTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, Texts_HaveTheIdsOfHuggingFace) {
  const Json golden = golden_text(GetParam());
  const Tokenizer tokenizer = Tokenizer::from_json(golden.at("tokenizer").dump(), GetParam());
  EXPECT_EQ(tokenizer.vocabulary_size(), golden.at("size").get<uint64_t>());
  ASSERT_GT(golden.at("cases").size(), 20u);
  for (const Json& test : golden.at("cases").elements()) {
    const std::string text = test.at("text").get<std::string>();
    const std::vector<uint32_t> plain = ids_of(test.at("ids")),
                                special = ids_of(test.at("special"));
    EXPECT_EQ(tokenizer.encode(text, false), plain) << text;
    EXPECT_EQ(tokenizer.encode(text, true), special) << text;
    EXPECT_EQ(tokenizer.decode(plain, false), test.at("decoded").get<std::string>()) << text;
    EXPECT_EQ(tokenizer.decode(special, true), test.at("skipped").get<std::string>()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer,
                         ::testing::Values("gpt2", "llama3", "qwen2", "smollm", "llama2", "bert",
                                           "metaspace", "clip", "words"));

Tokenizer tokenizer_from(const std::string& name) {
  return Tokenizer::from_json(golden_text(name).at("tokenizer").dump(), name);
}

// The heap of long pieces against the scan of short ones: a text without white space is one piece.
TEST(Tokenizer, PieceOfAMegabyte_HasTheTokensOfItsParts) {
  const Tokenizer tokenizer = tokenizer_from("gpt2");
  std::string text;
  while (text.size() < 1'000'000) text += "thetextnumberstokens";
  std::vector<uint32_t> ids;
  tokenizer.encode_ordinary(text, ids);
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  // The period of the text comes back in the ids, away from both ends.
  std::vector<uint32_t> part;
  tokenizer.encode_ordinary(text.substr(0, 20 * 200), part);
  const size_t most = part.size() - 20;
  EXPECT_TRUE(std::equal(part.begin(), part.begin() + static_cast<ptrdiff_t>(most), ids.begin()));
}

TEST(Tokenizer, BytesThatAreNotUtf8_BecomeReplacementCharacters) {
  const Tokenizer tokenizer = tokenizer_from("gpt2");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xE2\x82z\xFF\xC0\x80", false), false),
            "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Tokenizer, IdsThatCutACharacter_DecodeToOneReplacement) {
  const Tokenizer tokenizer = tokenizer_from("gpt2");
  const std::vector<uint32_t> ids = tokenizer.encode("\xF0\x9F\xA6\x9A", false);
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokenizer.decode(std::span(ids).first(3), false), "\xEF\xBF\xBD");
}

TEST(Tokenizer, SpecialTokenInText_IsOneIdOrOrdinaryText) {
  const Tokenizer tokenizer = tokenizer_from("gpt2");
  std::vector<uint32_t> special, ordinary;
  tokenizer.encode_ordinary("</s>", special);
  tokenizer.encode_as_text("</s>", ordinary);
  EXPECT_THAT(special, ElementsAre(*tokenizer.token_id("</s>")));
  EXPECT_EQ(ordinary.size(), 4u);
  EXPECT_EQ(tokenizer.decode(ordinary, true), "</s>");
  EXPECT_EQ(tokenizer.decode(special, true), "");
}

TEST(Tokenizer, DisabledTruncationAndPadding_LeaveTheIds) {
  Tokenizer tokenizer = tokenizer_from("bert");
  EXPECT_EQ(tokenizer.encode("the", false).size(), 24u);
  tokenizer.disable_padding();
  EXPECT_EQ(tokenizer.encode("the", false).size(), 1u);
  EXPECT_EQ(tokenizer.encode("a b c d e f g h i j k l m n o p q r s t u v w x y z", true).size(),
            24u);
  tokenizer.disable_truncation();
  EXPECT_EQ(tokenizer.encode("a b c d e f g h i j k l m n o p q r s t u v w x y z", true).size(),
            28u);
}

TEST(Tokenizer, SeveralThreadsAndTokenizers_GiveTheSameIds) {
  const Tokenizer first = tokenizer_from("gpt2"), second = tokenizer_from("llama2"),
                  third = tokenizer_from("clip");
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i % 70) + " the text, ";
  const auto all = [&] {
    std::vector<std::vector<uint32_t>> ids;
    for (const Tokenizer* tokenizer : {&first, &second, &third, &first}) {
      ids.push_back(tokenizer->encode(text, true));
    }
    return ids;
  };
  const auto expected = all();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) wrong += all() != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, UnknownId_IsRefused) {
  const Tokenizer tokenizer = tokenizer_from("gpt2");
  const uint32_t ids[] = {static_cast<uint32_t>(tokenizer.vocabulary_size())};
  EXPECT_EQ(thrown_by([&] { tokenizer.decode(ids, false); }).code(), ErrorCode::kUsage);
  EXPECT_EQ(tokenizer.token(ids[0]), std::nullopt);
}

// A file with one member replaced.
std::string changed(const std::string& name, const std::string& key, const std::string& value) {
  Json file = golden_text(name).at("tokenizer");
  file[key] = Json::parse(value);
  return file.dump();
}

struct Refusal {
  const char* key;
  const char* value;
  ErrorCode code;
  const char* named;  // what the message must name
};

class RefusedTokenizer : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedTokenizer, Member_IsNamed) {
  const auto& [key, value, code, named] = GetParam();
  const Error error =
      thrown_by([&] { Tokenizer::from_json(changed("gpt2", key, value), "file.json"); });
  EXPECT_THAT(error, IsError(code, "file.json"));
  EXPECT_THAT(error.what(), ::testing::HasSubstr(named));
}

INSTANTIATE_TEST_SUITE_P(
    Members, RefusedTokenizer,
    ::testing::Values(
        Refusal{"model", R"({"type":"Unigram","vocab":[]})", ErrorCode::kUnsupported, "Unigram"},
        Refusal{"model", R"({"type":"BPE","vocab":{},"merges":[],"dropout":0.1})",
                ErrorCode::kUnsupported, "dropout"},
        Refusal{"model", R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})", ErrorCode::kUsage,
                "'a' and 'b'"},
        Refusal{"model", R"({"type":"BPE","vocab":{"a":-1},"merges":[]})", ErrorCode::kUsage,
                "vocab"},
        Refusal{"model", R"({"type":"BPE","vocab":{"a":99999999},"merges":[]})", ErrorCode::kUsage,
                "vocab"},
        Refusal{"model", "7", ErrorCode::kUsage, "model"},
        Refusal{"normalizer", R"({"type":"Precompiled"})", ErrorCode::kUnsupported, "Precompiled"},
        Refusal{"normalizer", R"({"type":"Nmt"})", ErrorCode::kUnsupported, "Nmt"},
        Refusal{"normalizer", R"({"type":"Prepend"})", ErrorCode::kUsage, "prepend"},
        Refusal{"pre_tokenizer", R"({"type":"UnicodeScripts"})", ErrorCode::kUnsupported,
                "UnicodeScripts"},
        Refusal{"pre_tokenizer",
                R"x({"type":"Split","pattern":{"Regex":"a(?<=b)"},"behavior":"Isolated"})x",
                ErrorCode::kUnsupported, "(?<"},
        Refusal{"pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Other"})",
                ErrorCode::kUsage, "behavior"},
        Refusal{"decoder", R"({"type":"CTC"})", ErrorCode::kUnsupported, "CTC"},
        Refusal{"post_processor", R"({"type":"Other"})", ErrorCode::kUnsupported, "Other"},
        Refusal{"padding", R"({"strategy":"Longest"})", ErrorCode::kUsage, "strategy"},
        Refusal{"added_tokens", R"([{"id":1}])", ErrorCode::kUsage, "added token"}));

TEST(Tokenizer, TruncationBelowTheAddedTokens_IsRefused) {
  EXPECT_THAT(thrown_by([] {
                Tokenizer::from_json(changed("bert", "truncation", R"({"max_length":1})"), "f");
              }),
              IsError(ErrorCode::kUsage, "f"));
}

TEST(Tokenizer, FileThatIsNeither_IsRefused) {
  EXPECT_THAT(thrown_by([] { Tokenizer::from_json("{", "f"); }), IsError(ErrorCode::kUsage, "f"));
  EXPECT_THAT(thrown_by([] { Tokenizer::from_json("[]", "f"); }), IsError(ErrorCode::kUsage, "f"));
  EXPECT_EQ(thrown_by([] { Tokenizer::load("/nonexistent/file"); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fleet::text
