#include "node/reserved_ports.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  return address;
}

// Binds, and listens where asked; an empty descriptor where it may not.
UniqueFd bind_port(int port, bool reuse, bool listens) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse ? 1 : 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (listens && ::listen(fd.get(), 1) != 0)) {
    return UniqueFd();
  }
  return fd;
}

TEST(ReservedPort, FreeOne_IsNotGivenToOthersWhoAskForIt) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  EXPECT_GT(held.port(), 0);
  EXPECT_FALSE(bind_port(held.port(), false, true));
}

TEST(ReservedPort, ProgramWithReuseAddress_CanListenOnIt) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const UniqueFd server = bind_port(held.port(), true, true);
  ASSERT_TRUE(server);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(held.port());
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
}

TEST(ReservedPort, ManyFreeOnes_AreAllDifferent) {
  std::vector<ReservedPort> held;
  std::set<int> ports;
  for (int i = 0; i < 200; ++i) {
    held.push_back(ReservedPort::any("127.0.0.1"));
    ports.insert(held.back().port());
  }
  EXPECT_EQ(ports.size(), held.size());
}

TEST(ReservedPort, HeldByAnotherLauncher_IsTaken) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  try {
    ReservedPort::exactly("127.0.0.1", held.port(), "--start_port");
    FAIL() << "two hold one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("port " + std::to_string(held.port()) + " is taken"));
  }
}

TEST(ReservedPort, PortWithAListener_IsTaken) {
  int port = 0;
  {
    const ReservedPort free = ReservedPort::any("127.0.0.1");
    port = free.port();
  }
  const UniqueFd server = bind_port(port, true, true);
  ASSERT_TRUE(server);
  EXPECT_THROW(ReservedPort::exactly("127.0.0.1", port, "--start_port"), Error);
}

TEST(ReservedPort, GivenUp_CanBeHeldAgain) {
  int port = 0;
  {
    const ReservedPort first = ReservedPort::any("127.0.0.1");
    port = first.port();
  }
  EXPECT_EQ(ReservedPort::exactly("127.0.0.1", port, "--start_port").port(), port);
}

TEST(ReservedPort, AddressOfAnotherHost_IsRefused) {
  try {
    ReservedPort::any("203.0.113.7");  // for documentation only, so no host has it
    FAIL() << "bound";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("203.0.113.7"));
  }
}

}  // namespace
}  // namespace fleet
