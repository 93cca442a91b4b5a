#include "comm/peer_monitor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace fleet {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address resolve(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error) {
    throw Error(ErrorCode::kUsage,
                std::string("cannot resolve the address: ") + gai_strerror(error), host,
                "give each node an address that all nodes can reach");
  }
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

// nullopt if no rank has set it in time.
std::optional<std::string> get_in_time(Store& store, const std::string& key,
                                       RunningDeadline* deadline) {
  for (;;) {
    try {
      return store.get(key, deadline->look_for());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      if (deadline->passed()) return std::nullopt;
    }
  }
}

// The kernel notices within about 10 s that a peer vanished silently (power, cable).
void watch_connection(int fd) {
  const int on = 1, idle = 3, interval = 2, probes = 3;
  const unsigned unanswered = 10000;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
}

}  // namespace

PeerMonitor::PeerMonitor(const CommOptions& options, const Group& group,
                         std::function<void(const Error&)> failed)
    : options_(options),
      group_(group),
      failed_(std::move(failed)),
      connections_(group.size),
      peers_(group.size),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_errno("cannot create an eventfd");
  if (group_.size == 1) return;
  RunningDeadline deadline(options_.timeout);
  const UniqueFd listener = listen();
  std::vector<int> missing;
  std::vector<std::string> addresses(group_.size);
  for (int rank = 0; rank < group_.size; ++rank) {
    if (auto address = get_in_time(*options_.store, key(rank), &deadline)) {
      addresses[rank] = *std::move(address);
    } else {
      missing.push_back(rank);
    }
  }
  if (!missing.empty()) throw ranks_late_error(group_.name_of(missing), options_.timeout.count());
  for (int rank = 0; rank < group_.rank; ++rank) connect_to(rank, addresses[rank]);
  accept_others(listener.get(), &deadline);
  thread_ = Thread("peer_monitor", [this] { run(); });
}

PeerMonitor::~PeerMonitor() {
  Message bye{};
  bye.kind = kGoodbye;
  for (int rank = 0; rank < group_.size; ++rank) send(rank, bye);
  const uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

UniqueFd PeerMonitor::listen() {
  const std::string& host = options_.nodes[group_.rank];
  Address address = resolve(host, "0");
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno("cannot create a socket");
  if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), 1024) != 0) {
    throw_errno("cannot listen on this node's address", host);
  }
  address.length = sizeof address.storage;
  ::getsockname(fd.get(), address.get(), &address.length);
  const int port = ntohs(address.storage.ss_family == AF_INET6
                             ? reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port
                             : reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  options_.store->set(key(group_.rank), host + " " + std::to_string(port));
  return fd;
}

void PeerMonitor::connect_to(int rank, const std::string& where) {
  const size_t blank = where.find(' ');
  Address address = resolve(where.substr(0, blank), where.substr(blank + 1));
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno("cannot create a socket");
  int result = 0;
  do {
    result = ::connect(fd.get(), address.get(), address.length);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    throw Error(
        ErrorCode::kPeerLost,
        "cannot connect to " + group_.name_of(rank) + " at " + where + ": " + std::strerror(errno),
        "communicator", "check the firewall between the nodes and that rank's log");
  }
  watch_connection(fd.get());
  connections_[rank].fd = std::move(fd);
  Message hello{};
  hello.kind = kHello;
  send(rank, hello);
}

// Each higher rank connects to this one and sends its rank. Unauthenticated connections are closed.
void PeerMonitor::accept_others(int listener, RunningDeadline* deadline) {
  const auto missing = [&] {
    std::vector<int> ranks;
    for (int rank = group_.rank + 1; rank < group_.size; ++rank) {
      if (!connections_[rank].fd) ranks.push_back(rank);
    }
    return ranks;
  };
  while (!missing().empty()) {
    pollfd polled = {listener, POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(deadline->look_for().count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && !deadline->passed()) continue;
    if (ready == 0) throw ranks_late_error(group_.name_of(missing()), options_.timeout.count());
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    // It stays in the queue: the next poll() would return at once, and the next, past the deadline.
    if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
      throw_errno("cannot accept the connection of another rank");
    }
    if (!fd) continue;
    const timeval patience = {5, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Message hello{};
    if (::recv(fd.get(), &hello, sizeof hello, MSG_WAITALL) != sizeof hello) continue;
    if (hello.kind != kHello || hello.rank <= static_cast<uint32_t>(group_.rank) ||
        hello.rank >= static_cast<uint32_t>(group_.size)) {
      continue;
    }
    watch_connection(fd.get());
    connections_[hello.rank].fd = std::move(fd);
  }
}

void PeerMonitor::run() {
  std::vector<pollfd> polled(group_.size + 1);
  for (;;) {
    for (int rank = 0; rank < group_.size; ++rank) {
      polled[rank] = {connections_[rank].gone ? -1 : connections_[rank].fd.get(), POLLIN, 0};
    }
    polled[group_.size] = {stop_.get(), POLLIN, 0};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[group_.size].revents) return;
    for (int rank = 0; rank < group_.size; ++rank) {
      if (polled[rank].revents) receive(rank);
    }
  }
}

