#include "node/reserved_ports.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "transport/tcp_listener.h"

namespace fleet {
namespace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

Address parse_address(const std::string& address, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw Error(ErrorCode::kUsage, std::string("not an address: ") + ::gai_strerror(error), address,
                "give this host's IP address with --host");
  }
  Address result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return result;
}

UniqueFd tcp_socket(const Address& address) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno("cannot create a socket");
  return fd;
}

void allow_reuse(const UniqueFd& fd) {
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    throw_errno("cannot set SO_REUSEADDR");
  }
}

bool bind_to(const UniqueFd& fd, const Address& address) {
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0;
}

// Abstract sockets belong to the network namespace, as ports do, and vanish with their process.
UniqueFd lock_port(const std::string& address, int port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno("cannot create a socket");
  const std::string name = "fleetrun/port/" + address + ":" + std::to_string(port);
  sockaddr_un lock = {};
  lock.sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof lock.sun_path - 1);
  std::memcpy(lock.sun_path + 1, name.data(), size);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&lock), length) != 0) return UniqueFd();
  return fd;
}

[[noreturn]] void taken(const std::string& address, int port, const std::string& option) {
  throw Error(ErrorCode::kUsage, "port " + std::to_string(port) + " is taken",
              option + ", address " + address,
              "another job or program uses it; end it, or choose another " + option);
}

[[noreturn]] void refused(const std::string& address, const std::string& what) {
  throw Error(ErrorCode::kUsage, what + ": " + std::strerror(errno), address,
              "give an address of this host with --host");
}

}  // namespace

ReservedPort ReservedPort::any(const std::string& address) {
  Address where = parse_address(address, 0);
  for (;;) {
    // Bound without SO_REUSEADDR, so that the kernel avoids ports that other programs hold bound.
    UniqueFd fd = tcp_socket(where);
    if (!bind_to(fd, where)) {
      if (errno == EADDRINUSE) throw_errno("cannot bind any port", address, Wanted::kPort);
      refused(address, "cannot bind any port");
    }
    allow_reuse(fd);
    const int port = port_of(fd.get());
    UniqueFd lock = lock_port(address, port);
    if (lock) return ReservedPort(std::move(fd), std::move(lock), port);
  }
}

ReservedPort ReservedPort::exactly(const std::string& address, int port,
                                   const std::string& option) {
  const Address where = parse_address(address, port);
  UniqueFd lock = lock_port(address, port);
  if (!lock) taken(address, port, option);
  // With SO_REUSEADDR; otherwise the last job's connections in TIME_WAIT would block it for a
  // minute.
  UniqueFd fd = tcp_socket(where);
  allow_reuse(fd);
  if (!bind_to(fd, where)) {
    if (errno == EADDRINUSE) taken(address, port, option);
    refused(address, "port " + std::to_string(port) + " cannot be bound");
  }
  return ReservedPort(std::move(fd), std::move(lock), port);
}

}  // namespace fleet
