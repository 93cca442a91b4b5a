#include "base/error.h"

#include <gmock/gmock.h>

#include "base/registry.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(Error, Message_SaysWhereWhatAndWhatToDo) {
  const Error error(ErrorCode::kUsage, "label 12 is out of range", "train.txt:7", "use 0..9");
  EXPECT_STREQ(error.what(), "train.txt:7: label 12 is out of range; use 0..9");
  EXPECT_EQ(error.failure(), "label 12 is out of range");
  EXPECT_EQ(error.where(), "train.txt:7");
  EXPECT_EQ(error.next(), "use 0..9");
}

TEST(Error, PartsLeftOut_LeaveNoPunctuation) {
  EXPECT_STREQ(Error(ErrorCode::kIo, "disk full").what(), "disk full");
  EXPECT_STREQ(Error(ErrorCode::kIo, "disk full", "/x").what(), "/x: disk full");
}

// What others have named or written is quoted in messages.
TEST(Error, Controls_AreWrittenOut) {
  const Error error(ErrorCode::kUsage, "the class '\x1b[2J' is unknown", "a\x1b[31m\nb",
                    "see \x9b");
  EXPECT_STREQ(error.what(), "a\\x1b[31m\\nb: the class '\\x1b[2J' is unknown; see \\x9b");
  EXPECT_EQ(error.where(), "a\x1b[31m\nb");
  EXPECT_LT(std::string(Error(ErrorCode::kUsage, std::string(1 << 20, 'x')).what()).size(), 20000u);
}

TEST(ExitCodeFor, WhatTheUserMustChange_IsTwo) {
  EXPECT_EQ(exit_code_for(ErrorCode::kUsage), 2);
  EXPECT_EQ(exit_code_for(ErrorCode::kUnsupported), 2);
  EXPECT_EQ(exit_code_for(ErrorCode::kPeerLost), kExitPeerLost);
  EXPECT_EQ(exit_code_for(ErrorCode::kIo), 1);
  EXPECT_EQ(exit_code_for(ErrorCode::kInternal), 1);
}

TEST(Check, Fails_NamesThePlace) {
  try {
    FLEET_CHECK(1 == 2, "numbers changed");
    FAIL() << "passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("error_test.cc:"));
    EXPECT_THAT(error.what(), HasSubstr("numbers changed"));
  }
}

TEST(Registry, UnknownName_SuggestsTheNearest) {
  Registry<int> registry("model");
  registry.add("resnet50", 50);
  registry.add("lenet", 5);
  EXPECT_EQ(registry.get("lenet"), 5);
  EXPECT_EQ(registry.find("vgg"), nullptr);
  EXPECT_THAT(registry.names(), ::testing::ElementsAre("lenet", "resnet50"));
  try {
    registry.get("resnet5");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "unknown model 'resnet5'; did you mean 'resnet50'?");
  }
}

TEST(Registry, SameNameTwice_IsABug) {
  Registry<int> registry("model");
  registry.add("a", 1);
  EXPECT_THROW(registry.add("a", 2), Error);
  EXPECT_EQ(registry.get("a"), 1);
}

}  // namespace
}  // namespace fleet
