// Streams over gRPC.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/node_transport.h"
#include "rendezvous/security.h"

namespace fleet {

// Connects when the first stream opens. address: "10.0.0.1:6768" or that of a Unix socket.
std::unique_ptr<NodeTransport> make_grpc_transport(std::string address, Security security,
                                                   std::chrono::milliseconds heartbeat_timeout);

}  // namespace fleet
