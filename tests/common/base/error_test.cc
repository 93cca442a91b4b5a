#include "base/error.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/registry.h"
#include "base/thread.h"

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

// Text from outside is quoted in messages.
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

// A user's thing with the name of one of fleetrun's: which comes first is unknown.
TEST(Registry, SameNameDefinedTwice_IsRefusedWhenItIsUsed) {
  Registry<int> registry("model");
  EXPECT_TRUE(registry.define("a", [](int& value) { value = 1; }));
  EXPECT_TRUE(registry.define("a", [](int& value) { value = 2; }));
  EXPECT_TRUE(registry.define("b", [](int& value) { value = 3; }));
  EXPECT_EQ(registry.get("b"), 3);
  try {
    registry.get("a");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("model 'a'"));
  }
}

Registry<int>& numbers() {
  static Registry<int> registry("number");
  return registry;
}
bool register_number(const std::string& name, void (*define)(int&)) {
  return numbers().define(name, define, 40);
}
#define TEST_NUMBER(name) FLEET_REGISTER(number_##name, int& def, register_number, #name)

TEST_NUMBER(forty_two) { def += 2; }
TEST_NUMBER(one) { def = 1; }

TEST(Registry, MacroOfAKind_RegistersWhatItsBodyMakes) {
  EXPECT_EQ(numbers().get("forty_two"), 42);
  EXPECT_EQ(numbers().get("one"), 1);
}

// A plugin adds its things while other threads look things up.
TEST(Registry, AddedWhileOthersRead_KeepsEverythingInPlace) {
  Registry<int> registry("number");
  registry.add("first", 1);
  const int* first = registry.find("first");
  std::vector<Thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back("adds", [&registry, t] {
      for (int i = 0; i < 500; ++i) {
        registry.add(std::to_string(t) + "/" + std::to_string(i), i);
        EXPECT_EQ(registry.get("first"), 1);
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(registry.names().size(), 2001u);
  EXPECT_EQ(registry.find("first"), first);
}

}  // namespace
}  // namespace fleet
