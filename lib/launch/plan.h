// What a command line comes to on this node, before the other nodes are met.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/options.h"
#include "launch/rank_files.h"
#include "launch/roles.h"
#include "launch/shown_ranks.h"
#include "launch/topology.h"
#include "node/held_ports.h"
#include "node/wire.h"
#include "rendezvous/security.h"
#include "rendezvous/types.h"

namespace fleet {

struct LaunchPlan {
  LaunchRequest request;
  Topology topology;
  Roles roles;
  LocalRoles local_roles;                 // of the parameter-server mode
  std::vector<std::vector<int>> devices;  // a rank
  std::vector<std::string> command;
  bool trains = false;  // the command is fleet-worker
  std::vector<std::string> dialects;
  std::string log_dir;
  Security security;
  std::string credentials;      // where ranks find it, in the environment
  bool doctor = false;          // the nodes meet for fleetrun doctor, not for a job
  std::vector<HeldPort> ports;  // a rank
  std::unique_ptr<HeldPort> master_port;
  std::unique_ptr<HeldPort> next_rendezvous;  // where this node would host it, were the host lost
  std::unique_ptr<HeldPort> service_port;     // on loopback, where a dialect wants it

  bool on_gpus() const { return !devices[0].empty(); }
};

// Checks everything that can be checked on this node, and holds its ports. Before threads exist.
// Throws Error for what the user got wrong and what the machine refuses.
LaunchPlan make_plan(LaunchRequest request);
// The same for fleetrun doctor: the program may be missing, and of the ports only that of the first
// rank is held, or any other where a job has it.
LaunchPlan make_doctors_plan(LaunchRequest request);

// Holds the port at which this node would host the rendezvous, were the host lost.
void hold_next_rendezvous(LaunchPlan* plan);

// The folder, or where it would be made: the nearest one that exists.
std::string nearest_folder(const std::string& path);

JobSpec job_of(const LaunchPlan& plan);
NodeInfo node_of(const LaunchPlan& plan, bool hosts_rendezvous);

// What a rank's environment depends on beyond the Assignment, but for its cores.
RankContext rank_context(const LaunchPlan& plan);

// The commands of the ranks of one world: what is alike for them is made once.
class RankCommands {
 public:
  // kUsage where the world lacks a rank that the options name.
  RankCommands(const LaunchPlan& plan, const Assignment& assignment, int terminal_width);
  // Of any node; on `cores` of this machine.
  RankCommand of(const Assignment& assignment, int local_rank, const CorePlan& cores) const;

 private:
  const LaunchPlan& plan_;
  RankContext context_;
  ShownRanks shown_;
  RankFilesOf files_;
  int terminal_width_, debugged_;
};

// How this node's cores are shared out among its ranks. kUsage where --numa_binding cannot be done.
std::vector<CorePlan> cores_of_ranks(const LaunchPlan& plan, const Assignment& assignment);

// This node's ranks, once the world is known. `terminal_width`: of the terminal that shows local
// rank 0; 0: none does.
std::vector<RankCommand> rank_commands(const LaunchPlan& plan, const Assignment& assignment,
                                       int terminal_width);

}  // namespace fleet
