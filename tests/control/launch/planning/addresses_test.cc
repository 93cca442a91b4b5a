#include "launch/planning/addresses.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(SplitEndpoint, PortIsOptional) {
  const auto expect = [](const std::string& text, const std::string& host,
                         const std::optional<std::string>& port) {
    const HostPort parts = split_endpoint(text);
    EXPECT_EQ(parts.host, host) << text;
    EXPECT_EQ(parts.port, port) << text;
  };
  expect("node1", "node1", std::nullopt);
  expect("node1:80", "node1", "80");
  expect(":80", "", "80");
  expect("node1:", "node1", "");
  expect("fd00::1", "fd00::1", std::nullopt);
  expect("[fd00::1]", "fd00::1", std::nullopt);
  expect("[fd00::1]:80", "fd00::1", "80");
}

TEST(SplitEndpoint, IsTheInverseOfEndpoint) {
  for (const std::string host : {"10.0.0.1", "node1", "::1"}) {
    const HostPort parts = split_endpoint(endpoint(host, 6768));
    EXPECT_EQ(parts.host, host);
    EXPECT_EQ(parts.port, "6768");
  }
}

TEST(ParsePort, OutOfRange_IsRefused) {
  int port = 7;
  for (const std::string text : {"", "x", "-1", "65536", "80x"}) {
    EXPECT_FALSE(parse_port(text, 0, &port)) << text;
  }
  EXPECT_FALSE(parse_port("0", 1, &port));
  EXPECT_EQ(port, 7);
  EXPECT_TRUE(parse_port("0", 0, &port));
  EXPECT_TRUE(parse_port("65535", 1, &port));
  EXPECT_EQ(port, 65535);
}

TEST(InterfaceAddresses, Loopback_IsFound) {
  EXPECT_FALSE(interface_of("127.0.0.1").empty());
  EXPECT_EQ(interface_of("127.0.0.9"), interface_of("127.0.0.1"));
  EXPECT_EQ(interface_of("203.0.113.77"), "");
}

}  // namespace
}  // namespace fleet
