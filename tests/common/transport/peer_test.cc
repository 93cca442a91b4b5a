#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "transport/tcp_listener.h"

namespace fleet {
namespace {

sockaddr_storage name_of(const std::string& address, int port) {
  sockaddr_storage name{};
  if (address.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(name);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &v4.sin_addr), 1);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(name);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr), 1);
  }
  return name;
}

void expect_same(const std::string& address, const std::string& uri) {
  const Peer accepted = peer_of(name_of(address, 4711));
  const std::optional<Peer> told = peer_of(uri);
  ASSERT_TRUE(told) << uri;
  EXPECT_EQ(accepted.address, told->address);
  EXPECT_EQ(accepted.connection, told->connection);
  EXPECT_EQ(accepted.local, told->local);
}

TEST(Peer, SocketAndGrpcsName_AreTheSame) {
  expect_same("10.0.0.1", "ipv4:10.0.0.1:4711");
  expect_same("::ffff:10.0.0.1", "ipv4:10.0.0.1:4711");
  expect_same("10.0.0.1", "ipv6:%5B::ffff:10.0.0.1%5D:4711");
  expect_same("fd00::1", "ipv6:%5Bfd00::1%5D:4711");
  expect_same("fd00::1", "ipv6:[fd00::1]:4711");
}

TEST(Peer, AddressesOfANetworkOfIpv6_AreOne) {
  const Peer one = peer_of(name_of("fd00::1", 1)), other = peer_of(name_of("fd00::a:b:2", 1));
  EXPECT_EQ(one.address, "fd00::/64");
  EXPECT_EQ(one.address, other.address);
  EXPECT_NE(one.connection, other.connection);
  EXPECT_NE(one.address, peer_of(name_of("fd00:0:0:1::1", 1)).address);
}

TEST(Peer, Loopback_IsLocal) {
  for (const char* address : {"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(peer_of(name_of(address, 1)).local) << address;
  }
  EXPECT_FALSE(peer_of(name_of("10.0.0.1", 1)).local);
}

TEST(Peer, LinkLocalAddressWithItsInterface_IsRead) {
  EXPECT_EQ(peer_of("ipv6:%5Bfe80::1%25lo%5D:4711")->address, "fe80::/64");
}

TEST(Peer, WhatIsNoAddress_IsNone) {
  for (const char* uri : {"", ":", "ipv4:", "ipv4:10.0.0.1", "ipv4:10.0.0:1", "unix:/a:b",
                          "unix:", "ipv6:%5B%5D:1", "ipv4:10.0.0.1:x"}) {
    EXPECT_FALSE(peer_of(uri)) << uri;
  }
}

}  // namespace
}  // namespace fleet
