// Connections over networks that lose packets. TCP doubles its wait after each failed retry, up to
// a minute. That is too long for control messages, which are few.
#pragma once

#include <string>

namespace fleet {

// From now on, this socket and the ones it accepts retry soon: first at constant intervals and, if
// the kernel supports it (6.15), never after more than a second.
void limit_retransmission_backoff(int socket);
// The same for this process's connections to a peer in gRPC's notation ("ipv4:10.0.0.1:4711"),
// because gRPC does not expose its sockets.
void limit_retransmission_backoff_to(const std::string& peer);

}  // namespace fleet
