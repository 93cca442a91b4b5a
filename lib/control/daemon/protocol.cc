#include "daemon/protocol.h"

#include <algorithm>

namespace fleet {

namespace daemon_wire = daemon::v1;

daemon_wire::Prepare to_wire(const JobRequest& request) {
  daemon_wire::Prepare message;
  message.set_protocol(kFleetdProtocol);
  message.set_version(FLEET_VERSION);
  message.set_job_id(request.job_id);
  message.set_node_rank(request.node_rank);
  message.set_nnodes(request.nnodes);
  message.set_user(request.user);
  message.set_folder(request.folder);
  for (const std::string& word : request.arguments) message.add_arguments(word);
  for (const std::string& word : request.program) message.add_program(word);
  for (const auto& [name, value] : request.environment) {
    auto* variable = message.add_environment();
    variable->set_name(name);
    variable->set_value(value);
  }
  message.set_gpus(request.gpus.names);
  message.set_gpu_count(request.gpus.count);
  message.set_share_gpus(request.gpus.share);
  message.set_no_gpus(request.gpus.none);
  for (const std::string& node : request.nodes) message.add_nodes(node);
  message.set_log_dir(request.log_dir);
  message.set_restarts(request.restarts);
  return message;
}

JobRequest request_from(const daemon_wire::Prepare& message) {
  if (message.protocol() != kFleetdProtocol) {
    throw Error(ErrorCode::kUsage,
                "fleetrun " + message.version() +
                    " and this fleetd " FLEET_VERSION " use different protocols",
                {}, "install the same version on both machines");
  }
  JobRequest request;
  request.job_id = message.job_id();
  request.node_rank = message.node_rank();
  request.nnodes = message.nnodes();
  request.user = message.user();
  request.folder = message.folder();
  request.arguments.assign(message.arguments().begin(), message.arguments().end());
  request.program.assign(message.program().begin(), message.program().end());
  for (const daemon_wire::Variable& variable : message.environment()) {
    request.environment.emplace_back(variable.name(), variable.value());
  }
  request.gpus = {message.gpus(), message.gpu_count(), message.share_gpus(), message.no_gpus()};
  request.nodes.assign(message.nodes().begin(), message.nodes().end());
  request.log_dir = message.log_dir();
  request.restarts = message.restarts();
  return request;
}

daemon_wire::Event refused_event(const Error& error) {
  daemon_wire::Event event;
  daemon_wire::Refused* refused = event.mutable_refused();
  refused->set_code(static_cast<int>(error.code()));
  refused->set_what(error.failure());
  refused->set_where(error.where());
  refused->set_next(error.next());
  return event;
}

Error error_from(const daemon_wire::Refused& refused) {
  const int last = static_cast<int>(ErrorCode::kNoMemory);
  return {static_cast<ErrorCode>(std::clamp(refused.code(), 0, last)), refused.what(),
          refused.where(), refused.next()};
}

}  // namespace fleet
