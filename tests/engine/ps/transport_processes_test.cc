// Connections between processes: ends that die, and ends that are suspended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "base/env.h"
#include "tests/engine/ps/ends.h"
#include "tests/engine/ps/other_process.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kAddress[] = "FLEET_PS_TEST_ADDRESS", kShared[] = "FLEET_PS_TEST_SHM";
constexpr size_t kBytes = 3 << 20;

TransportOptions options(bool shared_memory) {
  TransportOptions options;
  options.shared_memory = shared_memory;
  options.peer_timeout = std::chrono::seconds(3);
  return options;
}

// The other process: connects to the address, sends a message, and another one for each that
// arrives, until it is killed or the connection ends.
TEST(OtherProcessMain, DISABLED_Answers) {
  class Answering final : public Recorder {
   public:
    void received(const std::shared_ptr<Connection>& connection, Message message) override {
      connection->send(message_of(pattern(kBytes, 2), message.header.sequence));
    }
  };
  Answering handler;
  const auto connection =
      connect(get_env(kAddress).value(), handler, options(get_env(kShared).has_value()), kBound);
  connection->send(message_of(pattern(kBytes, 1), 1));
  handler.wait_for_end();
}

std::vector<std::pair<std::string, std::string>> variables(const std::string& address,
                                                           bool shared_memory) {
  std::vector<std::pair<std::string, std::string>> all = {{kAddress, address}};
  if (shared_memory) all.emplace_back(kShared, "1");
  return all;
}

class OtherProcess : public testing::TestWithParam<bool> {
 protected:
  OtherProcess()
      : listener_(listen("127.0.0.1:0", handler_, options(GetParam()))),
        process_("OtherProcessMain.DISABLED_Answers", variables(listener_->address(), GetParam())) {
    connection_ = handler_.wait_for_messages(1)[0].from;
  }
  ~OtherProcess() override { process_.send(SIGCONT); }

  Recorder handler_;
  std::unique_ptr<Listener> listener_;
  TestProcess process_;
  std::shared_ptr<Connection> connection_;
};
INSTANTIATE_TEST_SUITE_P(Ways, OtherProcess, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Shm" : "Grpc"; });

TEST_P(OtherProcess, Killed_IsLostByName) {
  EXPECT_EQ(connection_->transport(), GetParam() ? "shm" : "grpc");
  process_.send(SIGKILL);
  const auto end = handler_.wait_for_end();
  ASSERT_TRUE(end.why);
  EXPECT_THAT(*end.why, IsError(ErrorCode::kPeerLost, connection_->peer()));
  EXPECT_FALSE(connection_->wait_until_unsent(0, kBound));
}

TEST_P(OtherProcess, KilledWhileMuchIsToSend_IsLost) {
  process_.send(SIGSTOP);
  for (uint64_t i = 0; i < 10; ++i) connection_->send(message_of(pattern(8 << 20, i), i));
  EXPECT_FALSE(connection_->wait_until_unsent(0, std::chrono::milliseconds(50)));
  process_.send(SIGKILL);
  EXPECT_TRUE(handler_.wait_for_end().why);
  EXPECT_FALSE(connection_->wait_until_unsent(0, kBound));
}

// For longer than the peer timeout, with data that it does not read.
TEST_P(OtherProcess, Suspended_IsNotLost) {
  process_.send(SIGSTOP);
  for (uint64_t i = 0; i < 4; ++i) connection_->send(message_of(pattern(8 << 20, i), i + 2));
  EXPECT_FALSE(connection_->wait_until_unsent(0, std::chrono::milliseconds(5'000)));
  EXPECT_EQ(handler_.end_count(), 0u);
  process_.send(SIGCONT);
  const auto received = handler_.wait_for_messages(5);
  for (uint64_t i = 1; i < received.size(); ++i) {
    EXPECT_EQ(received[i].message.header.sequence, i + 1);
    EXPECT_EQ(received[i].message.bytes(), kBytes);
  }
  EXPECT_TRUE(connection_->disconnect(kBound));
}

}  // namespace
}  // namespace fleet::ps
