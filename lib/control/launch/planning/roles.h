// Parameter servers: the server and trainer processes.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/node_list.h"

namespace fleet {

// A server or trainer that the user has listed.
struct RoleEntry {
  std::string address;
  int port = 0;  // 0: not given
  int rank = 0;  // index in its list
};

// As the user lists them: "10.0.0.1:6070,10.0.0.2:6070".
std::string list_text(const std::vector<RoleEntry>& entries);

struct Roles {
  bool wanted = false;  // false: collective training
  // Either listed by --servers and --workers, or counted per node by --server_num and --worker_num.
  std::vector<RoleEntry> servers, trainers;
  int server_num = 0, trainer_num = 0;
  int with_gloo = 1;  // PADDLE_WITH_GLOO
  int gloo_port = 0;  // 0: chosen like an endpoint port

  bool listed() const { return !servers.empty(); }
  // The nodes of the lists in order of appearance, servers first.
  std::vector<ListedNode> nodes() const;
};

// --run_mode selects the mode, or one of its options implies it. Throws kUsage if options
// contradict each other.
Roles read_roles(const Settings& settings);

// This node's processes, servers first.
struct LocalRoles {
  std::vector<RoleEntry> entries;
  int servers = 0;
};
// `address`: this node's, as listed.
LocalRoles local_roles(const Roles& roles, const std::string& address);

}  // namespace fleet
