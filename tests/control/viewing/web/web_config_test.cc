#include "viewing/web/web_config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/command_line.h"
#include "tests/errors.h"
#include "transport/certificates.h"
#include "transport/security.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

WebConfig config_of(const std::vector<std::string>& words) {
  CommandSyntax syntax{.program = "prog", .about = "looks"};
  add_web_options("127.0.0.1:77", "page", &syntax.options);
  return read_web_config(read_command_line(syntax, words)->settings);
}

TEST(WebConfig, Addresses_AreRead) {
  EXPECT_FALSE(config_of({}).wanted());
  EXPECT_EQ(config_of({"--web"}).port, 77);
  EXPECT_EQ(config_of({"--web=9401"}).address, "127.0.0.1");
  EXPECT_EQ(config_of({"--web=9401"}).port, 9401);
  EXPECT_EQ(config_of({"--web=127.0.0.2:0"}).address, "127.0.0.2");
  EXPECT_EQ(config_of({"--web=[::1]:80"}).address, "::1");
}

TEST(WebConfig, AddressesThatOthersReach_AreRefused) {
  for (const char* word : {"--web=0.0.0.0:9401", "--web=[::]:9401", "--web=10.1.2.3:9401"}) {
    EXPECT_THAT(thrown_by([&] { config_of({word}); }), IsError(ErrorCode::kUsage, "--web")) << word;
  }
  const Error error = thrown_by([] { config_of({"--web=0.0.0.0:9401"}); });
  EXPECT_THAT(error.what(), HasSubstr("ssh -L 9401:127.0.0.1:9401"));
}

TEST(WebConfig, OtherTexts_AreRefused) {
  for (const char* word : {"--web=127.0.0.1", "--web=127.0.0.1:x", "--web=127.0.0.1:70000"}) {
    EXPECT_THAT(thrown_by([&] { config_of({word}); }), IsError(ErrorCode::kUsage, "--web")) << word;
  }
}

struct WebProtection : ::testing::Test {
  static std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::string path = ::testing::TempDir() + "web_protection." + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string message(const std::vector<std::string>& words) {
    const Error error = thrown_by([&] { config_of(words); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    return error.what();
  }

  const std::string secret = new_secret();
  const Certificates pair = issue_certificates(secret), other = issue_certificates(secret);
  const std::string certificate = "--web_certificate=" + file("certificate", pair.chain, 0644);
  const std::string key = "--web_key=" + file("key", pair.key);
  const std::string token = "--web_token_file=" + file("token", secret + "\n");
  const std::string beyond = "--web=0.0.0.0:9401", here = "--web=127.0.0.1:9401";
};

TEST_F(WebProtection, TlsAndAToken_OpenThePageToOthers) {
  const WebConfig config = config_of({beyond, certificate, key, token});
  EXPECT_TRUE(config.https);
  EXPECT_EQ(config.token, secret);
  EXPECT_THAT(config.url(9401), AllOf(HasSubstr("https://"), Not(HasSubstr("0.0.0.0"))));
}

TEST_F(WebProtection, WhatIsMissing_IsNamed) {
  EXPECT_THAT(message({beyond, certificate, key}),
              AllOf(HasSubstr("--web_token_file"), Not(HasSubstr("--web_key"))));
  EXPECT_THAT(message({beyond, token}), HasSubstr("--web_certificate, --web_key"));
  EXPECT_THAT(message({beyond, certificate, token}), HasSubstr("lacks --web_key"));
  EXPECT_THAT(message({here, certificate}), HasSubstr("add --web_key"));
  EXPECT_THAT(message({here, key}), HasSubstr("add --web_certificate"));
  for (const std::string& word : {certificate, key, token}) {
    EXPECT_THAT(message({word}), HasSubstr("add --web")) << word;
  }
}

TEST_F(WebProtection, EachOfThem_IsAlsoForThisMachine) {
  EXPECT_EQ(config_of({here, certificate, key}).url(9401), "https://127.0.0.1:9401/");
  EXPECT_EQ(config_of({here, token}).token, secret);
  EXPECT_EQ(config_of({here, token}).url(9401), "http://127.0.0.1:9401/");
  EXPECT_NE(config_of({here}).token, config_of({here}).token);
}

TEST_F(WebProtection, FilesThatCannotBeUsed_AreNamed) {
  const auto refused = [&](const std::string& a, const std::string& b, const std::string& c) {
    return message({beyond, a, b, c});
  };
  const std::string shared = file("shared", pair.key, 0644), wrong = file("other", other.key);
  EXPECT_THAT(refused(certificate, "--web_key=" + shared, token),
              HasSubstr("other users may read"));
  EXPECT_THAT(refused(certificate, "--web_key=" + wrong, token), HasSubstr(wrong));
  EXPECT_THAT(refused(certificate, "--web_key=/nowhere", token), HasSubstr("--web_key /nowhere"));
  EXPECT_THAT(refused("--web_certificate=/nowhere", key, token), HasSubstr("/nowhere"));
  EXPECT_THAT(refused("--web_certificate=" + file("noise", "noise"), key, token),
              HasSubstr("it has no certificate"));
  EXPECT_THAT(refused(certificate, key, "--web_token_file=" + file("short", "short")),
              HasSubstr("16 to 4096"));
  const std::string spaced = file("spaced", "0123456789 ;abcdef");
  EXPECT_THAT(refused(certificate, key, "--web_token_file=" + spaced), HasSubstr("only letters"));
  EXPECT_THAT(refused(certificate, key, "--web_token_file=" + file("all", secret, 0644)),
              HasSubstr("other users may read"));
}

}  // namespace
}  // namespace fleet
