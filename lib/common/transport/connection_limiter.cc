#include "transport/connection_limiter.h"

#include <fcntl.h>
#include <grpcpp/support/server_interceptor.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kWarnEvery{10};

// Close at once, so that no TIME_WAIT state remains.
void reset_on_close(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

// The budget, shared with the server's calls, which prove that a client has the secret.
// Thread-safe.
class ConnectionLimiter::SharedBudget {
 public:
  // proved: called for each connection whose first call has arrived.
  SharedBudget(ConnectionBudget::Limits limits, std::function<void(std::string)> authenticated)
      : budget_(limits), on_authenticated_(std::move(authenticated)) {}

  ConnectionBudget::Decision admit(const Peer& peer) {
    const MutexLock lock(mutex_);
    auto decision = budget_.admit(peer.address, peer.connection, Clock::now());
    unauthenticated_ = budget_.unauthenticated();
    return decision;
  }
  void called(const grpc::ServerContextBase& context) {
    if (unauthenticated_ == 0) return;  // the usual case: many calls, few new connections
    const std::optional<Peer> peer = peer_of(context.peer());
    if (!peer) return;
    const MutexLock lock(mutex_);
    const size_t before = budget_.unauthenticated();
    budget_.authenticated(peer->address, peer->connection, Clock::now());
    unauthenticated_ = budget_.unauthenticated();
    if (unauthenticated_ < before && on_authenticated_) on_authenticated_(peer->connection);
  }
  // The owner is being destroyed; calls of the server may still arrive.
  void detach() {
    const MutexLock lock(mutex_);
    on_authenticated_ = nullptr;
  }
  void closed(const std::string& address, const std::string& connection) {
    const MutexLock lock(mutex_);
    budget_.closed(address, connection, false, Clock::now());
    unauthenticated_ = budget_.unauthenticated();
  }

 private:
  Mutex mutex_;
  ConnectionBudget budget_ FLEET_GUARDED_BY(mutex_);
  // Called with the lock held.
  std::function<void(std::string)> on_authenticated_ FLEET_GUARDED_BY(mutex_);
  std::atomic<size_t> unauthenticated_{0};
};

// Observes every call and changes none.
class ConnectionLimiter::CallInterceptor final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallInterceptor(std::shared_ptr<SharedBudget> budget) : budget_(std::move(budget)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    budget_->called(*call->server_context());
    return nullptr;
  }

 private:
  std::shared_ptr<SharedBudget> budget_;
};

ConnectionLimiter::ConnectionLimiter(ConnectionBudget::Limits limits)
    : accept_("connections",
              [this](UniqueFd fd, const sockaddr_storage& name) {
                take(std::move(fd), peer_of(name));
              }),
      budget_(std::make_shared<SharedBudget>(limits, [this](std::string connection) {
        accept_.loop().post(
            [this, connection = std::move(connection)] { handshakes_.erase(connection); });
      })) {}

int ConnectionLimiter::listen(const std::string& host, int port,
                              std::chrono::milliseconds peer_timeout) {
  TcpListeners listeners = listen_tcp(host, port, peer_timeout);
  for (UniqueFd& socket : listeners.sockets) accept_.add(std::move(socket));
  port_ = listeners.port;
  return listeners.error;
}
void ConnectionLimiter::serve(grpc::ServerBuilder* builder,
                              std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server_ =
      builder->experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<CallInterceptor>(budget_));
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
}

void ConnectionLimiter::close() {
  accept_.stop_listening();
  budget_->detach();
  accept_.stop();
  handshakes_.clear();
}

void ConnectionLimiter::take(UniqueFd fd, const Peer& peer) {
  const auto decision = budget_->admit(peer);
  if (!decision.close.empty()) make_room(decision.close);
  if (!decision.admitted) return reject_connection(std::move(fd), peer);
  watch_handshake(std::move(fd), peer);
}

void ConnectionLimiter::watch_handshake(UniqueFd fd, const Peer& peer) {
  UniqueFd same(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!same) return;  // no descriptor is left: the client connects again
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd.release();
  server_->HandleNewConnection(&connection);
  handshakes_.erase(peer.connection);
  const auto [at, added] = handshakes_.try_emplace(peer.connection, peer.address, accept_.loop());
  LoopDescriptor& socket = at->second.socket;
  socket.assign(std::move(same));
  socket.wait(LoopDescriptor::Event::kError,
              [this, connection = peer.connection](std::error_code error) {
                if (!error) on_handshake_ended(connection);
              });
}

void ConnectionLimiter::on_handshake_ended(const std::string& connection) {
  const auto found = handshakes_.find(connection);
  if (found == handshakes_.end()) return;
  budget_->closed(found->second.address, connection);
  handshakes_.erase(found);
}

void ConnectionLimiter::make_room(const std::string& connection) {
  if (const auto found = handshakes_.find(connection); found != handshakes_.end()) {
    reset_on_close(found->second.socket.get());
    ::shutdown(found->second.socket.get(), SHUT_RDWR);
    handshakes_.erase(found);
  }
}

void ConnectionLimiter::reject_connection(UniqueFd fd, const Peer& peer) {
  reset_on_close(fd.get());
  const auto now = Clock::now();
  if (now < next_warning_) return;
  next_warning_ = now + kWarnEvery;
  spdlog::warn(
      "refused connections from {}: it opens too many; check what runs there, or block it with a "
      "firewall",
      peer.address);
}

}  // namespace fleet
