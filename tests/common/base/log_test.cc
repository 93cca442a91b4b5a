#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

TEST(Log, Line_HasLevelTimeAndWho) {
  set_up_logging("INFO", "rank 3");
  ::testing::internal::CaptureStderr();
  spdlog::warn("x = {}", 1);
  spdlog::debug("not shown");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("WARNING ....-..-.. ..:..:..,... rank 3. x = 1\n"));
}

TEST(Log, NamesOfOthers_CommandNoTerminal) {
  set_up_logging("INFO", "fleetrun");
  ::testing::internal::CaptureStderr();
  spdlog::warn("job '{}'", "a\033]0;title\007\033[2J");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              EndsWith("] job 'a\\x1b]0;title\\x07\\x1b[2J'\n"));
}

TEST(Log, Colors_OnlyWhereTheyAreWanted) {
  ::setenv("FORCE_COLOR", "1", 1);
  set_up_logging("INFO", "fleetrun");
  ::testing::internal::CaptureStderr();
  spdlog::warn("x");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("\033["), std::string::npos);
  ::setenv("NO_COLOR", "1", 1);
  set_up_logging("INFO", "fleetrun");
  ::testing::internal::CaptureStderr();
  spdlog::warn("x");
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("\033["), std::string::npos);
  ::unsetenv("NO_COLOR");
  ::unsetenv("FORCE_COLOR");
}

TEST(Log, UnknownLevel_NamesTheKnown) {
  try {
    set_up_logging("LOUD", "x");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace fleet
