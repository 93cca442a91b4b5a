// The client of a job on several nodes: sessions with all nodes, their output, and signals.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/message_stream.h"
#include "daemon/remote_job.h"
#include "launch/planning/launch_config.h"

namespace fleet {

struct RemoteNode {
  std::string name;
  wire::ClientMessage initial_request;  // the first request of the session
  std::function<std::shared_ptr<grpc::Channel>()> connect;
  // Why the session ended: it could not connect, or broke after it was `connected`.
  std::function<Error(const grpc::Status&, bool connected)> explain;
};

// Runs the client. Call it from a process without other threads; signals are forwarded to the job.
EndClient run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Options options);
// The part of the configuration that concerns the client.
RemoteJob::Options remote_job_options(const LaunchConfig& config);

}  // namespace fleet
