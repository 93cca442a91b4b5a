// Connections over networks that lose packets. TCP waits twice as long after each try that failed,
// which soon is a minute: too long for what nodes say to each other, and little is.
#pragma once

#include <string>

namespace fleet {

// From now on this socket, and what it accepts, tries again soon: after the same time at first, and
// where the kernel can (6.15), never after more than a second.
void retry_soon(int socket);
// The same for this process's connections to a peer, as gRPC writes it ("ipv4:10.0.0.1:4711"): gRPC
// gives away none of its sockets.
void retry_soon_to(const std::string& peer);

}  // namespace fleet
