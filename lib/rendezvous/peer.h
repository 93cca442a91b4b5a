// The other end of a connection, as the budget of its address knows it (connection_budget.h).
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

namespace fleet {

struct Peer {
  // "10.0.0.1"; of IPv6 the network, "fd00::/64": a stranger has all of its addresses as a rule.
  std::string address;
  std::string connection;  // "10.0.0.1 4711": no other connection at a time
  bool local = false;      // loopback
};

// AF_INET or AF_INET6; IPv4 as IPv6 has it is IPv4.
Peer peer_of(const sockaddr_storage& name);
// As gRPC writes it: "ipv4:10.0.0.1:4711", "ipv6:%5Bfd00::1%5D:4711". Nothing where it is neither.
std::optional<Peer> peer_of(const std::string& uri);
// The same for the kernel; returns its size, 0 where it is neither.
socklen_t socket_address(const std::string& uri, sockaddr_storage* address);

}  // namespace fleet
