// The other end of a connection, as the connection budget identifies it (connection_budget.h).
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

namespace fleet {

struct Peer {
  // "10.0.0.1". For IPv6 the network, "fd00::/64", because one client usually controls all of it.
  std::string address;
  std::string connection;  // "10.0.0.1 4711": unique among open connections
  bool local = false;      // loopback
};

// AF_INET or AF_INET6; an IPv4-mapped IPv6 address counts as IPv4.
Peer peer_of(const sockaddr_storage& name);
// From gRPC's notation: "ipv4:10.0.0.1:4711", "ipv6:%5Bfd00::1%5D:4711". nullopt if it is neither.
std::optional<Peer> peer_of(const std::string& uri);
// The same as a socket address; returns its size, 0 if it is neither.
socklen_t socket_address(const std::string& uri, sockaddr_storage* address);

}  // namespace fleet
