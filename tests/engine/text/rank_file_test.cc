#include "text/rank_file.h"

#include <gmock/gmock.h>

#include "tests/errors.h"
#include "text/split_pattern.h"
#include "text/tokenizer.h"

namespace fleet::text {
namespace {

using ::testing::ElementsAre;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// 256 bytes, then these tokens.
std::string rank_file(const std::vector<std::string>& tokens) {
  std::string content;
  for (int byte = 0; byte < 256; ++byte) {
    content += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
  }
  size_t rank = 256;
  for (const std::string& token : tokens) {
    content += base64(token) + " " + std::to_string(rank++) + "\n";
  }
  return content;
}

RankFileSettings with_pattern() {
  RankFileSettings settings;
  settings.pattern = "\\p{L}+|\\s+|[^\\s\\p{L}]+";
  settings.added_tokens.push_back({"<end>", 300, true});
  return settings;
}

TEST(RankFile, Tokens_MergeByRankAndWholePiecesFirst) {
  // "abc" has no merge that makes it: only the look-up of the whole piece finds it.
  const Tokenizer tokenizer =
      Tokenizer::from_ranks(rank_file({"bd", "ab", "abcx"}), with_pattern(), "f");
  EXPECT_THAT(tokenizer.encode("abd", false), ElementsAre('a', 256));
  EXPECT_THAT(tokenizer.encode("abcx", false), ElementsAre(258));
  EXPECT_THAT(tokenizer.encode("abcxy", false), ElementsAre(257, 'c', 'x', 'y'));
  EXPECT_THAT(tokenizer.encode("ab<end>ab", false), ElementsAre(257, 300, 257));
  EXPECT_EQ(tokenizer.vocabulary_size(), 301u);
  const uint32_t ids[] = {257, 300, 0xC3, 0xA9, 0xFF};
  EXPECT_EQ(tokenizer.decode(ids, false), "ab<end>é\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer.token_id("bd"), 256u);
}

TEST(RankFile, DamagedLines_AreNamed) {
  const auto line = [](const std::string& bad) {
    return thrown_by(
        [&] { Tokenizer::from_ranks(rank_file({}) + bad + "\n", with_pattern(), "f"); });
  };
  EXPECT_THAT(line("YWI 256"), IsError(ErrorCode::kUsage, "f:257"));
  EXPECT_THAT(line("YWI= x"), IsError(ErrorCode::kUsage, "f:257"));
  EXPECT_THAT(line("YWI= 255"), IsError(ErrorCode::kUsage, "f:257"));
  EXPECT_THAT(line("YWI= 99999999"), IsError(ErrorCode::kUsage, "f:257"));
}

TEST(RankFile, WithoutAByte_IsRefused) {
  EXPECT_THAT(thrown_by([] { Tokenizer::from_ranks(base64("a") + " 0\n", with_pattern(), "f"); }),
              IsError(ErrorCode::kUsage, "f"));
}

TEST(RankFile, UnknownNumberOfRanks_NeedsAPattern) {
  EXPECT_THAT(thrown_by([] { Tokenizer::from_ranks(rank_file({"ab"}), {}, "f"); }),
              IsError(ErrorCode::kUsage, "f"));
}

TEST(RankFile, PublicFiles_AreKnownByTheirRanks) {
  for (const size_t ranks : {50256, 100256, 128000, 151643, 199998}) {
    const auto settings = known_settings(ranks);
    ASSERT_TRUE(settings) << ranks;
    EXPECT_NO_THROW(SplitPattern(settings->pattern, "test")) << ranks;
    EXPECT_GE(settings->added_tokens[0].id, ranks);
  }
  EXPECT_EQ(known_settings(128000)->added_tokens.size(), 256u);
  EXPECT_EQ(known_settings(128000)->added_tokens[9].content, "<|eot_id|>");
}

}  // namespace
}  // namespace fleet::text
