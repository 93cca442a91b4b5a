// Listening TCP sockets of a server.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

struct TcpListeners {
  std::vector<UniqueFd> sockets;  // one per address, all at the same port
  int port = 0;
  int error = 0;  // errno if there are no sockets; EADDRNOTAVAIL also for an unknown name
};

// Takes the port (0: a free one) of `host`: an address, a name, or "", "0.0.0.0" or "::" for all.
// user_timeout: a peer whose kernel acknowledges nothing for this long is given up.
TcpListeners listen_tcp(const std::string& host, int port, std::chrono::milliseconds user_timeout);

}  // namespace fleet
