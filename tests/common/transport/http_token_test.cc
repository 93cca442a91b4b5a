#include <gtest/gtest.h>

#include "transport/http_server.h"

namespace fleet {
namespace {

bool accepted(const std::string& authorization, const std::string& token) {
  return has_token({.method = "GET", .path = "/", .body = {}, .authorization = authorization},
                   token);
}

TEST(HttpToken, BearerOrPassword_IsAccepted) {
  EXPECT_TRUE(accepted("Bearer abc", "abc"));
  EXPECT_TRUE(accepted("bearer abc", "abc"));
  EXPECT_TRUE(accepted("Basic bmFtZTphYmM=", "abc"));  // name:abc
  EXPECT_TRUE(accepted("Basic OmFiYw==", "abc"));      // :abc
  EXPECT_TRUE(accepted("Basic bmFtZTphOmI=", "a:b"));  // name:a:b
}

TEST(HttpToken, AnythingElse_IsNot) {
  for (const char* text : {"", "abc", "Bearer", "Bearer abd", "bearer abd", "Basic", "Basic ",
                           "Basic YWJj", "Basic abc", "Basic ====", "Basic bmFtZTphYmQ=",
                           "Basic bmFtZTphYmNk", "Digest bmFtZTphYmM="}) {
    EXPECT_FALSE(accepted(text, "abc")) << text;
  }
}

}  // namespace
}  // namespace fleet
