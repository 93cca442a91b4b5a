#include "base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// As Windows programs write it; `big`: the high byte first.
std::string utf16(const std::string& text, bool big, bool mark) {
  std::string bytes = !mark ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char c : text) bytes += big ? std::string{'\0', c} : std::string{c, '\0'};
  return bytes;
}

TEST(TextFile, MarkAndCarriageReturns_AreLeftOut) {
  EXPECT_EQ(plain_text("a\nb", "f"), "a\nb");
  EXPECT_EQ(plain_text("\xEF\xBB\xBF"
                       "a\r\n\r\nb\r\n",
                       "f"),
            "a\n\nb\n");
  EXPECT_EQ(plain_text("a\rb\r", "f"), "a\rb\r") << "no line ends there";
  EXPECT_EQ(plain_text("\xEF\xBB\xBF", "f"), "");
  EXPECT_EQ(plain_text("a\xEF\xBB\xBF", "f"), "a\xEF\xBB\xBF") << "only the first three bytes";
  EXPECT_EQ(plain_text("", "f"), "");
}

TEST(TextFile, OtherEncodings_AreRefusedByName) {
  for (const bool big : {false, true}) {
    for (const bool mark : {false, true}) {
      const Error error = thrown_by([&] { plain_text(utf16("node1\n", big, mark), "hosts"); });
      EXPECT_THAT(error, IsUsageError("hosts")) << big << mark;
      EXPECT_THAT(error.failure(), HasSubstr("UTF-16"));
      EXPECT_THAT(error, Advises(HasSubstr("UTF-8")));
    }
  }
  const std::string utf32("\xFF\xFE\0\0a\0\0\0", 8);
  EXPECT_THAT(thrown_by([&] { plain_text(utf32, "f"); }).failure(), HasSubstr("UTF-32"));
}

TEST(TextFile, JobFiles_AreReadWithTheMarkAndRefusedInUtf16) {
  const std::string path = ::testing::TempDir() + "text_file.json", text = "{\"a\": 1}\r\n";
  std::ofstream(path) << "\xEF\xBB\xBF" << text;
  EXPECT_EQ(ConfigTree::from_file(path).peek("a"), "1");
  std::ofstream(path) << utf16(text, false, true);
  const Error error = thrown_by([&] { ConfigTree::from_file(path); });
  EXPECT_THAT(error, IsUsageError(path));
  EXPECT_THAT(error.failure(), HasSubstr("UTF-16"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fleet
