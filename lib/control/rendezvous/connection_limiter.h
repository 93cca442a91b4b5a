// Listens for a gRPC server and passes on the connections that their address may have
// (client_budgets.h). It closes the others before they cost a handshake. If the server is open
// to everyone, it also screens all traffic (screened_connection.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/client_budgets.h"

namespace fleet {

struct ConnectionLimits {
  ConnectionBudget::Limits connections;
  StreamBudget::Limits streams;  // of screened connections
  // No secret guards the server: its connections are screened and count while they live.
  bool screened = false;
  // A screened connection that has not begun to speak HTTP/2 within this time is closed.
  std::chrono::milliseconds handshake_timeout{30'000};
};

class ConnectionLimiter {
 public:
  explicit ConnectionLimiter(ConnectionLimits limits = {});
  ~ConnectionLimiter();  // close()
  ConnectionLimiter(const ConnectionLimiter&) = delete;

  // Like listen_tcp(). Returns 0 or the errno of the failure.
  int listen(const std::string& host, int port, std::chrono::milliseconds peer_timeout);
  int port() const;
  // Replaces the builder's AddListeningPort().
  void serve(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Accepts connections from now on. Call it once the server has started.
  void open();
  // Frees the port. Call it before the server shuts down. Idempotent.
  void stop_listening();
  // Call it after the server's shutdown: the server's last messages are still sent. Idempotent.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
