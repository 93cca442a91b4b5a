#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(AdaptiveLocalSgd, WhereItCannotAct_IsOff) {
  const auto names = [](const PassContext& context) {
    return make_strategy("adaptive_localsgd: true", context).names();
  };
  EXPECT_THAT(names({}), Not(Contains("adaptive_localsgd")));
  EXPECT_THAT(names({.ranks = 2, .optimizer = "adam"}), Not(Contains("adaptive_localsgd")));
  EXPECT_THAT(names({.ranks = 2}), Contains("adaptive_localsgd"));
}

TEST(AdaptiveLocalSgd, WhatCannotBe_IsRefused) {
  for (const char* configs : {"init_k_steps: 0", "begin_step: 0"}) {
    EXPECT_THROW(make_strategy(std::string("adaptive_localsgd: true adaptive_localsgd_configs {") +
                               configs + "}"),
                 Error)
        << configs;
  }
}

TEST(AdaptiveLocalSgd, OverLocalSgd_Wins) {
  const std::string line = captured_log([] {
    EXPECT_THAT(make_strategy("localsgd: true adaptive_localsgd: true", {.ranks = 2}).names(),
                Not(Contains("localsgd")));
  });
  EXPECT_THAT(line, ::testing::AllOf(HasSubstr("localsgd is switched off"),
                                     HasSubstr("adaptive_localsgd")));
}

}  // namespace
}  // namespace fleet
