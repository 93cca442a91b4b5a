#include "launch/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

using testing::HasSubstr;

Schema schema() {
  Schema schema;
  schema.integer("ranks", 8, 1, 100, "ranks");
  schema.boolean("tls", false, "tls");
  return schema;
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    read_command_line("simulate", "", schema(), arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(CommandLine, EveryForm_IsRead) {
  const auto settings = read_command_line("simulate", "", schema(), {"--ranks=3", "--tls"});
  EXPECT_EQ(settings->integer("ranks"), 3);
  EXPECT_TRUE(settings->boolean("tls"));
  EXPECT_EQ(read_command_line("simulate", "", schema(), {"--ranks", "4"})->integer("ranks"), 4);
  EXPECT_EQ(read_command_line("simulate", "", schema(), {})->integer("ranks"), 8);
}

TEST(CommandLine, Mistakes_AreNamed) {
  EXPECT_THAT(refusal({"--rank=3"}), HasSubstr("did you mean '--ranks'?"));
  EXPECT_THAT(refusal({"--ranks"}), HasSubstr("--ranks lacks its value"));
  EXPECT_THAT(refusal({"100"}), HasSubstr("it takes no '100'"));
  EXPECT_THAT(refusal({"--ranks=0"}), HasSubstr("--ranks"));
}

}  // namespace
}  // namespace fleet
