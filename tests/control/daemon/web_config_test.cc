#include "daemon/web/web_config.h"

#include <gtest/gtest.h>

#include "base/command_line.h"
#include "tests/errors.h"

namespace fleet {
namespace {

WebConfig config_of(const std::vector<std::string>& words) {
  CommandSyntax syntax{.program = "prog", .about = "looks"};
  add_web_option("127.0.0.1:77", "page", &syntax.options);
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
  EXPECT_THAT(error.what(), ::testing::HasSubstr("ssh -L 9401:127.0.0.1:9401"));
}

TEST(WebConfig, OtherTexts_AreRefused) {
  for (const char* word : {"--web=127.0.0.1", "--web=127.0.0.1:x", "--web=127.0.0.1:70000"}) {
    EXPECT_THAT(thrown_by([&] { config_of({word}); }), IsError(ErrorCode::kUsage, "--web")) << word;
  }
}

}  // namespace
}  // namespace fleet
