// A listening Unix socket for this user's processes on this host. Other users and other hosts
// cannot connect.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/sudden_end.h"

namespace fleet {

// Not thread-safe.
class LocalSocket {
 public:
  LocalSocket() = default;  // listens nowhere
  // Listens in `folder`, which only this user may enter, and removes sockets of killed processes
  // there. If `folder` is "" or no socket can be created in it, uses an abstract socket. Other
  // users can see that one; is_own_peer() rejects them in both cases. Throws kIo if neither works.
  static LocalSocket listen(const std::string& folder);
  LocalSocket(LocalSocket&&) = default;
  LocalSocket& operator=(LocalSocket&& other) noexcept;
  ~LocalSocket() = default;  // removes the file

  explicit operator bool() const { return !address_.empty(); }
  // gRPC's notation: "unix:/run/user/1000/fleetrun/rendezvous.4711.0a1b2c3d.sock",
  // "unix-abstract:NAME". Valid as long as this object.
  const std::string& address() const { return address_; }
  UniqueFd take_listener() { return std::move(listener_); }

 private:
  bool listen_in(const std::string& folder);
  void listen_abstract();

  UniqueFd listener_, folder_;
  OwnFile file_;  // in `folder_`; none: abstract
  std::string address_;
};

// An address of such a socket, rather than "HOST:PORT".
bool is_local_address(std::string_view address);

// Removes the sockets of killed processes in `folder`.
void remove_dead_local_sockets(const std::string& folder);

// Whether the process at the other end of a Unix socket was started by this user or by root.
bool is_own_peer(int connection);

}  // namespace fleet
