#include "launch/planning/via_plan.h"

namespace fleet {
namespace {

// The number of ranks of a node in collective training; 0 if its GPUs decide.
int ranks_of(const LaunchConfig& config, const ListedNode& node) {
  if (config.local_world_size.value) return *config.local_world_size.value;
  if (node.devices > 0) return node.devices;
  return static_cast<int>(config.gpus.value.size());
}

NodeProcesses processes_of(const Roles& roles, const ListedNode& node, int node_index) {
  const LocalRoles local = local_roles(roles, node.address);
  const int servers = local.servers, trainers = static_cast<int>(local.entries.size()) - servers;
  NodeProcesses processes;
  processes.known = true;
  for (int i = 0; i < servers + trainers; ++i) {
    const bool server = i < servers;
    const int counted = server ? node_index * servers + i : node_index * trainers + i - servers;
    (server ? processes.servers : processes.ranks)
        .push_back(roles.listed() ? local.entries[static_cast<size_t>(i)].rank : counted);
  }
  return processes;
}

}  // namespace

std::vector<NodeProcesses> expected_processes(const LaunchConfig& config,
                                              const std::vector<ListedNode>& nodes) {
  const Roles& roles = config.roles;
  std::vector<NodeProcesses> all;
  int next = 0;  // -1: unknown from here on
  for (const ListedNode& node : nodes) {
    if (roles.wanted) {
      all.push_back(processes_of(roles, node, static_cast<int>(all.size())));
      continue;
    }
    NodeProcesses& processes = all.emplace_back();
    const int ranks = ranks_of(config, node);
    if (ranks == 0) next = -1;
    processes.known = next >= 0;
    for (int i = 0; processes.known && i < ranks; ++i) processes.ranks.push_back(next++);
  }
  return all;
}

}  // namespace fleet
