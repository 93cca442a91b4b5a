#include "transport/tcp_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"

namespace fleet {
namespace {

namespace ip = boost::asio::ip;

Peer peer_at(ip::address address, int port) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  Peer peer{address.to_string(), {}, address.is_loopback()};
  peer.connection = peer.address + ' ' + std::to_string(port);
  if (address.is_v6()) {
    auto network = address.to_v6().to_bytes();
    std::fill(network.begin() + 8, network.end(), 0);
    peer.address = ip::address_v6(network).to_string() + "/64";
  }
  return peer;
}

std::optional<ip::tcp::endpoint> endpoint_of(const std::string& uri) {
  const size_t begin = uri.find(':'), end = uri.rfind(':');
  long long port = 0;
  if (begin >= end || !parse_int(uri.substr(end + 1), &port)) return std::nullopt;
  std::string host = uri.substr(begin + 1, end - begin - 1);
  if (host.starts_with("%5B") && host.ends_with("%5D")) host = host.substr(3, host.size() - 6);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (const size_t scope = host.find("%25"); scope != host.npos) host.erase(scope + 1, 2);
  boost::system::error_code error;
  const auto address = ip::make_address(host, error);
  if (error) return std::nullopt;
  return ip::tcp::endpoint(address, static_cast<unsigned short>(port));
}

}  // namespace

Peer peer_of(const sockaddr_storage& name) {
  ip::tcp::endpoint from;
  const size_t size = name.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(from.data(), &name, size);
  from.resize(size);
  return peer_at(from.address(), from.port());
}

std::optional<Peer> peer_of(const std::string& uri) {
  const auto endpoint = endpoint_of(uri);
  if (!endpoint) return std::nullopt;
  return peer_at(endpoint->address(), endpoint->port());
}

socklen_t socket_address(const std::string& uri, sockaddr_storage* address) {
  const auto endpoint = endpoint_of(uri);
  if (!endpoint) return 0;
  std::memcpy(address, endpoint->data(), endpoint->size());
  return static_cast<socklen_t>(endpoint->size());
}

bool is_any_address(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::" || host == "[::]";
}

Addresses addresses_of(const std::string& host, const std::string& port, int type, int flags) {
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = type;
  hints.ai_flags = flags;
  const char* service = port.empty() ? nullptr : port.c_str();
  if (::getaddrinfo(name.c_str(), service, &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

int port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

namespace {

constexpr int kRtoMaxOption = 44;  // TCP_RTO_MAX_MS, newer than the C library
constexpr int kRtoMaxMs = 1'000;   // the smallest accepted value

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

}  // namespace

// Listens at all addresses of a name. A taken address is an error. An address that this host lacks
// is not, if there are others.
TcpListeners listen_at(const std::string& host, int port, std::chrono::milliseconds peer_timeout) {
  TcpListeners all{.error = EADDRNOTAVAIL};
  const Addresses addresses = addresses_of(host, "0", SOCK_STREAM, AI_PASSIVE);
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

TcpListeners listen_tcp(const std::string& host, int port, std::chrono::milliseconds user_timeout) {
  if (!is_any_address(host)) return listen_at(host, port, user_timeout);
  TcpListeners all = listen_at("::", port, user_timeout);
  const bool no_ipv6 = all.error == EAFNOSUPPORT || all.error == EADDRNOTAVAIL;
  return no_ipv6 ? listen_at("0.0.0.0", port, user_timeout) : std::move(all);
}

void limit_retransmission_backoff(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, kRtoMaxOption, &kRtoMaxMs, sizeof kRtoMaxMs);
}

void limit_retransmission_backoff_to(const std::string& peer) {
  for_each_socket_to(peer, 0, [](int socket) { limit_retransmission_backoff(socket); });
}

// Works on duplicates: another thread may close a socket, and reuse its number, at any time.
void for_each_socket_to(const std::string& peer, int own_port,
                        const std::function<void(int socket)>& use) {
  const auto wanted = peer_of(peer);
  if (!wanted) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    long long fd = -1;
    if (!parse_int(entry.path().filename().string(), &fd)) continue;
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const auto is_wanted = [&](int socket) {
      size = sizeof name;
      if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return false;
      const bool ip = name.ss_family == AF_INET || name.ss_family == AF_INET6;
      return ip && peer_of(name).connection == wanted->connection &&
             (own_port == 0 || port_of(socket) == own_port);
    };
    if (!is_wanted(static_cast<int>(fd))) continue;
    const UniqueFd socket(::fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0));
    if (socket && is_wanted(socket.get())) use(socket.get());
  }
}

void watch_peer_host(int socket, std::chrono::milliseconds timeout) {
  const int seconds = std::max(3, static_cast<int>(timeout.count() / 1000));
  const int on = 1, interval = std::max(1, seconds / 6), idle = std::max(1, seconds / 3);
  const int probes = std::max(1, (seconds - idle) / interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void LoopListener::close() {
  pause_.cancel();
  socket_.close();
}

void LoopListener::wait() {
  socket_.wait(LoopDescriptor::Event::kReadable, [this](std::error_code error) {
    if (!error) accept_some();
  });
}

void LoopListener::accept_some() {
  for (int i = 0; i < 64; ++i) {  // then give the thread's other work a turn
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    UniqueFd fd(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      try {
        on_connection_(std::move(fd), peer);
      } catch (const std::exception& error) {  // closed: its peer does not wait for an answer
        spdlog::error("a connection cannot be served: {}", text_with_limit(error));
      }
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return back_off(errno);
    } else if (errno == EAGAIN) {
      break;
    }  // the peer has gone again: accept the next one
  }
  wait();
}

// No descriptor is left: connections wait in the kernel's queue until one is free.
void LoopListener::back_off(int error) {
  if (!std::exchange(warned_, true)) {
    const SystemError refused(ErrorCode::kIo, "connections wait", error, {});
    spdlog::warn("{}", refused.what());
  }
  pause_.after(std::chrono::milliseconds(100), [this] { wait(); });
}

AcceptLoop::AcceptLoop(std::string name, OnConnection on_connection)
    : name_(std::move(name)), on_connection_(std::move(on_connection)) {}

AcceptLoop::~AcceptLoop() { stop(); }

void AcceptLoop::add(UniqueFd listener) {
  listeners_.emplace_back(loop_, std::move(listener), on_connection_);
}

void AcceptLoop::start() {
  for (LoopListener& listener : listeners_) listener.start();
  thread_ = Thread(name_, [this] {
    // Runs until stop(), because others post work to it after listening has ended.
    loop_.run_until_stopped();
  });
}

void AcceptLoop::stop_listening() {
  if (!running()) return listeners_.clear();
  std::promise<void> closed;
  loop_.post([&] {
    for (LoopListener& listener : listeners_) listener.close();
    closed.set_value();
  });
  closed.get_future().wait();
}

void AcceptLoop::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
  listeners_.clear();
}

}  // namespace fleet
