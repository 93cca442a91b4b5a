#include "text/split_pattern.h"

#include <gmock/gmock.h>

#include "tests/errors.h"

namespace fleet::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> matches(const std::string& expression, const std::string& text) {
  const SplitPattern pattern(expression, "test");
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    size_t begin;
    const size_t end = pattern.find(text, at, &begin);
    if (end == SplitPattern::kNone) break;
    found.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return found;
}

TEST(SplitPattern, Alternatives_TheFirstThatMatchesCounts) {
  EXPECT_THAT(matches("a|ab", "abab"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("ab|a", "aba"), ElementsAre("ab", "a"));
  EXPECT_THAT(matches("(?:a|ab)(?:c|bcd)", "abcd"), ElementsAre("abcd"));
}

TEST(SplitPattern, Quantifiers_AreGreedyOrLazy) {
  EXPECT_THAT(matches("a{2,3}", "aaaaaaaa"), ElementsAre("aaa", "aaa", "aa"));
  EXPECT_THAT(matches("a{2,3}?", "aaaaa"), ElementsAre("aa", "aa"));
  EXPECT_THAT(matches("a{2}", "aaaaa"), ElementsAre("aa", "aa"));
  EXPECT_THAT(matches("ba*", "bbaa"), ElementsAre("b", "baa"));
  EXPECT_THAT(matches("a+?b?", "aab"), ElementsAre("a", "ab"));
  EXPECT_THAT(matches("(?:a?){3}b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches("(?:a*)*b", "aab"), ElementsAre("aab"));
}

TEST(SplitPattern, Lookahead_SeesOneCharacterOrTheEnd) {
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s+)", "a   b  "), ElementsAre("  ", " ", "  "));
  EXPECT_THAT(matches("a(?=b)", "aab"), ElementsAre("a"));
  EXPECT_THAT(matches("a(?=b|c)", "acad"), ElementsAre("a"));
}

TEST(SplitPattern, Classes_NestAndNegate) {
  EXPECT_THAT(matches("[a-c[^\\x00-y]]+", "xabz~y"), ElementsAre("abz~"));
  EXPECT_THAT(matches("[^a\\]-]+", "xa-]y"), ElementsAre("x", "y"));
  EXPECT_THAT(matches("[\\w-]+", "a-b c"), ElementsAre("a-b", "c"));
  EXPECT_THAT(matches("\\P{L}+", "a1b"), ElementsAre("1"));
  EXPECT_THAT(matches("[\\p{^L}b]+", "a1b"), ElementsAre("1b"));
}

TEST(SplitPattern, IgnoredCase_CoversLongSAndKelvin) {
  EXPECT_THAT(matches("(?i:'s|k)", "'S'ſK\u212Ax"), ElementsAre("'S", "'ſ", "K", "\u212A"));
  EXPECT_THAT(matches("(?i:a)b", "AbAB"), ElementsAre("Ab"));
}

TEST(SplitPattern, MegabytesOfOneCharacter_TakeLinearTime) {
  // A backtracking engine needs hours for this.
  const std::string text(4'000'000, 'a');
  EXPECT_EQ(SplitPattern("(?:a+)+b|a+", "test").match(text, 0), text.size());
}

struct Refused {
  const char* expression;
  ErrorCode code;
  const char* named;
};

TEST(SplitPattern, OtherConstructs_AreNamed) {
  const Refused cases[] = {
      {"^a", ErrorCode::kUnsupported, "anchor ^"},
      {"a$", ErrorCode::kUnsupported, "anchor $"},
      {"\\ba", ErrorCode::kUnsupported, "\\b"},
      {"(a)\\1", ErrorCode::kUnsupported, "\\1"},
      {"(?<=a)b", ErrorCode::kUnsupported, "(?<"},
      {"(?>a)", ErrorCode::kUnsupported, "(?>"},
      {"a++", ErrorCode::kUnsupported, "possessive"},
      {"a(?!bc)", ErrorCode::kUnsupported, "more than one character"},
      {"\\p{Han}", ErrorCode::kUnsupported, "\\p{Han}"},
      {"[[:alpha:]]", ErrorCode::kUnsupported, "POSIX"},
      {"[a&&b]", ErrorCode::kUnsupported, "&&"},
      {"(?i:é)", ErrorCode::kUnsupported, "not ASCII"},
      {"a*", ErrorCode::kUnsupported, "empty"},
      {"a{1,2000}", ErrorCode::kUnsupported, "1000"},
      {"(?:(?:a{1,1000}){1,1000}){1,1000}", ErrorCode::kUnsupported, "large"},
      {"(a", ErrorCode::kUsage, "')'"},
      {"a)", ErrorCode::kUsage, "'('"},
      {"[a", ErrorCode::kUsage, "']'"},
      {"*a", ErrorCode::kUsage, "nothing before"},
      {"a{3,2}", ErrorCode::kUsage, "before it begins"},
      {"[b-a]", ErrorCode::kUsage, "before it begins"},
      {"a\\", ErrorCode::kUsage, "backslash"},
      {"\\x{110000}", ErrorCode::kUsage, "10FFFF"},
  };
  for (const Refused& test : cases) {
    const Error error = thrown_by([&] { SplitPattern(test.expression, "place"); });
    EXPECT_THAT(error, IsError(test.code, "place")) << test.expression;
    EXPECT_THAT(error.what(), HasSubstr(test.named)) << test.expression;
  }
}

}  // namespace
}  // namespace fleet::text
