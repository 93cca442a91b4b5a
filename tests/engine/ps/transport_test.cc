// What connections of every transport do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "tests/engine/ps/ends.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

using std::chrono::milliseconds;

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

class Transport : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Transport,
                         testing::Values(Way::kInProcess, Way::kGrpc, Way::kTls, Way::kShm),
                         [](const auto& way) { return name_of(way.param); });

TEST_P(Transport, Connection_TellsWhichItIs) {
  const Ends ends(GetParam());
  const char* const name = GetParam() == Way::kInProcess ? "inprocess"
                           : GetParam() == Way::kShm     ? "shm"
                                                         : "grpc";
  EXPECT_EQ(ends.client->transport(), name);
  EXPECT_EQ(ends.server->transport(), name);
  if (ends.listener) {
    EXPECT_EQ(ends.client->peer(), ends.listener->address());
  }
  EXPECT_THAT(ends.server->peer(), testing::Not(testing::IsEmpty()));
}

TEST_P(Transport, MessagesOfAllSizes_ArriveWholeAndAligned) {
  Ends ends(GetParam());
  constexpr size_t kMiB = 1 << 20;
  const std::vector<size_t> sizes = {0,        1,    40,       4096 - 40, 4097,      65'537,
                                     kMiB - 1, kMiB, kMiB + 1, 5 * kMiB,  17 * kMiB, 40 * kMiB + 3};
  for (size_t i = 0; i < sizes.size(); ++i) {
    Message message = message_of(pattern(sizes[i], i), i, MessageType::kValues);
    message.header.table = 7;
    message.header.count = static_cast<uint32_t>(i + 1);
    message.header.version = -static_cast<int64_t>(i);
    ends.client->send(message);
    ends.server->send(std::move(message));
  }
  for (Recorder* end : {&ends.client_handler, &ends.server_handler}) {
    const auto received = end->wait_for_messages(sizes.size());
    ASSERT_EQ(received.size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Message& message = received[i].message;
      EXPECT_EQ(message.header.type, MessageType::kValues);
      EXPECT_EQ(message.header.table, 7);
      EXPECT_EQ(message.header.count, i + 1);
      EXPECT_EQ(message.header.sequence, i);
      EXPECT_EQ(message.header.version, -static_cast<int64_t>(i));
      EXPECT_TRUE(equal(message.payload(), pattern(sizes[i], i))) << sizes[i];
      EXPECT_EQ(reinterpret_cast<uintptr_t>(message.payload().data()) % 64, 0u);
      EXPECT_LE(message.parts.size(), 1u);
    }
  }
  EXPECT_GE(ends.client->sent(), static_cast<int64_t>(63 * kMiB));
  EXPECT_EQ(ends.client->sent(), ends.server->received());
}

TEST_P(Transport, Parts_ArriveOneAfterAnother) {
  Ends ends(GetParam());
  const auto whole = pattern(3'000'001, 5);
  const auto owner = std::make_shared<std::vector<std::byte>>(whole);
  Message message;
  size_t begin = 0;
  for (const size_t end : {0, 3, 3, 1'000'000, 2'500'000, 2'500'001, 3'000'001, 3'000'001}) {
    message.parts.push_back({std::span(*owner).subspan(begin, end - begin), owner});
    begin = end;
  }
  ends.client->send(message);
  EXPECT_TRUE(equal(ends.server_handler.wait_for_messages(1)[0].message.payload(), whole));
}

TEST_P(Transport, ManySmallMessagesOfSeveralThreads_KeepTheOrderOfEach) {
  Ends ends(GetParam());
  constexpr int kThreads = 3, kEach = 500;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) {
        Message message = message_of(pattern(i % 100, i), i);
        message.header.count = static_cast<uint32_t>(thread);
        ends.client->send(std::move(message));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t next[kThreads] = {};
  for (const auto& [from, message] : ends.server_handler.wait_for_messages(kThreads * kEach)) {
    EXPECT_EQ(message.header.sequence, next[message.header.count]++);
    EXPECT_TRUE(
        equal(message.payload(), pattern(message.header.sequence % 100, message.header.sequence)));
  }
}

TEST_P(Transport, Close_FollowsAllEarlierMessages) {
  for (const bool by_client : {true, false}) {
    Ends ends(GetParam());
    Connection& closes = by_client ? *ends.client : *ends.server;
    Recorder& other = by_client ? ends.server_handler : ends.client_handler;
    Recorder& own = by_client ? ends.client_handler : ends.server_handler;
    for (uint64_t i = 0; i < 5; ++i) closes.send(message_of(pattern(3 << 20, i), i));
    closes.close();
    EXPECT_FALSE(other.wait_for_end().why);
    EXPECT_EQ(other.message_count(), 5u);
    EXPECT_FALSE(own.wait_for_end().why);
    closes.send(message_of({}, 9));
    EXPECT_EQ(other.message_count(), 5u);
  }
}

