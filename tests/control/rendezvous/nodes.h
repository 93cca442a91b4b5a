// Nodes for tests of the rendezvous.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

inline wire::StopRequest stop_by(int signal) {
  wire::StopRequest request;
  request.set_signal(signal);
  return request;
}

// The message of this type in the envelope, or nullptr.
template <typename Message>
const Message* message_in(const wire::HostMessage& envelope) {
  const Message* found = nullptr;
  const auto look_at = [&](const auto&... parts) {
    const auto take = [&](const auto& part) {
      if constexpr (std::is_same_v<decltype(part), const Message&>) {
        if (&part != &Message::default_instance()) found = &part;
      }
    };
    (take(parts), ...);
  };
  look_at(envelope.welcome(), envelope.progress(), envelope.peer(), envelope.stop(),
          envelope.verdict(), envelope.stacks(), envelope.restart(), envelope.start(),
          envelope.signal(), envelope.report(), envelope.refused());
  return found;
}

inline JobSpec job_of(std::vector<std::string> addresses) {
  JobSpec spec;
  spec.nnodes = static_cast<int>(addresses.size());
  spec.addresses = std::move(addresses);
  spec.version = "1.2.3";
  spec.agreed_config = {{"--run_mode", "collective"}};
  return spec;
}

inline JobSpec job_of(int nnodes) {
  JobSpec spec = job_of(std::vector<std::string>{});
  spec.nnodes = nnodes;
  return spec;
}

// A node with `ranks` ranks on ports 6070 and up. The first address of a job, or node_rank 0,
// hosts.
inline NodeInfo node_of(const JobSpec& job, const std::string& address, int ranks = 2,
                        bool hosts = false) {
  NodeInfo info;
  info.job = job;
  info.address = address;
  info.hosts_rendezvous = hosts || (!job.addresses.empty() && job.addresses[0] == address);
  info.master_port = info.hosts_rendezvous ? 29500 : 0;
  for (int i = 0; i < ranks; ++i) {
    info.ports.push_back(6070 + i);
    info.devices.push_back({i});
  }
  info.hostname = "host-" + address;
  info.instance = "instance-" + address;
  return info;
}

}  // namespace fleet
