// Listening TCP sockets of a server.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

struct TcpListeners {
  std::vector<UniqueFd> sockets;  // one an address, all at the same port
  int port = 0;
  int error = 0;  // the errno of why there are none; EADDRNOTAVAIL also for an unknown name
};

// Takes the port (0: a free one) of `host`, which is an address, a name, or "", "0.0.0.0" or "::"
// for all. user_timeout: after so long a peer's kernel that acknowledges nothing is given up.
TcpListeners listen_tcp(const std::string& host, int port, std::chrono::milliseconds user_timeout);

}  // namespace fleet
