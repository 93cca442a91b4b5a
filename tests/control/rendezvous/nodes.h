// Nodes for tests of the rendezvous.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

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
          envelope.signal(), envelope.report(), envelope.refused(), envelope.live(),
          envelope.trace_request(), envelope.trace_answer(), envelope.replace());
  return found;
}

inline void set_values(NamedValues* to, const std::map<std::string, std::string>& values) {
  to->Clear();
  for (const auto& [name, value] : values) add_value(name, value, to);
}

inline JobSpec job_of(const std::vector<std::string>& addresses) {
  JobSpec spec;
  spec.config.set_nnodes(static_cast<int>(addresses.size()));
  spec.config.mutable_addresses()->Assign(addresses.begin(), addresses.end());
  spec.config.set_version("1.2.3");
  set_values(spec.config.mutable_agreed_config(), {{"--run_mode", "collective"}});
  return spec;
}

inline JobSpec job_of(int nnodes) {
  JobSpec spec = job_of(std::vector<std::string>{});
  spec.config.set_nnodes(nnodes);
  return spec;
}

// A node with `ranks` ranks on ports 6070 and up. The first address of a job hosts.
inline wire::Join node_of(const JobSpec& job, const std::string& address, int ranks = 2,
                          bool hosts = false) {
  wire::Join join = join_for(job.config);
  const auto& listed = job.config.addresses();
  join.set_hosts_rendezvous(hosts || (!listed.empty() && listed[0] == address));
  if (join.hosts_rendezvous()) join.set_master_port(29500);
  join.set_instance("instance-" + address);
  join.mutable_node()->set_address(address);
  join.mutable_node()->set_hostname("host-" + address);
  for (int i = 0; i < ranks; ++i) add_rank(join.mutable_node(), {i}, 6070 + i);
  return join;
}

}  // namespace fleet
