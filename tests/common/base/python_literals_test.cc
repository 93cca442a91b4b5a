#include "base/python_literals.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(JsonFromPython, Booleans_AreJsons) {
  EXPECT_EQ(json_from_python("{\"a\": True, \"b\": [False,True]}"),
            "{\"a\": true, \"b\": [false,true]}");
  EXPECT_EQ(json_from_python("True"), "true");
  EXPECT_EQ(json_from_python("Truest aTrue False_"), "Truest aTrue False_");
}

TEST(JsonFromPython, SingleQuotes_AreDouble) {
  EXPECT_EQ(json_from_python("['a', \"it's\", 'say \"x\"', '']"),
            "[\"a\", \"it's\", 'say \"x\"', \"\"]");
}

TEST(JsonFromPython, CommaBeforeABracket_Goes) {
  EXPECT_EQ(json_from_python("{\"a\": [1,2,],\n}"), "{\"a\": [1,2 ] \n}");
  EXPECT_EQ(json_from_python("[1, // one\n]"), "[1  // one\n]");
}

TEST(JsonFromPython, TextsAndComments_Stay) {
  const std::string text = "{\"True\": \"a, ]\\\" 'x'\" /* don't, ] True */ } // isn't True";
  EXPECT_EQ(json_from_python(text), text);
}

TEST(JsonFromPython, WhatIsUnfinished_Stays) {
  for (const char* text : {"'", "\"a", "'a", "/*", "\"\\", "", "[1,"}) {
    EXPECT_EQ(json_from_python(text), text);
  }
}

}  // namespace
}  // namespace fleet
