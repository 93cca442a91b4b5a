// This host's addresses, and addresses as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleet {

// An address of an interface. Those of other protocols than IP, and IPv6 link-local ones, are "".
struct InterfaceAddress {
  std::string interface;
  unsigned flags = 0;  // IFF_UP, ...
  std::string address;
};
// At least one for each interface, in system order.
std::vector<InterfaceAddress> interface_addresses();
// The IP addresses of every interface that is up.
std::vector<std::string> local_addresses();
// The numeric form of an address or a host name; "" if it cannot be resolved.
std::string resolve(const std::string& address);
// The interface with this numeric address, e.g. "eth0"; "" if this host does not have the address.
std::string interface_of(const std::string& numeric);
// Whether a numeric address is in 127.0.0.0/8 or is ::1.
bool is_loopback(const std::string& numeric);
// "10.0.0.1:80" or "[::1]:80".
std::string endpoint(const std::string& address, int port);
// The inverse; the port is optional. IPv6 addresses come without their brackets: "::1" has no port,
// "[::1]:80" has one.
struct HostPort {
  std::string host;
  std::optional<std::string> port;
};
HostPort split_endpoint(const std::string& text);
// False unless the text is a number from `least` to 65535.
bool parse_port(const std::string& text, int least, int* port);
std::string host_name();
// This host's name with its domain, as resolved; host_name() if the resolver does not know one.
std::string canonical_name();
// The local address that packets to `address` are sent from; "" if there is no route.
std::string address_towards(const std::string& address);

}  // namespace fleet
