#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/via.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(SshCommand, UsersOptionsComeFirst_AndTheScriptIsQuoted) {
  const auto command = ssh_command("n1", {"-p", "22"}, {"/opt/it's here/fleetrun", "fleetrun"});
  EXPECT_EQ(command[0], "ssh");
  EXPECT_EQ(command[1], "-p");
  EXPECT_EQ(command[command.size() - 3], "--");
  EXPECT_EQ(command[command.size() - 2], "n1");
  // The login shell expands the command before sh does, so quotes are escaped twice.
  EXPECT_THAT(command.back(), ::testing::StartsWith("exec sh -c 'for f in '\\''/opt/it"));
  EXPECT_THAT(command.back(), HasSubstr("exec \"$f\" over_stdio"));
}

TEST(ExplainSsh, WhatSshSaid_NamesTheHost) {
  const Error refused =
      explain_ssh("n1", "ssh: connect to host n1 port 22: Connection refused\r\n", false);
  EXPECT_EQ(refused.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(refused.where(), "ssh to n1");
  EXPECT_THAT(explain_ssh("n1", "u@n1: Permission denied (publickey).\n", false).what(),
              HasSubstr("ssh-copy-id"));
  EXPECT_EQ(explain_ssh("n1", "", false).code(), ErrorCode::kPeerLost);
}

TEST(ExplainSsh, MissingProgram_IsTheUsersToCorrect) {
  const Error error = explain_ssh("n1", "a banner\nfleetrun was not found\n", false);
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
}

TEST(ExplainSsh, BrokenConnection_SaysWhatBecomesOfTheJob) {
  EXPECT_THAT(explain_ssh("n1", "Timeout, server n1 not responding.\n", true).what(),
              HasSubstr("the connection broke: Timeout"));
}

}  // namespace
}  // namespace fleet
