// Listens for a gRPC server and hands on the connections that their address may have
// (connection_budget.h): the others are closed before a greeting costs anything. Where everybody
// may come, what they send is watched as long as they stay (screened_connection.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/connection_budget.h"
#include "rendezvous/stream_budget.h"

namespace fleet {

struct ConnectionLimits {
  ConnectionBudget::Limits connections;
  StreamBudget::Limits streams;  // of screened connections
  // No secret guards the server: its connections are screened, and count as long as they live.
  bool screened = false;
  // A screened connection that has not begun to speak HTTP/2 by then is closed.
  std::chrono::milliseconds greeting{30'000};
};

class ConnectionLimiter {
 public:
  explicit ConnectionLimiter(ConnectionLimits limits = {});
  ~ConnectionLimiter();  // close()
  ConnectionLimiter(const ConnectionLimiter&) = delete;

  // As listen_tcp(). 0, or the errno of why not.
  int listen(const std::string& host, int port, std::chrono::milliseconds patience);
  int port() const;
  // In place of the builder's AddListeningPort().
  void serve(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Once the server has started: connections are accepted from now on.
  void open();
  // Before the server is shut down: the port is free again. Idempotent.
  void stop_listening();
  // After it: what the server has said last is still sent. Idempotent.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
