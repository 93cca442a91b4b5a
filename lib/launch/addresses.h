// This host's addresses, and addresses as text.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Of every interface that is up, in their order; IPv6's link-local ones left out.
std::vector<std::string> local_addresses();
// The numeric form of an address or a host name; "" where it cannot be resolved.
std::string resolve(const std::string& address);
// The interface with this address in numeric form, "eth0"; "" where it is not of this host.
std::string interface_of(const std::string& numeric);
// 127.0.0.0/8 or ::1, in numeric form.
bool is_loopback(const std::string& numeric);
// "10.0.0.1:80" or "[::1]:80".
std::string endpoint(const std::string& address, int port);
std::string host_name();
// This host's name with its domain, as the resolver knows it; host_name() where it knows none.
std::string canonical_name();
// The address that packets to `address` leave from; "" where there is no route.
std::string address_towards(const std::string& address);

}  // namespace fleet
