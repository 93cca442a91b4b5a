#include "rendezvous/doorkeeper.h"

#include <grpcpp/support/server_interceptor.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <climits>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "rendezvous/lossy_link.h"
#include "rendezvous/peer.h"

namespace fleet {
namespace {

namespace asio = boost::asio;

// Shared with the server, whose calls tell it who has the secret. Thread-safe.
class Book {
 public:
  explicit Book(ConnectionBudget::Limits limits) : budget_(limits) {}

  bool admit(const Peer& peer) {
    std::lock_guard lock(mutex_);
    const bool admitted = budget_.admit(peer.address, peer.connection, Clock::now());
    unproved_ = budget_.unproved();
    return admitted;
  }
  void called(const grpc::ServerContextBase& context) {
    if (unproved_ == 0) return;  // as a rule: calls are many, new connections few
    const std::optional<Peer> peer = peer_of(context.peer());
    if (!peer) return;
    std::lock_guard lock(mutex_);
    budget_.proved(peer->address, peer->connection, Clock::now());
    unproved_ = budget_.unproved();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  ConnectionBudget budget_;
  std::atomic<size_t> unproved_{0};
};

// Hears of every call, and changes none.
class CallWatch final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallWatch(std::shared_ptr<Book> book) : book_(std::move(book)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    book_->called(*call->server_context());
    return nullptr;
  }

 private:
  std::shared_ptr<Book> book_;
};

// As gRPC would make it: IPv4 too where it is all of IPv6. None, with errno set, where that fails.
UniqueFd listening_socket(const addrinfo& address, int port, std::chrono::milliseconds patience) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int on = 1, off = 0, wait = static_cast<int>(patience.count());
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // What is accepted inherits these.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &wait, sizeof wait);
  retry_soon(fd.get());
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

}  // namespace

class Doorkeeper::Impl {
 public:
  Impl(ConnectionBudget::Limits limits, bool trust_loopback)
      : book_(std::make_shared<Book>(limits)), trust_loopback_(trust_loopback) {}
  ~Impl() { close(); }

  int listen(const std::string& host, int port, std::chrono::milliseconds patience) {
    const bool brackets = host.starts_with('[') && host.ends_with(']');
    const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
    if (!name.empty() && name != "0.0.0.0" && name != "::") return listen_at(name, port, patience);
    const int error = listen_at("::", port, patience);
    const bool no_ipv6 = error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
    return no_ipv6 ? listen_at("0.0.0.0", port, patience) : error;
  }
  int port() const { return port_; }

  void serve(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    server_ = builder->experimental().AddExternalConnectionAcceptor(Type::FROM_FD,
                                                                    std::move(credentials));
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> watches;
    watches.push_back(std::make_unique<CallWatch>(book_));
    builder->experimental().SetInterceptorCreators(std::move(watches));
  }

  void open() {
    for (auto& listener : listeners_) wait(listener);
    thread_ = Thread("doorkeeper", [this] { loop_.run(); });
  }
  void close() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    listeners_.clear();
  }

 private:
  using Descriptor = asio::posix::stream_descriptor;

  // At all addresses that a name has: one that is taken is an error, one that this host has not got
  // is not, where there are others.
  int listen_at(const std::string& host, int port, std::chrono::milliseconds patience) {
    int failure = EADDRNOTAVAIL;
    const Addresses addresses = addresses_of(host);
    std::list<Descriptor> listeners;
    for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
      UniqueFd fd = listening_socket(*at, port, patience);
      if (!fd) failure = errno;
      if (!fd && failure == EADDRINUSE) return failure;
      if (!fd) continue;
      port = port_of(fd.get());
      listeners.emplace_back(loop_, fd.release());
    }
    if (listeners.empty()) return failure;
    port_ = port;
    listeners_ = std::move(listeners);
    return 0;
  }

  void wait(Descriptor& listener) {
    listener.async_wait(Descriptor::wait_read, [this, &listener](boost::system::error_code error) {
      if (error) return;
      accept_some(listener);
    });
  }

  void accept_some(Descriptor& listener) {
    for (int i = 0; i < 64; ++i) {  // then whoever wants to close() gets a turn
      sockaddr_storage name{};
      socklen_t size = sizeof name;
      UniqueFd fd(::accept4(listener.native_handle(), reinterpret_cast<sockaddr*>(&name), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd) {
        take(std::move(fd), name);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return rest(listener);
      } else if (errno == EAGAIN) {
        return wait(listener);
      }  // else this one has gone again: the next
    }
    wait(listener);
  }

  // No descriptor is left: they wait in the kernel's queue until one is.
  void rest(Descriptor& listener) {
    auto timer = std::make_shared<asio::steady_timer>(loop_, std::chrono::milliseconds(100));
    timer->async_wait([this, &listener, timer](boost::system::error_code) { wait(listener); });
  }

  void take(UniqueFd fd, const sockaddr_storage& name) {
    const Peer peer = peer_of(name);
    const bool trusted = peer.local && trust_loopback_;
    if (!trusted && !book_->admit(peer)) return turn_away(std::move(fd), peer);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd.release();
    server_->HandleNewConnection(&connection);
  }

  void turn_away(UniqueFd fd, const Peer& peer) {
    const linger at_once{1, 0};  // nothing of it stays, as its waiting for late packets would
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_word_) return;
    next_word_ = now + std::chrono::seconds(10);
    spdlog::warn(
        "connections from {} are turned away: it has too many that have not shown the secret; "
        "what runs there? A firewall can keep it off",
        peer.address);
  }

  asio::io_context loop_{1};
  std::list<Descriptor> listeners_;
  int port_ = 0;
  std::shared_ptr<Book> book_;
  const bool trust_loopback_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::chrono::steady_clock::time_point next_word_{};
  Thread thread_;
};

Doorkeeper::Doorkeeper(ConnectionBudget::Limits limits, bool trust_loopback)
    : impl_(std::make_unique<Impl>(limits, trust_loopback)) {}
Doorkeeper::~Doorkeeper() = default;
int Doorkeeper::listen(const std::string& host, int port, std::chrono::milliseconds patience) {
  return impl_->listen(host, port, patience);
}
int Doorkeeper::port() const { return impl_->port(); }
void Doorkeeper::serve(grpc::ServerBuilder* builder,
                       std::shared_ptr<grpc::ServerCredentials> credentials) {
  impl_->serve(builder, std::move(credentials));
}
void Doorkeeper::open() { impl_->open(); }
void Doorkeeper::close() { impl_->close(); }

}  // namespace fleet
