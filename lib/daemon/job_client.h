// The client of a job on several nodes: sessions with all nodes, their output, and signals.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/remote_job.h"
#include "daemon/talk.h"
#include "launch/options.h"

namespace fleet {

struct RemoteNode {
  std::string name;
  Ask first;  // the first request of the session
  std::function<std::shared_ptr<grpc::Channel>()> connect;
  // Why the session ended: it could not connect, or broke after it was `connected`.
  std::function<Error(const grpc::Status&, bool connected)> explain;
};

struct ClientEnd {
  int code = 0;       // the exit code
  bool left = false;  // the job continues
};
// Runs the client. Call it from a process without other threads; signals are forwarded to the job.
ClientEnd run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Terms terms);
// The terms given by the options.
RemoteJob::Terms terms_of(const Settings& settings);

}  // namespace fleet