void PeerMonitor::receive(int rank) {
  Connection& connection = connections_[rank];
  char* at = reinterpret_cast<char*>(&connection.incoming) + connection.filled;
  const ssize_t n =
      ::recv(connection.fd.get(), at, sizeof(Message) - connection.filled, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    lost(rank);
    return;
  }
  connection.filled += static_cast<size_t>(n);
  if (connection.filled < sizeof(Message)) return;
  connection.filled = 0;
  handle(rank, connection.incoming);
}

void PeerMonitor::handle(int rank, const Message& message) {
  switch (message.kind) {
    case kHello:
      break;
    case kGoodbye: {
      const MutexLock lock(mutex_);
      peers_[rank].left = true;
      break;
    }
    case kError:
      fail(message.error.get());
      break;
    case kProgressRequest: {
      Message reply{};
      reply.kind = kProgressReply;
      reply.group_id = message.group_id;
      {
        const MutexLock lock(mutex_);
        reply.count = counts_[message.group_id];
      }
      send(rank, reply);
      break;
    }
    case kProgressReply: {
      const MutexLock lock(mutex_);
      if (message.group_id != asked_group_) break;  // a late reply
      peers_[rank].answered = true;
      peers_[rank].count = message.count;
      answered_.notify_all();
      break;
    }
  }
}

void PeerMonitor::lost(int rank) {
  connections_[rank].gone = true;
  bool left = false;
  {
    const MutexLock lock(mutex_);
    left = peers_[rank].left;
  }
  if (left) return;
  fail(Error(ErrorCode::kPeerLost,
             group_.name_of(rank) + " on " + options_.nodes[rank] + " died or was cut off",
             "communicator", "look at the log of that rank"));
}

void PeerMonitor::fail(const Error& error) {
  failed_(error);
  report(error);
}

void PeerMonitor::send(int rank, Message message) {
  if (!connections_[rank].fd) return;
  message.rank = static_cast<uint32_t>(group_.rank);
  // The message is small against the socket's buffer. If it does not fit, the peer no longer reads.
  (void)!::send(connections_[rank].fd.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void PeerMonitor::report(const Error& error) {
  if (reported_.exchange(true)) return;
  Message message{};
  message.kind = kError;
  message.error.set(error);
  for (int rank = 0; rank < group_.size; ++rank) send(rank, message);
}

uint64_t PeerMonitor::begin_operation(uint64_t group_id) {
  const MutexLock lock(mutex_);
  return ++counts_[group_id];
}

std::vector<int> PeerMonitor::ranks_behind(const std::vector<int>& ranks, uint64_t group_id,
                                           uint64_t count, std::chrono::milliseconds patience) {
  const MutexLock asking(asking_);
  Message request{};
  request.kind = kProgressRequest;
  request.group_id = group_id;
  {
    const MutexLock lock(mutex_);
    asked_group_ = group_id;
    for (int rank : ranks) peers_[rank].answered = false;
  }
  for (int rank : ranks) send(rank, request);
  const MutexLock lock(mutex_);
  const auto silent = [&](int rank) FLEET_REQUIRES(mutex_) {
    return rank != group_.rank && !peers_[rank].answered;
  };
  answered_.wait_for(mutex_, patience, [&]() FLEET_REQUIRES(mutex_) {
    for (int rank : ranks) {
      if (silent(rank)) return false;
    }
    return true;
  });
  std::vector<int> stopped, last;
  uint64_t least = count;
  for (int rank : ranks) {
    if (silent(rank)) stopped.push_back(rank);
    if (rank != group_.rank) least = std::min(least, peers_[rank].count);
  }
  if (!stopped.empty() || least == count) return stopped;
  for (int rank : ranks) {
    if (rank != group_.rank && peers_[rank].count == least) last.push_back(rank);
  }
  return last;
}

bool PeerMonitor::has_left(int rank) const {
  const MutexLock lock(mutex_);
  return peers_[rank].left;
}

}  // namespace fleet
