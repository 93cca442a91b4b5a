#include "launch/tools/doctor/reachability.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <system_error>

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
constexpr size_t kAtOnce = 128;  // connections at a time
constexpr std::chrono::seconds kConnectionTimeout{30};

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
  Probe(EventLoop& loop, const ReachTarget& target, uint64_t token, double step_timeout,
        Reach* result, std::function<void()> on_done)
      : socket_(loop),
        limit_(loop),
        target_(target),
        token_(token),
        step_timeout_(step_timeout),
        result_(*result),
        on_done_(std::move(on_done)) {
    result_.node_rank = target.node_rank;
  }

  void begin() {
    const Addresses to = addresses_of(target_.address, std::to_string(target_.port), SOCK_STREAM,
                                      AI_NUMERICHOST | AI_NUMERICSERV);
    if (!to) return finish(ReachResult::kFailed, "it has no numeric address");
    UniqueFd fd(::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    started_ = monotonic_seconds();
    if (!fd || (::connect(fd.get(), to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      return finish(result_of(errno), std::strerror(errno));
    }
    socket_.assign(std::move(fd));
    next(Step::kConnecting);
    wait();
  }

 private:
  enum class Step { kConnecting, kHello, kSending, kWaiting, kDone };

  void finish(ReachResult result, std::string detail) {
    result_.result = result;
    result_.detail = std::move(detail);
    step_ = Step::kDone;
    socket_.close();
    limit_.cancel();
    on_done_();
  }
  void next(Step step) {
    step_ = step;
    limit_.after(std::chrono::milliseconds(static_cast<int64_t>(step_timeout_ * 1000)),
                 [this] { expired(); });
  }
  void wait() {
    const bool writes = step_ == Step::kConnecting || step_ == Step::kSending;
    socket_.wait(writes ? LoopDescriptor::Event::kWritable : LoopDescriptor::Event::kReadable,
                 [this](std::error_code) { ready(); });
  }
  void ready() {
    if (step_ == Step::kConnecting) connected();
    if (step_ == Step::kHello) read_hello();
    if (step_ == Step::kSending) send_bulk();
    if (step_ == Step::kWaiting) read_end();
    if (step_ != Step::kDone) wait();
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

  LoopDescriptor socket_;
  LoopTimer limit_;  // time limit of the step
  const ReachTarget& target_;
  const uint64_t token_;
  const double step_timeout_;
  Reach& result_;
  const std::function<void()> on_done_;
  double started_ = 0;
  Step step_ = Step::kConnecting;
  Hello hello_;
  size_t received_bytes_ = 0, sent_ = 0;
  ssize_t got_ = 0;
};

}  // namespace

ReachServer::ReachServer(const std::string& address, int port, uint64_t token, int node_rank)
    : token_(token),
      node_rank_(node_rank),
      accept_("doctor", [this](UniqueFd fd, const sockaddr_storage&) { greet(std::move(fd)); }) {
  TcpListeners found = listen_at(address, port, kConnectionTimeout);
  if (found.error != 0) {
    throw Error(ErrorCode::kIo, std::string("cannot listen: ") + std::strerror(found.error),
                address + " port " + std::to_string(port));
  }
  for (UniqueFd& socket : found.sockets) accept_.add(std::move(socket));
  accept_.start();
}

void ReachServer::greet(UniqueFd fd) {
  Hello hello;
  hello.token = token_;
  hello.node_rank = node_rank_;
  hello.time = unix_seconds();
  ::send(fd.get(), &hello, sizeof hello, MSG_NOSIGNAL);
  clients_.emplace_back(accept_.loop(), std::move(fd));
  const auto client = std::prev(clients_.end());
  client->limit.after(kConnectionTimeout, [this, client] { clients_.erase(client); });
  wait_for(client);
}

void ReachServer::wait_for(Clients::iterator client) {
  client->socket.wait(LoopDescriptor::Event::kReadable, [this, client](std::error_code) {
    char buffer[16 << 10];
    const ssize_t n = ::recv(client->socket.get(), buffer, sizeof buffer, 0);
    if (n > 0) client->got += static_cast<size_t>(n);
    const bool more = n < 0 ? errno == EAGAIN : n > 0 && client->got < kBulk;
    if (more) return wait_for(client);
    if (client->got == kBulk) ::send(client->socket.get(), "k", 1, MSG_NOSIGNAL);
    clients_.erase(client);
  });
}

std::vector<Reach> reach_all(const std::vector<ReachTarget>& targets, uint64_t token,
                             double step_timeout) {
  EventLoop loop;
  std::vector<Reach> results(targets.size());
  std::deque<Probe> probes;
  const std::function<void()> start_next = [&] {
    const size_t at = probes.size();
    if (at == targets.size()) return;
    probes.emplace_back(loop, targets[at], token, step_timeout, &results[at],
                        [&] { loop.post(start_next); });
    probes.back().begin();
  };
  for (size_t i = 0; i < kAtOnce; ++i) start_next();
  loop.run();
  return results;
}

}  // namespace fleet
