// Listens for a gRPC server and passes on the connections that their address may have
// (client_budgets.h). It closes the others before they cost a handshake.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "transport/client_budgets.h"

namespace fleet {

class ConnectionLimiter {
 public:
  explicit ConnectionLimiter(ConnectionBudget::Limits limits = {});
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
  // Call it after the server's shutdown. Idempotent.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
