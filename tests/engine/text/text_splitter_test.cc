#include "text/text_splitter.h"

#include <gmock/gmock.h>

#include "tests/engine/text/golden_text.h"
#include "tests/errors.h"

namespace fleet::text {
namespace {

TEST(TextSplitter, Parts_DoWhatHuggingFaceDoes) {
  const Json golden = testing::golden_text("parts");
  const std::vector<std::string> texts = golden.at("texts").get<std::vector<std::string>>();
  ASSERT_GT(golden.at("cases").size(), 50u);
  for (const Json& test : golden.at("cases").elements()) {
    const bool normalizes = test.contains("normalizer");
    const TextSplitter splitter(normalizes ? test.at("normalizer") : Json(),
                                normalizes ? Json() : test.at("pre_tokenizer"), "parts");
    const auto expected =
        test.at(normalizes ? "normalized" : "pieces").get<std::vector<std::string>>();
    ASSERT_EQ(expected.size(), texts.size());
    EXPECT_EQ(splitter.normalizes(), normalizes);
    for (size_t i = 0; i < texts.size(); ++i) {
      std::string result;
      if (normalizes) {
        result = splitter.normalize(texts[i]);
      } else {
        bool first = true;
        splitter.pieces(texts[i], [&](std::string_view piece) {
          if (!first) result += '\t';
          first = false;
          result += piece;
        });
      }
      EXPECT_EQ(result, expected[i]) << texts[i] << " with " << test.dump().substr(0, 120);
    }
  }
}

TEST(TextSplitter, ByteLevel_GivesBytes) {
  const TextSplitter splitter(
      Json(), Json::parse(R"({"type":"ByteLevel","add_prefix_space":true})"), "test");
  EXPECT_TRUE(splitter.byte_level());
  std::vector<std::string> pieces;
  splitter.pieces("é it's", [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_THAT(pieces, ::testing::ElementsAre(" é", " it", "'s"));
}

TEST(ByteLevelText, EveryByte_ComesBack) {
  std::string bytes, back;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(byte_level_text(" a\n"), "ĠaĊ");
  ASSERT_TRUE(byte_level_bytes(byte_level_text(bytes), back));
  EXPECT_EQ(back, bytes);
  EXPECT_FALSE(byte_level_bytes("▁", back));
}

}  // namespace
}  // namespace fleet::text
