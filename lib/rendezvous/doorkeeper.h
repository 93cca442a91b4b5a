// Listens for a gRPC server and hands on the connections that their address may have
// (connection_budget.h): the others are closed before a greeting costs anything.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/connection_budget.h"

namespace fleet {

class Doorkeeper {
 public:
  // trust_loopback: this host's own connections are not counted.
  explicit Doorkeeper(ConnectionBudget::Limits limits = {}, bool trust_loopback = true);
  ~Doorkeeper();  // close()
  Doorkeeper(const Doorkeeper&) = delete;

  // Takes the port (0: a free one) of `host`, which is an address, a name, or "", "0.0.0.0" or "::"
  // for all. 0, or the errno of why not; EADDRNOTAVAIL also for a name that is unknown.
  // patience: after so long a peer's kernel that acknowledges nothing is given up.
  int listen(const std::string& host, int port, std::chrono::milliseconds patience);
  int port() const;
  // In place of the builder's AddListeningPort().
  void serve(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Once the server has started: connections are accepted from now on.
  void open();
  // Before the server is shut down: the port is free again. Idempotent.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
