#include "transport/datagram_heartbeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>

#include "base/file.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kKey(32, 'k');

// A UDP port of loopback that is free just now.
int free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

wire::DatagramHeartbeat heartbeat_of(uint64_t session, uint64_t count, bool of_host) {
  wire::DatagramHeartbeat heartbeat;
  heartbeat.set_session(session);
  heartbeat.set_count(count);
  heartbeat.set_of_host(of_host);
  return heartbeat;
}

// Session 7 has this key; there is no other.
std::optional<wire::DatagramHeartbeat> decode_signed(std::string_view bytes,
                                                     const std::string& key) {
  return decode_heartbeat(bytes, [&](uint64_t session) { return session == 7 ? &key : nullptr; });
}

TEST(DatagramHeartbeat, WithItsKey_IsDecoded) {
  const auto heartbeat =
      decode_signed(encode_heartbeat(heartbeat_of(7, 1'000'000, true), kKey), kKey);
  ASSERT_TRUE(heartbeat);
  EXPECT_EQ(heartbeat->session(), 7u);
  EXPECT_EQ(heartbeat->count(), 1'000'000u);
  EXPECT_TRUE(heartbeat->of_host());
}

TEST(DatagramHeartbeat, ForgedOrDamaged_IsNone) {
  const std::string bytes = encode_heartbeat(heartbeat_of(7, 1, false), kKey);
  EXPECT_FALSE(decode_signed(bytes, std::string(32, 'x')));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 1;
    EXPECT_FALSE(decode_signed(damaged, kKey)) << "byte " << i;
  }
  EXPECT_FALSE(decode_signed(bytes + "x", kKey));
  EXPECT_FALSE(decode_signed(encode_heartbeat(heartbeat_of(8, 1, false), kKey), kKey));
  EXPECT_FALSE(decode_signed("hello", kKey));
}

struct BothEnds : ::testing::Test {
  // Both ends over loopback.
  void SetUp() override {
    ASSERT_TRUE(host.open("127.0.0.1", port));
    node.open("ipv4:127.0.0.1:" + std::to_string(port), 3, host.key_of(3));
  }
  // Datagrams take a moment, even on this host.
  template <typename Result>
  Result soon(const std::function<Result()>& probe) {
    Result result{};
    for (int i = 0; i < 5'000 && result == Result{}; ++i, ::poll(nullptr, 0, 1)) result = probe();
    return result;
  }
  std::vector<uint64_t> host_receives() {
    return soon<std::vector<uint64_t>>([this] { return host.receive(); });
  }
  const int port = free_port();
  HostHeartbeats host;
  NodeHeartbeats node;
};

TEST_F(BothEnds, ThatSendHeartbeats_ReceiveEachOthers) {
  host.send();  // nobody has beaten yet
  node.send();
  EXPECT_THAT(host_receives(), ElementsAre(3));  // copies of one count once
  host.send();
  EXPECT_TRUE(soon<bool>([this] { return node.receive(); }));
  EXPECT_FALSE(node.receive());
}

TEST_F(BothEnds, SessionThatIsForgotten_IsNotHeard) {
  host.forget(3);
  node.send();
  NodeHeartbeats other;
  other.open("ipv4:127.0.0.1:" + std::to_string(port), 4, host.key_of(4));
  other.send();
  EXPECT_THAT(host_receives(), ElementsAre(4));
}

TEST_F(BothEnds, ReplayedDatagram_IsDropped) {
  const UniqueFd stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto send = [&](const std::string& bytes) {
    ASSERT_EQ(::sendto(stranger.get(), bytes.data(), bytes.size(), 0,
                       reinterpret_cast<sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  };
  const std::string heartbeat = encode_heartbeat(heartbeat_of(3, 5, false), host.key_of(3));
  send(heartbeat);
  EXPECT_THAT(host_receives(), ElementsAre(3));
  send(heartbeat);
  send(encode_heartbeat(heartbeat_of(3, 4, false), host.key_of(3)));
  send(encode_heartbeat(heartbeat_of(3, 6, true), host.key_of(3)));  // as if the host had said it
  send(encode_heartbeat(heartbeat_of(3, 7, false), kKey));
  send(encode_heartbeat(heartbeat_of(3, 8, false), host.key_of(3)));
  EXPECT_THAT(host_receives(), ElementsAre(3));
  EXPECT_THAT(host.receive(), IsEmpty());
}

TEST(HostHeartbeats, PortThatIsTaken_HasNone) {
  const int port = free_port();
  HostHeartbeats first, second;
  ASSERT_TRUE(first.open("127.0.0.1", port));
  EXPECT_FALSE(second.open("127.0.0.1", port));
  EXPECT_EQ(second.key_of(1), "");
}

TEST(NodeHeartbeats, HostWithoutThem_SaysAndHearsNothing) {
  NodeHeartbeats node;
  node.open("ipv4:127.0.0.1:9", 1, "");
  node.send();
  EXPECT_FALSE(node.receive());
}

}  // namespace
}  // namespace fleet
