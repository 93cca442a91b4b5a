#include "launch/tools/doctor/reachability.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace fleet {
namespace {

// Sent by the server right after accept. Both nodes have the same architecture.
struct Hello {
  char magic[8] = {'F', 'L', 'E', 'E', 'T', 'D', 'R', '1'};
  uint64_t token = 0;
  int64_t node_rank = 0;
  double time = 0;  // seconds since 1970
};

// More than a window of jumbo frames, so that some packets have the full size that the path claims.
constexpr size_t kBulk = 48 << 10;
constexpr size_t kAtOnce = 128;            // connections at a time
constexpr double kConnectionTimeout = 30;  // seconds for one connection

struct Resolved {
  sockaddr_storage address{};
  socklen_t size = 0;
  int family = AF_UNSPEC;
};

Resolved resolve_numeric(const std::string& address, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  Resolved resolved;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return resolved;
  }
  std::memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
  resolved.size = found->ai_addrlen;
  resolved.family = found->ai_family;
  ::freeaddrinfo(found);
  return resolved;
}

ReachResult result_of(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ReachResult::kRefused;
    case ETIMEDOUT:
      return ReachResult::kTimeout;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return ReachResult::kUnreachable;
    default:
      return ReachResult::kFailed;
  }
}

// One connection to a target: connects, receives Hello, sends the bulk, waits for the receipt.
class Probe {
 public:
  Probe(const ReachTarget& target, uint64_t token, double step_timeout, Reach* result)
      : target_(target), token_(token), step_timeout_(step_timeout), result_(*result) {
    result_.node_rank = target.node_rank;
    const Resolved to = resolve_numeric(target.address, target.port);
    socket_ = UniqueFd(::socket(to.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    started_ = monotonic_seconds();
    deadline_ = started_ + step_timeout;
    const auto* address = reinterpret_cast<const sockaddr*>(&to.address);
    if (!socket_ || (::connect(socket_.get(), address, to.size) != 0 && errno != EINPROGRESS)) {
      finish(result_of(errno), std::strerror(errno));
    }
  }

  bool done() const { return step_ == Step::kDone; }
  double deadline() const { return deadline_; }
  pollfd wants() const {
    const bool writes = step_ == Step::kConnecting || step_ == Step::kSending;
    return {socket_.get(), static_cast<int16_t>(writes ? POLLOUT : POLLIN), 0};
  }
  void expired() {
    switch (step_) {
      case Step::kConnecting:
        return finish(ReachResult::kTimeout, {});
      case Step::kHello:
        return finish(ReachResult::kUnexpectedPeer, "it sends nothing");
      default:
        return finish(ReachResult::kStalled, {});
    }
  }
  void ready() {
    if (step_ == Step::kConnecting) connected();
    if (step_ == Step::kHello) read_hello();
    if (step_ == Step::kSending) send_bulk();
    if (step_ == Step::kWaiting) read_end();
  }

 private:
  enum class Step { kConnecting, kHello, kSending, kWaiting, kDone };

  void finish(ReachResult result, std::string detail) {
    result_.result = result;
    result_.detail = std::move(detail);
    step_ = Step::kDone;
    socket_.reset();
  }
  void next(Step step) {
    step_ = step;
    deadline_ = monotonic_seconds() + step_timeout_;
  }
  void connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return finish(result_of(error), std::strerror(error));
    next(Step::kHello);
  }
  // Receives bytes; returns whether any came.
  bool receive(void* into, size_t size) {
    const ssize_t n = ::recv(socket_.get(), into, size, 0);
    if (n == 0) finish(ReachResult::kUnexpectedPeer, "it closes the connection");
    if (n < 0 && errno != EAGAIN) finish(result_of(errno), std::strerror(errno));
    got_ = n;
    return n > 0;
  }
  void read_hello() {
    if (!receive(reinterpret_cast<char*>(&hello_) + received_bytes_,
                 sizeof hello_ - received_bytes_))
      return;
    received_bytes_ += static_cast<size_t>(got_);
    if (std::memcmp(hello_.magic, Hello().magic, std::min(received_bytes_, sizeof hello_.magic)) !=
        0) {
      return finish(ReachResult::kUnexpectedPeer, "it is not fleetrun");
    }
    if (received_bytes_ < sizeof hello_) return;
    if (hello_.token != token_)
      return finish(ReachResult::kUnexpectedPeer, "it belongs to another job");
    if (hello_.node_rank != target_.node_rank) {
      return finish(ReachResult::kUnexpectedPeer,
                    "it is node " + std::to_string(hello_.node_rank) + " of this job");
    }
    const double now = monotonic_seconds();
    result_.round_trip = now - started_;
    result_.clock_offset = hello_.time - (unix_seconds() - result_.round_trip / 2);
    next(Step::kSending);
  }
  void send_bulk() {
    static const std::string bulk(kBulk, 'x');
    const ssize_t n = ::send(socket_.get(), bulk.data() + sent_, bulk.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return finish(result_of(errno), std::strerror(errno));
    if (n > 0) sent_ += static_cast<size_t>(n);
    if (sent_ == kBulk) next(Step::kWaiting);
  }
  void read_end() {
    char end = 0;
    if (receive(&end, 1)) finish(ReachResult::kOk, {});
  }

  const ReachTarget& target_;
  uint64_t token_;
  double step_timeout_, started_ = 0, deadline_ = 0;
  Reach& result_;
  UniqueFd socket_;
  Step step_ = Step::kConnecting;
  Hello hello_;
  size_t received_bytes_ = 0, sent_ = 0;
  ssize_t got_ = 0;
};

struct Client {
  UniqueFd socket;
  size_t got = 0;
  double until = 0;
};

// Receives what a client sends; returns false to close the connection.
bool read_from(Client* client) {
  char buffer[16 << 10];
  const ssize_t n = ::recv(client->socket.get(), buffer, sizeof buffer, 0);
  if (n < 0) return errno == EAGAIN;
  client->got += static_cast<size_t>(n);
  if (n > 0 && client->got < kBulk) return true;
  if (client->got == kBulk) ::send(client->socket.get(), "k", 1, MSG_NOSIGNAL);
  return false;
}

}  // namespace

ReachServer::ReachServer(const std::string& address, int port, uint64_t token, int node_rank)
    : token_(token), node_rank_(node_rank), stop_(::eventfd(0, EFD_CLOEXEC)) {
  const Resolved at = resolve_numeric(address, port);
  listener_ = UniqueFd(::socket(at.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (listener_) ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener_ || !stop_ ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    throw_errno("cannot listen", address + " port " + std::to_string(port));
  }
  thread_ = Thread("doctor", [this] { serve(); });
}

ReachServer::~ReachServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
}

void ReachServer::serve() {
  std::vector<Client> clients;
  for (;;) {
    std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients) waits.push_back({client.socket.get(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), clients.empty() ? -1 : 1'000) < 0 && errno != EINTR) {
      return;
    }
    if (waits[0].revents != 0) return;
    const double now = monotonic_seconds();
    for (size_t i = clients.size(); i-- > 0;) {
      const bool stays =
          waits[i + 2].revents == 0 ? now < clients[i].until : read_from(&clients[i]);
      if (!stays) clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waits[1].revents == 0) continue;
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) continue;
    Hello hello;
    hello.token = token_;
    hello.node_rank = node_rank_;
    hello.time = unix_seconds();
    ::send(client.get(), &hello, sizeof hello, MSG_NOSIGNAL);
    clients.push_back({std::move(client), 0, now + kConnectionTimeout});
  }
}

