#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "daemon/ssh_greeting.h"
#include "daemon/via.h"
#include "transport/event_loop.h"

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

// As /usr/sbin/nologin does, or an exec in ~/.bashrc.
TEST(ExplainSsh, ShellThatPrintsAndEnds_IsQuoted) {
  const Error error = explain_ssh("n1", "", false, "This account is\nnot available.\n");
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.failure(), HasSubstr("not available."));
  EXPECT_THAT(explain_ssh("n1", "Connection refused\n", false, "Welcome\n").failure(),
              HasSubstr("refused"));
}

TEST(SshGreeting, FoundInPiecesOfAnySize) {
  const std::string printed = "Welcome to n1!\nfleetrun over", rest = "PRI * HTTP/2.0";
  const std::string all = printed + "\n" + std::string(kSshGreeting) + rest;
  for (size_t piece = 1; piece <= all.size(); ++piece) {
    GreetingFinder finder;
    size_t at = 0;
    while (at < all.size() && !finder.found()) at += finder.take(all.substr(at, piece));
    EXPECT_TRUE(finder.found()) << piece;
    EXPECT_EQ(all.substr(at), rest) << piece;
    EXPECT_EQ(finder.printed(), printed + "\n");
  }
}

TEST(SshGreeting, EndlessText_IsNotKept) {
  GreetingFinder finder;
  for (int i = 0; i < 100 && !finder.gives_up(); ++i) finder.take(std::string(1 << 16, 'y'));
  EXPECT_TRUE(finder.gives_up());
  EXPECT_FALSE(finder.found());
}

// The two ends of a connection, of which the loop reads one.
struct GreetingSocket : ::testing::Test {
  GreetingSocket() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    node = UniqueFd(ends[1]);
    await_greeting(loop, UniqueFd(ends[0]), [this](UniqueFd socket, const std::string& text) {
      ended = true;
      connection = std::move(socket);
      printed = text;
    });
  }
  void send(const std::string& text) {
    ASSERT_EQ(::write(node.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  EventLoop loop;
  UniqueFd node, connection;
  std::string printed;
  bool ended = false;
};

TEST_F(GreetingSocket, WhatFollowsTheGreeting_IsLeftInTheSocket) {
  send("Welcome!\n" + std::string(kSshGreeting.substr(0, 5)));
  loop.poll();
  EXPECT_FALSE(ended);
  send(std::string(kSshGreeting.substr(5)) + "HTTP");
  loop.run();
  ASSERT_TRUE(connection);
  EXPECT_EQ(printed, "Welcome!\n");
  char bytes[16];
  ASSERT_EQ(::read(connection.get(), bytes, sizeof bytes), 4);
  EXPECT_EQ(std::string(bytes, 4), "HTTP");
}

TEST_F(GreetingSocket, EndBeforeIt_IsNoConnection) {
  send("Welcome!\n");
  node.reset();
  loop.run();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(connection);
  EXPECT_EQ(printed, "Welcome!\n");
}

TEST(ExplainSsh, BrokenConnection_SaysWhatBecomesOfTheJob) {
  EXPECT_THAT(explain_ssh("n1", "Timeout, server n1 not responding.\n", true).what(),
              HasSubstr("the connection broke: Timeout"));
}

}  // namespace
}  // namespace fleet
