// Listens for a gRPC server and passes on the connections that their address may have
// (client_budgets.h). It closes the others before they cost a handshake.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>

#include "transport/client_budgets.h"
#include "transport/tcp_listener.h"

namespace fleet {

class ConnectionLimiter {
 public:
  explicit ConnectionLimiter(ConnectionBudget::Limits limits = {});
  ~ConnectionLimiter() { close(); }
  ConnectionLimiter(const ConnectionLimiter&) = delete;

  // Like listen_tcp(). Returns 0 or the errno of the failure.
  int listen(const std::string& host, int port, std::chrono::milliseconds peer_timeout);
  int port() const { return port_; }
  // Replaces the builder's AddListeningPort().
  void serve(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Accepts connections from now on. Call it once the server has started.
  void open() { accept_.start(); }
  // Frees the port. Call it before the server shuts down. Idempotent.
  void stop_listening() { accept_.stop_listening(); }
  // Call it after the server's shutdown. Idempotent.
  void close();

 private:
  class SharedBudget;
  class CallInterceptor;
  // A connection owned by gRPC that has made no call. The descriptor is a duplicate, used
  // to notice the end of the connection or to end it.
  struct Handshake {
    Handshake(std::string from, EventLoop& loop) : address(std::move(from)), socket(loop) {}
    std::string address;
    LoopDescriptor socket;
  };

  void take(UniqueFd fd, const Peer& peer);
  void watch_handshake(UniqueFd fd, const Peer& peer);
  void on_handshake_ended(const std::string& connection);
  void make_room(const std::string& connection);
  void reject_connection(UniqueFd fd, const Peer& peer);

  AcceptLoop accept_;
  int port_ = 0;
  std::shared_ptr<SharedBudget> budget_;
  std::unordered_map<std::string, Handshake> handshakes_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::chrono::steady_clock::time_point next_warning_{};
};

}  // namespace fleet
