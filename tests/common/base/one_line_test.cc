#include "base/one_line.h"

#include <gtest/gtest.h>

#include "base/file_name.h"

namespace fleet {
namespace {

TEST(OneLine, ControlCharacter_IsAQuestionMark) {
  EXPECT_EQ(one_line("plain text", 40), "plain text");
  EXPECT_EQ(one_line("a\x1b]0;title\x07\r\n\t\x7f", 40), "a?]0;title?????");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                     40),
            "??31m \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(one_line("\xff\xc3\xe2\x82", 40), "????");
}

TEST(OneLine, Long_IsCutBetweenCharacters) {
  EXPECT_EQ(one_line("12345678", 8), "12345678");
  EXPECT_EQ(one_line("123456789", 8), "12345...");
  EXPECT_EQ(one_line("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
  EXPECT_EQ(one_line("", 8), "");
}

TEST(FileWord, AnyText_IsOnePartOfAPath) {
  EXPECT_EQ(file_name_component("night-7_a.b"), "night-7_a.b");
  EXPECT_EQ(file_name_component("../a b\n\xc3\xa9"), ".._a_b___");
  const std::string longest(100, 'x'), longer(101, 'x');
  EXPECT_EQ(file_name_component(longest), longest);
  EXPECT_EQ(file_name_component(longer).size(), 100u);
  EXPECT_NE(file_name_component(longer), file_name_component(longer + "y"));
}

}  // namespace
}  // namespace fleet
