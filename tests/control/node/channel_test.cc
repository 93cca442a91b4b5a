#include "node/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>

#include "base/error.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

const std::string kNotUtf8("binary \0\xff\n tail", 15);

wire::GuardianCommand sample_command() {
  wire::GuardianCommand command;
  wire::SpawnRanks* spawn = command.mutable_spawn();
  spawn->mutable_logs()->set_max_size(1LL << 40);
  spawn->mutable_logs()->mutable_output()->set_collapse_ms(200);
  wire::RankCommand* rank = spawn->add_ranks();
  rank->set_local_rank(3);
  for (const char* word : {"/bin/sh", "-c", ""}) rank->add_argv(word);
  rank->add_environment()->set_name("EMPTY");
  rank->add_cores(2);
  rank->set_log_path(kNotUtf8);
  return command;
}

wire::GuardianEvent sample_event() {
  wire::GuardianEvent event;
  event.mutable_ended()->set_local_rank(2);
  event.mutable_ended()->set_signal(9);
  event.mutable_ended()->set_tail(kNotUtf8);
  event.mutable_ended()->set_at_ns(99);
  event.mutable_ended()->mutable_error()->set_message("KeyError: 1");
  return event;
}

wire::GuardianCommand guardian_kill() {
  wire::GuardianCommand command;
  command.mutable_kill();
  return command;
}

// A frame with this length and these bytes.
std::string framed(uint32_t size, const std::string& bytes) {
  std::string all(sizeof size, '\0');
  std::memcpy(all.data(), &size, sizeof size);
  return all + bytes;
}
std::string framed(const std::string& bytes) {
  return framed(static_cast<uint32_t>(bytes.size()), bytes);
}

template <typename Message>
void expect_refused(std::string bytes, ErrorCode code = ErrorCode::kInternal) {
  Message message;
  try {
    take_frame(bytes, &message);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
  }
}

TEST(Frame, Commands_ComeBackEqualAndInOrder) {
  std::string bytes = frame(sample_command()) + frame(guardian_kill());
  wire::GuardianCommand command;
  ASSERT_TRUE(take_frame(bytes, &command));
  EXPECT_EQ(frame(command), frame(sample_command()));
  EXPECT_EQ(command.spawn().ranks(0).log_path(), kNotUtf8);
  ASSERT_TRUE(take_frame(bytes, &command));
  EXPECT_TRUE(command.has_kill());
  EXPECT_FALSE(take_frame(bytes, &command));
  EXPECT_TRUE(bytes.empty());
}

TEST(Frame, Event_ComesBackEqual) {
  std::string bytes = frame(sample_event());
  wire::GuardianEvent event;
  ASSERT_TRUE(take_frame(bytes, &event));
  EXPECT_EQ(frame(event), frame(sample_event()));
  EXPECT_EQ(event.ended().tail(), kNotUtf8);
}

TEST(Frame, PartOfAMessage_IsNotTaken) {
  const std::string whole = frame(sample_event());
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    wire::GuardianEvent event;
    EXPECT_FALSE(take_frame(part, &event)) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(Frame, UnknownKind_IsRefused) {
  expect_refused<wire::GuardianCommand>(framed(""), ErrorCode::kUsage);
  expect_refused<wire::GuardianCommand>(framed("\x9a\x06\x01x"), ErrorCode::kUsage);  // field 99
  expect_refused<wire::GuardianEvent>(framed("\x9a\x06\x01x"), ErrorCode::kUsage);
}

TEST(Frame, BytesThatAreNoMessage_AreAnInternalError) {
  const std::string body = frame(sample_command()).substr(4);
  expect_refused<wire::GuardianCommand>(framed(body.substr(0, body.size() - 1)));
  expect_refused<wire::GuardianEvent>(framed(std::string(8, '\xff')));
}

// It does not wait for the rest.
TEST(Frame, TooLarge_IsAnInternalError) {
  expect_refused<wire::GuardianCommand>(framed(0xffffffff, ""));
  expect_refused<wire::GuardianEvent>(framed((1u << 30) + 1, "x"));
}

TEST(Frame, ImpossibleNumbers_AreRefused) {
  wire::GuardianCommand command = sample_command();
  command.mutable_spawn()->mutable_ranks(0)->set_local_rank(-1);
  expect_refused<wire::GuardianCommand>(frame(command), ErrorCode::kUsage);
  command = sample_command();
  command.mutable_spawn()->mutable_ranks(0)->clear_argv();
  expect_refused<wire::GuardianCommand>(frame(command), ErrorCode::kUsage);
  command.mutable_stop()->set_grace_ms(-1);
  expect_refused<wire::GuardianCommand>(frame(command), ErrorCode::kUsage);
  wire::GuardianEvent event = sample_event();
  event.mutable_ended()->set_local_rank(-1);
  expect_refused<wire::GuardianEvent>(frame(event), ErrorCode::kUsage);
  event.mutable_progress()->add_ranks()->set_local_rank(-1);
  expect_refused<wire::GuardianEvent>(frame(event), ErrorCode::kUsage);
}

TEST(ByteStream, OtherEndThatDoesNotRead_IsDisconnected) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd other(sockets[1]);
  EventLoop loop;
  bool closed = false;
  ByteStream stream(
      loop, UniqueFd(sockets[0]), [](std::string_view) {}, [&] { closed = true; });
  for (size_t sent = 0; sent < kMaxUnsentBytes; sent += 1 << 20) {
    stream.send(std::string(1 << 20, 'x'));
  }
  loop.poll();
  EXPECT_FALSE(closed);
  for (int i = 0; i < 2; ++i) stream.send(std::string(1 << 20, 'x'));  // a part may have been sent
  loop.run();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace fleet
