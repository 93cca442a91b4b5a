#include "launch/planning/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "transport/tcp_listener.h"

namespace fleet {
namespace {

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw_errno("cannot list the network interfaces");
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    InterfaceAddress& found = all.emplace_back(one->ifa_name, one->ifa_flags);
    const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) continue;
    found.address =
        numeric(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (found.address.find('%') != std::string::npos) found.address.clear();
  }
  ::freeifaddrs(first);
  return all;
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> all;
  for (const InterfaceAddress& one : interface_addresses()) {
    if ((one.flags & IFF_UP) != 0 && !one.address.empty()) all.push_back(one.address);
  }
  return all;
}

std::string interface_of(const std::string& numeric) {
  for (const InterfaceAddress& one : interface_addresses()) {
    // All of 127.0.0.0/8 is local, though only one address is listed.
    const bool same = one.address == numeric || (is_loopback(one.address) && is_loopback(numeric));
    if (same && (one.flags & IFF_UP) != 0 && !one.address.empty()) return one.interface;
  }
  return {};
}

std::string resolve(const std::string& address) {
  const Addresses found = addresses_of(address, "", SOCK_DGRAM, 0);
  return found ? numeric(found->ai_addr, found->ai_addrlen) : std::string();
}

bool is_loopback(const std::string& numeric) {
  in_addr ipv4;
  return numeric == "::1" ||
         (::inet_pton(AF_INET, numeric.c_str(), &ipv4) == 1 && numeric.starts_with("127."));
}

std::string endpoint(const std::string& address, int port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return (ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

HostPort split_endpoint(const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && !text.ends_with(']') &&
                        (text.starts_with('[') || text.find(':') == colon);
  HostPort parts{text.substr(0, has_port ? colon : text.size()), std::nullopt};
  if (has_port) parts.port = text.substr(colon + 1);
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

bool parse_port(const std::string& text, int least, int* port) {
  long long number = 0;
  if (!parse_int(text, &number) || number < least || number > 65535) return false;
  *port = static_cast<int>(number);
  return true;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string canonical_name() {
  const std::string own = host_name();
  const Addresses found = addresses_of(own, "", SOCK_DGRAM, AI_CANONNAME);
  return found && found->ai_canonname ? found->ai_canonname : own;
}

std::string address_towards(const std::string& address) {
  const Addresses found = addresses_of(address, "9", SOCK_DGRAM, AI_NUMERICSERV);
  if (!found) return {};
  // Connecting a datagram socket sends nothing; it only picks the route.
  const UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (!fd || ::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return {};
  }
  return numeric(reinterpret_cast<sockaddr*>(&own), size);
}

}  // namespace fleet