std::vector<Reach> reach_all(const std::vector<ReachTarget>& targets, uint64_t token,
                             double step_timeout) {
  std::vector<Reach> results(targets.size());
  std::vector<std::unique_ptr<Probe>> running;
  for (size_t next = 0; next < targets.size() || !running.empty();) {
    while (next < targets.size() && running.size() < kAtOnce) {
      running.push_back(
          std::make_unique<Probe>(targets[next], token, step_timeout, &results[next]));
      ++next;
    }
    std::erase_if(running, [](const auto& probe) { return probe->done(); });
    if (running.empty()) continue;
    std::vector<pollfd> waits;
    double deadline = running.front()->deadline();
    for (const auto& probe : running) {
      waits.push_back(probe->wants());
      deadline = std::min(deadline, probe->deadline());
    }
    const double left = std::max(0.0, deadline - monotonic_seconds());
    if (::poll(waits.data(), waits.size(), static_cast<int>(left * 1000) + 1) < 0 &&
        errno != EINTR) {
      throw_errno("cannot wait for other nodes");
    }
    const double now = monotonic_seconds();
    for (size_t i = 0; i < running.size(); ++i) {
      if (waits[i].revents != 0) {
        running[i]->ready();
      } else if (now >= running[i]->deadline()) {
        running[i]->expired();
      }
    }
  }
  return results;
}

}  // namespace fleet