TEST_P(Transport, BothEndsClose_BothReceiveEverything) {
  Ends ends(GetParam());
  for (uint64_t i = 0; i < 3; ++i) {
    ends.client->send(message_of(pattern(2 << 20, i), i));
    ends.server->send(message_of(pattern(2 << 20, i), i));
  }
  ends.client->close();
  ends.server->close();
  EXPECT_FALSE(ends.client_handler.wait_for_end().why);
  EXPECT_FALSE(ends.server_handler.wait_for_end().why);
  EXPECT_EQ(ends.client_handler.message_count(), 3u);
  EXPECT_EQ(ends.server_handler.message_count(), 3u);
}

TEST_P(Transport, OtherEndDoesNotTakeMessages_SenderWaitsAndOtherConnectionsGoOn) {
  Ends ends(GetParam()), others(GetParam());
  ends.server_handler.hold(true);
  const auto data = std::make_unique<std::vector<std::byte>>(pattern(48 << 20, 1));
  const auto first = pattern(48 << 20, 1);
  // Without an owner.
  for (uint64_t i = 0; i < 2; ++i) {
    ends.client->send({{.sequence = i}, {{*data, nullptr}}});
  }
  EXPECT_FALSE(ends.client->wait_until_unsent(0, milliseconds(50)));
  EXPECT_TRUE(ends.client->wait_until_unsent(2 * data->size(), milliseconds(0)));
  others.client->send(message_of(pattern(100, 2), 3));
  EXPECT_EQ(others.server_handler.wait_for_messages(1)[0].message.header.sequence, 3u);
  ends.server_handler.hold(false);
  ASSERT_TRUE(ends.client->wait_until_unsent(0, kBound));
  std::fill(data->begin(), data->end(), std::byte(0));
  for (const auto& received : ends.server_handler.wait_for_messages(2)) {
    EXPECT_TRUE(equal(received.message.payload(), first));
  }
}

TEST_P(Transport, Disconnect_ReturnsWhenTheOtherEndHasEverything) {
  Ends ends(GetParam());
  ends.client->send(message_of(pattern(20 << 20, 1), 1));
  EXPECT_TRUE(ends.client->disconnect(kBound));
  EXPECT_EQ(ends.client_handler.end_count(), 1u);
  EXPECT_FALSE(ends.server_handler.wait_for_end().why);
  EXPECT_EQ(ends.server_handler.message_count(), 1u);
  EXPECT_FALSE(ends.client->wait_until_unsent(0, milliseconds(0)));
}

TEST_P(Transport, DisconnectFromAnEndThatDoesNotTakeMessages_BreaksTheConnection) {
  Ends ends(GetParam());
  ends.server_handler.hold(true);
  for (uint64_t i = 0; i < 4; ++i) ends.client->send(message_of(pattern(16 << 20, i), i));
  EXPECT_FALSE(ends.client->disconnect(milliseconds(50)));
  const auto end = ends.client_handler.wait_for_end();
  ASSERT_TRUE(end.why);
  EXPECT_THAT(*end.why, IsError(ErrorCode::kTimeout, ends.client->peer()));
  ends.server_handler.hold(false);
  const auto other = ends.server_handler.wait_for_end();
  ASSERT_TRUE(other.why);
  EXPECT_THAT(*other.why, IsError(ErrorCode::kPeerLost, ends.server->peer()));
}

class NetworkTransport : public Transport {};
INSTANTIATE_TEST_SUITE_P(Ways, NetworkTransport, testing::Values(Way::kGrpc, Way::kTls, Way::kShm),
                         [](const auto& way) { return name_of(way.param); });

// Returns each message to its sender.
class Echo final : public Recorder {
 public:
  void received(const std::shared_ptr<Connection>& connection, Message message) override {
    connection->send(std::move(message));
  }
};

TEST_P(NetworkTransport, ManyConnectionsAtTheSameTime_AllGetTheirOwnAnswers) {
  constexpr size_t kClients = 12, kMessages = 20;
  Echo echo;
  const auto listener = listen("127.0.0.1:0", echo, options_of(GetParam()));
  std::vector<std::thread> threads;
  for (size_t client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      Recorder answers;
      const auto connection = connect(listener->address(), answers, options_of(GetParam()), kBound);
      for (size_t i = 0; i < kMessages; ++i) {
        connection->send(message_of(pattern(i * 10'007, client), client * kMessages + i));
      }
      const auto received = answers.wait_for_messages(kMessages);
      for (size_t i = 0; i < kMessages; ++i) {
        EXPECT_EQ(received[i].message.header.sequence, client * kMessages + i);
        EXPECT_TRUE(equal(received[i].message.payload(), pattern(i * 10'007, client)));
      }
      EXPECT_TRUE(connection->disconnect(kBound));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(echo.opened_count(), kClients);
}

TEST_P(NetworkTransport, ListenerEnds_ItsConnectionsHaveClosed) {
  Ends ends(GetParam());
  ends.server->send(message_of(pattern(5 << 20, 1), 1));
  ends.listener.reset();
  EXPECT_EQ(ends.server_handler.end_count(), 1u);
  EXPECT_FALSE(ends.client_handler.wait_for_end().why);
  EXPECT_EQ(ends.client_handler.message_count(), 1u);
}

}  // namespace
}  // namespace fleet::ps
