// A job on several nodes as its client sees it: conversations with all of them, their output and
// signals.
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
  Ask first;  // what the conversation begins with
  std::function<std::shared_ptr<grpc::Channel>()> connect;
  // Why the conversation ended: it never began, or broke (`connected`).
  std::function<Error(const grpc::Status&, bool connected)> explain;
};

struct ClientEnd {
  int code = 0;       // the exit code
  bool left = false;  // the job goes on
};
// From a process with no other threads; signals go to the job.
ClientEnd run_job_client(std::vector<RemoteNode> nodes, RemoteJob::Terms terms);
// As the options have it.
RemoteJob::Terms terms_of(const Settings& settings);

}  // namespace fleet
