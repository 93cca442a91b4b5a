// TCP ports reserved for a job from before its start until its end.
#pragma once

#include <string>

#include "base/file.h"

namespace fleet {

// A port bound with SO_REUSEADDR but not listening: the kernel assigns it to no other program, yet
// a program that sets SO_REUSEADDR (torch's store, gRPC) can listen on it. SO_REUSEADDR alone would
// let two launchers hold the same port, so an abstract Unix socket with its name is held as well.
class ReservedPort {
 public:
  // Any free port of `address` (an IP address of this host).
  static ReservedPort any(const std::string& address);
  // This port. Throws kUsage if it is taken (naming address, port and the `option` that chose it)
  // or if the address does not belong to this host.
  static ReservedPort exactly(const std::string& address, int port, const std::string& option);
  int port() const { return port_; }

 private:
  ReservedPort(UniqueFd socket, UniqueFd lock, int port)
      : socket_(std::move(socket)), lock_(std::move(lock)), port_(port) {}
  UniqueFd socket_, lock_;
  int port_ = 0;
};

}  // namespace fleet
