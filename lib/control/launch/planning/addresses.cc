#include "launch/planning/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

addrinfo* look_up(const std::string& address, const char* port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  return ::getaddrinfo(address.c_str(), port, &hints, &found) == 0 ? found : nullptr;
}

// Name and address of every interface that is up, in system order, without IPv6 link-local ones.
std::vector<std::pair<std::string, std::string>> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw_errno("cannot list the network interfaces");
  std::vector<std::pair<std::string, std::string>> all;
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP)) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string address =
        numeric(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (!address.empty() && address.find('%') == std::string::npos) {
      all.emplace_back(one->ifa_name, address);
    }
  }
  ::freeifaddrs(first);
  return all;
}

}  // namespace

std::vector<std::string> local_addresses() {
  std::vector<std::string> all;
  for (const auto& [interface, address] : interface_addresses()) all.push_back(address);
  return all;
}

std::string interface_of(const std::string& numeric) {
  for (const auto& [interface, address] : interface_addresses()) {
    // All of 127.0.0.0/8 is local, though only one address is listed.
    if (address == numeric || (is_loopback(address) && is_loopback(numeric))) return interface;
  }
  return {};
}

std::string resolve(const std::string& address) {
  addrinfo* found = look_up(address, nullptr, 0);
  if (!found) return {};
  const std::string text = numeric(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return text;
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

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string canonical_name() {
  const std::string own = host_name();
  addrinfo* found = look_up(own, nullptr, AI_CANONNAME);
  if (!found) return own;
  const std::string name = found->ai_canonname ? found->ai_canonname : own;
  ::freeaddrinfo(found);
  return name;
}

std::string address_towards(const std::string& address) {
  addrinfo* found = look_up(address, "9", AI_NUMERICSERV);
  if (!found) return {};
  // Connecting a datagram socket sends nothing; it only picks the route.
  const UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  std::string text;
  if (fd && ::connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    text = numeric(reinterpret_cast<sockaddr*>(&own), size);
  }
  ::freeaddrinfo(found);
  return text;
}

}  // namespace fleet
