#include "launch/planning/secret_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(IsSecret, GoesByTheName) {
  for (const char* name : {"GH_TOKEN", "client_secret", "DB_PASSWORD_FILE", "AWS_ACCESS_KEY_ID"}) {
    EXPECT_TRUE(is_secret(name)) << name;
  }
  for (const char* name : {"PATH", "PADDLE_TRAINER_ID", "PASS"}) EXPECT_FALSE(is_secret(name));
}

TEST(Masked, OnlyValuesOfSecrets) {
  EXPECT_EQ(masked("A_KEY", "x"), "******");
  EXPECT_EQ(masked("A_KEY", ""), "");
  EXPECT_EQ(masked("A", "x"), "x");
  EXPECT_THAT(masked({"a_key=x=y", "B=1", "C_TOKEN"}),
              ::testing::ElementsAre("a_key=******", "B=1", "C_TOKEN"));
}

}  // namespace
}  // namespace fleet
