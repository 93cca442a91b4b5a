#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "viewing/web/web_config.h"

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
  const auto refused = WebGate(kToken, 9401, false).check(request);
  return refused ? refused->status : 0;
}

TEST(WebGate, TokenInTheAddress_BecomesACookie) {
  const auto response = WebGate(kToken, 9401, false).check(request("/jobs/3/?token=" + kToken));
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

struct WebGateWithTls : ::testing::Test {
  static HttpServer::Response answer(const HttpRequest& request) {
    return WebGate(kToken, 9401, true).respond(request, [] {
      return HttpServer::Response{.body = "page"};
    });
  }
  static HttpRequest login(const std::string& authorization) {
    HttpRequest one = request("/events", "", "node1:9401");
    one.authorization = authorization;
    return one;
  }
  const std::string cookie =
      "fleetrun_9401=" + kToken + "; Path=/; HttpOnly; SameSite=Strict; Secure";
};

// A stranger's site of that name would lack the certificate.
TEST_F(WebGateWithTls, AnyName_IsAnswered) {
  EXPECT_EQ(answer(request("/", "fleetrun_9401=" + kToken, "node1:9401")).body, "page");
}

TEST_F(WebGateWithTls, Cookie_TravelsByTlsOnly) {
  const auto response = answer(request("/?token=" + kToken, "", "node1"));
  EXPECT_EQ(response.status, 303);
  EXPECT_THAT(response.headers, Contains(Pair("Set-Cookie", cookie)));
}

TEST_F(WebGateWithTls, RequestWithoutTheToken_AsksForAPassword) {
  for (const char* authorization :
       {"", "Basic", "Basic ", "Basic Og==", "Basic eDp5", "Bearer", "Bearer ", "Bearer x",
        "0123456789abcdef", "Basic 0123456789abcdef", "Basic MDEyMzQ1Njc4OWFiY2RlZg=="}) {
    const auto response = answer(login(authorization));
    EXPECT_EQ(response.status, 401) << authorization;
    EXPECT_THAT(response.headers, Contains(Pair("WWW-Authenticate", "Basic realm=\"fleetrun\"")));
    EXPECT_THAT(response.body, ::testing::Not(::testing::HasSubstr("page")));
  }
}

TEST_F(WebGateWithTls, PasswordThatIsTheToken_BecomesACookie) {
  // base64 of "me:" and the token
  for (const char* authorization :
       {"Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==", "Bearer 0123456789abcdef"}) {
    const auto response = answer(login(authorization));
    EXPECT_EQ(response.body, "page") << authorization;
    EXPECT_THAT(response.headers, Contains(Pair("Set-Cookie", cookie)));
  }
  for (const auto& [name, value] : answer(request("/", "fleetrun_9401=" + kToken)).headers) {
    EXPECT_NE(name, "Set-Cookie");
  }
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
