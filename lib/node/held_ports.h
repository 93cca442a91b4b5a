// TCP ports kept for a job from before it starts until it ends.
#pragma once

#include <string>

#include "base/file.h"

namespace fleet {

// A port that is bound with SO_REUSEADDR and not listening: nobody else is given it, yet a program
// that sets SO_REUSEADDR (torch's store, gRPC) can listen on it. Two launchers cannot hold the same
// one: SO_REUSEADDR alone would let them, so an abstract unix socket of its name is held as well.
class HeldPort {
 public:
  // A free one of `address` (an IP address of this host).
  static HeldPort any(const std::string& address);
  // This one. kUsage where it is taken (naming address, port and `option`, which chose it) or the
  // address is not of this host.
  static HeldPort exactly(const std::string& address, int port, const std::string& option);
  int port() const { return port_; }

 private:
  HeldPort(UniqueFd socket, UniqueFd lock, int port)
      : socket_(std::move(socket)), lock_(std::move(lock)), port_(port) {}
  UniqueFd socket_, lock_;
  int port_ = 0;
};

}  // namespace fleet
