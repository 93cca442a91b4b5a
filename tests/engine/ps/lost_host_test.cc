// Two hosts whose cable is cut: lost_host.sh runs one test on each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/env.h"
#include "base/file.h"
#include "tests/engine/ps/ends.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

using std::chrono::milliseconds;

constexpr char kHost[] = "FLEET_PS_TEST_HOST", kReady[] = "FLEET_PS_TEST_READY";

TransportOptions lost_host_options() {
  TransportOptions options;
  options.peer_timeout = std::chrono::seconds(3);
  return options;
}

// Sends all the time, so that unacknowledged data are under way when the cable is cut. `ready` is
// made when a message has arrived.
void talk_until_lost(Recorder& handler, const std::shared_ptr<Connection>& connection) {
  handler.wait_for_messages(1);
  write_file_atomically(get_env(kReady).value(), "");
  uint64_t sequence = 1;
  while (handler.end_count() == 0) {
    connection->send(message_of(pattern(64 << 10, sequence), sequence));
    connection->wait_until_unsent(0, milliseconds(10));
    ++sequence;
  }
  const auto end = handler.wait_for_end();
  ASSERT_TRUE(end.why);
  EXPECT_THAT(*end.why, IsError(ErrorCode::kPeerLost, connection->peer()));
}

TEST(LostHostMain, DISABLED_Listens) {
  Recorder handler;
  const auto listener = listen(get_env(kHost).value(), handler, lost_host_options());
  const auto connection = handler.wait_for_opened();
  connection->send(message_of(pattern(100, 1), 0));
  talk_until_lost(handler, connection);
}

TEST(LostHostMain, DISABLED_Connects) {
  Recorder handler;
  const auto connection = connect(get_env(kHost).value(), handler, lost_host_options(), kBound);
  connection->send(message_of(pattern(100, 1), 0));
  talk_until_lost(handler, connection);
}

}  // namespace
}  // namespace fleet::ps
