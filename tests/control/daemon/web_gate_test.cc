#include "daemon/web/web_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::Pair;

const std::string kToken = "0123456789abcdef";

HttpRequest request(const std::string& path, const std::string& cookie = {},
                    const std::string& host = "127.0.0.1:9401") {
  return {.method = "GET", .path = path, .body = {}, .host = host, .cookie = cookie};
}

// 0: it is let in.
int status_of(const HttpRequest& request) {
  const auto refused = WebGate(kToken, 9401).check(request);
  return refused ? refused->status : 0;
}

TEST(WebGate, TokenInTheAddress_BecomesACookie) {
  const auto response = WebGate(kToken, 9401).check(request("/jobs/3/?token=" + kToken));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 303);
  EXPECT_THAT(response->headers, Contains(Pair("Location", "/jobs/3/")));
  EXPECT_THAT(response->headers,
              Contains(Pair("Set-Cookie",
                            "fleetrun_9401=" + kToken + "; Path=/; HttpOnly; SameSite=Strict")));
  EXPECT_EQ(status_of(request("/", "other=1; fleetrun_9401=" + kToken)), 0);
}

TEST(WebGate, RequestsWithoutTheToken_AreRefused) {
  for (const std::string cookie :
       {"", "fleetrun_9401=", "fleetrun_9401=x", "fleetrun_9402=0123456789abcdef",
        "xfleetrun_9401=0123456789abcdef", "; ;"}) {
    EXPECT_EQ(status_of(request("/events", cookie)), 401) << cookie;
  }
  EXPECT_EQ(status_of(request("/?token=0123456789abcdeF")), 401);
  EXPECT_EQ(status_of(request("/?token=")), 401);
  EXPECT_EQ(status_of(request("/" + kToken)), 401);
}

// DNS rebinding: a stranger's name that leads to this host.
TEST(WebGate, NamesOfOtherHosts_AreRefusedEvenWithTheToken) {
  const std::string cookie = "fleetrun_9401=" + kToken;
  for (const std::string host : {"evil.example", "evil.example:9401", "127.0.0.1.evil.example",
                                 "10.0.0.1:9401", "", "localhost.evil.example:9401"}) {
    EXPECT_EQ(status_of(request("/", cookie, host)), 403) << host;
    EXPECT_EQ(status_of(request("/?token=" + kToken, "", host)), 403) << host;
  }
  for (const std::string host : {"127.0.0.1:9401", "localhost:8080", "[::1]:9401", "localhost"}) {
    EXPECT_EQ(status_of(request("/", cookie, host)), 0) << host;
  }
}

TEST(WebGate, OtherMethods_AreRefused) {
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS"}) {
    HttpRequest one = request("/", "fleetrun_9401=" + kToken);
    one.method = method;
    EXPECT_EQ(status_of(one), 405) << method;
  }
}

TEST(WebGate, EachResponse_KeepsThePageToItself) {
  const HttpServer::Response response = WebGate::guarded({.body = "x"});
  std::string policy;
  for (const auto& [name, value] : response.headers) {
    if (name == "Content-Security-Policy") policy = value;
  }
  EXPECT_THAT(policy, ::testing::StartsWith("default-src 'none';"));
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
}

TEST(QueryValue, EachName_HasItsOwn) {
  const HttpRequest one = request("/log?rank=12&server=1&x&rank=3");
  EXPECT_EQ(path_of_request(one), "/log");
  EXPECT_EQ(query_value(one, "rank"), "12");
  EXPECT_EQ(query_value(one, "server"), "1");
  EXPECT_EQ(query_value(one, "x"), "");
  EXPECT_EQ(query_value(one, "ran"), "");
  EXPECT_EQ(query_value(request("/log"), "rank"), "");
}

}  // namespace
}  // namespace fleet
