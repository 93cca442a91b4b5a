// Streams between a job's host and the node in the same process: no socket, no gRPC.
#pragma once

#include <memory>

#include "rendezvous/job_host.h"
#include "rendezvous/node_transport.h"

namespace fleet {

// Keeps the host until its last stream has ended.
std::unique_ptr<NodeTransport> make_local_transport(std::shared_ptr<JobHost> host);

}  // namespace fleet
