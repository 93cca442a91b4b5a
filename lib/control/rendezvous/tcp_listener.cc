#include "rendezvous/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "rendezvous/tcp_retransmission.h"

namespace fleet {
namespace {

// Creates a socket as gRPC would: for all of IPv6, IPv4 is included. Returns none, with errno set,
// on failure.
UniqueFd listening_socket(const addrinfo& address, int port,
                          std::chrono::milliseconds peer_timeout) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int on = 1, off = 0, wait = static_cast<int>(peer_timeout.count());
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Accepted connections inherit these.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &wait, sizeof wait);
  limit_retransmission_backoff(fd.get());
  sockaddr_storage name{};
  std::memcpy(&name, address.ai_addr, address.ai_addrlen);
  if (address.ai_family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    reinterpret_cast<sockaddr_in6&>(name).sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in&>(name).sin_port = htons(static_cast<uint16_t>(port));
  }
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), address.ai_addrlen) != 0 ||
      ::listen(fd.get(), INT_MAX) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

int port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (::getaddrinfo(host.c_str(), "0", &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

// Listens at all addresses of a name. A taken address is an error. An address that this host lacks
// is not, if there are others.
TcpListeners listen_at(const std::string& host, int port, std::chrono::milliseconds peer_timeout) {
  TcpListeners all{.error = EADDRNOTAVAIL};
  const Addresses addresses = addresses_of(host);
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    UniqueFd fd = listening_socket(*at, port, peer_timeout);
    if (!fd) all.error = errno;
    if (!fd && all.error == EADDRINUSE) return {.error = EADDRINUSE};
    if (!fd) continue;
    port = port_of(fd.get());
    all.sockets.push_back(std::move(fd));
  }
  if (all.sockets.empty()) return all;
  all.port = port;
  all.error = 0;
  return all;
}

}  // namespace

TcpListeners listen_tcp(const std::string& host, int port, std::chrono::milliseconds user_timeout) {
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  if (!name.empty() && name != "0.0.0.0" && name != "::") {
    return listen_at(name, port, user_timeout);
  }
  TcpListeners all = listen_at("::", port, user_timeout);
  const bool no_ipv6 = all.error == EAFNOSUPPORT || all.error == EADDRNOTAVAIL;
  return no_ipv6 ? listen_at("0.0.0.0", port, user_timeout) : std::move(all);
}

}  // namespace fleet
