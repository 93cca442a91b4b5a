#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Log, Line_HasLevelTimeAndWho) {
  set_up_logging("INFO", "rank 3");
  ::testing::internal::CaptureStderr();
  spdlog::warn("x = {}", 1);
  spdlog::debug("not shown");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("WARNING ....-..-.. ..:..:..,... rank 3. x = 1\n"));
}

TEST(Log, UnknownLevel_NamesTheKnown) {
  try {
    set_up_logging("LOUD", "x");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("WARNING"));
  }
}

}  // namespace
}  // namespace fleet
